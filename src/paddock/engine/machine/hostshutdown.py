"""The shutdown of guests with their host, while no Paddock runs: round by round, the lowest priority first.

Nobody else is connected to a QEMU then, so its monitor takes this connection. The record of a machine goes on to say that it runs, with the
host as the reason for its end: the next start of Paddock treats it as a machine that the host took down, whatever the guest said last.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct, structs

from paddock.base.errors import PaddockError
from paddock.engine.machine import tracking
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import DiskConfig
from paddock.engine.machine.directory import GRACE_SECONDS, Directory
from paddock.engine.machine.observation import EndReason
from paddock.engine.machine.qmp import Qmp
from paddock.engine.machine.runends import FINAL_STATES
from paddock.engine.machine.startup import reach

_HOST: EndReason = "host-reboot"
# Between two presses of the power button.
_PRESS_SECONDS = 5.0
_LOOK_SECONDS = 0.05


class ShutdownGuest(Struct, frozen=True):
    """A guest that runs, with what counts for its turn."""

    directory: Directory
    priority: int = 0
    # seconds that it may take
    grace: float = GRACE_SECONDS


def guest_of(directory: Directory) -> ShutdownGuest:
    """Return what the record of a machine says; a lost record gives the usual values."""
    record = directory.read_record()
    if record is None:
        return ShutdownGuest(directory)
    has_moved = record.renewal is not None and record.renewal.moved and directory.beside.run.is_dir()
    return ShutdownGuest(directory.beside if has_moved else directory, record.priority, record.grace)


def rounds(guests: Iterable[ShutdownGuest]) -> list[list[ShutdownGuest]]:
    """Return the guests that go together, in the reverse order of starts: those with the lowest priority first."""
    ordered = sorted(guests, key=lambda each: each.priority)
    return [list(found) for _, found in groupby(ordered, key=lambda each: each.priority)]


def share(left: Sequence[Sequence[ShutdownGuest]], seconds: float) -> float:
    """Return the seconds for the first of these rounds: its longest grace, or its part if all graces together take too long."""
    wanted = [max(each.grace for each in found) for found in left]
    return wanted[0] if sum(wanted) <= seconds else seconds * wanted[0] / sum(wanted)


async def shut_down(guest: ShutdownGuest, seconds: float) -> str:
    """Press the power button until the guest is down and QEMU has ended. Return the reason if it is not; its QEMU then lives.

    A paused guest goes on first, because it could not hear the button.
    """
    over = asyncio.Event()

    def tell(name: str, _: Mapping[str, Any]) -> None:
        if name == "SHUTDOWN":
            over.set()

    qmp: Qmp | None = None
    try:
        async with asyncio.timeout(min(seconds, guest.grace)):
            qmp = await Qmp.connect(await reach(guest.directory, names.QMP, seconds), tell, over.set)
            status = str((await qmp.execute("query-status")).get("status", ""))
            if status in ("prelaunch", "inmigrate"):
                return "its guest has not run yet"
            if status == "paused":
                await qmp.execute("cont")
            if status not in FINAL_STATES:
                await _press(qmp, over)
            note_end(guest.directory, FINAL_STATES.get(status, _HOST))
            kept = await _keep_changes(guest.directory, qmp)
            with contextlib.suppress(PaddockError):
                await qmp.execute("quit")
            while guest.directory.locked():
                await asyncio.sleep(_LOOK_SECONDS)
            for disk, checkpoints in kept:
                with contextlib.suppress(OSError):
                    tracking.write_note(disk, checkpoints)
            return ""
    except TimeoutError:
        return f"it did not shut down within {min(seconds, guest.grace):.0f} s"
    except PaddockError as error:
        # A QEMU that goes does not answer.
        return str(error) if guest.directory.locked() else ""
    finally:
        if qmp is not None:
            qmp.close()


async def _keep_changes(directory: Directory, qmp: Qmp) -> list[tuple[DiskConfig, tuple[str, ...]]]:
    """Have QEMU write down which blocks changed since checkpoints; what cannot be makes the next backup a full one."""
    kept: dict[str, tuple[DiskConfig, tuple[str, ...]]] = {}
    with contextlib.suppress(PaddockError, OSError):
        config = Directory(directory.path).read_config()
        for disk in config.disks if config is not None else ():
            if found := await tracking.write_map(qmp, disk):
                kept[disk.name] = disk, found
    return list(kept.values())


def note_end(directory: Directory, reason: EndReason = _HOST) -> None:
    """Write down why a machine is about to end, unless its record has a reason already."""
    place = Directory(directory.path)
    record = place.read_record()
    if record is not None and record.active and not record.evidence:
        place.write_record(structs.replace(record, evidence=(reason,)))


async def _press(qmp: Qmp, over: asyncio.Event) -> None:
    while not over.is_set():
        await qmp.execute("system_powerdown")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), _PRESS_SECONDS)
