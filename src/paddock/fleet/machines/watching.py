"""All machines of a server, again and again as they change."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from paddock.fleet.kinds import MACHINES
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.kindfeed import KindFeed
from paddock.kubernetes.client.options import Selection

# Changes that come together make one picture.
_TOGETHER = 0.2


class MachineWatch:
    """The objects of all kinds of machines, followed by watches."""

    def __init__(self, client: Client, namespace: str | None, labels: str) -> None:
        selection = Selection(namespace=namespace or "")
        self._labels = labels
        self._feeds = {kind: KindFeed(client, kind.target, self._note, selection=selection) for kind in MACHINES}
        self._changed = asyncio.Event()

    async def pictures(self, seconds: float) -> AsyncIterator[list[MachineView]]:
        """Yield all machines: at once, after every change, and whenever so many seconds have passed."""
        tasks = [asyncio.create_task(feed.run()) for feed in self._feeds.values()]
        try:
            while not all(feed.answered for feed in self._feeds.values()):
                await self._changed.wait()
                self._changed.clear()
            self._demand_user()
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

    def _demand_user(self) -> None:
        """Fail if the server does not know the user. Who was known once is waited for: a new token may be on its way."""
        for feed in self._feeds.values():
            if feed.unauthorized is not None and not feed.listed:
                raise feed.unauthorized

    def _picture(self) -> list[MachineView]:
        found = finding.join({kind: feed.objects.values() for kind, feed in self._feeds.items()})
        return finding.ordered(finding.selected(found, self._labels))

    def _note(self, feed: KindFeed) -> None:
        self._changed.set()
