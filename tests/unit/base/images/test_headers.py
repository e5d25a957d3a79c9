"""The facts about an image before any other program opens it."""

import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base.images import headers
from paddock.base.images.errors import ImageError
from paddock.base.images.facts import ImageBytes, ImageFacts
from paddock.base.images.formats import disk_of, wrapper_of
from tests.kit.engine import diskimages
from tests.kit.engine.diskimages import CLUSTER, qcow2, vdi, vhdx, vmdk, vmdk_descriptor, vpc


def facts(tmp_path: Path, data: bytes) -> ImageFacts:
    path = tmp_path / "disk"
    path.write_bytes(data)
    return headers.inspect(path, disk_of(path))


GOOD = {
    "qcow2": (qcow2(), ImageFacts("qcow2", 1 << 20, layerable=True)),
    "qcow2 of version 2": (qcow2(version=2), ImageFacts("qcow2", 1 << 20, layerable=True)),
    "qcow2 with names of features": (qcow2(extensions=[(0x6803F857, bytes(48))]), ImageFacts("qcow2", 1 << 20, layerable=True)),
    "qcow2 that was not closed": (qcow2(incompatible=1), ImageFacts("qcow2", 1 << 20)),
    "qcow2 of an odd size": (qcow2(size=1000), ImageFacts("qcow2", 1000)),
    "vmdk": (vmdk(vmdk_descriptor()), ImageFacts("vmdk", 1 << 20)),
    "vdi": (vdi(), ImageFacts("vdi", 1 << 20)),
    "vpc": (vpc(), ImageFacts("vpc", 1044480 if 30 * 4 * 17 * 512 > 1 << 20 else 1 << 20)),
    "vhdx": (vhdx(), ImageFacts("vhdx", 1 << 30)),
    "raw": (bytes(1024), ImageFacts("raw", 1024, layerable=True)),
    "raw of an odd size": (b"x" * 1000, ImageFacts("raw", 1024, layerable=True)),
}


@pytest.mark.spec("kubermatic", 35)
@pytest.mark.parametrize("name", GOOD)
def test_honest_images(name: str, tmp_path: Path) -> None:
    data, expected = GOOD[name]
    assert facts(tmp_path, data) == expected


def with_table(*entries: int) -> bytes:
    """A qcow2 whose second-level table begins with these entries."""
    data = bytearray(qcow2())
    struct.pack_into(f">{len(entries)}Q", data, 4 * CLUSTER, *entries)
    return bytes(data)


def patched(data: bytes, offset: int, layout: str, *values: int) -> bytes:
    copy = bytearray(data)
    struct.pack_into(layout, copy, offset, *values)
    return bytes(copy)


