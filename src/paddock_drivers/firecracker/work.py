"""Work that may take longer than a call: it goes on when its caller has gone, and its caller gets a task.

Work has a key that says what it does. Who asks for the same work joins it. The keys are ids of tasks: a driver that was started again does
not know the work, and judges the task by what is on disk.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed

_LOG = logging.getLogger(__name__)
_MOST_ENDED = 512


class WorkBoard:
    """The work of this process."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, str | PaddockError | None] = {}

    async def run(self, key: str, work: Callable[[], Awaitable[None]]) -> m.TaskRef | None:
        """Do work, or join it. Returns None if it is done, else its task. Raises what it raises."""
        task = self._running.get(key) or self._begin(key, work)
        done, _ = await asyncio.wait((task,), timeout=self._patience)
        if not done:
            return m.TaskRef(id=key)
        # It is reported here, once.
        self._ended.pop(key, None)
        task.result()
        return None

    def start(self, key: str, work: Callable[[], Awaitable[None]]) -> None:
        """Begin work that nobody waits for."""
        if key not in self._running:
            self._begin(key, work)

    def _begin(self, key: str, work: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
        self._ended.pop(key, None)
        task = self._running[key] = asyncio.create_task(self._guarded(work), name=key)
        task.add_done_callback(lambda ended: self._note(key, ended))
        return task

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except PaddockError:
            raise
        except Exception as error:
            _LOG.exception("work of the driver failed")
            raise ProviderError(ErrorKind.INTERNAL, "the driver failed unexpectedly", why=type(error).__name__) from error

    def _note(self, key: str, ended: "asyncio.Task[None]") -> None:
        self._running.pop(key, None)
        error = None if ended.cancelled() else ended.exception()
        if ended.cancelled():
            self._ended[key] = "the driver was ended"
        else:
            self._ended[key] = error if error is None or isinstance(error, PaddockError) else str(error)
        for old in list(self._ended)[: max(0, len(self._ended) - _MOST_ENDED)]:
            del self._ended[old]

    def progress(self, key: str) -> TaskProgress | None:
        """Return the progress of work; None when this process does not know it."""
        if key in self._running:
            return RUNNING
        if key not in self._ended:
            return None
        end = self._ended[key]
        return DONE if end is None else failed(end)

    async def close(self) -> None:
        """End all work. What it leaves is for the next driver."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
