"""Directories of the host as volumes of machines, with all controllers of a host: bound, shared, refused, and never deleted."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.config import DiskLayer
from paddock.fleet.creation import mounts
from paddock.fleet.creation.mounts import HostMount
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.hosts import snapshotting

VOLUMES, CLAIMS = "/api/v1/persistentvolumes", "/api/v1/namespaces/default/persistentvolumeclaims"
EVENTS = "/api/v1/namespaces/default/events"


def sharing(host: FakeHost, *shares: Path, private: tuple[Path, ...] = (), disks: tuple[Path, ...] = ()) -> None:
    """The server's options."""
    host.engine.settings = type("Settings", (), {"host_paths": disks, "shares": shares, "private": private, "pools": {}})


async def made(host: FakeHost, directory: Path, *, readonly: bool = False) -> None:
    """Everything that `paddock run --mount` makes."""
    host.house.volumes.start()
    mount = HostMount(str(directory), "/src", readonly)
    volume, claim = mounts.objects("web", "default", [mount])
    assert (await host.api.post(VOLUMES, volume)).status == 201
    vm = machine(volumes=[])
    mounts.add(vm, [mount])
    await host.make(claim, vm)
    await asyncio.sleep(20)


async def phases(host: FakeHost) -> list[str]:
    found = [*(await host.api.get(VOLUMES)).data["items"], *(await host.api.get(CLAIMS)).data["items"]]
    return [each["status"]["phase"] for each in found]


async def problem(host: FakeHost) -> str:
    status = (await host.vmi())["status"]
    return next(str(each["message"]) for each in status["conditions"] if each["type"] == "Synchronized")


async def begin_sharing(host: FakeHost, *shares: Path, private: tuple[Path, ...] = ()) -> None:
    """Begin anew with these directories: the controllers read the options when they begin."""
    await host.end()
    sharing(host, *shares, private=private)
    await host.begin()


@pytest.mark.spec("kubevirt", 132, 133)
@pytest.mark.parametrize("readonly", [False, True])
@played
async def test_a_directory_is_bound_shared_and_left_alone(host: FakeHost, /, tmp_path: Path, readonly: bool) -> None:
    directory = tmp_path / "src"
    directory.mkdir()
    (directory / "precious").write_text("mine")
    await begin_sharing(host, tmp_path)
    await made(host, directory, readonly=readonly)
    guest = await host.running()
    (shared,) = guest.config.devices.shared
    assert (shared.tag, shared.path, shared.readonly, shared.as_owner) == ("share-1", directory.resolve(), readonly, True)
    assert await phases(host) == ["Bound", "Bound"]
    claim = (await host.api.get(f"{CLAIMS}/web-share-1")).data
    assert claim["spec"]["volumeName"] == "default.web-share-1" and claim["status"]["capacity"] == {"storage": "1Gi"}
    told = [each["reason"] for each in (await host.api.get(EVENTS)).data["items"]]
    assert "FailedBinding" not in told
    # Everything goes: the machine, the claim, and the volume, which nobody made for the claim.
    await host.api.delete("/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web")
    await asyncio.sleep(60)
    await host.api.delete(f"{CLAIMS}/web-share-1")
    await asyncio.sleep(60)
    assert await phases(host) == ["Released"]
    await host.api.merge(f"{VOLUMES}/default.web-share-1", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    await asyncio.sleep(700)
    assert (directory / "precious").read_text() == "mine"
    await host.api.delete(f"{VOLUMES}/default.web-share-1")
    await asyncio.sleep(60)
    assert await phases(host) == []
    assert (directory / "precious").read_text() == "mine"


@pytest.mark.spec("kubevirt", 134)
@played
async def test_only_what_the_server_shares(host: FakeHost, /, tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "allowed" / "way-out").symlink_to(tmp_path / "other")
    await begin_sharing(host, tmp_path / "allowed")
    await made(host, tmp_path / "allowed" / "way-out")
    said = await problem(host)
    assert f"shares {tmp_path / 'allowed'} only; start it with `paddock up --share {tmp_path / 'other'}`" in said
    # A directory in the place of the link is shared without another change.
    (tmp_path / "allowed" / "way-out").unlink()
    (tmp_path / "allowed" / "way-out").mkdir()
    await host.running(seconds=60)


@pytest.mark.spec("kubevirt", 134)
@played
async def test_the_servers_own_data_is_never_shared(host: FakeHost, /, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    await begin_sharing(host, tmp_path, private=(tmp_path / "state",))
    await made(host, tmp_path / "state")
    assert "keeps its own data" in await problem(host)


@played
async def test_a_directory_that_is_not_there_is_waited_for(host: FakeHost, /, tmp_path: Path) -> None:
    await begin_sharing(host, tmp_path)
    await made(host, tmp_path / "src")
    assert "No such file or directory" in await problem(host)
    (tmp_path / "src").mkdir()
    await host.running(seconds=60)


@played
async def test_a_directory_that_nobody_may_write_is_told(host: FakeHost, /, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir(mode=0o555)
    await begin_sharing(host, tmp_path)
    await made(host, tmp_path / "src")
    await host.running()
    (told,) = [each["message"] for each in (await host.api.get(EVENTS)).data["items"] if each["reason"] == "HostPathReadOnly"]
    assert "can only be read" in told and "0555" in told


async def claimed(host: FakeHost, directory: Path, kind: str, **spec: Any) -> None:
    """A volume of an administrator on a directory, and a claim that names it."""
    host.house.volumes.start()
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual", "capacity": {"storage": "2Gi"}, **spec}
    path = {"path": str(directory), "type": kind}
    assert (
        await host.api.post(
            VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "src"}, "spec": {**spec, "hostPath": path}}
        )
    ).status == 201
    claim = {
        "accessModes": spec["accessModes"],
        "storageClassName": "manual",
        "volumeName": "src",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "src"}, "spec": claim})


