"""All machines of a server, again and again as they change."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.kinds import MACHINES, MachineKind
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import BOOKMARK, DELETED, Client
from paddock.kubernetes.client.errors import Expired, Forbidden, NotFound, Unreachable
from paddock.kubernetes.client.options import Selection, WatchOptions
from paddock.kubernetes.client.target import Key

# Changes that come together make one picture.
_TOGETHER = 0.2
_AGAIN = 2.0
# A kind that the server does not have may come.
_ABSENT = 60.0


class MachineWatch:
    """The objects of all kinds of machines, followed by watches."""

    def __init__(self, client: Client, namespace: str | None, labels: str) -> None:
        self._client = client
        self._selection = Selection(namespace=namespace or "")
        self._labels = labels
        self._objects: dict[MachineKind, dict[Key, Data]] = {kind: {} for kind in MACHINES}
        self._changed = asyncio.Event()
        self._waiting = set(MACHINES)

    async def pictures(self, seconds: float) -> AsyncIterator[list[MachineView]]:
        """Yield all machines: at once, after every change, and whenever so many seconds have passed."""
        tasks = [asyncio.create_task(self._follow(kind)) for kind in MACHINES]
        try:
            while self._waiting:
                await self._changed.wait()
                self._changed.clear()
            while True:
                yield self._picture()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), seconds)
                    await asyncio.sleep(_TOGETHER)
                self._changed.clear()
                for task in tasks:
                    if task.done():
                        task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _picture(self) -> list[MachineView]:
        found = finding.join({kind: objects.values() for kind, objects in self._objects.items()})
        return finding.ordered(finding.selected(found, self._labels))

    async def _follow(self, kind: MachineKind) -> None:
        """Keep the objects of a kind, whatever ends a watch."""
        while True:
            pause = 0.0
            try:
                revision = await self._list(kind)
                while True:
                    revision = await self._watch(kind, revision)
            except Expired:
                pass
            except (NotFound, Forbidden):
                self._arrived(kind)
                pause = _ABSENT
            except Unreachable:
                pause = _AGAIN
            except PaddockError:
                self._arrived(kind)
                pause = _AGAIN
            await asyncio.sleep(pause)

    async def _list(self, kind: MachineKind) -> str:
        found = await self._client.list(kind.target, self._selection)
        self._objects[kind] = {_key(each): each for each in found.items}
        self._arrived(kind)
        return found.revision

    async def _watch(self, kind: MachineKind, revision: str) -> str:
        async for event in self._client.watch(kind.target, self._selection, WatchOptions(revision=revision)):
            revision = event.object["metadata"].get("resourceVersion") or revision
            if event.type == BOOKMARK:
                continue
            if event.type == DELETED:
                self._objects[kind].pop(_key(event.object), None)
            else:
                self._objects[kind][_key(event.object)] = event.object
            self._changed.set()
        return revision

    def _arrived(self, kind: MachineKind) -> None:
        self._waiting.discard(kind)
        self._changed.set()


def _key(data: Data) -> Key:
    metadata = data["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
