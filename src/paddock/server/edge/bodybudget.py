"""The memory for large bodies of requests: so much in all, and a share of it for each user.

Whoever finds no room waits for it, and is not read meanwhile.
"""

import asyncio

# A body waits so long for room.
ROOM_SECONDS = 15.0
# Bodies that wait for room, in all and of one user: each holds what its connection has read ahead.
MOST_WAITING, MOST_WAITING_OF_ONE = 256, 64


class NoRoom(Exception):
    """Too many bodies wait, or this one has waited for too long."""


class _Waiter:
    """A body that waits for room."""

    __slots__ = ("owner", "ready", "size")

    def __init__(self, owner: str, size: int) -> None:
        self.owner = owner
        self.size = size
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class BodyBudget:
    """Counts the bytes that are promised to bodies, which is never less than what they hold."""

    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._waiting: list[_Waiter] = []
        self._owned: dict[str, int] = {}
        self.held = 0

    async def take(self, owner: str, size: int) -> None:
        """Wait for room of a size; raises `NoRoom`. A body that is larger than a share is all that its owner may have."""
        waiter = _Waiter(owner, size)
        self._waiting.append(waiter)
        self._grant()
        if waiter.ready.done():
            return
        try:
            if len(self._waiting) > MOST_WAITING or sum(each.owner == owner for each in self._waiting) > MOST_WAITING_OF_ONE:
                raise NoRoom
            async with asyncio.timeout(ROOM_SECONDS):
                await waiter.ready
        except BaseException as error:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self._grant()
            else:
                # The room was given in the same moment.
                self.give_back(owner, size)
            if isinstance(error, TimeoutError):
                raise NoRoom from None
            raise

    def give_back(self, owner: str, size: int) -> None:
        self.held -= size
        left = self._owned[owner] - size
        if left:
            self._owned[owner] = left
        else:
            del self._owned[owner]
        self._grant()

    def _grant(self) -> None:
        """Give room in the order of arrival, except that nobody waits for one who has a share already."""
        for waiter in tuple(self._waiting):
            owned = self._owned.get(waiter.owner, 0)
            if owned and owned + waiter.size > self._share:
                continue
            if self.held and self.held + waiter.size > self._most:
                return
            self._waiting.remove(waiter)
            self.held += waiter.size
            self._owned[waiter.owner] = owned + waiter.size
            # Whoever was cancelled in this moment gives it back.
            if not waiter.ready.done():
                waiter.ready.set_result(None)
