"""Disks in formats of other hypervisors, made raw.

Their headers come from anybody, so no program opens a file that our own code has not judged. A file that names other files is refused.
Packed VMDKs are unpacked by our own code; qemu-img reads the rest, confined to the file and to what it writes, with the format always said.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from paddock.base.images import headers, vmdkgrains
from paddock.base.images.convert import Tool
from paddock.base.images.errors import ImageError
from paddock.base.images.formats import Disk
from paddock.base.images.progress import Meter
from paddock.base.images.stopflag import StopFlag
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals

# The formats by the names that requests and files have.
FORMATS: dict[str, Disk] = {"raw": "raw", "qcow2": "qcow2", "vmdk": "vmdk", "vdi": "vdi", "vhd": "vpc", "vpc": "vpc", "vhdx": "vhdx"}
_RESERVE = 256 << 20
_HEADS: tuple[tuple[bytes, str], ...] = (
    (b"QFI\xfb", "qcow2"),
    (b"KDMV", "vmdk"),
    (b"# Disk Desc", "vmdk"),
    (b"vhdxfile", "vhdx"),
    (b"conectix", "vhd"),
)
T = TypeVar("T")


def recognized(head: bytes, *, default: str = "raw") -> str:
    """Return the format that the first bytes of a file say, else the default."""
    return next((name for start, name in _HEADS if head.startswith(start)), default)


async def unpack(source: Path, format: str, target: Path) -> int:
    """Write the disk of a file as a new sparse raw file, and return its size. Raises `ProviderError`."""
    if format not in FORMATS:
        raise refusals.not_supported(f"the format {format[:32]!r} cannot be read", fix=f"use one of {', '.join(FORMATS)}")
    stop = StopFlag()
    return await in_thread(lambda: _unpack(source, FORMATS[format], target, stop), stop)


def _unpack(source: Path, format: Disk, target: Path, stop: StopFlag) -> int:
    facts = headers.inspect(source, format)
    meter = Meter(lambda _: None)
    if facts.format == "vmdk" and facts.compressed:
        vmdkgrains.unpack(source, target, _RESERVE, (meter, stop))
    else:
        Tool().to_raw(source, facts, target, (meter, stop))
    return target.stat().st_size


async def in_thread(work: Callable[[], T], stop: StopFlag) -> T:
    """Run work on images in a thread. Whoever is cancelled stops the work, and waits for its end."""

    def run() -> T:
        with mapped():
            return work()

    running = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait((running,))
        raise


@contextmanager
def mapped() -> Iterator[None]:
    """Raise an error of images as a `ProviderError`."""
    try:
        yield
    except ImageError as error:
        kind = ErrorKind.INVALID_SPEC if error.fatal else ErrorKind.UNAVAILABLE
        if error.code == "NotAuthorized":
            kind = ErrorKind.UNAUTHORIZED
        raise ProviderError(kind, error.what, why=error.why, fix=error.fix, reason=error.reason_code) from error
    except OSError as error:
        raise refusals.retry_later(f"the disk cannot be written here: {error.strerror or type(error).__name__}") from error
