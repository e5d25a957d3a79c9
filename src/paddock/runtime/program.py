"""The parts of a program with controllers: what starts in which order, when it is ready, and how it ends.

informers -> caches whole -> (leadership) -> controllers        and backwards at the end:
controllers finish -> lease released -> events sent -> watches closed
"""

import asyncio
import logging

from paddock.client.client import Client
from paddock.runtime.controller import Controller
from paddock.runtime.election import Election, Terms
from paddock.runtime.health import Health
from paddock.runtime.informers import Informers
from paddock.runtime.machinery import Machinery
from paddock.runtime.recorder import Recorder

_LOG = logging.getLogger(__name__)


class Program:
    """Controllers with all they stand on."""

    def __init__(self, client: Client, *, component: str, instance: str, machinery: Machinery, terms: Terms | None = None) -> None:
        self.client = client
        self.machinery = machinery
        self.informers = Informers(client, machinery)
        self.recorder = Recorder(client, component, instance, machinery)
        self.health = Health(machinery.metrics)
        self._controllers: list[Controller] = []
        # Without terms nobody else can be there (the embedded server has one process).
        self._election = None if terms is None else Election(client, terms, machinery)
        self._problem = "the program has not started"
        self.health.add_ready("caches", self.informers.unready)
        self.health.add_ready("program", lambda: self._problem)

    @property
    def leading(self) -> bool:
        """Whether this copy acts."""
        return self._election is None or self._election.leading

    def add(self, controller: Controller) -> None:
        """Run this controller; before `run`."""
        self._controllers.append(controller)

    async def run(self) -> None:
        """Run until cancelled; raises what a controller or the election ended with."""
        self.informers.start()
        self.recorder.start()
        self._problem = ""
        try:
            await self.informers.wait_synced()
            if self._election is None:
                await self._control()
            else:
                await self._election.run(self._control)
        finally:
            self._problem = "the program is stopping"
            await self.recorder.stop()
            await self.informers.stop()

    async def _control(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run(), name=controller.name)
