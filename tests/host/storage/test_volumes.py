"""Volumes with a real qemu-img: what a disk holds after each operation, who shares what with whom, and what a sudden end leaves."""

import asyncio
import gzip
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paddock.base.disksizes import LARGEST
from paddock.engine.machine.config import DiskLayer, Format
from paddock.engine.storage import files, headers, qemuimg, records
from paddock.engine.storage.errors import NotAllowed, TooSmall, VolumeBroken, VolumeBusy, VolumeMissing
from paddock.engine.storage.pools import MARKER
from paddock.engine.storage.records import VolumeRecord
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu")
MB = 1 << 20


@dataclass(frozen=True)
class Image:
    """As the library gives them."""

    digest: str
    path: Path
    format: Format
    virtual_size: int


@pytest.fixture
def volumes(work: Path) -> Volumes:
    made = Volumes(work)
    made.prepare()
    return made


def io(layer: DiskLayer, *commands: str) -> str:
    """Read or write a disk as a machine would see it."""
    words = [word for command in commands for word in ("-c", command)]
    name = qemuimg._json(layer)
    return subprocess.run(["qemu-io", name, *words], check=True, capture_output=True, text=True, timeout=30).stdout


def holds(layer: DiskLayer, pattern: int, offset: str = "0") -> bool:
    return "verification failed" not in io(layer, f"read -P {pattern} {offset} 64k")


def image(work: Path, format: Format = "qcow2", size: int = 8 * MB) -> Image:
    path = work / "images" / f"golden.{format}"
    path.parent.mkdir(exist_ok=True)
    subprocess.run(["qemu-img", "create", "-q", "-f", format, path, str(size)], check=True)
    io(DiskLayer(path, format), "write -P 7 0 1M")
    path.chmod(0o444)
    return Image("sha256:golden", path, format, size)


@pytest.mark.parametrize("size", [512, 600 * MB, (1 << 40) + 512, LARGEST])
def test_an_empty_layer_is_what_qemu_img_makes(work: Path, size: int) -> None:
    below = DiskLayer(work / "base.img", "raw")
    subprocess.run(["qemu-img", "create", "-q", "-f", "raw", below.path, "1M"], check=True)
    io(below, "write -P 7 0 1M")
    ours, theirs = work / "ours.qcow2", work / "theirs.qcow2"
    files.make_layer(ours, below, size)
    options = ["-u", "-f", "qcow2", "-o", "lazy_refcounts=on", "-F", "raw", "-b", "base.img"]
    subprocess.run(["qemu-img", "create", "-q", *options, theirs, str(size)], check=True)
    told = [json.loads(subprocess.check_output(["qemu-img", "info", "--output=json", each])) for each in (ours, theirs)]
    for each in told:
        del each["filename"], each["actual-size"]
    assert told[0] == told[1]
    layer = DiskLayer(ours, "qcow2", below)
    io(layer, f"write -P 9 {size - 512} 512")
    assert "verification failed" not in io(layer, f"read -P 9 {size - 512} 512")
    if size > MB:
        assert holds(layer, 7) and holds(layer, 0, "1M")
    subprocess.run(["qemu-img", "check", "-q", ours], check=True)


def test_a_blank_volume_has_exactly_the_size_asked_for_and_takes_nothing(volumes: Volumes) -> None:
    made = asyncio.run(volumes.create("a", 100_000_256))
    assert (made.size, made.layer.format, made.layer.path.stat().st_size) == (100_000_256, "raw", 100_000_256)
    assert made.allocated < MB
    assert asyncio.run(volumes.create("b", 4 * MB, preallocate=True)).allocated >= 4 * MB


@pytest.mark.parametrize("format", ["raw", "qcow2"])
@run_by(asyncio.run)
async def test_volumes_of_one_image_share_it_and_never_see_each_other(volumes: Volumes, work: Path, format: Format) -> None:
    golden = image(work, format)
    one, other = await volumes.create("one", 16 * MB, base=golden), await volumes.create("other", 8 * MB, base=golden)
    io(one.layer, "write -P 9 0 64k")
    assert holds(one.layer, 9) and holds(other.layer, 7) and holds(one.layer, 7, "64k")
    # grown to what was asked for, and the rest is empty
    assert holds(one.layer, 0, "15M")
    assert one.allocated < 2 * MB
    assert (one.image, other.image) == ("sha256:golden", "sha256:golden")


