"""Promises of the objects of machines, with real guests: what goes with a machine, what stays, and what a machine waits for."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.coroutines import played
from tests.host.guests import Registry, Shelf
from tests.host.machines import bootsector
from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, files_in, machine, phase

pytestmark = pytest.mark.needs("qemu")

CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
EAGER = "kubevirt.io/immediate-data-volume-creation"


@pytest.fixture
def image(work: Path, registry: Registry) -> str:
    """The guest of 512 bytes as a containerDisk."""
    return registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img")})


@pytest.fixture
def url(work: Path, web: Shelf) -> str:
    """The guest of 512 bytes as a download."""
    return web.put(bootsector.write(work / "guest.img"))


def installed(name: str, url: str, strategy: str = "Always", **annotations: str) -> Data:
    """A machine with a disk of its own."""
    document = machine(name, strategy=strategy, volumes=[{"name": "root", "dataVolume": {"name": f"{name}-disk"}}])
    document["metadata"]["annotations"] = annotations
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Mi"}}}
    template = {"metadata": {"name": f"{name}-disk"}, "spec": {"source": {"http": {"url": url}}, "pvc": claim}}
    document["spec"] |= {"dataVolumeTemplates": [template]}
    document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    return document


async def delete(talk: Talk, path: str, **options: str) -> None:
    """Delete an object."""
    await talk.client.request("DELETE", path, tuple(options.items()))


async def gone(talk: Talk, path: str) -> None:
    """Wait until an object is not there any more."""
    await talk.until(path, lambda found: not found, f"{path} is gone")


def files(host: Host) -> list[Path]:
    """Return the files and directories of machines and volumes."""
    return files_in(host, "machines", "volumes", "scratch")


@pytest.mark.spec("kubevirt", 23)
@played
async def test_everything_of_a_machine_goes_with_it_and_its_disk_goes_last(talk: Talk, /, url: str) -> None:
    await talk.make(VMS, installed("web", url))
    await talk.running("web")
    assert len(files(talk.host)) == 2
    await delete(talk, f"{VMS}/web")
    async with asyncio.timeout(60):
        while left := files(talk.host):
            # Later things are read first, so what is missing here was missing before the next look.
            has_claim = bool(await talk.get(f"{CLAIMS}/web-disk"))
            has_disk = bool(await talk.get(f"{CDI}/web-disk"))
            has_run = bool(await talk.get(f"{VMIS}/web"))
            runs = bool(talk.host.qemus())
            assert has_claim or not has_disk, left
            assert has_disk or not has_run, left
            assert has_run or not runs, left
    for path in (f"{VMS}/web", f"{VMIS}/web", f"{CDI}/web-disk", f"{CLAIMS}/web-disk"):
        await gone(talk, path)
    assert talk.host.qemus() == {}


@pytest.mark.spec("kubevirt", 24)
@played
async def test_disks_are_left_when_that_is_asked_for_and_force_leaves_no_process(talk: Talk, /, url: str, image: str) -> None:
    await talk.make(VMS, installed("web", url))
    await talk.make(VMS, machine("deaf", image, terminationGracePeriodSeconds=300))
    kept = (await talk.running("web"))["metadata"]["uid"]
    uid = (await talk.running("deaf"))["metadata"]["uid"]
    async with talk.console("deaf") as console:
        await console.until(b"R")
        await console.write(b"xd")
        await console.until(b"x")
    await delete(talk, f"{VMS}/deaf", gracePeriodSeconds="0")
    await delete(talk, f"{VMIS}/deaf", gracePeriodSeconds="0")
    for path in (f"{VMS}/deaf", f"{VMIS}/deaf"):
        await gone(talk, path)
    assert uid not in talk.host.qemus()
    await delete(talk, f"{VMS}/web", propagationPolicy="Orphan")
    await gone(talk, f"{VMS}/web")
    await asyncio.sleep(3)
    assert await talk.get(f"{CDI}/web-disk") and await talk.get(f"{CLAIMS}/web-disk")
    assert any(each.parent.name == "volumes" for each in files(talk.host))
    assert set(talk.host.qemus()) <= {kept}


@pytest.mark.spec("kubevirt", 32)
@played
async def test_machines_of_one_name_in_two_namespaces(talk: Talk, /, image: str) -> None:
    await talk.make("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    await talk.make(VMS, machine("web", image, terminationGracePeriodSeconds=0))
    await talk.make(VMS.replace("default", "shop"), machine("web", image, terminationGracePeriodSeconds=0))
    there = VMIS.replace("default", "shop")
    own = (await talk.running("web"))["metadata"]["uid"]
    other = (await talk.until(f"{there}/web", lambda found: phase(found) == "Running", "both run"))["metadata"]["uid"]
    assert set(talk.host.qemus()) == {own, other}
    await delete(talk, f"{VMS}/web")
    await gone(talk, f"{VMIS}/web")
    await asyncio.sleep(2)
    found = await talk.get(f"{there}/web")
    assert (found["metadata"]["uid"], phase(found)) == (other, "Running") and set(talk.host.qemus()) == {other}


@pytest.mark.spec("kubevirt", 36)
@played
async def test_a_machine_waits_for_a_node_that_has_its_labels(talk: Talk, /, image: str) -> None:
    await talk.make(VMS, machine("web", image, nodeSelector={"disk": "fast"}, terminationGracePeriodSeconds=0))
    await talk.until(f"{VMS}/web", lambda found: _word(found) == "ErrorUnschedulable", "it waits")
    assert talk.host.qemus() == {}
    (node,) = (await talk.get("/api/v1/nodes"))["items"]
    await talk.change(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": {"disk": "fast"}}})
    await talk.running("web")


def _word(found: Data) -> str:
    return str(found.get("status", {}).get("printableStatus", ""))


@pytest.mark.spec("kubevirt", 37, 38)
@played
async def test_when_disks_are_made_and_that_a_claim_is_enough(talk: Talk, /, url: str) -> None:
    await talk.make(VMS, installed("eager", url, "Halted"))
    await talk.make(VMS, installed("lazy", url, "Halted", **{EAGER: "false"}))
    await talk.until(f"{CDI}/eager-disk", lambda found: phase(found) == "Succeeded", "it is imported")
    await asyncio.sleep(2)
    assert await talk.get(f"{CDI}/lazy-disk") == {} and talk.host.qemus() == {}
    claim = (await talk.get(f"{CLAIMS}/eager-disk"))["metadata"]["uid"]
    await delete(talk, f"{CDI}/eager-disk", propagationPolicy="Orphan")
    await talk.change(f"{VMS}/eager", {"spec": {"runStrategy": "Always"}})
    await talk.change(f"{VMS}/lazy", {"spec": {"runStrategy": "Always"}})
    for name in ("eager", "lazy"):
        await talk.running(name)
    assert (await talk.get(f"{CLAIMS}/eager-disk"))["metadata"]["uid"] == claim


@pytest.mark.spec("kubevirt", 30)
def test_a_restart_of_paddock_changes_nothing_and_misses_nothing(host: Host, image: str) -> None:
    async def begin() -> tuple[dict[str, str], Data]:
        async with asyncio.timeout(120), host.client() as client:
            talk = Talk(host, client)
            for name, strategy in (("stays", "Always"), ("ends", "Once")):
                await talk.make(VMS, machine(name, image, strategy, terminationGracePeriodSeconds=0))
            runs = {name: (await talk.running(name))["metadata"]["uid"] for name in ("stays", "ends")}
            for name in runs:
                await talk.until(f"{VMS}/{name}", lambda found: found["status"].get("ready"), "it is ready")
            # Whatever is still to be written of them is written.
            await asyncio.sleep(3)
            return runs, (await talk.get(f"{VMIS}/stays"))["status"]

    async def after(runs: dict[str, str], status: Data) -> None:
        async with asyncio.timeout(120), host.client() as client:
            talk = Talk(host, client)
            found = await talk.until(f"{VMIS}/ends", lambda found: phase(found) == "Failed", "its end is noticed")
            assert found["metadata"]["uid"] == runs["ends"]
            await asyncio.sleep(3)
            found = await talk.get(f"{VMIS}/stays")
            assert (found["metadata"]["uid"], found["status"]) == (runs["stays"], status)

    host.start()
    runs, status = asyncio.run(begin())
    before = host.qemus()
    host.kill()
    assert host.qemus() == before
    (pid,) = before[runs["ends"]]
    os.kill(pid, signal.SIGKILL)
    host.start()
    asyncio.run(after(runs, status))
    assert host.qemus() == {runs["stays"]: before[runs["stays"]]}


@pytest.mark.spec("kubevirt", 80)
@played
async def test_what_is_said_of_volumes(talk: Talk, /, url: str, image: str) -> None:
    document = installed("web", url)
    spec = document["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "image", "containerDisk": {"image": image}})
    spec["domain"]["devices"]["disks"].append({"name": "image", "disk": {"bus": "virtio"}})
    await talk.make(VMS, document)
    await talk.running("web")
    claim = await talk.get(f"{CLAIMS}/web-disk")

    def has_sizes(found: Data) -> bool:
        return {each["name"]: each.get("size") for each in found["status"].get("volumeStatus") or ()} == {
            "root": 8 << 20,
            "image": 1 << 20,
        }

    found = await talk.until(f"{VMIS}/web", has_sizes, "the sizes are told")
    volumes = {each["name"]: each for each in found["status"]["volumeStatus"]}
    assert {name: each["target"] for name, each in volumes.items()} == {"root": "vda", "image": "vdb"}
    assert volumes["root"]["persistentVolumeClaimInfo"] == {
        "claimName": "web-disk",
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "capacity": claim["status"]["capacity"],
        "requests": claim["spec"]["resources"]["requests"],
        "filesystemOverhead": "0.06",
    }
    owner = await talk.until(f"{VMS}/web", lambda found: found["status"].get("volumeSnapshotStatuses"), "it is told what has snapshots")
    snapshots = {each["name"]: each for each in owner["status"]["volumeSnapshotStatuses"]}
    assert {name: each["enabled"] for name, each in snapshots.items()} == {"root": True, "image": False}
    assert snapshots["image"]["reason"] == "Snapshot is not supported for this volumeSource type [image]"
