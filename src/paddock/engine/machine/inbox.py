"""Requests to a machine, done one at a time in the order they came, whoever asked and whether or not he still waits."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from paddock.engine.machine.errors import RequestRefused

T = TypeVar("T")

_Work = Callable[[], Awaitable[Any]]


class Inbox:
    """The queue of a machine. A task serves it while there is something to do, and there is none otherwise."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: deque[tuple[_Work, asyncio.Future[Any]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    async def offer(self, work: Callable[[], Awaitable[T]]) -> T:
        """Done when those before it are. If the caller goes away it is done nevertheless: half a change would be worse."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._serve(), name=f"machine {self._name}")
        return await asyncio.shield(answer)

    def overtake(self, *, ended: bool = False) -> None:
        """Refuse all waiting and running requests: something urgent comes, or the machine has ended."""
        self._ended = ended
        for _, answer in self._waiting:
            if not answer.done():
                answer.set_exception(self._refusal())
                answer.exception()
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _serve(self) -> None:
        me = asyncio.current_task()
        while self._waiting and self._task is me:
            work, answer = self._waiting.popleft()
            try:
                result = await work()
            except asyncio.CancelledError:
                _settle(answer, self._refusal())
                return
            except Exception as error:
                _settle(answer, error)
            else:
                if not answer.done():
                    answer.set_result(result)
        if self._task is me:
            self._task = None

    def _refusal(self) -> RequestRefused:
        what = f"cannot finish what was asked of machine {self._name}"
        if self._ended:
            return RequestRefused(what, reason="NotRunning", why="it ended meanwhile", fix="see why it ended, and start it")
        return RequestRefused(what, reason="Stopping", why="it is being stopped", fix="wait until it has ended")


def _settle(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
        # Nobody may wait any more.
        answer.exception()