def test_an_image_that_does_not_fit_is_refused(volumes: Volumes, work: Path) -> None:
    with pytest.raises(TooSmall, match="A larger PVC is required"):
        asyncio.run(volumes.create("a", 4 * MB, base=image(work)))
    assert volumes.get("a") is None


def test_a_preallocated_volume_has_the_image_in_it(volumes: Volumes, work: Path) -> None:
    made = asyncio.run(volumes.create("a", 16 * MB, base=image(work), preallocate=True))
    assert made.layer.backing is None and made.allocated >= 16 * MB and holds(made.layer, 7) and not made.image


@run_by(asyncio.run)
async def test_a_copy_is_a_copy(volumes: Volumes, work: Path) -> None:
    source = await volumes.create("source", 8 * MB, base=image(work))
    io(source.layer, "write -P 3 1M 64k")
    copy = await volumes.clone("source", "copy", 12 * MB)
    io(copy.layer, "write -P 4 1M 64k")
    assert holds(source.layer, 3, "1M") and holds(copy.layer, 7) and holds(copy.layer, 4, "1M") and holds(copy.layer, 0, "11M")
    assert copy.size == 12 * MB
    with pytest.raises(TooSmall):
        await volumes.clone("source", "less", 4 * MB)
    with pytest.raises(VolumeMissing):
        await volumes.clone("nobody", "less", 4 * MB)


@run_by(asyncio.run)
async def test_made_one_file(volumes: Volumes, work: Path) -> None:
    made = await volumes.create("a", 16 * MB, base=image(work))
    io(made.layer, "write -P 9 1M 64k")
    flat = await volumes.flatten("a")
    assert (flat.layer.format, flat.layer.backing, flat.size) == ("raw", None, 16 * MB)
    assert holds(flat.layer, 7) and holds(flat.layer, 9, "1M") and holds(flat.layer, 0, "15M")
    assert [each.name for each in flat.directory.glob("*.img")] == [flat.layer.path.name] and not flat.image
    assert await volumes.flatten("a") == volumes.get("a")
    assert (await volumes.grow("a", 20 * MB)).size == 20 * MB and (await volumes.clone("a", "b", 20 * MB)).layer.format == "raw"
    await volumes.create("c", 16 * MB, base=image(work))
    await volumes.snapshot("c", "s")
    await volumes.next_layer("c", "s")
    with pytest.raises(NotAllowed, match="snapshots"):
        await volumes.flatten("c")


@run_by(asyncio.run)
async def test_growth(volumes: Volumes, work: Path) -> None:
    await volumes.create("a", 8 * MB, base=image(work))
    grown = await volumes.grow("a", 20 * MB)
    assert grown.size == 20 * MB and holds(grown.layer, 7) and holds(grown.layer, 0, "19M")
    assert (await volumes.grow("a", 4 * MB)).size == 20 * MB
    await volumes.create("b", MB)
    assert (await volumes.grow("b", 3 * MB)).layer.path.stat().st_size == 3 * MB


