"""A disk, or files, as a stream. It is made whole in a file without a name before the first byte goes out: nothing is left behind."""

import asyncio
import os
import tarfile
import tempfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import errors, qemuimg
from paddock.engine.storage.errors import NotAllowed

FORMATS = ("raw", "gzip", "qcow2")
ARCHIVE = "tar.gz"
_PIECE = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS


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
    press = zlib.compressobj(level=1, wbits=_GZIP)
    async for piece in _pieces(number):
        packed = await asyncio.to_thread(press.compress, piece)
        if packed:
            yield packed
    yield press.flush()
