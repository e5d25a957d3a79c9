"""Stakater's machines and their disks when specs change and objects are deleted, with real guests."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.host.fronts.conftest import guest
from tests.host.fronts.test_sources import CLAIMS, DISKS, SOURCES
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, condition, phase
from tests.kit.servers.imageserver import Server
from tests.scenario.fronts.kubermatic.making import source

pytestmark = pytest.mark.needs("qemu")

FRONTS = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
DATA = {"name": "data", "size": "4Mi"}
SERVICE = "/api/v1/namespaces/default/services/web-lb"


async def make(talk: Talk, origin: Server, **parameters: Any) -> None:
    """A machine that is small enough, and its image."""
    await talk.make(SOURCES, source("golden", origin.put("/golden", guest(1))))
    given = {
        "runStrategy": "Always",
        "dataSource": {"name": "golden", "namespace": "default"},
        "storage": {"size": "8Mi"},
        "memory": {"guest": "64Mi"},
        "firmware": {"efi": False},
        "networks": [],
        "terminationGracePeriodSeconds": 0,
        **parameters,
    }
    head = {"apiVersion": "infrastructure.stakater.com/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}}
    await talk.make(FRONTS, {**head, "spec": {"parameters": given}})


async def change(talk: Talk, **parameters: Any) -> None:
    """Change parameters of the machine."""
    await talk.change(f"{FRONTS}/web", {"spec": {"parameters": parameters}})


async def until_word(talk: Talk, word: str) -> Data:
    """The status of the front's machine, when it says this."""
    found = await talk.until(f"{FRONTS}/web", lambda found: _machine(found).get("printableStatus") == word, f"it is {word}")
    return _machine(found)


def _machine(found: Data) -> Data:
    return dict(found.get("status", {}).get("vm") or {})


async def run(talk: Talk, former: str = "") -> str:
    """The UID of the run, or of another one than the former."""

    def runs(found: Data) -> bool:
        return phase(found) == "Running" and found["metadata"]["uid"] != former

    return str((await talk.until(f"{VMIS}/web", runs, "its guest runs"))["metadata"]["uid"])


async def identity(talk: Talk, path: str) -> str:
    """The UID of an object; empty when it is not there."""
    return str((await talk.get(path)).get("metadata", {}).get("uid", ""))


@pytest.mark.spec("stakater", 63)
@played
async def test_a_disk_that_is_taken_out_keeps_its_data(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, additionalDisks=[DATA])
    first = await run(talk)
    kept = {path: await identity(talk, path) for path in (f"{DISKS}/web-data", f"{CLAIMS}/web-data")}
    (file,) = (talk.host.root / "engine" / "volumes" / kept[f"{CLAIMS}/web-data"]).glob("*.img")
    await change(talk, additionalDisks=[])
    await talk.until(f"{VMS}/web", lambda found: len(found["spec"]["dataVolumeTemplates"]) == 1, "the machine has one disk")
    await change(talk, runStrategy="Halted")
    await until_word(talk, "Stopped")
    mark = b"what the guest wrote"
    with file.open("r+b") as data:
        data.write(mark)
    await change(talk, runStrategy="Always")
    second = await run(talk, first)
    names = [each["name"] for each in (await talk.get(f"{VMIS}/web"))["spec"]["volumes"]]
    assert "data" not in names and "rootdisk" in names
    assert {path: await identity(talk, path) for path in kept} == kept
    await change(talk, additionalDisks=[DATA], runStrategy="Halted")
    await until_word(talk, "Stopped")
    await change(talk, runStrategy="Always")
    await run(talk, second)
    sizes = {each["name"]: each.get("size") for each in (await talk.get(f"{VMIS}/web"))["status"]["volumeStatus"]}
    assert sizes["data"] == 4 << 20
    assert {path: await identity(talk, path) for path in kept} == kept and file.read_bytes().startswith(mark)


