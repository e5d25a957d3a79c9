"""The parts of a program with controllers: what starts in which order, when it is ready, and how it ends.

informers -> caches whole -> (leadership) -> controllers        and backwards at the end:
controllers finish -> lease released -> events sent -> watches closed
"""

import asyncio
import logging

from paddock.base import together
from paddock.client.client import Client
from paddock.runtime.controller import Controller
from paddock.runtime.election import Election, LeaseTerms
from paddock.runtime.health import HealthChecks
from paddock.runtime.informers import Informers
from paddock.runtime.machinery import Machinery
from paddock.runtime.recorder import Recorder

_LOG = logging.getLogger(__name__)


class ControllerManager:
    """Controllers with all they stand on."""

    def __init__(
        self, client: Client, *, component: str, instance: str, machinery: Machinery, terms: LeaseTerms | None = None, api: str = ""
    ) -> None:
        self.client = client
        self.machinery = machinery
        # `api` names the API among several, in metrics and messages
        self.informers = Informers(client, machinery, api=api)
        self.recorder = Recorder(client, component, instance, machinery)
        self.health = HealthChecks(machinery.metrics)
        self._controllers: list[Controller] = []
        # Without terms nobody else can be there (the embedded server has one process).
        self._election = None if terms is None else Election(client, terms, machinery)
        self._members = [self]
        self._problem = "the program has not started"
        self.health.add_ready("caches", lambda: "; ".join(filter(None, (each.informers.unready() for each in self._members))))
        self.health.add_ready("program", lambda: self._problem)
        if (election := self._election) is not None:
            self.health.add_ready("election", lambda: election.problem)

    @property
    def leading(self) -> bool:
        """True if this replica acts."""
        return self._election is None or self._election.leading

    def add(self, controller: Controller) -> None:
        """Run this controller; before `run`."""
        self._controllers.append(controller)

    def join(self, other: "ControllerManager") -> None:
        """Run what stands on another API together with this, under this one's leadership; before `run`."""
        self._members.append(other)

    async def run(self) -> None:
        """Run until cancelled; raises what a controller, an informer or the election ended with."""
        for each in self._members:
            each.informers.start()
            each.recorder.start()
        self._problem = ""
        try:
            await together.run([self._act(), *(each.informers.watch() for each in self._members)], until=asyncio.FIRST_COMPLETED)
        finally:
            self._problem = "the program is stopping"
            for each in self._members:
                await each.recorder.stop()
                await each.informers.stop()

    async def _act(self) -> None:
        for each in self._members:
            await each.informers.wait_synced()
        if self._election is None:
            await self._control()
        else:
            await self._election.run(self._control)

    async def _control(self) -> None:
        if not self._controllers:
            # Its caches are read by the controllers of another program.
            await asyncio.get_running_loop().create_future()
        await together.run([controller.run() for each in self._members for controller in each._controllers], until=asyncio.FIRST_COMPLETED)
