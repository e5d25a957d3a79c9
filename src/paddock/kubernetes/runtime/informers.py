"""All informers of a program: one for each kind and selection, whoever asks for it."""

import asyncio
from typing import Any

import msgspec

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import EVERYTHING, Selection
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.runtime.informer import Informer, ListGate
from paddock.kubernetes.runtime.machinery import Machinery


class Informers:
    """Makes, starts and stops informers."""

    def __init__(self, client: Client, machinery: Machinery, *, lists_at_a_time: int = 4, api: str = "") -> None:
        self._client = client
        self._machinery = machinery
        self._api = api
        self._gate = ListGate(lists_at_a_time)
        self._informers: dict[tuple[str, str, str, Selection], Informer] = {}
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._started = False
        # what an informer ended with; they run until they are stopped
        self._defect: BaseException | None = None
        self._ended = asyncio.Event()

    def of(self, target: Target[Any], selection: Selection = EVERYTHING, *, optional: bool = False) -> Informer:
        """The informer of a kind. All who ask share it, also when they read its objects into different classes.

        An `optional` kind need not be served: then there are no objects of it, until it is. One who needs it is enough to need it.
        """
        place = (target.group, target.version, target.plural, selection)
        found = self._informers.get(place)
        if found is None:
            found = Informer(self._client, target, selection, machinery=self._machinery, gate=self._gate, api=self._api)
            found.optional = optional
            self._informers[place] = found
            if self._started:
                self._start(found)
        found.optional = found.optional and optional
        return found

    def start(self) -> None:
        """Run all informers, and those to come."""
        self._started = True
        for informer in self._informers.values():
            if informer not in self._tasks:
                self._start(informer)

    def _start(self, informer: Informer) -> None:
        self._tasks[informer] = task = asyncio.create_task(informer.run(), name=f"informer {informer.target.qualified}")
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (defect := task.exception()) is not None:
            self._defect = defect
            self._ended.set()

    async def watch(self) -> None:
        """Raise what an informer ended with because of a defect: its cache would stay as it was for ever."""
        await self._ended.wait()
        if self._defect is not None:
            raise self._defect

    def needed(self) -> tuple[Target[Any], ...]:
        """The kinds that the server has to have."""
        return tuple(each.target for each in self._informers.values() if not each.optional)

    def settle(self, target: Target[Any], version: str) -> None:
        """Follow a kind in another version, because the server does not have this one; before `start`."""
        for informer in self._informers.values():
            if (informer.target.group, informer.target.version, informer.target.plural) == (target.group, target.version, target.plural):
                informer.target = msgspec.structs.replace(informer.target, version=version)

    async def wait_synced(self) -> None:
        """Wait until every cache has been whole once."""
        for informer in tuple(self._informers.values()):
            await informer.wait_synced()

    def unready(self) -> str:
        """Return the missing caches; empty when every cache has been complete once, and every kind that is needed is served."""
        missing = [each for each in self._informers.values() if not each.synced or (each.absent and not each.optional)]
        waiting = [f"{each.about} ({each.problem or 'listing'})" for each in missing]
        return f"waiting for {', '.join(waiting)}" if waiting else ""

    async def stop(self) -> None:
        self._started = False
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
