"""Disk files: what is written is read back, and what would lose data is refused."""

import os
from pathlib import Path

import pytest

from paddock_drivers.fake import diskfiles
from paddock_drivers.fake.diskfiles import DiskFile, UnreadableDisk

GIB = 1 << 30


@pytest.mark.parametrize("format", diskfiles.FORMATS)
@pytest.mark.parametrize("disk", [DiskFile(10 * GIB, b"booted\n"), DiskFile(GIB, b""), DiskFile(2 * GIB, b"x" * diskfiles.CLUSTER)])
def test_a_disk_survives(format: str, disk: DiskFile, tmp_path: Path) -> None:
    path = tmp_path / "disk"
    diskfiles.write(path, format, disk)
    assert diskfiles.read(path, format) == disk


def test_the_largest_disk_has_a_table_of_several_clusters(tmp_path: Path) -> None:
    disk = DiskFile(65536 * GIB, b"booted\n")
    diskfiles.write(tmp_path / "disk", "qcow2", disk)
    assert diskfiles.read(tmp_path / "disk", "qcow2") == disk


def test_data_behind_the_first_64_kib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    diskfiles.write(path, "raw", DiskFile(GIB, b""))
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), b"data", 512 << 20)
    with pytest.raises(UnreadableDisk, match="behind the first 64 KiB"):
        diskfiles.read(path, "raw")


@pytest.mark.parametrize("data", [b"", b"QFI\xfb", b"not a disk" * 100, b"QFI\xfb" + b"\xff" * 200, b"QFI\xfb\0\0\0\3" + b"\0" * 96])
def test_no_qcow2_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(data)
    with pytest.raises(UnreadableDisk):
        diskfiles.read(path, "qcow2")
