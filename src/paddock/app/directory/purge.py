"""The end of what a directory has on this host: guests, networks, control groups, user numbers, and its data where that is wanted.

No server runs meanwhile. Every step may be repeated.
"""

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from paddock.app.directory import contents, diskformat
from paddock.app.directory import guests as residents
from paddock.app.directory.paths import DataPaths
from paddock.base.errors import Transient
from paddock.engine.claims import HostReservations
from paddock.engine.machine import limits
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.process import end_process, holders, start_ticks
from paddock.engine.machine.shares import NamespaceShares
from paddock.engine.networks import hostobjects, responderprocess, rootless
from paddock.engine.networks.netlink import Netlink
from paddock.engine.networks.networks import Networks
from paddock.engine.simulated import records as simulated

_LOOK_SECONDS = 0.05


def describe(places: DataPaths, *, data: bool, orderly: bool = False) -> list[str]:
    """Return what a purge removes, one sentence a line. `orderly`: the guests shut down before."""
    count = len(residents.running(places.engine)) + simulated.count_guests(places.engine)
    guests = f"shuts down {count} guests" if orderly else f"ends {count} guests at once, as a power cut would"
    guests = guests if count else "ends no guest, as none runs"
    lines = [f"this {guests}", f"it removes the networks, control groups and user numbers that {places.root} has on this host"]
    if data:
        place = f"{places.root}, a link to {places.root.resolve()}," if places.root.is_symlink() else f"{places.root}"
        lines.append(f"it DELETES {place} with all objects, disks, snapshots, images and keys; pools elsewhere (--pool) stay")
        kept = contents.others(places.root)
        return [*lines, *([f"it keeps what Paddock did not make there: {contents.listed(kept)}"] if kept else [])]
    return [*lines, f"objects, disks, snapshots and images in {places.root} stay; --delete-data removes them as well"]


async def clear(places: DataPaths, patience: float) -> None:
    """End the guests, then remove what the host has of the directory. Raises `Transient` when a guest does not end in time."""
    guests = residents.running(places.engine)
    end_guests(guests, patience)
    groups = limits.on_this_host()
    for each in guests:
        limits.remove(groups, each.id)
    NamespaceShares(groups, places.engine / "machines").sweep()
    if (places.engine / "networks").is_dir():
        await Networks(places.engine / "networks").destroy()
    elif os.geteuid() == 0:
        await _remove_network(places.engine / "networks")
    # Without root, the networks are in a namespace that this process is not in.
    await asyncio.to_thread(responderprocess.end_all, places.engine / "networks")
    responderprocess.remove(places.engine / "networks")
    rootless.end(places.engine / "networks")
    if os.geteuid() == 0:
        await hostobjects.collect()
        HostReservations().release(places.engine)
    simulated.end_guests(places.engine)
    residents.forget(places.engine)
    diskformat.note_purge(places.root)


def end_guests(guests: Sequence[Directory], patience: float) -> None:
    """QEMU writes out what it holds when it is asked to end; whoever does not end in half the time is killed."""
    start = time.monotonic()
    for number, limit in ((signal.SIGTERM, patience / 2), (signal.SIGKILL, patience)):
        for each in guests:
            for pid in _processes(each):
                end_process(pid, start_ticks(pid), number)
        while time.monotonic() < start + limit:
            if not any(each.locked() for each in guests):
                return
            time.sleep(_LOOK_SECONDS)
    left = [each.id for each in guests if each.locked()]
    if left:
        raise Transient(f"{len(left)} guests did not end within {patience:g} s", why=", ".join(left), fix="repeat the command")


def _processes(machine: Directory) -> list[int]:
    """The QEMUs of a machine: two while its guest moves from one into the other."""
    record = machine.read_record()
    known = {} if record is None else {record.pid: record.ticks}
    if record is not None and record.renewal is not None:
        known[record.renewal.pid] = record.renewal.ticks
    found = [pid for pid, ticks in known.items() if pid and ticks and start_ticks(pid) == ticks]
    locks = [lock for name in ("lock", "next.lock") if (lock := machine.path / name).exists()]
    return found or [pid for lock in locks for pid in holders(lock)]


async def _remove_network(directory: Path) -> None:
    """That of a directory which somebody has removed by hand."""
    netlink = Netlink()
    try:
        await hostobjects.remove(netlink, directory)
    finally:
        netlink.close()
