"""No request takes for ever: 60 seconds, or what its `timeout` parameter says if that is less. Watches have their own end.

What is late is cancelled and answered 504. A write that is cancelled may have happened or not; the client looks.
"""

import asyncio
from typing import Any

from paddock.base import duration
from paddock.kubernetes.meta import failure
from paddock.server.edge.http import HttpRequest
from paddock.server.routing import RequestRoute

DEFAULT_SECONDS = 60.0
# The ordinary deadline is so long that looking once in a while is enough; a timer for each request would cost more than a look-up.
_LOOK_SECONDS = 1.0
Task = asyncio.Task[Any]


class Deadlines:
    def __init__(self, longest: float = DEFAULT_SECONDS) -> None:
        self._longest = longest
        self._running: dict[Task, float] = {}
        self._late: set[Task] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: Task, request: HttpRequest, route: RequestRoute) -> asyncio.TimerHandle | None:
        """Watch over a request; raises a `Failure` of 400 when its own deadline cannot be read."""
        if route.verb == "watch":
            return None
        loop = asyncio.get_running_loop()
        if "timeout=" in request.query_text and route.is_resource:
            given = _given(request)
            if 0 < given < self._longest:
                return loop.call_later(given, self._end, task)
        self._running[task] = loop.time() + self._longest
        if self._timer is None:
            self._timer = loop.call_later(min(_LOOK_SECONDS, self._longest), self._check)
        return None

    def end(self, task: Task, own: asyncio.TimerHandle | None) -> bool:
        """The request is over; says whether it was ended here for being late."""
        if own is not None:
            own.cancel()
        self._running.pop(task, None)
        if task not in self._late:
            return False
        self._late.discard(task)
        return True

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for task in [task for task, end in self._running.items() if end <= now]:
            self._end(task)
        self._timer = loop.call_later(min(_LOOK_SECONDS, self._longest), self._check) if self._running else None

    def _end(self, task: Task) -> None:
        self._running.pop(task, None)
        self._late.add(task)
        task.cancel()


def check_timeout(request: HttpRequest) -> None:
    """Refuse a request whose `timeout` is no duration, also where nothing takes long."""
    _given(request)


def _given(request: HttpRequest) -> float:
    text = request.parameter("timeout")
    if not text:
        return 0.0
    try:
        return duration.parse(text) / duration.SECOND
    except duration.NotADuration:
        raise failure.bad_request(f"invalid timeout specified in the request URL: {text[:64]!r} is no duration") from None
