"""Carries out the start queue: wakes those whose turn it is, and tells the queue what those that boot want of CPUs."""

import asyncio
from collections.abc import Callable

from paddock.engine.machine.startqueue import StartQueue

_LOOK_SECONDS = 0.5


class StartSlots:
    """The order of starts. A place is held until the guest is quiet, has had its time, or is given back."""

    def __init__(self, queue: StartQueue, usage: Callable[[str], float | None]) -> None:
        """`usage` tells the CPU seconds that a machine used and waited for since its start; None: it has no process."""
        self._queue = queue
        self._wanted = usage
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def gather(self) -> None:
        """Sort the next starts before the first of them: they belong to a host that went down with its machines."""
        self._queue.gather()

    async def take(self, id: str, priority: int = 0) -> None:
        """Returns when it is this machine's turn."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting[id] = turn
        self._queue.offer(id, loop.time(), priority)
        self._next()
        try:
            await turn
        except BaseException:
            self.give_back(id)
            raise

    def give_back(self, id: str) -> None:
        """It ended, was called off, or needs no place any more."""
        self._waiting.pop(id, None)
        self._queue.done(id)
        self._next()

    def close(self) -> None:
        """Nobody is woken any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _next(self) -> None:
        loop = asyncio.get_running_loop()
        for name in self._queue.take(loop.time()):
            turn = self._waiting.pop(name, None)
            if turn is None or turn.done():
                self._queue.done(name)
            else:
                turn.set_result(None)
        if self._timer is None and self._waiting:
            self._timer = loop.call_later(_LOOK_SECONDS, self._check)

    def _check(self) -> None:
        # Only while somebody waits: otherwise it does not matter who holds a place.
        self._timer = None
        now = asyncio.get_running_loop().time()
        for name in sorted(self._queue.booting):
            wanted = self._wanted(name)
            if wanted is not None:
                self._queue.report(name, wanted, now)
        self._next()
