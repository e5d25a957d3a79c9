"""The shutdown of the guests in directories, as a host does it. No server runs there meanwhile, so nothing starts them again."""

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from paddock.app.directory import guests as residents
from paddock.app.directory.purge import end_guests
from paddock.cli.console import Console
from paddock.engine.claims import HostReservations
from paddock.engine.machine.directory import Directory, UnreadableState
from paddock.engine.machine.hostshutdown import ShutdownGuest, guest_of, note_end, rounds, share, shut_down

# For a QEMU whose guest did not shut down.
_KILL_SECONDS = 10.0


def roots_on_host() -> list[Path]:
    """Return root's directories on this host; a claim is that of the engine below one."""
    return [each.parent for each in HostReservations().directories()] if os.geteuid() == 0 else []


async def shut_down_all(engines: Iterable[Path], seconds: float, console: Console) -> None:
    """Shut down the guests of all engines within these seconds, those with the lowest priority first; end those that do not."""
    left = rounds(guest_of(each) for engine in engines for each in residents.running(engine))
    end = time.monotonic() + seconds
    while left:
        await _shut_down(left[0], share(left, max(0.0, end - time.monotonic())), console)
        left = left[1:]


async def _shut_down(guests: Sequence[ShutdownGuest], seconds: float, console: Console) -> None:
    async def one(guest: ShutdownGuest) -> str:
        start = time.monotonic()
        why = await shut_down(guest, seconds)
        if not why:
            console.out(f"{_name(guest.directory)} shut down in {time.monotonic() - start:.1f} s\n")
            console.flush()
        return why

    reasons = await asyncio.gather(*(one(each) for each in guests))
    stubborn = [(Directory(guest.directory.path), why) for guest, why in zip(guests, reasons, strict=True) if why]
    for directory, why in stubborn:
        console.say(f"paddock: ending {_name(directory)} without a shutdown of its guest: {why}")
        note_end(directory)
    if stubborn:
        await asyncio.to_thread(end_guests, [each for each, _ in stubborn], _KILL_SECONDS)


def _name(directory: Directory) -> str:
    try:
        config = Directory(directory.path).read_config()
    except UnreadableState:
        config = None
    return config.label.replace("_", "/", 1) if config is not None else directory.id
