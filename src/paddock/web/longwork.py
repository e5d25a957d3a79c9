"""Work of several steps that ends also when the page that asked for it goes away: a machine that was stopped for a restore starts again."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from paddock.base.errors import PaddockError

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class LongWork:
    """The work that is under way for one identity."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work and return its result. It goes on if the caller is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel what is under way."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        # Nobody may be there any more to hear of it.
        error = None if task.cancelled() else task.exception()
        if isinstance(error, PaddockError):
            _LOG.info("action failed", extra={"error": str(error)})
        elif error is not None:
            _LOG.error("action failed unexpectedly; report this", exc_info=error)