FOOTER = vmdk(vmdk_descriptor(), at_end=True)
HOSTILE = {
    "backing file": (qcow2(backing=b"/etc/shadow"), "Unsafe"),
    "backing file in version 2": (qcow2(backing=b"/etc/shadow", version=2), "Unsafe"),
    "backing file in JSON": (qcow2(backing=b'json:{"driver":"raw","file":{"driver":"file","filename":"/etc/shadow"}}'), "Unsafe"),
    "backing file over a network": (qcow2(backing=b"nbd://127.0.0.1:10809/x"), "Unsafe"),
    "backing file of no length": (patched(qcow2(), 8, ">Q", 112), "Unsafe"),
    "a backing file's format": (qcow2(extensions=[(diskimages.BACKING_FORMAT, b"raw")]), "Unsafe"),
    "data file by its bit": (qcow2(incompatible=4), "Unsafe"),
    "data file by its name": (qcow2(extensions=[(diskimages.DATA_FILE, b"/etc/shadow")]), "Unsafe"),
    "data file by both": (qcow2(incompatible=4, extensions=[(diskimages.DATA_FILE, b"json:{}")]), "Unsafe"),
    "encrypted with AES": (qcow2(crypt=1), "Encrypted"),
    "encrypted with LUKS": (qcow2(crypt=2, extensions=[(diskimages.LUKS, bytes(16))]), "Encrypted"),
    "a LUKS header alone": (qcow2(extensions=[(diskimages.LUKS, bytes(16))]), "Encrypted"),
    "plain LUKS": (b"LUKS\xba\xbe" + bytes(4096), "Encrypted"),
    "exabytes": (qcow2(size=1 << 60), "TooLarge"),
    "more than its tables hold": (patched(qcow2(), 24, ">Q", 1 << 40), "TooLarge"),
    "unknown features": (qcow2(incompatible=1 << 40), "Unsupported"),
    "corrupt": (qcow2(incompatible=2), "NotAnImage"),
    "an older version": (patched(qcow2(), 4, ">I", 1), "Unsupported"),
    "a table that is used twice": (patched(qcow2(size=1 << 30), 3 * CLUSTER, ">QQ", 4 * CLUSTER, 4 * CLUSTER), "NotAnImage"),
    "a table outside": (patched(qcow2(), 3 * CLUSTER, ">Q", 1 << 40), "Truncated"),
    "a cluster outside": (with_table(1 << 40), "Truncated"),
    "a compressed cluster outside": (with_table((1 << 62) | (1 << 40)), "Truncated"),
    "extensions without an end": (qcow2(extensions=[(1, b"")] * 70), "NotAnImage"),
    "an endless extension": (patched(qcow2(), 104, ">II", 1, 0xFFFFFFFF), "NotAnImage"),
    "clusters of no size": (patched(qcow2(), 20, ">I", 0), "NotAnImage"),
    "a vmdk descriptor": (vmdk_descriptor("monolithicFlat", 'RW 2048 FLAT "/etc/shadow" 0').encode(), "Unsupported"),
    "a flat extent inside": (vmdk(vmdk_descriptor(extent='RW 2048 FLAT "/etc/shadow" 0')), "Unsafe"),
    "another type inside": (vmdk(vmdk_descriptor("twoGbMaxExtentSparse")), "Unsafe"),
    "two extents inside": (vmdk(vmdk_descriptor(extent='RW 1 SPARSE "a"\nRW 1 SPARSE "/etc/shadow"')), "Unsafe"),
    "a parent of the vmdk": (vmdk(vmdk_descriptor(parent="12345678")), "Unsafe"),
    "a parent's name in the vmdk": (vmdk(vmdk_descriptor(more='parentFileNameHint="/etc/shadow"\n')), "Unsafe"),
    "a parent's name in a descriptor that the header does not name": (
        patched(vmdk(vmdk_descriptor(more='parentFileNameHint="/etc/shadow"\n')), 28, "<QQ", 0, 0),
        "Unsafe",
    ),
    "a parent's name where the header says that no descriptor is": (
        patched(vmdk(vmdk_descriptor(more='parentFileNameHint="/etc/shadow"\n')), 28, "<QQ", 60, 20),
        "Unsafe",
    ),
    "a parent's name behind a zero": (vmdk(vmdk_descriptor() + '\0parentFileNameHint="/etc/shadow"\n'), "Unsafe"),
    "a vmdk that is taken for a descriptor": (vmdk(vmdk_descriptor(), capacity=0), "NotAnImage"),
    "a footer that is not there": (FOOTER, "NotAnImage"),
    "a footer with a parent": (FOOTER[:-1024] + vmdk(vmdk_descriptor())[:12] + bytes(1012), "NotAnImage"),
    "a vdi's difference": (vdi(kind=4), "Unsafe"),
    "a vdi's parent": (vdi(parent=b"p" * 16), "Unsafe"),
    "a vdi of exabytes": (vdi(size=1 << 60), "TooLarge"),
    "a vpc's difference": (vpc(kind=4), "Unsafe"),
    "a vpc's parent": (vpc(parent=b"p" * 16), "Unsafe"),
    "a vpc of exabytes": (vpc(size=1 << 60), "TooLarge"),
    "a vhdx's parent": (vhdx(flags=2), "Unsafe"),
    "a vhdx of exabytes": (vhdx(size=1 << 60), "TooLarge"),
    "QED": (b"QED\0" + bytes(4096), "Unsupported"),
    "ESX": (b"COWD" + bytes(4096), "Unsupported"),
    "ZIP": (b"PK\3\4" + bytes(4096), "Unsupported"),
    "a web page": (b"\n<!DOCTYPE html><p>no", "NotAnImage"),
    "nothing": (b"", "NotAnImage"),
}


