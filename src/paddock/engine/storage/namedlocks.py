"""Locks by name, each of which is there as long as somebody holds it or waits for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


def of_snapshot(id: str) -> str:
    """Return the name of a snapshot's lock. No volume has this id."""
    return f"snapshot/{id}"


class NamedLocks:
    """A lock for each name."""

    def __init__(self) -> None:
        # with how many hold or want it
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._locks

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Hold the lock of a name."""
        lock, users = self._locks.get(name) or (asyncio.Lock(), 0)
        self._locks[name] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = (lock, users - 1)
