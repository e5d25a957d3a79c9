"""The clock. Code that writes dates gets a clock as a parameter; code that only waits uses asyncio, whose time tests can move."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the date."""

    def seconds(self) -> float:
        """Seconds since the epoch."""


class SystemClock:
    """The host's clock."""

    def seconds(self) -> float:
        """Seconds since the epoch."""
        return time.time()
