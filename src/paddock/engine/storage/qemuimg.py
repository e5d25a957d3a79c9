"""`qemu-img`, the only program that works on disks here: formats always given, never guessed, and bounded in what it may take.

A chain of layers is handed over as the description that QEMU itself uses for one, so no name that stands in the header of a file is
followed: a guest whose QEMU was taken over can write there what it likes.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from paddock.engine.machine.config import DiskLayer, Format
from paddock.engine.storage import errors
from paddock.engine.storage.errors import StoreFailed, StoreFull, VolumeBroken, VolumeBusy

_MAGIC = b"QFI\xfb"
_EXTERNAL_DATA = 1 << 2
_SPACE_BYTES = 2 << 30
_FULL = ("No space left on device", "Disk quota exceeded")
_BUSY = ("Failed to get", "lock")


class Bounds(Struct, frozen=True):
    """The limits of one run."""

    seconds: float = 30.0
    cpu_seconds: int = 30


QUICK = Bounds()
# Runs that move the whole content of a disk.
LONG = Bounds(seconds=6 * 3600.0, cpu_seconds=3 * 3600)


def described(layer: DiskLayer) -> dict[str, Any]:
    """A chain of layers as QEMU describes it. Raises `VolumeBroken` when a file is not of its format."""
    _check(layer)
    node: dict[str, Any] = {"driver": layer.format, "file": {"driver": "file", "filename": os.fspath(layer.path.absolute())}}
    if layer.format == "qcow2":
        # The empty name means no layer below: otherwise qemu-img follows the name in the header.
        node["backing"] = described(layer.backing) if layer.backing is not None else None
    return node


def _check(layer: DiskLayer) -> None:
    if layer.format != "qcow2":
        return
    with errors.spoken(f"cannot read {layer.path}", layer.path.parent), open(layer.path, "rb") as file:
        head = file.read(80)
    if len(head) < 72 or head[:4] != _MAGIC:
        raise VolumeBroken(f"cannot use {layer.path}", why="it is no qcow2 file", fix="restore it from a backup")
    is_new = int.from_bytes(head[4:8], "big") >= 3
    if is_new and int.from_bytes(head[72:80], "big") & _EXTERNAL_DATA:
        raise VolumeBroken(f"cannot use {layer.path}", why="it names another file as its data", fix="restore it from a backup")


async def resize(layer: DiskLayer, size: int) -> None:
    await run("resize", "-q", _json(layer), str(size))


async def convert(layer: DiskLayer, path: Path, to: Format) -> None:
    """The whole content of a disk in one file."""
    await run("convert", "-q", "-t", "writeback", "-O", to, _json(layer), os.fspath(path), bounds=LONG)


async def commit(layer: DiskLayer) -> None:
    """Merge the uppermost layer into the one below it; the file of the uppermost is left as it is."""
    await run("commit", "-q", "-d", _json(layer), bounds=LONG)


async def rename_below(layer: DiskLayer, name: str, format: Format | str) -> None:
    """Write another name of what lies below into a layer's header. Nothing below is opened."""
    _check(layer)
    await run("rebase", "-q", "-u", "-f", layer.format, "-F", format, "-b", name, os.fspath(layer.path.absolute()))


def _json(layer: DiskLayer) -> str:
    return "json:" + json.dumps(described(layer))


async def run(*arguments: str, bounds: Bounds = QUICK) -> bytes:
    """Run it and return what it says; it ends with whoever waits for it."""
    limits = (f"--as={_SPACE_BYTES}", f"--cpu={bounds.cpu_seconds}", "--core=0")
    process = await asyncio.create_subprocess_exec(
        "prlimit",
        *limits,
        "qemu-img",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    )
    try:
        async with asyncio.timeout(bounds.seconds):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise StoreFailed(f"qemu-img {arguments[0]} was ended", why=f"it took longer than {bounds.seconds:g} s", fix="") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise _failure(arguments[0], process.returncode or 0, err.decode(errors="replace"))
    return out


def _failure(command: str, code: int, said: str) -> StoreFailed | StoreFull | VolumeBusy:
    lines = [line.removeprefix("qemu-img: ").strip() for line in said.splitlines() if line.strip()]
    why = lines[0][:500] if lines else f"it ended with {code}"
    what = f"qemu-img {command} failed"
    if any(each in said for each in _FULL):
        return StoreFull(what, why=why, fix="free space where volumes are; it is tried again")
    if all(each in said for each in _BUSY):
        return VolumeBusy(what, why="a machine uses the volume", fix="stop the machine, or wait until it ends")
    return StoreFailed(what, why=why)
