"""Volumes that go back to a snapshot: what each step leaves, which layers stay, and which go. No guest writes."""

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig
from paddock.engine.machine.host import MachineEnvironment
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.observation import Phase
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.machine.users import UserRange
from paddock.engine.storage import files, qemuimg, records
from paddock.engine.storage.errors import StoreFull, VolumeBusy, VolumeMissing
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by

MB = 1 << 20


@pytest.fixture
def volumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Volumes:
    async def commit(layer: object) -> None:
        return

    monkeypatch.setattr(qemuimg, "commit", commit)
    made = Volumes(tmp_path)
    made.prepare()
    asyncio.run(made.create("a", MB))
    asyncio.run(made.snapshot("a", "one"))
    return made


def chain(volumes: Volumes, id: str = "a") -> list[str]:
    """The files of a volume's disk, the topmost first."""
    layer: DiskLayer | None = volumes._there(id).layer
    found = []
    while layer is not None:
        found.append(f"{layer.path.parent.name}/{layer.path.name}")
        layer = layer.backing
    return found


async def opens(volumes: Volumes, layer: DiskLayer) -> bool:
    """Open a disk, and return whether it is that of its volume."""
    try:
        async with volumes.opening(layer):
            return True
    except VolumeBusy:
        return False


def images(volumes: Volumes, id: str = "a") -> set[str]:
    """The layers in the directory of a volume."""
    return {each.name for each in volumes.place(id).iterdir() if each.name != "volume.json"}


def test_the_newest_snapshot_becomes_the_lower_layer(volumes: Volumes) -> None:
    reverted = asyncio.run(volumes.revert("a", "one", 2 * MB, "r"))
    assert reverted.size == 2 * MB and chain(volumes) == ["a/reverted-r.img", "a/disk.img"]
    assert images(volumes) == {"disk.img", "reverted-r.img"}
    assert json.loads((volumes.place("a") / "volume.json").read_text())["version"] == 1


@run_by(asyncio.run)
async def test_an_older_snapshot_leaves_the_newer_ones_and_copies(volumes: Volumes) -> None:
    await volumes.snapshot("a", "two")
    copy = await volumes.restore("two", "b", MB)
    held = volumes.get_snapshot("two")
    await volumes.revert("a", "one", MB, "r")
    assert volumes.get_snapshot("two") == held and volumes._there("b").layer == copy.layer
    assert chain(volumes) == ["a/reverted-r.img", "a/disk.img"]
    assert images(volumes) == {"disk.img", "after-one.img", "reverted-r.img"}
    # An older Paddock refuses it, and removes nothing.
    assert json.loads((volumes.place("a") / "volume.json").read_text())["version"] == 2
    await volumes.delete_snapshot("two")
    assert images(volumes) == {"disk.img", "after-one.img", "reverted-r.img"}
    await volumes.delete("b")
    await volumes.delete_snapshot("one")
    # One chain again, and nothing needs its parts.
    assert chain(volumes) == ["a/disk.img"] and images(volumes) == {"disk.img"}
    await volumes.delete("a")
    assert volumes.ids() == set() and not volumes.place("a").exists()


@run_by(asyncio.run)
async def test_the_newer_one_can_be_reverted_to_afterwards(volumes: Volumes) -> None:
    await volumes.snapshot("a", "two")
    before = volumes.get_snapshot("two")
    for number in range(3):
        await volumes.revert("a", "one", MB, f"x{number}")
        await volumes.revert("a", "two", MB, f"y{number}")
        assert chain(volumes) == [f"a/reverted-y{number}.img", "a/after-one.img", "a/disk.img"]
        assert images(volumes) == {"disk.img", "after-one.img", f"reverted-y{number}.img"}
    assert volumes.get_snapshot("two") == before
    again = Volumes(volumes.place("a").parent.parent)
    again.prepare()
    assert again.get("a") == volumes.get("a")


@run_by(asyncio.run)
async def test_two_volumes_that_lie_over_each_other_go_when_both_are_deleted(volumes: Volumes) -> None:
    await volumes.restore("one", "b", MB)
    await volumes.snapshot("b", "two")
    await volumes.revert("a", "two", MB, "r")
    await volumes.delete_snapshot("one")
    await volumes.delete_snapshot("two")
    await volumes.delete("a")
    assert volumes.place("a").exists() and chain(volumes, "b")
    await volumes.delete("b")
    assert not volumes.place("a").exists() and not volumes.place("b").exists()


def test_repeated_it_changes_nothing(volumes: Volumes) -> None:
    first = asyncio.run(volumes.revert("a", "one", MB, "r"))
    first.layer.path.write_bytes(first.layer.path.read_bytes() + b"a guest wrote here")
    assert asyncio.run(volumes.revert("a", "one", MB, "r")).layer == first.layer
    assert first.layer.path.read_bytes().endswith(b"a guest wrote here")


