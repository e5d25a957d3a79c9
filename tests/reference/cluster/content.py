"""The content that the stand-in for CDI writes into a claim: a raw disk of the guest's size."""

import os
import subprocess
import urllib.request
from collections.abc import Iterable
from pathlib import Path

_CHUNK = 1 << 20


class TooLarge(ValueError):
    """A disk is larger than the room in its claim."""


def download(url: str, file: Path, size: int) -> None:
    """Write the disk that an image behind a URL holds."""
    fetched = file.with_name("fetched")
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url) as answer, fetched.open("wb") as target:
            while data := answer.read(_CHUNK):
                target.write(data)
        copy(fetched, file, size)
    finally:
        fetched.unlink(missing_ok=True)


def copy(origin: Path, file: Path, size: int) -> None:
    """Write the disk that a file holds in any format."""
    partial = file.with_name("partial")
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(origin), str(partial)], check=True, capture_output=True)
    _complete(partial, file, size)


def blank(file: Path, size: int) -> None:
    """Make an empty disk."""
    partial = file.with_name("partial")
    partial.write_bytes(b"")
    _complete(partial, file, size)


def write(pieces: Iterable[bytes], file: Path, size: int) -> None:
    """Write an uploaded raw disk, with holes for what is empty. Raises `TooLarge`, and what the pieces raise; then nothing has the name."""
    partial = file.with_name("partial")
    with partial.open("wb") as target:
        for piece in pieces:
            if piece.count(0) == len(piece):
                target.seek(len(piece), os.SEEK_CUR)
            else:
                target.write(piece)
            if target.tell() > size:
                text = f"Virtual image size {target.tell()} is larger than the reported available storage {size}. A larger PVC is required."
                raise TooLarge(text)
        target.truncate(target.tell())
    _complete(partial, file, size)


def _complete(partial: Path, file: Path, size: int) -> None:
    """Give a disk its size and then its name, so that what has the name is whole."""
    os.truncate(partial, max(size, partial.stat().st_size))
    partial.chmod(0o666)
    partial.rename(file)
