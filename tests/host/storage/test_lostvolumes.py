"""A pool whose file system is not mounted at the start of a server: its machines are held, and go on with their own disks afterwards."""

import asyncio
from pathlib import Path

import pytest

from paddock.engine.storage.pools import MARKER
from paddock.kubernetes.core.storageclass import PROVISIONER
from tests.coroutines import run_by
from tests.host.machines import bootsector
from tests.host.storage.conftest import CORE, MB, io, pvc
from tests.host.storage.machines import Machines, machines
from tests.kit.servers.imageserver import Server, running

pytestmark = pytest.mark.needs("qemu")

GUEST = bootsector.marker().ljust(MB, b"\0")
CLAIMS = f"{CORE}/persistentvolumeclaims"
CLAIM = {**pvc("8Mi"), "storageClassName": "fast"}


async def _made(host: Machines, url: str) -> str:
    """Make a class for the pool, a machine with a disk in it, on which the guest writes; return the UID of the claim."""
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    await host.send("POST", "/apis/storage.k8s.io/v1/storageclasses", {**kind, "provisioner": PROVISIONER, "parameters": {"pool": "fast"}})
    await host.here.data_volume("disk", {"source": {"http": {"url": url}}, "pvc": CLAIM})
    await _start(host, "first")
    await host.mark(await host.running("first"))
    return str((await host.here.get(f"{CLAIMS}/disk"))["metadata"]["uid"])


async def _start(host: Machines, name: str) -> None:
    await host.make(name, [{"name": "disk", "dataVolume": {"name": "disk"}}])


@pytest.mark.spec("kubevirt", 131)
@run_by(asyncio.run)
async def test_a_machine_in_a_pool_that_is_not_mounted(work: Path) -> None:
    pool, away = work / "fast", work / "away"
    # A QEMU with a user of its own passes through.
    work.chmod(0o711)
    server = Server()
    url = server.put("/guest", GUEST)
    with running(server):
        async with machines(work / "root", pools={"fast": pool}) as host:
            uid = await _made(host, url)
        pool.rename(away)
        pool.mkdir()

        async with machines(work / "root", pools={"fast": pool}) as host:
            await _start(host, "held")
            said = await host.held("held", "FailedPvcNotFound")
            assert f"pvc-{uid}" in said and "in pool fast" in said and await host.word("held") == "ErrorPvcNotFound"
            assert (await host.here.get(f"{CLAIMS}/disk"))["status"]["phase"] == "Lost"
            await host.here.post(CLAIMS, {"metadata": {"name": "more"}, "spec": CLAIM})
            await host.until_told("more", "is not mounted")
            assert list(pool.iterdir()) == []
        pool.rmdir()
        away.rename(pool)

        async with machines(work / "root", pools={"fast": pool}) as host:
            await _start(host, "again")
            await host.running("again")
            assert (await host.here.get(f"{CLAIMS}/disk"))["status"]["phase"] == "Bound"
            more = (await host.here.get(f"{CLAIMS}/more"))["metadata"]["uid"]
            await host.here.until("the other claim is filled", lambda: _is_there(pool / more / "volume.json"))
            assert {each.name for each in pool.iterdir()} == {MARKER, uid, more}
            await host.stopped("again")
            volume = host.engine.volumes.get(uid)
            assert volume is not None
            assert "verification failed" not in io(volume.layer, f"read -P {GUEST[0]} {bootsector.MARKED} 1")


async def _is_there(path: Path) -> bool:
    return path.exists()
