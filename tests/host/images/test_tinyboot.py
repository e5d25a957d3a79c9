"""The tiny guest's boot loader is what its source says. Guests of other tests start with it."""

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from paddock.engine.images.build import tinyboot


@pytest.mark.skipif(shutil.which("as") is None, reason="needs binutils")
def test_the_loader_is_made_from_its_source(tmp_path: Path) -> None:
    (tmp_path / "boot.s").write_bytes((files(tinyboot) / "boot.s").read_bytes())
    subprocess.run(["as", "--32", "boot.s", "-o", "boot.o"], cwd=tmp_path, check=True)
    subprocess.run(
        ["ld", "-m", "elf_i386", "-Ttext=0x7c00", "--oformat=binary", "-e", "0x7c00", "boot.o", "-o", "made"], cwd=tmp_path, check=True
    )
    assert (tmp_path / "made").read_bytes() == (files(tinyboot) / "boot.bin").read_bytes()
