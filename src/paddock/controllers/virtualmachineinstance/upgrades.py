"""Noticing that the host's QEMU was replaced under machines that run: no event tells of it, so it is looked at now and then."""

import asyncio
from collections.abc import Callable

from paddock.engine.engine import Engine

LOOK_SECONDS = 60.0


class Upgrades:
    """Has machines looked at whose QEMU was replaced; what their instances say of it is the controller's."""

    def __init__(self, engine: Engine, wake: Callable[[str], None]) -> None:
        self._engine = engine
        self._wake = wake
        # machines, each with the process it had
        self._outdated: frozenset[tuple[str, int]] = frozenset()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Tell of those that are outdated since the last look, or not any more."""
        now = frozenset((machine.id, machine.observed.pid) for machine in self._engine.machines if machine.outdated)
        for uid in sorted({uid for uid, _ in now ^ self._outdated}):
            self._wake(uid)
        self._outdated = now
