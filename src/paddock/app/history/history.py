"""Samples the use of all running machines, keeps it in rings, and writes these to disk every few minutes."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from paddock.app.history.files import HistoryFiles
from paddock.app.history.rings import RESOLUTIONS, Resolution, UsageRings, UsageSeries
from paddock.app.history.samples import HistoryReading, sample
from paddock.base.clock import Clock

_LOG = logging.getLogger(__name__)
SAMPLE_SECONDS = float(RESOLUTIONS[0].step)
FLUSH_SECONDS = 300.0
# Machines, before others get their turn: some milliseconds.
_AT_A_TIME = 50


class HistoryOwners(msgspec.Struct, frozen=True):
    """The owner of each running machine, by the machine's id, and all owners that exist."""

    of_machines: Mapping[str, str]
    present: frozenset[str]


Readings = Callable[[], Awaitable[Mapping[str, HistoryReading]]]


class UsageHistory:
    """The histories of all machines of a host. A machine that is deleted loses its history."""

    def __init__(self, files: HistoryFiles, readings: Readings, owners: Callable[[], HistoryOwners], clock: Clock) -> None:
        self._files = files
        self._read = readings
        self._owners = owners
        self._clock = clock
        self._rings: dict[str, UsageRings] = {}
        self._last: Mapping[str, HistoryReading] = {}
        self._task: asyncio.Task[None] | None = None

    def series(self, owner: str, resolution: Resolution) -> UsageSeries:
        """Return the series of an owner up to now; a machine that never ran here has none."""
        return self._rings.get(owner, _EMPTY).series(resolution, self._clock.seconds())

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="usage history")

    async def close(self) -> None:
        """Stop sampling, and write what is not on disk."""
        if self._task is None:
            return
        task, self._task = self._task, None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.flush()

    async def load(self) -> None:
        """Take over what an earlier run of the server wrote."""
        self._rings = {**await self._files.read(), **self._rings}

    async def sample(self) -> None:
        """Take one sample of every running machine."""
        readings = await self._read()
        owners = self._owners()
        await self._forget(owners.present)
        now = self._clock.seconds()
        for number, (machine, reading) in enumerate(readings.items(), 1):
            owner = owners.of_machines.get(machine)
            if owner is not None:
                self._rings.setdefault(owner, UsageRings()).add(now, sample(self._last.get(machine), reading))
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        self._last = readings

    async def flush(self) -> None:
        """Write all histories. A full disk costs this write, and not the histories."""
        packed = {}
        for number, (owner, rings) in enumerate(tuple(self._rings.items()), 1):
            packed[owner] = rings.pack()
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        try:
            await self._files.write(packed)
        except OSError as error:
            _LOG.warning("usage histories not written; retrying later", extra={"error": str(error)})

    async def _run(self) -> None:
        await self.load()
        loop = asyncio.get_running_loop()
        flushed = loop.time()
        while True:
            # In the middle of a slot, so that a late turn is still in it.
            await asyncio.sleep(SAMPLE_SECONDS - (self._clock.seconds() - SAMPLE_SECONDS / 2) % SAMPLE_SECONDS)
            try:
                await self.sample()
            except Exception:
                # A defect here must not end the history of all machines.
                _LOG.exception("usage not sampled")
            if loop.time() - flushed >= FLUSH_SECONDS:
                await self.flush()
                flushed = loop.time()

    async def _forget(self, present: frozenset[str]) -> None:
        gone = self._rings.keys() - present
        for owner in gone:
            del self._rings[owner]
        if gone:
            with contextlib.suppress(OSError):
                await self._files.remove(gone)


_EMPTY = UsageRings()
