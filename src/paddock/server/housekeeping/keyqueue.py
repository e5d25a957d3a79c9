"""A queue of keys that are worked on until nothing is left to do about them.

An event only says where to look. A key that fails comes back after a pause that grows; one that is offered while a worker
has it comes back once more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from paddock.kubernetes.meta.failure import Failure

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 30.0


class KeyQueue(Generic[T]):
    """Looks at keys, one after the other."""

    def __init__(self, name: str, reconcile: Callable[[T], Awaitable[None]]) -> None:
        self._name = name
        self._reconcile = reconcile
        self._waiting: dict[T, None] = {}
        self._pauses: dict[T, float] = {}
        self._later: set[asyncio.TimerHandle] = set()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        for timer in self._later:
            timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def offer(self, key: T) -> None:
        """Look at this key soon."""
        self._waiting[key] = None
        self._idle.clear()
        self._wake.set()

    def offer_later(self, key: T, seconds: float) -> None:
        """Look at this key after a while."""
        timer: asyncio.TimerHandle

        def due() -> None:
            self._later.discard(timer)
            self.offer(key)

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._later.add(timer)

    async def settled(self) -> None:
        """Wait until nothing is left to look at now. For tests, and for a start that must not be early."""
        while self._waiting or not self._idle.is_set():
            await asyncio.sleep(0)
            if self._task is None or self._task.done():
                return

    async def _run(self) -> None:
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                await self._try(key)
                # Requests come first.
                await asyncio.sleep(0)
            self._idle.set()
            self._wake.clear()
            if not self._waiting:
                await self._wake.wait()

    async def _try(self, key: T) -> None:
        try:
            await self._reconcile(key)
        except Failure as said:
            # Conflicts are ordinary: somebody else was faster.
            self._again(key, said.message)
        except Exception:
            _LOG.exception("background task failed", extra={"task": self._name, "key": str(key)})
            self._again(key, "")
        else:
            self._pauses.pop(key, None)

    def _again(self, key: T, why: str) -> None:
        pause = self._pauses.get(key, _FIRST_PAUSE)
        self._pauses[key] = min(pause * 2, _LONGEST_PAUSE)
        _LOG.debug("background task postponed", extra={"task": self._name, "key": str(key), "why": why, "seconds": pause})
        self.offer_later(key, pause)
