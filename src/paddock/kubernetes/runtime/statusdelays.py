"""Statuses that wait a moment before they are written, because what they say is over in a moment.

An object that starts passes several states at once. Each would be a write, and news for everybody who watches. The first one that stays
for a while is written, with what was passed before it.
"""

import asyncio

from paddock.kubernetes.client.target import Key


class StatusDelays:
    """The statuses of one kind that wait, by their objects."""

    def __init__(self) -> None:
        # since when an object differs from its status
        self._since: dict[Key, float] = {}

    def left(self, key: Key, seconds: float) -> float:
        """Return the rest of the seconds that a status waits since it differed for the first time; 0 when it is due."""
        now = asyncio.get_running_loop().time()
        return max(self._since.setdefault(key, now) + seconds - now, 0.0)

    def rests(self, key: Key) -> bool:
        """Return whether a status waits."""
        return key in self._since

    def end(self, key: Key) -> None:
        """The status is written, or as it should be, or nobody's any more."""
        self._since.pop(key, None)
