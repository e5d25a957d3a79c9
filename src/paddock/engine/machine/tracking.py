"""What changed on disks since a checkpoint: a dirty bitmap of QEMU for each checkpoint and disk, on the node that the guest writes.

A bitmap is made and filled in one transaction, so one that is there knows of every change since its checkpoint. While a QEMU runs, it alone
knows them. They outlive it only when it ends as planned:

    keep      the guest has ended, and QEMU writes the bitmaps into `changed-blocks.qcow2` beside the disk
    note      QEMU has gone: `changed-blocks.json` says which checkpoints these are, and how the disk's file is
    take up   the next QEMU has them from there, if the disk's file is as it was; then both files go, before the guest runs

Whatever is cut short leaves no `changed-blocks.json`, and with it no bitmaps: the next backup is a full one.
"""

import asyncio
import contextlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from paddock.base.descriptors import write_all
from paddock.base.errors import PaddockError
from paddock.engine.machine import qcow2files
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import DiskConfig
from paddock.engine.machine.errors import QemuRefused
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import boot_id
from paddock.engine.machine.qcow2files import QemuMonitor

# In bytes; QEMU copies clusters of this size for a backup, whatever a bitmap says.
GRANULARITY = 64 << 10
_PREFIX = "checkpoint-"
_MAP, _NOTE = "changed-blocks.qcow2", "changed-blocks.json"
_VERSION = 1
_MAP_NODE = "changed-blocks"


class FileStamp(msgspec.Struct, frozen=True):
    """A disk's file as it was: any change of it changes one of these."""

    name: str
    inode: int
    size: int
    time: int


class KeptBitmaps(msgspec.Struct, frozen=True):
    """What `changed-blocks.json` says of a disk."""

    disk: str
    file: FileStamp
    checkpoints: tuple[str, ...]
    version: int = _VERSION


class ChangeTracking:
    """The checkpoints of one machine."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self._keeping = asyncio.Lock()

    async def checkpoints(self) -> dict[str, frozenset[str]]:
        """Return the checkpoints since which QEMU knows all changes, for each disk that is followed."""
        known = await bitmaps(self._owner)
        return {disk.name: frozenset(known.get(top(disk), ())) for disk in _tracked(self._owner)}

    async def retain(self, checkpoints: Collection[str]) -> None:
        """Drop all checkpoints but these."""
        for node, found in (await bitmaps(self._owner)).items():
            await drop(self._owner, node, [each for each in found if each not in checkpoints])

    async def adopt(self) -> None:
        """After Paddock was away: what a node below the guest's had is known by the guest's own, or by nobody."""
        tops = {top(disk) for disk in _tracked(self._owner)}
        for node, found in (await bitmaps(self._owner)).items():
            if node not in tops and not self._owner.record.commits and self._owner.record.moving is None:
                await drop(self._owner, node, found)

    async def keep(self) -> None:
        """The guest has ended: QEMU writes its bitmaps down. Repeated, it does nothing."""
        async with self._keeping:
            owner = self._owner
            if owner.record.kept or "saved" in owner.record.evidence:
                return
            found = {disk.name: await write_map(owner, disk) for disk in _tracked(owner)}
            if kept := {name: checkpoints for name, checkpoints in found.items() if checkpoints}:
                owner.save(kept=kept)

    def follow(self, event: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine. When QEMU has gone, its disks' files are what the bitmaps belong to."""
        record = self._owner.record
        if not event and record.kept and record.boot == boot_id():
            for disk in _tracked(self._owner):
                if disk.name in record.kept:
                    with contextlib.suppress(OSError):
                        write_note(disk, record.kept[disk.name])

    async def take_up(self) -> None:
        """QEMU has the bitmaps of the last run, if they belong to the disks as they are. The guest does not run yet."""
        for disk in _tracked(self._owner):
            if self._owner.record.restore:
                # A guest that was suspended brings its own along, and what is here is not of its disks.
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(_forget, disk)
            else:
                await take_up(self._owner, disk)


async def write_map(owner: QemuMonitor, disk: DiskConfig) -> tuple[str, ...]:
    """No guest writes a disk any more: QEMU writes its bitmaps beside it. Return the checkpoints."""
    found = (await bitmaps(owner)).get(top(disk), ())
    if not disk.tracked or not found:
        return ()
    path = _directory(disk) / _MAP
    await asyncio.to_thread(_forget, disk)
    async with qcow2files.made(owner, _MAP_NODE, path, await size_of(owner, top(disk))):
        await owner.execute("transaction", {"actions": [*carried(top(disk), _MAP_NODE, found, persistent=True)]})
    return found


async def take_up(owner: MachineOwner, disk: DiskConfig) -> None:
    """QEMU has a disk open that no guest writes yet: it gets the bitmaps beside it, which never count again after that."""
    if not disk.tracked or disk.layer is None:
        return
    try:
        if (kept := await asyncio.to_thread(_read_note, disk)) is not None:
            await _take_up(owner, disk, kept)
    except (PaddockError, OSError, ValueError) as error:
        owner.observe(detail=f"the next backup of disk {disk.name} is a full one: {error}")
    with contextlib.suppress(OSError):
        await asyncio.to_thread(_forget, disk)


