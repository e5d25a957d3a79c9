"""The tiny guest's boot loader: it is what its source says, and it reads each kind of disk. Guests of other tests start with it."""

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from paddock.base.images.build import tiny, tinyboot
from tests.host.bare import boot, card, disk
from tests.host.conftest import Spawn

# Without a driver of its own, the loader reads 60 KiB at a time.
_READS_BY_BIOS = 500
_BLANK = ("-drive", "if=none,id=blank,format=raw,file.driver=null-co,file.size=1M", "-device", "virtio-blk-pci,drive=blank")


@pytest.mark.skipif(shutil.which("as") is None, reason="needs binutils: there is no as on this machine")
def test_the_loader_is_made_from_its_source(tmp_path: Path) -> None:
    (tmp_path / "boot.s").write_bytes((files(tinyboot) / "boot.s").read_bytes())
    subprocess.run(["as", "--32", "boot.s", "-o", "boot.o"], cwd=tmp_path, check=True)
    subprocess.run(
        ["ld", "-m", "elf_i386", "-Ttext=0x7c00", "--oformat=binary", "-e", "0x7c00", "boot.o", "-o", "made"], cwd=tmp_path, check=True
    )
    assert (tmp_path / "made").read_bytes() == (files(tinyboot) / "boot.bin").read_bytes()


@pytest.mark.needs("qemu")
@pytest.mark.parametrize(
    ("options", "device", "by_bios"),
    [
        ((), "virtio-blk-pci", False),
        ((), "virtio-blk-pci,disable-legacy=on", False),
        (("-device", "pcie-root-port,id=root1,chassis=1"), "virtio-blk-pci,bus=root1,addr=0", False),
        # The drive that the BIOS started from counts, not the first disk.
        (_BLANK, "virtio-blk-pci", False),
        (("-M", "pc,hpet=off"), "virtio-blk-pci", False),
        ((), "virtio-blk-pci,disable-legacy=off,disable-modern=on", True),
        ((), "virtio-blk-pci,queue-size=64", True),
        ((), "virtio-blk-pci,disable-legacy=on,iommu_platform=on", True),
        (("-device", "virtio-scsi-pci"), "scsi-hd", True),
    ],
)
def test_it_reads_by_virtio_or_leaves_it_to_the_bios(
    options: tuple[str, ...], device: str, *, by_bios: bool, tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path
) -> None:
    drive = disk(tiny_guest.disk)
    drive[-1] = f"{device},drive=d0,bootindex=1"
    traced = work / "reads"
    trace = ("-trace", "virtio_blk_handle_read", "-trace", "scsi_disk_dma_command_READ", "-D", traced)
    boot(spawn, work, ["-M", "q35,hpet=off", "-m", "192", *trace, *options, *drive, *card()])
    assert (traced.read_text().count("\n") > _READS_BY_BIOS) is by_bios