@run_by(asyncio.run)
async def test_a_snapshot_stays_what_it_was_and_goes_when_nothing_needs_it(volumes: Volumes, work: Path) -> None:
    volume = await volumes.create("v", 8 * MB, base=image(work))
    io(volume.layer, "write -P 1 0 64k")
    await volumes.snapshot("v", "s1")
    await volumes.snapshot("v", "s1")
    now = volumes.get("v")
    assert now is not None
    io(now.layer, "write -P 2 0 64k")
    await volumes.snapshot("v", "s2")
    restored = await volumes.restore("s1", "r", 8 * MB)
    io(restored.layer, "write -P 5 64k 64k")
    assert holds(restored.layer, 1) and holds(restored.layer, 5, "64k") and holds(volumes._there("v").layer, 2)
    # the snapshots go, and the restored disk still has its layer
    await volumes.delete_snapshot("s1")
    await volumes.delete_snapshot("s2")
    assert holds(restored.layer, 1) and holds(volumes._there("v").layer, 2)
    assert [each.name for each in volumes._record(volume.directory).layers] == ["disk.img", "after-s2.img"]
    await volumes.delete("v")
    assert volumes.get("v") is None and volume.directory.exists() and holds(volumes._there("r").layer, 1)
    await volumes.delete("r")
    assert sorted(each.name for each in (work / "volumes").iterdir()) == [MARKER]


@run_by(asyncio.run)
async def test_layers_that_nothing_needs_are_merged(volumes: Volumes) -> None:
    volume = await volumes.create("v", 8 * MB)
    for number, snapshot in enumerate(("s1", "s2", "s3"), 1):
        io(volumes._there("v").layer, f"write -P {number} {number}M 64k")
        await volumes.snapshot("v", snapshot)
    await volumes.delete_snapshot("s2")
    held = volumes.get_snapshot("s3")
    assert held is not None and holds(held.layer, 3, "3M") and holds(held.layer, 2, "2M")
    assert len(volumes._record(volume.directory).layers) == 3
    await volumes.delete_snapshot("s1")
    await volumes.delete_snapshot("s3")
    assert [each.path for each in volumes._record(volume.directory).layers] == ["disk.img"]
    assert all(holds(volumes._there("v").layer, number, f"{number}M") for number in (1, 2, 3))
    assert sorted(each.name for each in volume.directory.iterdir()) == ["disk.img", "volume.json"]