async def _take_up(owner: MachineOwner, disk: DiskConfig, kept: KeptBitmaps) -> None:
    if set(kept.checkpoints) <= set((await bitmaps(owner)).get(top(disk), ())):
        # Paddock ended when they had just been taken up.
        return
    async with qcow2files.opened(owner, _MAP_NODE, _directory(disk) / _MAP):
        there = (await bitmaps(owner)).get(_MAP_NODE, ())
        found = [each for each in kept.checkpoints if each in there]
        await owner.execute("transaction", {"actions": [*carried(_MAP_NODE, top(disk), found)]})


# --- bitmaps of nodes -------------------------------------------------------------------------------------------------------


def top(disk: DiskConfig) -> str:
    """Return the node that a guest writes to."""
    return names.format_node(disk.name, disk.layer.path) if disk.layer is not None else ""


def bitmap(checkpoint: str) -> str:
    """Return the name of a checkpoint's bitmap."""
    return _PREFIX + checkpoint


async def bitmaps(owner: QemuMonitor) -> dict[str, tuple[str, ...]]:
    """Return the checkpoints of each node that has some. A bitmap that was not written to the end does not count."""
    found: dict[str, tuple[str, ...]] = {}
    for node in await owner.execute("query-named-block-nodes", {"flat": True}):
        known = [str(each["name"]) for each in node.get("dirty-bitmaps", ()) if each.get("name") and not each.get("inconsistent")]
        if own := sorted(each.removeprefix(_PREFIX) for each in known if each.startswith(_PREFIX)):
            found[str(node["node-name"])] = tuple(own)
    return found


async def size_of(owner: QemuMonitor, name: str) -> int:
    """Return the bytes that a guest sees of a node."""
    nodes = await owner.execute("query-named-block-nodes", {"flat": True})
    return next((int(node["image"]["virtual-size"]) for node in nodes if node["node-name"] == name), 0)


def begun(node: str, checkpoint: str) -> dict[str, Any]:
    """Return the action with which a checkpoint begins."""
    return {"type": "block-dirty-bitmap-add", "data": {"node": node, "name": bitmap(checkpoint), "granularity": GRANULARITY}}


def carried(old: str, new: str, checkpoints: Collection[str], *, persistent: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the actions after which a node knows what another one knew. As one transaction: a bitmap is whole, or it is not there."""
    for each in checkpoints:
        action = begun(new, each)
        yield {**action, "data": {**action["data"], "persistent": True}} if persistent else action
        source = {"node": old, "name": bitmap(each)}
        yield {"type": "block-dirty-bitmap-merge", "data": {"node": new, "target": bitmap(each), "bitmaps": [source]}}


async def carry(owner: MachineOwner, old: str, new: str) -> None:
    """The guest stands still and goes on with another node, which gets the bitmaps. If it does not, the next backup is a full one."""
    with contextlib.suppress(PaddockError):
        known = await bitmaps(owner)
        there = {bitmap(each) for each in known.get(new, ())}
        actions = [
            action
            for action in carried(old, new, known.get(old, ()))
            if action["type"] == "block-dirty-bitmap-merge" or action["data"]["name"] not in there
        ]
        if actions:
            await owner.execute("transaction", {"actions": actions})


async def drop(owner: MachineOwner, node: str, checkpoints: Collection[str]) -> None:
    """Remove bitmaps of a node."""
    for each in checkpoints:
        with contextlib.suppress(QemuRefused):
            await owner.execute("block-dirty-bitmap-remove", {"node": node, "name": bitmap(each)})


def _tracked(owner: MachineOwner) -> list[DiskConfig]:
    return [disk for disk in owner.config.disks if disk.tracked and disk.layer is not None and not disk.readonly]


# --- files ------------------------------------------------------------------------------------------------------------------


def _path(disk: DiskConfig) -> Path:
    return disk.layer.path if disk.layer is not None else Path()


def _directory(disk: DiskConfig) -> Path:
    return _path(disk).parent


def _file_of(disk: DiskConfig) -> FileStamp:
    status = _path(disk).stat()
    return FileStamp(_path(disk).name, status.st_ino, status.st_size, status.st_mtime_ns)


def write_note(disk: DiskConfig, checkpoints: tuple[str, ...]) -> None:
    """Synchronised, with what it speaks of: a power cut leaves all of it, or no note."""
    for path in (_path(disk), _directory(disk) / _MAP):
        qcow2files.synchronise(path)
    note, fresh = _directory(disk) / _NOTE, _directory(disk) / f"{_NOTE}.new"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        write_all(handle, msgspec.json.encode(KeptBitmaps(disk.name, _file_of(disk), checkpoints)))
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(fresh, note)
    qcow2files.synchronise(_directory(disk))


def _read_note(disk: DiskConfig) -> KeptBitmaps | None:
    """None: there are no bitmaps, or they belong to a disk that was written since."""
    try:
        kept = msgspec.json.decode((_directory(disk) / _NOTE).read_bytes(), type=KeptBitmaps)
    except FileNotFoundError:
        return None
    return kept if kept.version == _VERSION and kept.disk == disk.name and kept.file == _file_of(disk) else None


def _forget(disk: DiskConfig) -> None:
    note = _directory(disk) / _NOTE
    with contextlib.suppress(FileNotFoundError):
        note.unlink()
        qcow2files.synchronise(note.parent)
    (_directory(disk) / _MAP).unlink(missing_ok=True)
