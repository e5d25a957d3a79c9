"""A body that is kept whole. Nothing of it is read before its sender may send it and there is room for all of it."""

import asyncio

from paddock.server.edge import refusals
from paddock.server.edge.bodybudget import BodyBudget, NoRoom
from paddock.server.edge.requestbody import RequestBody


class StoredBody(RequestBody):
    """One body of at most so many bytes."""

    def __init__(self, transport: asyncio.Transport, seconds: float, room: tuple[BodyBudget, int], *, expects: bool) -> None:
        super().__init__(transport, seconds, expects=expects)
        self._budget, self._most = room
        self._owner = ""
        self._promised = 0
        self._high = 0
        self._pause()

    async def whole(self, owner: str) -> bytes:
        """Return all of the body, one of its owner's. Raises `HttpRefusal`."""
        try:
            await self._budget.take(owner, self._most)
        except NoRoom:
            raise refusals.many_bodies() from None
        self._owner, self._promised = owner, self._most
        self._high = self._most
        self._welcome()
        self._resume()
        try:
            await self._arrive()
        except BaseException:
            self.release()
            raise
        self._keep(self._size)
        body = b"".join(self._pieces)
        self._pieces.clear()
        return body

    async def _arrive(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                while not self.ended and not self.broken and self._size <= self._most:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise refusals.slow() from None
        if self._size > self._most:
            raise refusals.large_body(self._most)
        if not self.ended:
            raise refusals.malformed(self.broken)

    def release(self) -> None:
        """Free the room; whoever had the body keeps it no longer, and what is still to come goes by."""
        self._pieces.clear()
        self._discards = True
        self._keep(0)

    def _keep(self, size: int) -> None:
        """Free what is promised beyond a size."""
        if size < self._promised:
            self._budget.give_back(self._owner, self._promised - size)
            self._promised = size
