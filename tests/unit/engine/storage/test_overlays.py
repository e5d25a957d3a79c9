"""An empty layer: its bytes, as the format wants them. tests/host/storage holds them against qemu-img."""

import struct
from pathlib import Path

import pytest

from paddock.base.disksizes import LARGEST
from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import files, overlays
from paddock.engine.storage.errors import NotAllowed
from paddock.engine.storage.overlays import CLUSTER

GB = 1 << 30


@pytest.mark.parametrize(
    ("size", "entries", "clusters"),
    [
        (512, 1, 4),
        (GB // 2, 1, 4),
        (GB // 2 + 512, 2, 4),
        (4096 * GB, 8192, 4),
        (4096 * GB + 512, 8193, 5),
        (LARGEST, 4 << 20, 515),
    ],
)
def test_its_tables_are_large_enough(size: int, entries: int, clusters: int) -> None:
    layer = overlays.empty(size, "base.img", "raw")
    assert layer.length == clusters * CLUSTER
    magic, version, _, _, bits, says, crypt = struct.unpack_from(">4sIQIIQI", layer.head)
    assert (magic, version, bits, says, crypt) == (b"QFI\xfb", 3, 16, size, 0)
    assert struct.unpack_from(">IQQIIQ", layer.head, 36) == (entries, 3 * CLUSTER, CLUSTER, 1, 0, 0)
    assert struct.unpack_from(">QQQIIB", layer.head, 72) == (0, 1, 0, 4, 112, 0)
    # Each cluster of the file is counted once, and no other.
    assert struct.unpack_from(">QQ", layer.head, CLUSTER) == (2 * CLUSTER, 0)
    assert layer.head[2 * CLUSTER :] == b"\0\1" * clusters


def test_it_names_what_is_below_and_its_format() -> None:
    head = overlays.empty(GB, "../../images/ä/disk.img", "qcow2").head
    offset, length = struct.unpack_from(">QI", head, 8)
    assert head[offset : offset + length].decode() == "../../images/ä/disk.img"
    assert struct.unpack_from(">II8sQ", head, 112) == (0xE2792ACA, 5, b"qcow2\0\0\0", 0)


@pytest.mark.parametrize(("size", "name"), [(0, "a"), (513, "a"), (LARGEST + 512, "a"), (512, ""), (512, "a" * 1024)])
def test_what_has_no_room_is_refused(size: int, name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"room|cannot have"):
        overlays.empty(size, name, "raw")


def test_the_file_is_written_over_what_was_left_and_a_colon_is_no_protocol(tmp_path: Path) -> None:
    path = tmp_path / "layer"
    path.write_bytes(b"x" * 10 * CLUSTER)
    files.make_layer(path, DiskLayer(tmp_path / "nbd:a", "raw"), GB)
    assert path.stat().st_size == 4 * CLUSTER and path.stat().st_mode & 0o777 == 0o600
    assert b"./nbd:a" in path.read_bytes() and set(path.read_bytes()[3 * CLUSTER :]) == {0}
    with pytest.raises(NotAllowed, match="cannot have"):
        files.make_layer(path, DiskLayer(tmp_path / "a", "raw"), 513)