@run_by(asyncio.run)
async def test_a_copy_keeps_its_content_when_the_snapshot_is_deleted_while_the_copy_is_made(
    volumes: Volumes, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = await volumes.create("v", 8 * MB)
    io(volume.layer, "write -P 1 0 64k")
    await volumes.snapshot("v", "s")
    io(volumes._there("v").layer, "write -P 2 0 64k")
    write, loop = records.write, asyncio.get_running_loop()

    def late(path: Path, record: VolumeRecord) -> None:
        monkeypatch.setattr(records, "write", write)
        asyncio.run_coroutine_threadsafe(volumes.delete_snapshot("s"), loop).result(30)
        write(path, record)

    monkeypatch.setattr(records, "write", late)
    restored = await volumes.restore("s", "r", 8 * MB)
    assert holds(restored.layer, 1) and holds(volumes._there("v").layer, 2)
    await volumes.delete("r")
    await volumes.collapse("v")
    assert [each.path for each in volumes._record(volume.directory).layers] == ["disk.img"]
    assert holds(volumes._there("v").layer, 2)


@run_by(asyncio.run)
async def test_a_machine_goes_on_in_a_new_layer(volumes: Volumes) -> None:
    """After a loss between any two steps, the disk still has everything that was written."""
    volume = await volumes.create("v", 8 * MB)
    io(volume.layer, "write -P 1 0 64k")
    layer = await volumes.next_layer("v", "s")
    assert layer.backing == volume.layer and await volumes.next_layer("v", "s") == layer
    # nobody has written the snapshot down yet, and the layer is the volume's already
    assert volumes.get_snapshot("s") is None and volumes._there("v").layer == layer
    io(layer, "write -P 2 0 64k")
    await volumes.frozen("v", "s")
    held = volumes.get_snapshot("s")
    assert held is not None and holds(held.layer, 1) and holds(volumes._there("v").layer, 2)


def test_what_a_machine_has_open_is_left_alone(volumes: Volumes, spawn: Callable[..., Any], work: Path) -> None:
    async def make() -> None:
        await volumes.create("v", 8 * MB)

    asyncio.run(make())
    volume = volumes._there("v")
    disk = f"driver=raw,node-name=a,file.driver=file,file.filename={volume.layer.path}"
    quiet = ["-nodefaults", "-display", "none", "-S", "-m", "32"]
    spawn(["qemu-system-x86_64", *quiet, "-blockdev", disk, "-device", "virtio-blk-pci,drive=a"])
    wait_until("the disk is open", lambda: volume.busy)

    async def refused() -> None:
        for attempt in (
            volumes.grow("v", 9 * MB),
            volumes.clone("v", "w", 8 * MB),
            volumes.delete("v"),
            volumes.snapshot("v", "s"),
            anext(volumes.export("v", "raw")),
        ):
            with pytest.raises(VolumeBusy):
                await attempt
        assert volumes.get("w") is None and volumes.ids() == {"v"}
        # the machine made it larger itself
        assert (await volumes.grown("v", 9 * MB)).size == 9 * MB

    asyncio.run(refused())


@run_by(asyncio.run)
async def test_a_volume_whose_machine_has_not_gone_on_for_a_snapshot_is_left_alone(volumes: Volumes) -> None:
    volume = await volumes.create("v", 8 * MB)
    writer = subprocess.Popen(["qemu-io", qemuimg._json(volume.layer)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    wait_until("the disk is open", lambda: volumes._there("v").busy)
    await volumes.next_layer("v", "s")
    for attempt in (volumes.clone("v", "w", 8 * MB), volumes.delete("v"), volumes.grow("v", 9 * MB)):
        with pytest.raises(VolumeBusy):
            await attempt
    writer.communicate(b"quit\n")
    await volumes.frozen("v", "s")
    await volumes.clone("v", "w", 8 * MB)
    await volumes.delete("v")
    assert volumes.ids() == {"w"}


@pytest.mark.parametrize("format", ["raw", "gzip", "qcow2"])
@run_by(asyncio.run)
async def test_export_is_flat(volumes: Volumes, work: Path, format: str) -> None:
    volume = await volumes.create("v", 10 * MB, base=image(work))
    io(volume.layer, "write -P 3 9M 64k")
    content = b"".join([piece async for piece in volumes.export("v", format)])
    path = work / "out"
    path.write_bytes(gzip.decompress(content) if format == "gzip" else content)
    out = DiskLayer(path, "qcow2" if format == "qcow2" else "raw")
    assert holds(out, 7) and holds(out, 3, "9M") and list((work / "scratch").iterdir()) == []
    with pytest.raises(NotAllowed):
        await anext(volumes.export("v", "vmdk"))


@run_by(asyncio.run)
async def test_what_a_sudden_end_left_is_cleared_away(volumes: Volumes, work: Path) -> None:
    await volumes.create("v", MB)
    half = work / "volumes" / ".new-w"
    half.mkdir()
    (half / "disk.img").write_bytes(b"x")
    (work / "volumes" / "empty").mkdir()
    fresh = Volumes(work)
    fresh.prepare()
    assert fresh.ids() == {"v"} and not half.exists()
    assert (await fresh.create("empty", MB)).size == MB


@run_by(asyncio.run)
async def test_the_header_of_a_layer_is_not_believed(volumes: Volumes, work: Path) -> None:
    """A guest that took its QEMU over can write anything into its own file."""
    secret = work / "secret"
    secret.write_bytes(b"\5" * MB)
    volume = await volumes.create("v", 8 * MB, base=image(work))
    subprocess.run(["qemu-img", "rebase", "-u", "-f", "qcow2", "-b", secret, "-F", "raw", volume.layer.path], check=True)
    copy = await volumes.clone("v", "w", 8 * MB)
    assert holds(copy.layer, 7)
    content = b"".join([piece async for piece in volumes.export("v", "raw")])
    assert content[:1] == b"\7"
    volume.layer.path.unlink()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-o", f"data_file={secret},data_file_raw=on", volume.layer.path, "1M"], check=True
    )
    with pytest.raises(VolumeBroken, match="another file"):
        await anext(volumes.export("v", "raw"))


@run_by(asyncio.run)
async def test_scratch(volumes: Volumes, work: Path) -> None:
    golden = image(work)
    layer = await volumes.overlay(volumes.scratch("m", "root"), DiskLayer(golden.path, golden.format), 16 * MB)
    io(layer, "write -P 1 0 64k")
    again = await volumes.overlay(volumes.scratch("m", "root"), DiskLayer(golden.path, golden.format), 16 * MB)
    assert again == layer and holds(again, 1)
    await volumes.blank(volumes.scratch("m", "empty"), 5 * MB)
    assert volumes.scratch_owners() == {"m"}
    await volumes.drop_scratch("m")
    assert volumes.scratch_owners() == set()


def test_a_copy_takes_no_more_than_there_is_data(work: Path) -> None:
    source, target = work / "a", work / "b"
    with open(source, "wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 30)
        file.write(b"here")
    seen: list[int] = []
    files.copy(source, target, lambda done, total: seen.append(done))
    assert target.stat().st_size == 1 << 40 and target.stat().st_blocks * 512 < MB
    with open(target, "rb") as file:
        file.seek(1 << 30)
        assert file.read(4) == b"here"


def read_by_hand(path: Path, to: Path) -> bytes:
    """The command of docs/reference/on-disk.md, as it stands there."""
    text = (Path(__file__).parents[3] / "docs" / "reference" / "on-disk.md").read_text()
    found = re.search(r"`(qemu-img convert [^`]*)`", text)
    assert found is not None
    words = [{"LAYER": str(path), "DISK": str(to)}.get(word, word) for word in found.group(1).split()]
    subprocess.run(words, check=True)
    return to.read_bytes()


@pytest.mark.spec("kubevirt", 123)
@run_by(asyncio.run)
async def test_a_disk_can_be_read_without_paddock_also_after_merges(volumes: Volumes, work: Path) -> None:
    volume = await volumes.create("v", 8 * MB)
    for number, snapshot in enumerate(("s1", "s2", "s3"), 1):
        io(volumes._there("v").layer, f"write -P {number} {number}M 64k")
        await volumes.snapshot("v", snapshot)
    io(volumes._there("v").layer, "write -P 9 5M 64k")
    await volumes.restore("s2", "restored", 8 * MB)
    await volumes.clone("v", "copy", 8 * MB)
    await volumes.delete_snapshot("s1")
    for name in ("v", "restored", "copy"):
        layer = volumes._there(name).layer
        said = read_by_hand(layer.path, work / f"{name}.raw")
        assert said[MB : MB + 4] == b"\1" * 4 and said[2 * MB : 2 * MB + 4] == b"\2" * 4
    await volumes.delete_snapshot("s3")
    said = read_by_hand(volumes._there("v").layer.path, work / "v.raw")
    assert said[3 * MB : 3 * MB + 4] == b"\3" * 4 and said[5 * MB : 5 * MB + 4] == b"\x09" * 4
    assert volume.directory.exists()


@pytest.mark.spec("kubevirt", 123)
@run_by(asyncio.run)
async def test_a_disk_can_be_read_without_paddock_when_a_merge_was_cut_short(
    volumes: Volumes, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cut(Exception): ...

    async def cut(*arguments: object) -> bool:
        raise Cut

    await volumes.create("v", 8 * MB)
    for number, snapshot in enumerate(("s1", "s2"), 1):
        io(volumes._there("v").layer, f"write -P {number} {number}M 64k")
        await volumes.snapshot("v", snapshot)
    top = volumes._there("v").layer
    io(top, "write -P 9 5M 64k")
    with monkeypatch.context() as patch:
        patch.setattr(headers, "correct", cut)
        with pytest.raises(Cut):
            await volumes.delete_snapshot("s1")
    assert len(volumes._record(top.path.parent).layers) == 2
    said = read_by_hand(top.path, work / "v.raw")
    assert (said[MB], said[2 * MB], said[5 * MB]) == (1, 2, 9)
    await volumes.collapse("v")
    assert sorted(each.name for each in top.path.parent.glob("*.img")) == ["after-s2.img", "disk.img"]
    assert read_by_hand(top.path, work / "v.raw") == said
