"""The end of the demonstration: nothing of it is left, whatever state it was in."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

from paddock.app.directory import process
from paddock.base.errors import PaddockError
from paddock.engine.machine.process import holders
from paddock.engine.networks.networks import Networks
from tools.demo import objects
from tools.demo.place import SERVER, SHELF, Place

_DELETE_SECONDS = 45.0
_KILL_SECONDS = 10.0


def end(place: Place) -> None:
    """First as a user deletes machines; then whatever that did not do."""
    if not place.exists:
        return
    if process.find(place.host) is not None:
        with contextlib.suppress(PaddockError, OSError, TimeoutError):
            asyncio.run(_delete(place))
    place.end(SERVER)
    place.end(SHELF)
    _kill(place.host.engine)
    if (place.host.engine / "networks").is_dir():
        asyncio.run(_clear(place.host.engine / "networks"))
    place.forget()


async def _delete(place: Place) -> None:
    async with asyncio.timeout(_DELETE_SECONDS), objects.connected(place.host.kubeconfig) as client:
        await objects.delete(client, objects.documents(place.examples))


def _kill(engine: Path) -> None:
    """Guests outlive a server; these are not to."""
    until = time.monotonic() + _KILL_SECONDS
    while left := [pid for lock in engine.glob("machines/*/lock") for pid in holders(lock)]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return
        time.sleep(0.05)


async def _clear(folder: Path) -> None:
    """Bridge, taps, routes and rules, where there are any."""
    networks = Networks(folder)
    if networks.mode == "routed" and (folder / "table.json").exists():
        await networks.destroy()
    else:
        await networks.close()
