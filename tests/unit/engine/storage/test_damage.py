"""A record that cannot be read stops what uses it; nothing of it is removed, merged, overwritten or made anew."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage.errors import StoreFailed, VolumeBroken, VolumeBusy
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by
from tests.kit.hostile.damage import DAMAGES, damage, mend

MB = 1 << 20


def opened(root: Path) -> Volumes:
    volumes = Volumes(root, {"fast": root.parent / "fast"})
    volumes.prepare()
    return volumes


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


async def damaged(root: Path, kind: str) -> tuple[Path, bytes]:
    """Volumes `a` (with snapshot `s`, and `copy` over that), `b` and `gone`; damage the record of `a`, and return it as it was."""
    volumes = opened(root)
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    await volumes.restore("s", "copy", MB)
    for name in ("b", "gone"):
        await volumes.create(name, MB)
    record = root / "volumes" / "a" / "volume.json"
    kept = record.read_bytes()
    damage(record, kind)
    return record, kept


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.spec("kubevirt", 141, 143)
@run_by(asyncio.run)
async def test_nothing_is_done_to_a_damaged_volume(tmp_path: Path, kind: str) -> None:
    record, _ = await damaged(tmp_path / "engine", kind)
    before, volumes = files_of(record.parent), opened(tmp_path / "engine")
    for read in (volumes.get, lambda id: volumes.get_snapshot("s"), lambda id: volumes.get("copy")):
        with pytest.raises(VolumeBroken, match=f"cannot read {record}.*restore the file from a backup"):
            read("a")
    make: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: volumes.create("a", MB),
        lambda: volumes.grow("a", 2 * MB),
        lambda: volumes.snapshot("a", "t"),
        lambda: volumes.clone("a", "d", MB),
        lambda: volumes.delete("a"),
        lambda: volumes.collapse("a"),
    )
    for each in make:
        with pytest.raises(VolumeBroken, match=str(record)):
            await each()
    assert files_of(record.parent) == before and record.parent.is_dir()


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.spec("kubevirt", 141, 143)
@run_by(asyncio.run)
async def test_others_go_on_beside_a_damaged_volume_and_a_mended_one_is_used_again(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "engine"
    record, kept = await damaged(root, kind)
    volumes = opened(root)
    await volumes.grow("b", 2 * MB)
    await volumes.snapshot("b", "u")
    await volumes.delete("gone")
    await volumes.delete("copy")
    await volumes.delete_snapshot("u")
    assert (await volumes.create("new", MB)).size == MB and volumes.ids() == {"b", "new"}
    # A layer of them may lie below what cannot be read.
    assert [volumes.is_whole] == [False] and (root / "volumes" / "gone" / "disk.img").exists()
    assert len(list((root / "volumes" / "b").glob("*.img"))) == 2

    mend(record, kept)
    assert volumes.get("a") is not None and volumes.get_snapshot("s") is not None and volumes.is_whole
    await volumes.collapse("b")
    await volumes.delete_snapshot("s")
    names = {each.name for each in (root / "volumes").iterdir()}
    assert volumes.ids() == {"a", "b", "new"} == names - {"paddock-pool"}
    assert len(list((root / "volumes" / "b").glob("*.img"))) == 1


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.spec("kubevirt", 141, 143)
@run_by(asyncio.run)
async def test_a_damaged_snapshot_stops_only_what_uses_it(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "engine"
    volumes = opened(root)
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    record = root / "snapshots" / "s.json"
    kept = record.read_bytes()
    damage(record, kind)

    volumes = opened(root)
    with pytest.raises(VolumeBroken, match=f"cannot read {record}"):
        volumes.get_snapshot("s")
    with pytest.raises(VolumeBroken, match=f"cannot read {record}"):
        await volumes.restore("s", "copy", MB)
    with pytest.raises(VolumeBroken, match=f"cannot read {record}"):
        await volumes.snapshot("a", "s")
    await volumes.grow("a", 2 * MB)
    await volumes.collapse("a")
    assert len(list((root / "volumes" / "a").glob("*.img"))) == 2, "the layer of the snapshot stays"

    mend(record, kept)
    assert volumes.get_snapshot("s") is not None and volumes.is_whole
    await volumes.collapse("a")
    assert len(list((root / "volumes" / "a").glob("*.img"))) == 2
    damage(record, kind)
    volumes = opened(root)
    # Whoever gives it up needs no record of it.
    await volumes.delete_snapshot("s")
    assert not record.exists() and volumes.is_whole
    await volumes.collapse("a")
    assert len(list((root / "volumes" / "a").glob("*.img"))) == 1


@run_by(asyncio.run)
async def test_a_damaged_volume_that_nobody_needs_can_be_deleted(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    volumes = opened(root)
    for name in ("a", "b"):
        await volumes.create(name, MB)
        (root / "volumes" / name / "volume.json").write_bytes(b"{")
    volumes = opened(root)
    held: set[Path] = {root / "volumes" / "a" / "disk.img"}
    volumes.is_held = held.__contains__
    with pytest.raises(VolumeBusy):
        await volumes.delete("a")
    held.clear()
    # The other one may have a layer of it below.
    with pytest.raises(VolumeBroken):
        await volumes.delete("a")
    (root / "volumes" / "b" / "volume.json").unlink()
    await volumes.delete("a")
    assert not (root / "volumes" / "a").exists() and volumes.is_whole


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.spec("kubevirt", 141)
@run_by(asyncio.run)
async def test_a_damaged_list_of_pools_closes_empty_pools(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "engine"
    await opened(root).create("a", MB)
    damage(root / "pools.json", kind)
    before = (root / "pools.json").read_bytes() if kind != "unreadable" else b""
    volumes = opened(root)
    assert volumes.get("a") is not None and [volumes.is_whole] == [False]
    await volumes.create("b", MB)
    with pytest.raises(StoreFailed, match=r"fast.*if pools\.json is not damaged, its file system is not mounted"):
        await volumes.create("c", MB, pool="fast")
    assert list((tmp_path / "fast").iterdir()) == []
    assert kind == "unreadable" or (root / "pools.json").read_bytes() == before


@run_by(asyncio.run)
async def test_a_volume_over_a_damaged_one_can_be_deleted(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    volumes = opened(root)
    await volumes.create("a", MB)
    await volumes.snapshot("a", "s")
    copy = await volumes.restore("s", "copy", MB)
    assert copy.layer.backing == DiskLayer(root / "volumes" / "a" / "disk.img", "raw")
    (root / "volumes" / "a" / "volume.json").write_bytes(b"")
    volumes = opened(root)
    await volumes.delete("copy")
    assert volumes.ids() == set()
