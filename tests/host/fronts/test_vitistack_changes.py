"""Vitistack's Machines and their disks when specs change and objects are deleted, with real guests."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.client.errors import Invalid
from tests.coroutines import played
from tests.host.fronts.conftest import guest
from tests.host.fronts.life import storage_class
from tests.host.fronts.test_sources import CLAIMS
from tests.host.runs.conftest import EVENTS, VMIS, VMS, Data, Talk, condition, phase
from tests.kit.servers.imageserver import Server

pytestmark = pytest.mark.needs("qemu")

MACHINES = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ROOT, DATA = {"name": "root", "size": "8Mi"}, {"name": "data", "size": "4Mi"}
FIELDS = {"phase", "conditions", "claims", "vmName", "vmiName", "ipAddresses", "nodeName", "lastUpdated", "resourceVersion"}


async def make(talk: Talk, origin: Server, name: str = "web", **spec: Any) -> None:
    """A Machine that is small enough and has a guest on its root disk."""
    annotations = {"vitistack.io/root-image": origin.put("/image", guest(1))}
    head = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": name, "annotations": annotations}}
    given = {"resources": {"cpu": {"cores": 1}, "memory": {"size": "64Mi"}}, "disks": [ROOT], **spec}
    await talk.make(MACHINES, {**head, "spec": given})


async def change(talk: Talk, **spec: Any) -> None:
    """Change the Machine."""
    await talk.change(f"{MACHINES}/web", {"spec": spec})


async def run(talk: Talk, former: str = "") -> str:
    """The UID of the run, or of another one than the former, when the Machine says that it runs."""

    def runs(found: Data) -> bool:
        return phase(found) == "Running" and found["metadata"]["uid"] != former

    uid = (await talk.until(f"{VMIS}/web", runs, "its guest runs"))["metadata"]["uid"]
    await until_phase(talk, "Running")
    return str(uid)


async def until_phase(talk: Talk, word: str) -> None:
    """Wait until the Machine is in this phase."""
    await talk.until(f"{MACHINES}/web", lambda found: found.get("status", {}).get("phase") == word, f"it is {word}")


async def stop(talk: Talk) -> None:
    """Stop the machine by hand."""
    await talk.verb("web", "stop", gracePeriod=0)
    await until_phase(talk, "Stopped")


async def identity(talk: Talk, path: str) -> str:
    """The UID of an object; empty when it is not there."""
    return str((await talk.get(path)).get("metadata", {}).get("uid", ""))


@pytest.mark.spec("vitistack", 37, 63, 64, 65)
@played
async def test_users_stop_and_start_machines_and_nobody_corrects_them(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, networks=[])
    first = await run(talk)
    status = (await talk.get(f"{MACHINES}/web"))["status"]
    instance = await talk.get(f"{VMIS}/web")
    assert status.keys() >= FIELDS and (status["vmName"], status["vmiName"]) == ("web", "web")
    assert status["nodeName"] == instance["status"]["nodeName"]
    assert status["ipAddresses"] == instance["status"]["interfaces"][0]["ipAddresses"] != []
    spec = (await talk.get(f"{VMS}/web"))["spec"]
    assert spec["running"] is True and "runStrategy" not in spec
    address = instance["status"]["interfaces"][0]["mac"]
    assert address.startswith("02:12:")
    await stop(talk)

    def is_cleared(found: Data) -> bool:
        return found["status"]["phase"] == "Stopped" and not {"vmiName", "ipAddresses"} & found["status"].keys()

    await talk.until(f"{MACHINES}/web", is_cleared, "its run is forgotten")
    assert talk.host.qemus() == {}
    await change(talk, resources={"cpu": {"cores": 2}})
    await talk.until(f"{VMS}/web", lambda found: found["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2, "it is followed")
    await asyncio.sleep(3)
    assert talk.host.qemus() == {} and (await talk.get(f"{MACHINES}/web"))["status"]["phase"] == "Stopped"
    await talk.verb("web", "start")
    await run(talk, first)
    instance = await talk.get(f"{VMIS}/web")
    assert instance["status"]["interfaces"][0]["mac"] == address and instance["status"]["currentCPUTopology"]["cores"] == 2


@pytest.mark.spec("vitistack", 71)
@played
async def test_disks_grow_and_claims_of_removed_disks_stay(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, disks=[ROOT, DATA])
    first, qemus = await run(talk), talk.host.qemus()
    await change(talk, disks=[ROOT, {**DATA, "size": "6Mi"}])
    await talk.until(f"{CLAIMS}/web-data", lambda found: found["status"]["capacity"]["storage"] == "6Mi", "the claim grew")
    await talk.until(f"{VMIS}/web", lambda found: _sizes(found)["data"] == 6 << 20, "the guest sees it")
    assert talk.host.qemus() == qemus
    for smaller in ([ROOT, {**DATA, "size": "5Mi"}], [{**ROOT, "size": "7Mi"}, {**DATA, "size": "6Mi"}]):
        with pytest.raises(Invalid, match="cannot shrink"):
            await change(talk, disks=smaller)
    kept = await identity(talk, f"{CLAIMS}/web-data")
    (file,) = (talk.host.root / "engine" / "volumes" / kept).glob("*.img")
    await change(talk, disks=[ROOT])
    await talk.until(f"{VMS}/web", lambda found: len(found["spec"]["template"]["spec"]["volumes"]) == 1, "one disk is left")
    await stop(talk)
    await talk.verb("web", "start")
    await run(talk, first)
    assert _sizes(await talk.get(f"{VMIS}/web")).keys() == {"root"}
    assert await identity(talk, f"{CLAIMS}/web-data") == kept and file.stat().st_size == 6 << 20
    await talk.client.request("DELETE", f"{MACHINES}/web")
    for path in (f"{MACHINES}/web", f"{CLAIMS}/web-data", f"{CLAIMS}/web-root"):
        await talk.until(path, lambda found: not found, f"{path} is gone")
    async with asyncio.timeout(30):
        while file.exists():
            await asyncio.sleep(0.1)


def _sizes(found: Data) -> dict[str, int]:
    return {each["name"]: each.get("size", 0) for each in found["status"].get("volumeStatus") or ()}


@pytest.mark.spec("vitistack", 72)
@played
async def test_other_cores_wait_for_a_restart_that_nobody_makes(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin)
    first, qemus = await run(talk), talk.host.qemus()
    await change(talk, resources={"cpu": {"cores": 2}})
    await talk.until(EVENTS, lambda found: "RestartRequired" in [each["reason"] for each in found["items"]], "it is told")
    assert (await talk.get(f"{VMS}/web"))["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2
    await asyncio.sleep(3)
    assert talk.host.qemus() == qemus and await run(talk) == first


@pytest.mark.spec("vitistack", 73)
@played
async def test_a_machine_that_is_deleted_comes_back_and_a_claim_does_not(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, disks=[ROOT, DATA])
    first = await run(talk)
    machine, claim = await identity(talk, f"{VMS}/web"), await identity(talk, f"{CLAIMS}/web-root")
    await talk.client.request("DELETE", f"{VMS}/web")
    await run(talk, first)
    assert await identity(talk, f"{VMS}/web") not in ("", machine) and await identity(talk, f"{CLAIMS}/web-root") == claim
    await stop(talk)
    await talk.client.request("DELETE", f"{CLAIMS}/web-data")
    await talk.until(EVENTS, lambda found: "DiskLost" in [each["reason"] for each in found["items"]], "it is missed")
    await asyncio.sleep(3)
    assert await identity(talk, f"{CLAIMS}/web-data") == ""
    assert "web-data" in condition(await talk.get(f"{MACHINES}/web"), "StorageReady")["message"]


@pytest.mark.spec("vitistack", 83)
@played
async def test_an_orphaning_deletion_leaves_the_guest_and_its_disks(talk: Talk, /, origin: Server) -> None:
    await make(talk, origin, disks=[ROOT, DATA])
    first = await run(talk)
    places = [f"{VMS}/web", f"{CLAIMS}/web-root", f"{CLAIMS}/web-data"]
    before = [await identity(talk, each) for each in places]
    await talk.client.request("DELETE", f"{MACHINES}/web", (("propagationPolicy", "Orphan"),))
    await talk.until(f"{MACHINES}/web", lambda found: not found, "the Machine is gone")
    await asyncio.sleep(5)
    assert [await identity(talk, each) for each in places] == before
    assert await identity(talk, f"{VMIS}/web") == first
    # The disks are there still, so the machine starts from them.
    await talk.verb("web", "stop", gracePeriod=0)
    await talk.until(f"{VMIS}/web", lambda found: not found, "its guest is off")
    await talk.verb("web", "start")
    await talk.until(f"{VMIS}/web", lambda found: phase(found) == "Running", "its guest runs again")


@pytest.mark.spec("vitistack", 27, 68)
@played
async def test_a_claim_that_waits_for_its_machine_does_not_hold_it(talk: Talk, /, origin: Server) -> None:
    await talk.make(CLASSES, {**storage_class("lazy"), "volumeBindingMode": "WaitForFirstConsumer"})
    off = {"vitistack.io/power-state": "stopped"}
    head = {"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": {"name": "web", "annotations": off}}
    disks = [{**ROOT, "storageClass": "lazy"}]
    await talk.make(MACHINES, {**head, "spec": {"resources": {"memory": {"size": "64Mi"}}, "disks": disks}})
    await talk.until(f"{VMS}/web", lambda found: found, "the machine is there")
    waits = ("False", "PVCPending")
    await talk.until(f"{MACHINES}/web", lambda found: _storage(found) == waits, "its claim waits")
    assert (await talk.get(f"{CLAIMS}/web-root"))["status"]["phase"] == "Pending"
    await talk.change(f"{MACHINES}/web", {"metadata": {"annotations": {"vitistack.io/power-state": "running"}}})
    await run(talk)
    assert (await talk.get(f"{CLAIMS}/web-root"))["status"]["phase"] == "Bound"
    await talk.until(f"{MACHINES}/web", lambda found: _storage(found) == ("True", "PVCBound"), "its storage is ready")


def _storage(found: Data) -> tuple[str, str]:
    said = condition(found, "StorageReady")
    return said.get("status", ""), said.get("reason", "")
