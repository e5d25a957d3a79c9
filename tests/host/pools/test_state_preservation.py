"""Pools that keep disks (`statePreservation: Offline`), with real guests: each disk outlives its machine, and the next machine has it.

`SCALES=50` scales in and out more often than the sample of every run.
"""

import subprocess
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from paddock.engine.storage import qemuimg
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.machines import bootsector
from tests.host.pools.conftest import SCALES
from tests.host.runs.conftest import PROMPT, VMS, Data, Talk, phase

pytestmark = pytest.mark.needs("qemu")

MB = 1 << 20
POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
DATA_VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
LABELS = {"app": "web"}


def pool(url: str, size: str, memory: str, strategy: str, **scale_in: str) -> Data:
    """Two machines, each with a disk of its own that is downloaded."""
    devices = {"autoattachGraphicsDevice": False, "autoattachPodInterface": False, "disks": [{"name": "root", "disk": {"bus": "virtio"}}]}
    domain = {"cpu": {"model": "qemu64"}, "memory": {"guest": memory}, "devices": devices}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    machine = {
        "runStrategy": strategy,
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {"source": {"http": {"url": url}}, "pvc": claim}}],
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "domain": domain,
                "terminationGracePeriodSeconds": 0,
                "volumes": [{"name": "root", "dataVolume": {"name": "disk"}}],
            },
        },
    }
    template = {"metadata": {"labels": LABELS}, "spec": machine}
    strategies = {"proactive": {"statePreservation": "Offline", **scale_in}}
    return {
        "apiVersion": "pool.kubevirt.io/v1beta1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": template, "scaleInStrategy": strategies},
    }


async def uids(talk: Talk, path: str) -> dict[str, str]:
    """The UIDs of the objects of a kind, by name."""
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in (await talk.get(path))["items"]}


async def owners(talk: Talk, path: str) -> dict[str, list[str]]:
    """The UIDs of the owners of the objects of a kind, by name."""
    found = (await talk.get(path))["items"]
    return {each["metadata"]["name"]: [one["uid"] for one in each["metadata"].get("ownerReferences") or ()] for each in found}


async def scale_in(talk: Talk, kept: dict[str, dict[str, str]]) -> str:
    """Scale to one machine; the number of the one that went, whose disk nobody owns and everybody keeps."""
    before = await uids(talk, VMS)
    await talk.change(f"{POOLS}/web", {"spec": {"replicas": 1}})
    await talk.until(VMS, lambda found: len(found["items"]) == 1, "one machine is left")
    (number,) = (name.removeprefix("web-") for name in set(before) - set(await uids(talk, VMS)))
    await check_kept(talk, kept)
    assert (await owners(talk, DATA_VOLUMES))[f"disk-{number}"] == []
    return number


async def scale_out(talk: Talk, number: str, kept: dict[str, dict[str, str]]) -> None:
    """Scale to two machines; the new one owns the disk of the one before."""
    await talk.change(f"{POOLS}/web", {"spec": {"replicas": 2}})
    machine = await talk.until(f"{VMS}/web-{number}", lambda found: found, "the machine is there again")
    uid = machine["metadata"]["uid"]

    def is_owned(found: Data) -> bool:
        return [each["uid"] for each in found["metadata"].get("ownerReferences") or ()] == [uid]

    await talk.until(f"{DATA_VOLUMES}/disk-{number}", is_owned, "the disk belongs to the new machine")
    await check_kept(talk, kept)


async def check_kept(talk: Talk, kept: dict[str, dict[str, str]]) -> None:
    """Fail unless all disks are the ones they were."""
    for path, before in kept.items():
        assert await uids(talk, path) == before


async def begin(talk: Talk, body: Data) -> dict[str, dict[str, str]]:
    """Make the pool; its disks, by kind, when they are filled."""
    await talk.make(POOLS, body)

    def are_filled(found: Data) -> bool:
        return [phase(each) for each in found["items"]] == ["Succeeded"] * 2

    await talk.until(DATA_VOLUMES, are_filled, "the disks are filled")
    return {path: await uids(talk, path) for path in (DATA_VOLUMES, CLAIMS)}


@pytest.mark.spec("kubermatic", 56)
@pytest.mark.spec("kubevirt", 100)
@played
async def test_a_machine_that_is_scaled_in_leaves_its_disk_to_the_next(talk: Talk, /, web: Shelf, work: Path) -> None:
    url = web.put(bootsector_disk(work))
    kept = await begin(talk, pool(url, "8Mi", "32Mi", "Halted"))
    for _ in range(SCALES):
        await scale_out(talk, await scale_in(talk, kept), kept)


@pytest.mark.spec("kubermatic", 56)
@pytest.mark.spec("kubevirt", 100)
@played
async def test_a_guest_finds_what_the_one_before_it_wrote(talk: Talk, /, web: Shelf, work: Path) -> None:
    url = web.put(bootsector_disk(work))
    kept = await begin(talk, pool(url, "8Mi", "32Mi", "Always"))
    for number in "01":
        await talk.running(f"web-{number}")
        async with talk.console(f"web-{number}") as console:
            await console.write(b"w")
            await console.until(b"w")
    for _ in range(SCALES):
        number = await scale_in(talk, kept)
        assert is_marked(talk.host.root, kept[CLAIMS][f"disk-{number}"])
        await scale_out(talk, number, kept)
        await talk.running(f"web-{number}")
    for number in "01":
        assert is_marked(talk.host.root, kept[CLAIMS][f"disk-{number}"])


@pytest.mark.spec("kubermatic", 56)
@pytest.mark.spec("kubevirt", 100)
@played
async def test_a_file_system_outlives_its_machine(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage, tiny_kernel_image: str) -> None:
    body = pool(web.put(tiny_guest.disk), "512Mi", "256Mi", "Always")
    # The guest of the disk, started without its boot loader: emulated processors that are busy elsewhere miss their first ticks.
    container = {"image": tiny_kernel_image, "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}
    kernel = {"kernelArgs": "console=ttyS0 quiet no_timer_check", "container": container}
    domain = body["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]["domain"]
    domain["firmware"] = {"kernelBoot": kernel}
    kept = await begin(talk, body)
    for number in "01":
        await in_guest(talk, number, f"echo disk {number} > /data/marker; sync")
    for _ in range(2):
        number = await scale_in(talk, kept)
        await scale_out(talk, number, kept)
        assert await in_guest(talk, number, "cat /data/marker") == f"disk {number}\n"


async def in_guest(talk: Talk, number: str, command: str) -> str:
    """Return the output of a command in the tiny guest of a machine."""
    await talk.running(f"web-{number}")
    async with talk.console(f"web-{number}") as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        return await console.shell(command)


def bootsector_disk(work: Path) -> Path:
    """The disk of a guest that marks it when it is asked to."""
    path = work / "guest.img"
    path.write_bytes(bootsector.marker().ljust(MB, b"\0"))
    return path


def is_marked(root: Path, claim: str) -> bool:
    """Return True if a guest has written to a disk."""
    volume = Volumes(root / "engine").get(claim)
    assert volume is not None
    command = ["qemu-io", "-r", "-U", qemuimg._json(volume.layer), "-c", f"read -v {bootsector.MARKED} 16"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    return bootsector.marker()[:16].hex(" ") in said
