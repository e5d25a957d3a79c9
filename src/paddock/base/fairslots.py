"""Slots that owners share: nobody holds them all, and a free one goes to the owner who has the fewest.

When all are taken, an owner who has none gets a spare one, so that a few slow owners cannot keep everybody else waiting.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec


class _Waiter(msgspec.Struct, eq=False):
    owner: str
    woken: "asyncio.Future[None]"


class FairSlots:
    """`total` slots, of which one owner has half at most, and as many spare ones for owners who have none."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._each = max(1, total // 2)
        self._busy: Counter[str] = Counter()
        # in the order in which they came
        self._waiting: list[_Waiter] = []

    @property
    def most(self) -> int:
        """The number of turns that there may be at a time."""
        return 2 * self._total

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Hold a slot; waits for one."""
        if not self._waiting and self._has_room(owner):
            self._busy[owner] += 1
        else:
            await self._wait(owner)
        try:
            yield
        finally:
            self._give_back(owner)

    def blocked(self, owner: str) -> str:
        """The reason why the owner's next turn has to wait; empty: there is a slot for it."""
        if self._busy[owner] >= self._each:
            return f"{owner or 'this owner'} has {self._busy[owner]} under way, and {self._each} is the most"
        if not self._has_room(owner):
            most = ", ".join(f"{name or 'others'} has {count}" for name, count in self._busy.most_common(3))
            return f"all {self._total} are taken: {most}"
        return ""

    def _has_room(self, owner: str) -> bool:
        allowed = self._total if self._busy[owner] else self.most
        return self._busy.total() < allowed and self._busy[owner] < self._each

    async def _wait(self, owner: str) -> None:
        waiter = _Waiter(owner, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._wake()
        try:
            await waiter.woken
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                # The slot was given in the same moment.
                self._give_back(owner)
            raise

    def _give_back(self, owner: str) -> None:
        self._busy[owner] -= 1
        if not self._busy[owner]:
            del self._busy[owner]
        self._wake()

    def _wake(self) -> None:
        while ready := [each for each in self._waiting if self._has_room(each.owner)]:
            chosen = min(ready, key=lambda each: self._busy[each.owner])
            self._waiting.remove(chosen)
            self._busy[chosen.owner] += 1
            chosen.woken.set_result(None)