@pytest.mark.spec("kubevirt", 268)
@pytest.mark.parametrize("step", ["make_layer", "write_whole", "sync_directory"])
def test_a_step_that_fails_leaves_the_disk_of_before_or_the_new_one(volumes: Volumes, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = (chain(volumes), images(volumes))
    with monkeypatch.context() as broken:
        broken.setattr(files, step, full)
        with pytest.raises(StoreFull):
            asyncio.run(volumes.revert("a", "one", MB, "r"))
    assert (chain(volumes), images(volumes) - {"after-one.img"}) in [
        (before[0], before[1] - {"after-one.img"}),
        (["a/reverted-r.img", "a/disk.img"], {"disk.img", "reverted-r.img"}),
    ]
    asyncio.run(volumes.revert("a", "one", MB, "r"))
    asyncio.run(volumes.collapse("a"))
    assert chain(volumes) == ["a/reverted-r.img", "a/disk.img"] and images(volumes) == {"disk.img", "reverted-r.img"}


def test_what_cannot_be_reverted(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VolumeMissing, match="no snapshot none"):
        asyncio.run(volumes.revert("a", "none", MB, "r"))
    with pytest.raises(VolumeMissing, match="no volume none"):
        asyncio.run(volumes.revert("none", "one", MB, "r"))
    held: Callable[[Path], bool] = lambda layer: True  # noqa: E731 - an attribute
    monkeypatch.setattr(volumes, "is_held", held)
    with pytest.raises(VolumeBusy):
        asyncio.run(volumes.revert("a", "one", MB, "r"))
    assert chain(volumes) == ["a/after-one.img", "a/disk.img"]


@run_by(asyncio.run)
async def test_a_record_with_former_chains_is_read_back(volumes: Volumes) -> None:
    await volumes.snapshot("a", "two")
    await volumes.revert("a", "one", MB, "r")
    record = records.read(volumes.place("a") / "volume.json")
    assert record is not None and [chains.layers[-1].name for chains in record.former] == ["after-one.img"]
    assert record.files == images(volumes)


@run_by(asyncio.run)
async def test_a_merge_takes_no_layer_that_a_machine_will_open(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    before = volumes._there("a").layer
    assert await opens(volumes, before)
    monkeypatch.setattr(volumes, "is_held", lambda layer: layer == before.path)
    await volumes.delete_snapshot("one")
    assert await opens(volumes, before) and images(volumes) == {"disk.img", "after-one.img"}
    monkeypatch.setattr(volumes, "is_held", lambda layer: False)
    await volumes.collapse("a")
    assert not await opens(volumes, before) and await opens(volumes, volumes._there("a").layer)
    # Of a layer that ends with a machine, what lies below counts.
    assert not await opens(volumes, await volumes.overlay(volumes.scratch("m", "x"), before, MB))
    assert await opens(volumes, await volumes.blank(volumes.scratch("m", "y"), MB))


@run_by(asyncio.run)
async def test_a_start_waits_for_a_merge_that_has_begun(volumes: Volumes, monkeypatch: pytest.MonkeyPatch) -> None:
    before, began, end = volumes._there("a").layer, asyncio.Event(), asyncio.Event()

    async def commit(layer: object) -> None:
        began.set()
        await end.wait()

    monkeypatch.setattr(qemuimg, "commit", commit)
    merging = asyncio.create_task(volumes.delete_snapshot("one"))
    await began.wait()
    asked = asyncio.create_task(opens(volumes, before))
    await asyncio.sleep(0.05)
    assert not asked.done()
    end.set()
    await merging
    assert not await asked


@pytest.mark.parametrize(("phase", "keeps"), [(each, each in ("defined", "queued", "starting", "suspended")) for each in get_args(Phase)])
@run_by(asyncio.run)
async def test_a_machine_keeps_merges_off_its_disks_until_its_qemu_does(tmp_path: Path, phase: Phase, keeps: bool) -> None:
    def look(config: MachineConfig) -> HostView:
        raise AssertionError("nothing is started")

    machines = Machines(tmp_path, MachineEnvironment(look, StartQueue(1), UserRange()))
    disks = (DiskConfig("root", DiskLayer(Path("/d/root"), "qcow2", DiskLayer(Path("/d/base"), "raw"))),)
    await machines.define("a", MachineConfig("ns_web", CpuConfig(), MemoryConfig(1, 1), disks=disks))
    machines._owners["a"].observe(phase=phase)
    assert machines.will_open(Path("/d/root")) == keeps and not machines.will_open(Path("/d/base"))
