"""A disk as a stream. It is made flat in a file that has no name any more when the first byte goes out, so nothing is left behind."""

import asyncio
import os
import tempfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

from paddock.engine.machine.config import Layer
from paddock.engine.storage import errors, qemuimg
from paddock.engine.storage.errors import NotAllowed

FORMATS = ("raw", "gzip", "qcow2")
_PIECE = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS


async def stream(layer: Layer, format: str, scratch: Path) -> AsyncIterator[bytes]:
    """The disk in pieces, each a few hundred kilobytes to a megabyte."""
    if format not in FORMATS:
        raise NotAllowed(f"cannot export as {format}", fix=f"use one of {', '.join(FORMATS)}")
    number = await _flat(layer, format, scratch)
    try:
        if format == "gzip":
            async for piece in _compressed(number):
                yield piece
        else:
            offset = 0
            while piece := await asyncio.to_thread(os.pread, number, _PIECE, offset):
                offset += len(piece)
                yield piece
    finally:
        os.close(number)


async def _flat(layer: Layer, format: str, scratch: Path) -> int:
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
    offset = 0
    while piece := await asyncio.to_thread(os.pread, number, _PIECE, offset):
        offset += len(piece)
        packed = await asyncio.to_thread(press.compress, piece)
        if packed:
            yield packed
    yield press.flush()
