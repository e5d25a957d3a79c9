"""Exports of the fake driver are disks that QEMU opens, and disks that QEMU makes can be imported."""

import json
import subprocess
from pathlib import Path

import pytest

from paddock_drivers.fake import diskfiles
from paddock_drivers.fake.diskfiles import DiskFile

pytestmark = pytest.mark.needs("qemu")
GIB = 1 << 30


def image(*arguments: str) -> str:
    return subprocess.run(["qemu-img", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("size", [GIB, 10 * GIB, 65536 * GIB])
def test_qemu_opens_an_export(size: int, tmp_path: Path) -> None:
    path = tmp_path / "disk.qcow2"
    diskfiles.write(path, "qcow2", DiskFile(size, b"booted once\n"))
    assert "No errors were found" in image("check", "-f", "qcow2", str(path))
    assert json.loads(image("info", "--output=json", str(path)))["virtual-size"] == size


def test_both_formats_hold_the_same_data(tmp_path: Path) -> None:
    disk = DiskFile(GIB, b"booted once\n")
    for name in diskfiles.FORMATS:
        diskfiles.write(tmp_path / name, name, disk)
    assert "identical" in image("compare", "-f", "qcow2", "-F", "raw", str(tmp_path / "qcow2"), str(tmp_path / "raw"))


def test_disks_of_qemu_are_read(tmp_path: Path) -> None:
    diskfiles.write(tmp_path / "raw", "raw", DiskFile(GIB, b"booted once\n"))
    image("convert", "-f", "raw", "-O", "qcow2", str(tmp_path / "raw"), str(tmp_path / "qcow2"))
    assert diskfiles.read(tmp_path / "qcow2", "qcow2") == DiskFile(GIB, b"booted once\n")
    image("create", "-q", "-f", "qcow2", str(tmp_path / "empty"), "3G")
    assert diskfiles.read(tmp_path / "empty", "qcow2") == DiskFile(3 * GIB, b"")
