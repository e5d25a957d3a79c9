"""The disks that the stand-in for CDI writes: whole as soon as they have their name."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from tests.reference.cluster import content

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(shutil.which("qemu-img") is None, reason="needs qemu: there is no qemu-img"),
]
_SIZE = 1 << 20


def test_copy_is_as_large_as_its_claim(tmp_path: Path) -> None:
    """It begins with what was copied, and any user may write it."""
    (tmp_path / "origin").write_bytes(b"\x01" * 512)
    file = tmp_path / "disk.img"
    content.copy(tmp_path / "origin", file, _SIZE)
    assert (file.read_bytes()[:512], file.stat().st_size, file.stat().st_mode & 0o777) == (b"\x01" * 512, _SIZE, 0o666)


def test_copy_that_fails_leaves_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is there is never written again, so a part of one must not have its name."""

    def full(path: Path, size: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "truncate", full)
    file = tmp_path / "disk.img"
    (tmp_path / "origin").write_bytes(b"\x01" * 512)
    with pytest.raises(OSError, match="no space"):
        content.copy(tmp_path / "origin", file, _SIZE)
    assert not file.exists()


def test_blank(tmp_path: Path) -> None:
    """It is empty, and takes no space."""
    file = tmp_path / "disk.img"
    content.blank(file, _SIZE)
    assert (file.stat().st_size, file.stat().st_blocks) == (_SIZE, 0)
