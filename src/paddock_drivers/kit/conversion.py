"""Converts disks with qemu-img, in a process with limits.

It gets open files and no names. `convert` reads raw disks alone, so nothing that a guest has written is taken for a format. `flatten` reads
layers whose formats are known; each is given the next one by hand, so that no name inside a file leads anywhere.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from paddock_drivers.kit import refusals

RAW, QCOW2, VMDK = "raw", "qcow2", "vmdk"
_PROGRAM = "qemu-img"
# Open files as names, where /proc is.
_HANDLES = "/proc/self/fd"
_MEMORY, _CPU_SECONDS = 2 << 30, 6 * 3600
_LIMITED = (
    "import os, resource, sys; "
    f"resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY}, {_MEMORY})); "
    f"resource.setrlimit(resource.RLIMIT_CPU, ({_CPU_SECONDS}, {_CPU_SECONDS})); "
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
    "os.execvpe(sys.argv[1], sys.argv[1:], {'PATH': '/usr/bin:/bin:/usr/local/bin', 'LC_ALL': 'C.UTF-8', 'MALLOC_ARENA_MAX': '1'})"
)
_MOST_TEXT = 500


class OpenLayer(NamedTuple):
    """An open file of a chain, and its format, which was found out before."""

    handle: int
    format: str


def formats() -> tuple[str, ...]:
    """The formats that exports can have here."""
    return (RAW, QCOW2, VMDK) if shutil.which(_PROGRAM) and os.path.isdir(_HANDLES) else (RAW,)


def can_compress() -> bool:
    """Return whether exports can be compressed here, which qcow2 does."""
    return QCOW2 in formats()


async def convert(source: int, target: int, format: str, *, compress: bool = False) -> None:
    """Convert the raw disk in one open file to another; raises `ProviderError`."""
    options: tuple[str, ...] = ("-c",) if compress else ()
    if format == VMDK:
        options = ("-o", "subformat=streamOptimized")
    words = ("convert", "-q", "-f", RAW, "-O", format, *options, f"{_HANDLES}/{source}", f"{_HANDLES}/{target}")
    await _run(words, (source, target), f"convert the disk to {format}")


async def flatten(layers: Sequence[OpenLayer], target: int, format: str, *, snapshot: str = "", compress: bool = False) -> None:
    """Write the disk that a chain of files makes to one file; the first layer is the newest. With a snapshot: as it was in that.

    Raises `ProviderError`.
    """
    options: tuple[str, ...] = ("-c",) if compress else ()
    if snapshot:
        options = (*options, "-l", f"snapshot.name={snapshot}")
    if format == QCOW2:
        options = (*options, "-o", "compat=1.1")
    words = ("convert", "-q", "-O", format, *options, f"json:{json.dumps(_chain(layers))}", f"{_HANDLES}/{target}")
    await _run(words, (*(each.handle for each in layers), target), "read the disk")


def _chain(layers: Sequence[OpenLayer]) -> dict[str, Any]:
    first = layers[0]
    found: dict[str, Any] = {
        "driver": first.format,
        "file": {"driver": "file", "filename": f"{_HANDLES}/{first.handle}", "locking": "off", "read-only": True},
        "read-only": True,
    }
    if first.format == QCOW2:
        found["backing"] = _chain(layers[1:]) if len(layers) > 1 else None
    return found


async def _run(words: Sequence[str], handles: Sequence[int], what: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _LIMITED, _PROGRAM, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=tuple(handles),
        start_new_session=True,
    )
    try:
        _, said = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        why = said[:_MOST_TEXT].decode(errors="replace").strip()
        raise refusals.retry_later(f"{_PROGRAM} cannot {what}: {why or f'status {process.returncode}'}")


def virtual_size(head: bytes, size: int) -> int:
    """The size of the disk in a file, by its first bytes; 0 when they do not tell."""
    if head[:4] == b"QFI\xfb" and len(head) >= 32:
        return int.from_bytes(head[24:32], "big")
    if head[:4] == b"KDMV" and len(head) >= 20:
        return int.from_bytes(head[12:20], "little") * 512
    if head[:4] == b"<<< " or head[:8] == b"vhdxfile":
        return 0
    return size
