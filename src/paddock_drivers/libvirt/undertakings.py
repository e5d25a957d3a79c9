"""Work of this process that may outlast its call. The same work asked for again is the same; what it leaves says how it ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from paddock.contract.errors import ProviderError
from paddock_drivers.kit.progress import RUNNING, TaskProgress, failed

_LOG = logging.getLogger(__name__)
_MOST_ENDED = 256


class Undertakings:
    """Work by its key."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[str, asyncio.Task[None]] = {}
        self._problems: dict[str, str | ProviderError] = {}

    async def do(self, key: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Do work, or wait for the same that is under way. Return whether it has ended; raises its error if it did."""
        task = self._running.get(key)
        if task is None:
            self._problems.pop(key, None)
            task = self._running[key] = asyncio.ensure_future(work())
            task.add_done_callback(lambda ended: self._over(key, ended))
        done, _ = await asyncio.wait({task}, timeout=self._seconds)
        if not done:
            return False
        await asyncio.shield(task)
        return True

    def status(self, key: str) -> TaskProgress | None:
        """Return the state of work; None for work that succeeded, or was another process's."""
        if key in self._running:
            return RUNNING
        return failed(self._problems[key]) if key in self._problems else None

    async def close(self) -> None:
        """End what is under way."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, key: str, ended: "asyncio.Task[None]") -> None:
        self._running.pop(key, None)
        error = None if ended.cancelled() else ended.exception()
        if error is None:
            return
        if not isinstance(error, ProviderError):
            _LOG.error("work failed", exc_info=error, extra={"work": key})
        self._problems[key] = error if isinstance(error, ProviderError) else "it failed unexpectedly; the provider's log says more"
        while len(self._problems) > _MOST_ENDED:
            self._problems.pop(next(iter(self._problems)))
