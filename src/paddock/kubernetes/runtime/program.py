"""The parts of a program with controllers: what starts in which order, when it is ready, and how it ends.

informers -> caches whole -> (leadership) -> controllers        and backwards at the end:
controllers finish -> leases released -> events sent -> watches closed

Controllers may be in groups, each with a lease of its own: programs with overlapping groups then take turns in what they share.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from paddock.base import together
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.election import Election, LeaseTerms
from paddock.kubernetes.runtime.health import HealthChecks
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.recorder import Recorder


class ControllerManager:
    """Controllers with all they stand on."""

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        instance: str,
        machinery: Machinery,
        terms: Mapping[str, LeaseTerms] | None = None,
        api: str = "",
    ) -> None:
        self.client = client
        self.machinery = machinery
        # `api` names the API among several, in metrics and messages
        self.informers = Informers(client, machinery, api=api)
        self.recorder = Recorder(client, component, instance, machinery)
        self.health = HealthChecks(machinery.metrics)
        # the group of the controllers that are added from now on
        self.group = ""
        self._controllers: dict[str, list[Controller]] = {}
        # By group. Without terms nobody else can be there (the embedded server has one process).
        self._elections = {group: Election(client, each, machinery) for group, each in (terms or {}).items()}
        self._members = [self]
        self._problem = "the program has not started"
        self.health.add_ready("caches", lambda: "; ".join(filter(None, (each.informers.unready() for each in self._members))))
        self.health.add_ready("program", lambda: self._problem)
        if elections := self._elections.values():
            self.health.add_ready("election", lambda: "; ".join(dict.fromkeys(each.problem for each in elections if each.problem)))

    @property
    def leading(self) -> bool:
        """True if this replica acts in every group."""
        return all(each.leading for each in self._elections.values())

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers of all groups."""
        return tuple(each for group in self._controllers.values() for each in group)

    def add(self, controller: Controller) -> None:
        """Run this controller; before `run`."""
        self._controllers.setdefault(self.group, []).append(controller)

    def join(self, other: "ControllerManager") -> None:
        """Run what stands on another API together with this, under this one's leadership; before `run`."""
        self._members.append(other)

    async def run(self) -> None:
        """Run until cancelled; raises what a controller, an informer or the election ended with."""
        for each in self._members:
            each.informers.start()
            each.recorder.start()
        self._problem = ""
        # Later groups are on their own.
        groups = {group for each in self._members for group in each._controllers}
        try:
            await together.run([self._act(groups), *(each.informers.watch() for each in self._members)], until=asyncio.FIRST_COMPLETED)
        finally:
            self._problem = "the program is stopping"
            for each in self._members:
                await each.recorder.stop()
                await each.informers.stop()

    async def run_later(self, group: str, wire: Callable[[], None]) -> None:
        """Add controllers as a group to a program without elections that runs, and run them; as `run`."""
        self.group = group
        wire()
        self.group = ""
        await self.informers.wait_synced()
        await self._control({group})

    async def _act(self, groups: set[str]) -> None:
        for each in self._members:
            await each.informers.wait_synced()
        if not self._elections:
            await self._control(groups)
            return
        work = [election.run(partial(self._control, {group})) for group, election in self._elections.items()]
        await together.run(work, until=asyncio.FIRST_COMPLETED)

    async def _control(self, groups: set[str]) -> None:
        found = [one for each in self._members for group in sorted(groups) for one in each._controllers.get(group, ())]
        if not found:
            # Its caches are read by the controllers of another program.
            await asyncio.get_running_loop().create_future()
        await together.run([controller.run() for controller in found], until=asyncio.FIRST_COMPLETED)
