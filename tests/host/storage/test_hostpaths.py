"""Claims on directories of the host as disks, with real guests: the image of the directory is what the guest writes."""

import asyncio
from pathlib import Path

import pytest

from paddock.engine.machine.config import DiskLayer
from tests.coroutines import run_by
from tests.host.owners.conftest import CLAIMS, GUEST, MB, PERSISTENT_VOLUMES, drop, gone, marks, write
from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, host, machine

__all__ = ["host"]

pytestmark = pytest.mark.needs("qemu")


def _spec() -> Data:
    return {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}


async def claim(talk: Talk, name: str, directory: Path, size: int) -> None:
    """A claim on a directory, by an administrator's volume of this size."""
    path = {"path": str(directory), "type": "DirectoryOrCreate"}
    volume = {**_spec(), "capacity": {"storage": str(size)}, "hostPath": path}
    await talk.make(PERSISTENT_VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume})
    spec = {**_spec(), "volumeName": name, "resources": {"requests": {"storage": str(MB)}}}
    await talk.make(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})


@pytest.mark.spec("kubevirt", 190)
@run_by(asyncio.run)
async def test_a_guest_writes_to_the_image_in_a_directory(host: Host, work: Path) -> None:
    shelf = work / "shelf"
    (system := shelf / "system").mkdir(parents=True)
    # Guests run as users of their own.
    for each in (work, shelf):
        each.chmod(0o711)
    (image := system / "disk.img").write_bytes(GUEST.ljust(8 * MB, b"\0"))
    host.options = ("--host-disks", str(shelf))
    disks: list[Data] = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in ("system", "data")]

    host.start()

    async with asyncio.timeout(120), host.client() as client:
        talk = Talk(host, client)
        await claim(talk, "system", system, 8 * MB)
        await claim(talk, "data", shelf / "data", 2 * MB)
        await talk.make(VMS, machine("web", volumes=disks))
        await write(talk, "web", 2)
        # It was not there.
        assert (shelf / "data" / "disk.img").stat().st_size == 2 * MB
        await drop(talk, f"{VMS}/web")
        await gone(talk, f"{VMIS}/web")
        await drop(talk, f"{CLAIMS}/system")
        await gone(talk, f"{CLAIMS}/system")
    assert marks(DiskLayer(image, "raw")) == 2
