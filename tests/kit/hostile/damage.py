"""Damaged files: what a file may hold, or be, after a fault of a disk or of a hand."""

import re
import shutil
from pathlib import Path

# what is left of a file, by the kind of damage
DAMAGES = ("truncated", "empty", "wrong type", "not UTF-8", "a byte", "unreadable")


def damage(path: Path, kind: str) -> None:
    """Damage a file. Root may read every file, so a directory stands for one that cannot be read."""
    if kind == "unreadable":
        path.unlink()
        path.mkdir()
        return
    data = path.read_bytes()
    # A byte within a text, which some readers of JSON report by another error than all the rest.
    byte = re.sub(rb'([:\[] ?)"[^"]*"', b'\\1"\xff"', data, count=1)
    byte = byte if byte != data else data[:1] + b"\xff" + data[2:]
    wrong = {"truncated": data[: len(data) // 2], "empty": b"", "wrong type": b"[7]", "not UTF-8": b"\xff\xfe\x00{", "a byte": byte}
    path.write_bytes(wrong[kind])


def is_as_left(path: Path, kind: str) -> bool:
    """Return whether nobody has touched a damaged file."""
    return path.is_dir() if kind == "unreadable" else path.is_file() and path.read_bytes()[:1] in (b"", b"{", b"[", b"\xff")


def mend(path: Path, data: bytes) -> None:
    """Put the file back."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.write_bytes(data)
