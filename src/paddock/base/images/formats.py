"""The format of a file, from its bytes alone. Names and content types lie; so does a prober that the file's author can steer."""

from pathlib import Path
from typing import Literal

from paddock.base.images.errors import ImageRefused

Format = Literal["raw", "qcow2"]
# what qemu-img takes as -f
Disk = Literal["raw", "qcow2", "vmdk", "vdi", "vpc", "vhdx"]
Wrapper = Literal["gzip", "xz", "zstd", "tar"]

_WRAPPERS: tuple[tuple[int, bytes, Wrapper], ...] = (
    (0, b"\x1f\x8b", "gzip"),
    (0, b"\xfd7zXZ\x00", "xz"),
    (0, b"\x28\xb5\x2f\xfd", "zstd"),
    (0x101, b"ustar", "tar"),
)
_DISKS: tuple[tuple[int, bytes, Disk], ...] = (
    (0, b"QFI\xfb", "qcow2"),
    (0, b"KDMV", "vmdk"),
    (0x40, b"\x7f\x10\xda\xbe", "vdi"),
    (0, b"conectix", "vpc"),
    (0, b"vhdxfile", "vhdx"),
)
# What is known and not taken; as raw it would be a disk that no guest can read.
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (
        b"# Disk DescriptorFile",
        "a VMDK descriptor, which refers to other files; give the single-file form (qemu-img convert, or streamOptimized)",
    ),
    (b"#! Disk DescriptorFile", "a VMDK descriptor, which refers to other files"),
    (b"COWD", "a VMDK of ESX servers' own form; export it as streamOptimized"),
    (b"QED\x00", "a QED image; convert it to qcow2"),
    (b"WithoutFreeSpace", "a Parallels image; convert it to qcow2"),
    (b"WithouFreSpacExt", "a Parallels image; convert it to qcow2"),
    (b"PK\x03\x04", "a ZIP archive; unpack it, or pack the disk with gzip, xz or zstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it, or pack the disk with gzip, xz or zstd"),
    (b"Rar!\x1a\x07", "a RAR archive; unpack it, or pack the disk with gzip, xz or zstd"),
    (b"\x04\x22\x4d\x18", "packed with LZ4; use gzip, xz or zstd"),
    (b"%PDF-", "a PDF document"),
)
HEAD_BYTES = 64 * 1024


def wrapper_of(head: bytes) -> Wrapper | None:
    """Return the wrapper of the disk, or None. A file system may have the letters of tar in its boot sector: a sound header decides."""
    for offset, magic, name in _WRAPPERS:
        if head[offset : offset + len(magic)] == magic and (name != "tar" or _tar_sum(head)):
            return name
    return None


def _tar_sum(head: bytes) -> bool:
    field = head[148:156].strip(b" \0")
    try:
        return int(field or b"0", 8) == sum(head[:148]) + 8 * 32 + sum(head[156:512])
    except ValueError:
        return False


def stays(head: bytes) -> bool:
    """Return whether a file with this beginning seems to be a disk that is kept as it is."""
    return wrapper_of(head) is None and not any(head[at : at + len(magic)] == magic for at, magic, name in _DISKS if name != "qcow2")


def disk_of(path: Path) -> Disk:
    """The format of an unwrapped file; what cannot be a disk for us is refused by name."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(0, 2)
        size = file.tell()
        file.seek(max(0, size - 512))
        tail = file.read(512)
    if not size:
        raise ImageRefused("NotAnImage", "the image is empty")
    for offset, magic, name in _DISKS:
        if head[offset : offset + len(magic)] == magic:
            return name
    if head.startswith(b"LUKS\xba\xbe"):
        raise ImageRefused("Encrypted", "the image is encrypted (LUKS)", fix="decrypt it first; volumes hold plain disks")
    for magic, text in _REFUSED:
        if head.startswith(magic):
            raise ImageRefused("Unsupported", f"the file is {text}")
    looks = head[:512].lstrip().lower()
    if looks.startswith((b"<!doctype html", b"<html")):
        raise ImageRefused("NotAnImage", "the file is a web page, not a disk image")
    if tail.startswith(b"conectix"):
        return "vpc"
    return "raw"


def head_of(path: Path) -> bytes:
    """The first bytes of a file."""
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES)
