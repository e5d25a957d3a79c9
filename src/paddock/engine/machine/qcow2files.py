"""qcow2 files beside a machine's disks, which QEMU fills or reads. It is handed descriptors, and learns no path."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import Unanswered

_PATIENCE = 60.0
_LOOK_SECONDS = 0.005


class QemuMonitor(Protocol):
    """The monitor of a machine's QEMU."""

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None, *, fds: Sequence[int] = ()) -> Any: ...


@contextlib.asynccontextmanager
async def made(owner: QemuMonitor, node: str, path: Path, size: int) -> AsyncIterator[None]:
    """A new file that QEMU has open under the name of a node; afterwards it is whole, and synchronised."""
    await make(owner, node, path, size)
    try:
        yield
    finally:
        await close(owner, node)
    await asyncio.to_thread(synchronise, path)


@contextlib.asynccontextmanager
async def opened(owner: QemuMonitor, node: str, path: Path) -> AsyncIterator[None]:
    """A file that QEMU reads under the name of a node."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    file = {"driver": "file", "node-name": _file(node), "read-only": True, "locking": "off", "filename": await _hand(owner, node, handle)}
    try:
        await owner.execute("blockdev-add", {"driver": "qcow2", "node-name": node, "read-only": True, "backing": None, "file": file})
        yield
    finally:
        await close(owner, node)


async def make(owner: QemuMonitor, node: str, path: Path, size: int) -> None:
    """A new file, open under the name of a node. A failure leaves nothing open."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        file = {"driver": "file", "node-name": _file(node), "discard": "unmap", "filename": await _hand(owner, node, handle)}
        await owner.execute("blockdev-add", file)
        await _create(owner, node, size)
        described = {"driver": "qcow2", "node-name": node, "backing": None, "discard": "unmap", "file": _file(node)}
        await owner.execute("blockdev-add", described)
    except BaseException:
        await close(owner, node)
        raise


async def _create(owner: QemuMonitor, node: str, size: int) -> None:
    options = {"driver": "qcow2", "file": _file(node), "size": size}
    await owner.execute("blockdev-create", {"job-id": _job(node), "options": options})
    if error := (await _made(owner, node)).get("error"):
        raise Unanswered("cannot have QEMU make a file", why=str(error))


async def _made(owner: QemuMonitor, node: str) -> dict[str, Any]:
    """The job that makes a file is over, and gone. Return what became of it; nothing if there was none."""
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                found = next((job for job in await owner.execute("query-jobs") if job["id"] == _job(node)), None)
                if found is None or found["status"] == "concluded":
                    break
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise Unanswered("cannot have QEMU make a file", why=f"it was not done within {_PATIENCE:g} s") from None
    if found is None:
        return {}
    await owner.execute("job-dismiss", {"id": _job(node)})
    return dict(found)


def _job(node: str) -> str:
    return f"make-{node}"


async def _hand(owner: QemuMonitor, node: str, handle: int) -> str:
    """QEMU gets a descriptor; the caller's is closed. Returns the name under which it has it."""
    try:
        said = await owner.execute("add-fd", {"opaque": node}, fds=[handle])
    finally:
        os.close(handle)
    return f"/dev/fdset/{said['fdset-id']}"


async def close(owner: QemuMonitor, node: str) -> None:
    """QEMU has the file open no longer. What is not open is no matter."""
    # Of a Paddock that died when it had just been made.
    with contextlib.suppress(PaddockError):
        await _made(owner, node)
    for each in (node, _file(node)):
        with contextlib.suppress(PaddockError):
            await owner.execute("blockdev-del", {"node-name": each})
    with contextlib.suppress(PaddockError):
        for group in await owner.execute("query-fdsets"):
            if any(each.get("opaque") == node for each in group["fds"]):
                await owner.execute("remove-fd", {"fdset-id": group["fdset-id"]})


def synchronise(path: Path) -> None:
    """A power cut takes nothing away of a file. Blocking."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _file(node: str) -> str:
    # QEMU's own bound for the name of a node is 31 characters.
    return f"f{node}"[:31]