async def begin_with_disks(host: FakeHost, *allowed: Path) -> None:
    """The same, with the directories in which disks of the host may lie."""
    await host.end()
    sharing(host, disks=allowed)
    await host.begin()


ON_CLAIM = {"persistentVolumeClaim": {"claimName": "src"}}


@pytest.fixture
def umask() -> Iterator[None]:
    """What is made is of nobody else."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.spec("kubevirt", 190)
@pytest.mark.parametrize("kind", ["Directory", "DirectoryOrCreate"])
@pytest.mark.usefixtures("umask")
@played
async def test_a_claim_on_a_directory_has_the_disk_image_in_it(host: FakeHost, /, tmp_path: Path, kind: str) -> None:
    directory = tmp_path / "images" / "alpine"
    await begin_with_disks(host, tmp_path)
    await claimed(host, directory, kind)
    await host.make(machine(volumes=[{"name": "root", **ON_CLAIM}]))
    await asyncio.sleep(20)
    if kind == "Directory":
        assert f"there is no directory {directory}" in await problem(host)
        directory.mkdir(parents=True)
        await asyncio.sleep(30)
    (disk,) = (await host.running()).config.disks
    assert disk.layer == DiskLayer(directory / "disk.img", "raw") and directory.is_dir()
    if kind == "DirectoryOrCreate":
        # Guests run as users of their own.
        assert [stat.S_IMODE(each.stat().st_mode) for each in (directory, directory.parent)] == [0o755, 0o755]


@played
async def test_a_claim_on_a_directory_has_one_writer(host: FakeHost, /, tmp_path: Path) -> None:
    await begin_with_disks(host, tmp_path)
    await claimed(host, tmp_path, "Directory")
    await host.make(machine(volumes=[{"name": "root", **ON_CLAIM}]))
    await host.running()
    await host.make(machine(name="second", volumes=[{"name": "root", **ON_CLAIM}]))
    await asyncio.sleep(20)
    status = (await host.vmi("second"))["status"]
    assert any("is used by the running machine web" in each.get("message", "") for each in status["conditions"])


@pytest.mark.spec("kubevirt", 190)
@pytest.mark.parametrize(
    ("spec", "kind", "why"),
    [
        ({}, "Directory", "is in no directory that hostDisk volumes are allowed in"),
        ({}, "File", "a disk lies in a Directory, or DirectoryOrCreate"),
        ({"volumeMode": "Block"}, "Directory", "needs Filesystem"),
    ],
)
@played
async def test_a_disk_in_a_directory_is_refused(host: FakeHost, /, tmp_path: Path, spec: dict[str, Any], kind: str, why: str) -> None:
    (directory := tmp_path / "images").mkdir()
    await begin_with_disks(host)
    await claimed(host, directory, kind, **spec)
    await host.make(machine(volumes=[{"name": "root", **ON_CLAIM}]))
    await asyncio.sleep(20)
    assert why in await problem(host)
    assert list(directory.iterdir()) == []


@pytest.mark.spec("kubevirt", 190)
@played
async def test_a_link_leads_no_disk_out_of_what_is_allowed(host: FakeHost, /, tmp_path: Path) -> None:
    (allowed := tmp_path / "allowed").mkdir()
    (tmp_path / "secret").write_text("mine")
    (allowed / "disk.img").symlink_to(tmp_path / "secret")
    await begin_with_disks(host, allowed)
    await claimed(host, allowed, "Directory")
    await host.make(machine(volumes=[{"name": "root", **ON_CLAIM}]))
    await asyncio.sleep(20)
    assert "is in no directory that hostDisk volumes are allowed in" in await problem(host)


@pytest.mark.spec("kubevirt", 132)
@played
async def test_snapshots_and_exports_leave_the_directory_out(host: FakeHost, /, tmp_path: Path) -> None:
    await begin_sharing(host, tmp_path)
    await made(host, tmp_path)
    await host.running()
    await host.make(snapshotting.snapshot())
    await asyncio.sleep(60)
    taken = await snapshotting.taken(host)
    assert taken["readyToUse"] and taken["snapshotVolumes"] == {"excludedVolumes": ["share-1"]}
    await host.make(snapshotting.export("PersistentVolumeClaim", "web-share-1"))
    await asyncio.sleep(20)
    assert any("is a directory of the host, not a disk" in each["message"] for each in (await snapshotting.exported(host))["conditions"])
