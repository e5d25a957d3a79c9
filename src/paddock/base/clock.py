"""The clock. Code that writes dates gets a clock as a parameter; code that only waits uses asyncio, whose time tests can move."""

import time
from typing import Protocol


class Clock(Protocol):
    def seconds(self) -> float:
        """Seconds since the epoch."""


class IdentityClock(Clock, Protocol):
    """A clock that also makes identities."""

    def uid(self) -> str: ...


class SystemClock:
    def seconds(self) -> float:
        """Seconds since the epoch."""
        return time.time()
