"""A token bucket: so many calls in a second, and so many at a time."""

import asyncio
from collections.abc import Callable


class TokenBucket:
    """Lets calls through in the order in which they came. `now` is a monotonic clock that `asyncio.sleep` follows."""

    def __init__(self, qps: float, burst: int, now: Callable[[], float]) -> None:
        self._qps = qps
        self._burst = burst
        self._now = now
        self._tokens = float(burst)
        self._at = now()

    async def take(self, longest: float) -> bool:
        """Wait for a token, and return true; return false at once if that would take longer."""
        now = self._now()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now
        wait = (1 - self._tokens) / self._qps
        if wait > longest:
            return False
        # A debt is what keeps the order: the next one waits longer.
        self._tokens -= 1
        if wait > 0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._tokens += 1
                raise
        return True
