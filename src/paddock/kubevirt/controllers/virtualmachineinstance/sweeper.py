"""The work of which no event tells: it runs at the start, when it is requested, and now and then.

The sweeper removes what nothing asks for any more: machines without an instance, scratch files, addresses and states of owners that are
gone. The upgrade watch finds machines whose QEMU was replaced on the host.
"""

import asyncio
import logging
from collections.abc import Callable

from paddock.base.errors import PaddockError
from paddock.engine.engine import Engine
from paddock.engine.machine.machine import QemuMachine
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.informer import Informer

_LOG = logging.getLogger(__name__)
_SWEEP_SECONDS = 3600.0
_AGAIN_SECONDS = 60.0
UPGRADE_SECONDS = 60.0


class Sweeper:
    """Removes what nothing asks for any more."""

    def __init__(self, engine: Engine, instances: Informer, machines: Informer) -> None:
        self._engine = engine
        self._instances = instances
        self._machines = machines
        self._due = asyncio.Event()
        for informer in (instances, machines):
            informer.handle(self._changed)

    def request(self) -> None:
        """Have a sweep begin as soon as the last one is over."""
        self._due.set()

    def _changed(self, change: CacheChange) -> None:
        if change.new is None:
            self._due.set()

    async def run(self) -> None:
        """Sweep now, when requested, when an object is deleted, and every hour; until cancelled."""
        await self._instances.wait_synced()
        await self._machines.wait_synced()
        while True:
            self._due.clear()
            try:
                await self._sweep()
            except PaddockError as error:
                _LOG.warning("cleanup incomplete", extra={"error": str(error)})
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            try:
                async with asyncio.timeout(_SWEEP_SECONDS):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _sweep(self) -> None:
        wanted = {seen.meta.uid for seen in self._instances.cache}
        for machine in tuple(self._engine.machines):
            if machine.id not in wanted:
                await self._abandon(machine)
        for machine_id in self._engine.machines.leftovers() - wanted:
            self._engine.machines.discard(machine_id)
        for machine_id in self._engine.volumes.scratch_owners() - wanted - self._engine.machines.leftovers():
            if self._engine.machines.get(machine_id) is None:
                await self._engine.volumes.drop_scratch(machine_id)
        owners = wanted | {seen.meta.uid for seen in self._machines.cache}
        if gone := self._engine.networks.owners() - owners:
            await self._engine.networks.release(gone)
        await self._engine.networks.collect(owners)
        await self._engine.states.keep_only(owners)
        self._engine.consoles.keep_only(owners)

    async def _abandon(self, machine: QemuMachine) -> None:
        """End a machine whose instance was removed by force, or while Paddock was away."""
        if machine.observed.phase == "stopping":
            return
        if machine.observed.live:
            _LOG.warning("stopping machine without an instance", extra={"machine": machine.id})
            # Its end requests a sweep, which forgets it.
            await machine.stop(0)
        else:
            await machine.forget()


class UpgradeWatch:
    """Requests a reconcile of machines whose QEMU was replaced; the controller reports it in their status."""

    def __init__(self, engine: Engine, request: Callable[[str], None]) -> None:
        self._engine = engine
        self._request = request
        # machines, each with the process it had
        self._outdated: frozenset[tuple[str, int]] = frozenset()

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(UPGRADE_SECONDS)
            outdated = frozenset((machine.id, machine.observed.pid) for machine in self._engine.machines if machine.outdated)
            for uid in sorted({uid for uid, _ in outdated ^ self._outdated}):
                self._request(uid)
            self._outdated = outdated
