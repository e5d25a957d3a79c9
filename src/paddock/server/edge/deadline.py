"""The moment at which a connection ends if nothing happens."""

import asyncio
from collections.abc import Callable

# The loop counts milliseconds.
_SHORTEST_SECONDS = 0.002


def _nothing() -> None: ...


class Deadline:
    """A time that is set and cleared with each request. A timer for each would cost more, so one looks now and then."""

    __slots__ = ("_at", "_expire", "_loop", "_timer", "since")

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[], None]) -> None:
        self._loop = loop
        self._expire = expire
        # when it was set for the last time
        self.since = 0.0
        # 0 is never. The timer may fire earlier, and is set again then.
        self._at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Expire after a time, unless it is set anew or cleared."""
        self.since = self._loop.time()
        self._at = self.since + seconds
        if self._timer is None or self._at < self._timer.when():
            self._look_in(seconds)

    def clear(self) -> None:
        """Do not expire."""
        self._at = 0.0

    def drop(self) -> None:
        """Do not expire, and keep no timer."""
        self.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Never expire again, and let go of what would."""
        self.drop()
        self._expire = _nothing

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(seconds, _SHORTEST_SECONDS), self._check)

    def _check(self) -> None:
        self._timer = None
        left = self._at - self._loop.time()
        if self._at and left > _SHORTEST_SECONDS:
            self._look_in(left)
        elif self._at:
            self._expire()
