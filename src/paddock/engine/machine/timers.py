"""Timers with names, one of each at most, and tasks in the background."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

_LOG = logging.getLogger(__name__)


class Timers:
    """Calls at a later time."""

    def __init__(self) -> None:
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def after(self, name: str, seconds: float, call: Callable[[], object]) -> None:
        """Instead of what was to happen under this name."""
        self.cancel(name)

        def due() -> None:
            self._handles.pop(name, None)
            call()

        self._handles[name] = asyncio.get_running_loop().call_later(seconds, due)

    def pending(self, name: str) -> bool:
        return name in self._handles

    def cancel(self, *names: str) -> None:
        """These do not happen."""
        for name in names:
            if (handle := self._handles.pop(name, None)) is not None:
                handle.cancel()

    def clear(self) -> None:
        """Nothing happens any more."""
        self.cancel(*self._handles)


class Tasks:
    """Tasks in the background. One that fails is logged, with these facts."""

    def __init__(self, facts: Mapping[str, str]) -> None:
        self._facts = dict(facts)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run it until it ends or all are cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def cancel(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("machine task failed because of a defect", extra=self._facts, exc_info=error)
