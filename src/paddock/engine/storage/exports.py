"""A disk, or files, as a stream. It is made whole in a file without a name before the first byte goes out: nothing is left behind."""

import asyncio
import errno
import os
import struct
import tempfile
import zlib
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import IO

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import errors, qemuimg
from paddock.engine.storage.errors import NotAllowed

FORMATS = ("raw", "gzip", "qcow2")
ARCHIVE = "tar.gz"
_PIECE = 1024 * 1024
# The most pieces of a hole that are sent at once; each is compressed to a kilobyte.
_MOST_PIECES = 512
_HEAD = b"\x1f\x8b\x08" + bytes(6) + b"\xff"


async def stream(layer: DiskLayer, format: str, scratch: Path) -> AsyncIterator[bytes]:
    """The disk in pieces, each a few hundred kilobytes to a megabyte."""
    if format not in FORMATS:
        raise NotAllowed(f"cannot export as {format}", fix=f"use one of {', '.join(FORMATS)}")
    number = await _flat(layer, format, scratch)
    try:
        if format == "gzip":
            async for piece in _compressed(number):
                yield piece
        else:
            async for piece in _pieces(number):
                yield piece
    finally:
        os.close(number)


async def archive(directory: Path, format: str, scratch: Path) -> AsyncIterator[bytes]:
    """The files of a volume in pieces. What is still being written has a name that begins with a dot, and is left out."""
    if format != ARCHIVE:
        raise NotAllowed(f"cannot export files as {format}", fix=f"use {ARCHIVE}")
    with errors.spoken("cannot export a volume", scratch), tempfile.TemporaryFile(prefix=".export-", dir=scratch) as packed:
        await asyncio.to_thread(_pack, directory, packed)
        async for piece in _pieces(packed.fileno()):
            yield piece


def _pack(directory: Path, target: IO[bytes]) -> None:
    import tarfile  # noqa: PLC0415 - few volumes are archives

    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as made:
        for file in sorted(directory.iterdir()):
            if not file.name.startswith("."):
                made.add(file, file.name)
    target.flush()


async def _pieces(number: int) -> AsyncIterator[bytes]:
    offset = 0
    while piece := await asyncio.to_thread(os.pread, number, _PIECE, offset):
        offset += len(piece)
        yield piece


async def _flat(layer: DiskLayer, format: str, scratch: Path) -> int:
    """A descriptor of a file that holds the whole disk. A raw disk of one file is that file."""
    with errors.spoken("cannot export a volume", scratch):
        if layer.format == "raw" and layer.backing is None and format != "qcow2":
            return os.open(layer.path, os.O_RDONLY)
        made, name = tempfile.mkstemp(prefix=".export-", dir=scratch)
        os.close(made)
        try:
            await qemuimg.convert(layer, Path(name), "qcow2" if format == "qcow2" else "raw")
            return os.open(name, os.O_RDONLY)
        finally:
            os.unlink(name)


async def _compressed(number: int) -> AsyncIterator[bytes]:
    """The file as one member of gzip (RFC 1952). Its holes are not read, and not compressed either."""
    size, offset, crc = os.fstat(number).st_size, 0, 0
    press, zeros = zlib.compressobj(level=1, wbits=-zlib.MAX_WBITS), await asyncio.to_thread(_zeros)
    yield _HEAD
    while offset < size:
        if count := await asyncio.to_thread(_hole, number, offset, size):
            # What follows a full flush refers to nothing before it, so the zeros may stand between.
            yield press.flush(zlib.Z_FULL_FLUSH) + zeros.packed * count
            offset, crc = offset + count * _PIECE, zeros.crc_after(crc, count)
            continue
        piece = await asyncio.to_thread(os.pread, number, _PIECE, offset)
        if not piece:
            break
        offset, crc = offset + len(piece), zlib.crc32(piece, crc)
        if packed := await asyncio.to_thread(press.compress, piece):
            yield packed
    yield press.flush() + struct.pack("<LL", crc, offset & 0xFFFFFFFF)


def _hole(number: int, offset: int, size: int) -> int:
    """Return the number of whole pieces in a hole that begins at an offset, `_MOST_PIECES` at most."""
    try:
        data = os.lseek(number, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            return 0
        data = size
    return min((data - offset) // _PIECE, _MOST_PIECES)


class _Zeros:
    """A compressed piece of zeros, and its effect on a checksum, which is cheap to repeat: CRC-32 is linear but for a constant."""

    def __init__(self) -> None:
        piece, press = bytes(_PIECE), zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
        self.packed = press.compress(piece) + press.flush(zlib.Z_FULL_FLUSH)
        self._constant = zlib.crc32(piece)
        self._columns = [zlib.crc32(piece, 1 << bit) ^ self._constant for bit in range(32)]

    def crc_after(self, crc: int, count: int) -> int:
        """Return the CRC-32 of data with the given one after `count` more pieces of zeros."""
        for _ in range(count):
            bits, crc = crc, self._constant
            for bit, column in enumerate(self._columns):
                crc ^= column if bits >> bit & 1 else 0
        return crc


@cache
def _zeros() -> _Zeros:
    return _Zeros()
