"""Clearing away what nobody asks for any more: machines without an instance, scratch files, addresses and states of owners that are gone.

Events tell of most of it at once; the sweep at the start, and now and then, finds what went while nobody looked.
"""

import asyncio
import logging

from paddock.base.errors import PaddockError
from paddock.engine.engine import Engine
from paddock.engine.machine.machine import QemuMachine
from paddock.runtime.cache import CacheChange
from paddock.runtime.informer import Informer

_LOG = logging.getLogger(__name__)
_SWEEP_SECONDS = 3600.0
_AGAIN_SECONDS = 60.0


class Sweeper:
    """Clears away."""

    def __init__(self, engine: Engine, instances: Informer, machines: Informer) -> None:
        self._engine = engine
        self._instances = instances
        self._machines = machines
        self._due = asyncio.Event()
        for informer in (instances, machines):
            informer.handle(self._heard)

    def look(self) -> None:
        """There is something to clear away, perhaps."""
        self._due.set()

    def _heard(self, change: CacheChange) -> None:
        if change.new is None:
            self._due.set()

    async def run(self) -> None:
        """Sweep now, whenever something went, and once in a while; until cancelled."""
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
        for machine_id in self._engine.volumes.scratch_owners() - wanted:
            if self._engine.machines.get(machine_id) is None:
                await self._engine.volumes.drop_scratch(machine_id)
        owners = wanted | {seen.meta.uid for seen in self._machines.cache}
        for owner in self._engine.networks.owners() - owners:
            await self._engine.networks.release(owner)
        await self._engine.networks.collect(owners)
        await self._engine.states.keep_only(owners)

    async def _abandon(self, machine: QemuMachine) -> None:
        """Nobody asks for it: its instance was removed by force, or while Paddock was away."""
        if machine.observed.phase == "stopping":
            return
        if machine.observed.live:
            _LOG.warning("stopping machine without an instance", extra={"machine": machine.id})
            # When it has ended it is forgotten: its end is heard of like any other.
            await machine.stop(0)
        else:
            await machine.forget()
