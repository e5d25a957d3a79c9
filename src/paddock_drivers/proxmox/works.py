"""Work of several steps that goes on after its call has answered, in this process.

A driver that is started again knows none of it. Then the cluster's own task and the machine say how far the work came, and the manager
makes its call again, which goes on where the work stopped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from paddock.base.errors import PaddockError
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.proxmox import failures

_LOG = logging.getLogger(__name__)
_MOST_KNOWN = 2000


class ProxmoxWorks:
    """The work that is under way, and the ends of what was."""

    def __init__(self) -> None:
        self._known: dict[str, asyncio.Task[None]] = {}

    def begin(self, id: str, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        """Carry out the work of a task."""
        self._known[id] = asyncio.create_task(self._run(work, seconds), name=f"proxmox {id.partition('|')[0]}")
        ended = [name for name, each in self._known.items() if each.done()]
        for name in ended[: max(0, len(self._known) - _MOST_KNOWN)]:
            del self._known[name]

    async def _run(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        with failures.mapped():
            async with asyncio.timeout(seconds):
                await work()

    def is_under_way(self, id: str) -> bool:
        """Return whether the work of a task goes on."""
        found = self._known.get(id)
        return found is not None and not found.done()

    def progress(self, id: str) -> TaskProgress | None:
        """Return how far a task is; None for one that this process does not know."""
        found = self._known.get(id)
        if found is None:
            return None
        if not found.done():
            return RUNNING
        if found.cancelled():
            return failed("the work was cancelled; call again")
        error = found.exception()
        if error is None:
            return DONE
        if isinstance(error, PaddockError):
            return failed(error)
        if isinstance(error, TimeoutError):
            return failed("the work did not end in its time; call again")
        _LOG.error("work failed", exc_info=error)
        return failed("the work failed unexpectedly; the provider's log says more")

    async def close(self) -> None:
        """Stop all work. What the cluster does goes on."""
        under_way = [each for each in self._known.values() if not each.done()]
        for each in under_way:
            each.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
