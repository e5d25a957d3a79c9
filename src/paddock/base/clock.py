"""The clock. Code that writes dates gets a clock as a parameter; code that only waits uses asyncio, whose time tests can move."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the date."""

    def seconds(self) -> float:
        """Seconds since the epoch."""


class IdentityClock(Clock, Protocol):
    """A clock that also makes identities."""

    def uid(self) -> str:
        """A new random UUID."""


class SystemClock:
    """The host's clock."""

    def seconds(self) -> float:
        """Seconds since the epoch."""
        return time.time()