@pytest.mark.spec("kubermatic", 35)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_images(name: str, tmp_path: Path) -> None:
    data, code = HOSTILE[name]
    with pytest.raises(ImageError) as caught:
        facts(tmp_path, data)
    assert (caught.value.code, caught.value.fatal) == (code, True)


def test_a_descriptor_of_line_feeds_takes_no_time(tmp_path: Path) -> None:
    """Hours, if the blanks before each line were searched to the end of the text."""
    image = vmdk(vmdk_descriptor())
    endless = patched(image, 28, "<QQ", len(image) // 512, 2047) + b"\n" * (2047 * 512)
    assert facts(tmp_path, endless) == GOOD["vmdk"][1]


@pytest.mark.parametrize(
    ("name", "data", "offset", "layout"),
    [("vdi", vdi(), 0x180, "<I"), ("vpc", vpc(), 512 + 28, ">I")],
)
def test_tables_are_not_read_only_to_see_that_they_are_there(
    name: str, data: bytes, offset: int, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has a hole of 2 GiB where its table is."""
    path = tmp_path / "disk"
    path.write_bytes(patched(data, offset, layout, 1 << 29))
    with open(path, "r+b") as file:
        file.truncate((2 << 30) + len(data))
        file.seek(-512, 2)
        file.write(data[-512:])
    read: list[int] = []
    at = ImageBytes.at

    def counted(self: ImageBytes, offset: int, length: int) -> bytes:
        read.append(length)
        return at(self, offset, min(length, 1 << 20))

    monkeypatch.setattr(ImageBytes, "at", counted)
    assert headers.inspect(path, GOOD[name][1].format).virtual_size
    assert sum(read) < 4096


@pytest.mark.parametrize("name", [name for name in GOOD if not name.startswith("raw")])
def test_a_file_that_is_cut_off_is_refused(name: str, tmp_path: Path) -> None:
    data, _ = GOOD[name]
    for kept in (16, 80, 600, 1500):
        if kept < len(data):
            path = tmp_path / "disk"
            path.write_bytes(data[:kept])
            with pytest.raises(ImageError):
                # The format is said, so that what is left is not taken for a raw disk.
                headers.inspect(path, GOOD[name][1].format)


def test_a_boot_sector_with_the_letters_of_tar_is_no_archive() -> None:
    sector = bytearray(512)
    sector[0x101:0x106] = b"ustar"
    assert wrapper_of(bytes(sector)) is None


STARTS = [data[: 3 * CLUSTER] if name != "vhdx" else data for name, (data, _) in GOOD.items()]
KINDS = [expected.format for _, expected in GOOD.values()]


@given(st.integers(0, len(STARTS) - 1), st.integers(0, 1 << 32), st.integers(1, 40))
def test_no_header_leads_to_any_other_error(which: int, seed: int, changes: int) -> None:
    """Random changes where headers are: an answer or an `ImageError`, and soon."""
    chance = random.Random(seed)
    data = bytearray(STARTS[which])
    for _ in range(changes):
        at = chance.choice((0, 0, 192 * 1024 % len(data), (2 << 20) % len(data))) + chance.randrange(600)
        data[at % len(data)] = chance.choice((0, 1, 2, 4, 127, 128, 255, chance.randrange(256)))
    path = Path(f"/dev/shm/paddock-header-{seed}") if Path("/dev/shm").is_dir() else Path(f"/tmp/paddock-header-{seed}")
    path.write_bytes(data)
    try:
        headers.inspect(path, KINDS[which])
    except ImageError:
        pass
    finally:
        path.unlink()