@pytest.mark.spec("stakater", 58, 64)
@played
async def test_other_cores_wait_for_a_restart_that_nobody_makes(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, cpu={"cores": 4, "sockets": 1, "threads": 2})
    first, qemus = await run(talk), talk.host.qemus()
    said = await until_word(talk, "Running")
    # The guest has twice as many.
    assert said["cpuCores"] == 4
    assert (await talk.get(f"{VMIS}/web"))["status"]["currentCPUTopology"] == {"cores": 4, "sockets": 1, "threads": 2}
    await change(talk, cpu={"cores": 2})

    def waits(found: Data) -> bool:
        return condition({"status": _machine(found)}, "RestartRequired").get("status") == "True"

    await talk.until(f"{FRONTS}/web", waits, "it says so")
    assert (await talk.get(f"{VMS}/web"))["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2
    await asyncio.sleep(3)
    assert talk.host.qemus() == qemus and await run(talk) == first


@pytest.mark.spec("stakater", 65)
@played
async def test_a_machine_that_is_deleted_comes_back_and_a_root_disk_does_not(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin)
    first = await run(talk)
    machine = await identity(talk, f"{VMS}/web")
    await talk.client.request("DELETE", f"{VMS}/web")
    second = await run(talk, first)
    assert await identity(talk, f"{VMS}/web") not in ("", machine) and list(talk.host.qemus()) == [second]
    await change(talk, runStrategy="Halted")
    await until_word(talk, "Stopped")
    machine = await identity(talk, f"{VMS}/web")
    await talk.client.request("DELETE", f"{DISKS}/web-rootdisk")
    await talk.until(f"{FRONTS}/web", lambda found: condition(found, "Synced").get("reason") == "RootDiskLost", "it is missed")
    await change(talk, runStrategy="Always")
    await asyncio.sleep(5)
    assert await identity(talk, f"{DISKS}/web-rootdisk") == await identity(talk, f"{CLAIMS}/web-rootdisk") == ""
    assert await identity(talk, f"{VMS}/web") == machine and talk.host.qemus() == {}


@pytest.mark.spec("stakater", 59, 66)
@played
async def test_a_stop_by_hand_stays_unless_the_machine_is_always_to_run(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin)
    first = await run(talk)
    await talk.verb("web", "stop")
    second = await run(talk, first)
    assert (await talk.get(f"{VMS}/web"))["spec"]["runStrategy"] == "Always"
    await change(talk, runStrategy="Manual")
    await talk.until(f"{VMS}/web", lambda found: found["spec"]["runStrategy"] == "Manual", "it is Manual")
    assert await run(talk) == second
    await talk.verb("web", "stop")
    await until_word(talk, "Stopped")
    await asyncio.sleep(5)
    assert talk.host.qemus() == {} and (await talk.get(f"{VMS}/web"))["spec"]["runStrategy"] == "Manual"
    await change(talk, runStrategy="Halted")

    def rests(found: Data) -> bool:
        ready, said = condition(found, "Ready"), _machine(found)
        return (ready.get("status"), ready.get("reason"), said.get("created"), said.get("ready")) == ("True", "Available", False, False)

    await talk.until(f"{FRONTS}/web", rests, "it is as it should be")
    assert talk.host.qemus() == {}


@pytest.mark.spec("stakater", 48)
@played
async def test_the_address_of_the_service_comes_and_goes_with_it(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, networks=None, service={"enabled": True})
    await run(talk)
    address = _machine(await talk.until(f"{FRONTS}/web", lambda found: _machine(found).get("serviceIP"), "it has an address"))["serviceIP"]
    service = await talk.get(SERVICE)
    assert [each["ip"] for each in service["status"]["loadBalancer"]["ingress"]] == [address]
    (port,) = (each["port"] for each in service["spec"]["ports"])
    _, writer = await asyncio.open_connection(address, port)
    writer.close()
    await change(talk, service={"enabled": False})
    await talk.until(SERVICE, lambda found: not found, "the Service is gone")
    await talk.until(f"{FRONTS}/web", lambda found: not {"serviceIP", "serviceHostname"} & _machine(found).keys(), "nor its address")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(address, port)
