"""A connection in bad weather: requests and answers are lost, refused and late, watches break, and all of it follows from a seed."""

import asyncio
import random
from collections.abc import Callable

from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse
from paddock.kubernetes.runtime.controller import Controller

_UNAVAILABLE = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not now","reason":"ServiceUnavailable","code":503}'
# What may happen to a request, in parts of 1000: it is lost before or after it is carried out, or refused.
_LOST, _UNANSWERED, _REFUSED = 60, 120, 160
_LATE = (0.0, 0.0, 0.0, 0.01, 0.3, 2.0)
_CUT_PERMILLE = 80
_FORGOTTEN_PERMILLE = 150


class Storm:
    """A transport for the requests of a program, as long as it blows."""

    def __init__(self, inner: Transport, chance: random.Random) -> None:
        self.blows = True
        self._inner = inner
        self._chance = chance

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """Maybe."""
        if not self.blows:
            return await self._inner.send(ask)
        fate = self._chance.randrange(1000)
        await asyncio.sleep(self._chance.choice(_LATE))
        if fate < _LOST:
            raise Unreachable("the request is lost", sent=False)
        if _UNANSWERED <= fate < _REFUSED:
            return TransportResponse(503, {}, _UNAVAILABLE)
        reply = await self._inner.send(ask)
        if fate < _UNANSWERED:
            raise Unreachable("the answer is lost", sent=True)
        return reply

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """Until it is cut."""
        return _Cut(self, await self._inner.stream(ask), self._chance)

    async def close(self) -> None:
        """Let go."""
        await self._inner.close()

    def deafen(self, controller: Controller) -> None:
        """Have a controller miss some of what it should look at."""
        add: Callable[[Key], None] = controller.queue.add

        def hear(key: Key) -> None:
            if not self.blows or self._chance.randrange(1000) >= _FORGOTTEN_PERMILLE:
                add(key)

        controller.queue.add = hear  # type: ignore[method-assign]


class _Cut:
    """A stream that comes late, so that kinds are seen in any order, and ends in the middle."""

    def __init__(self, storm: Storm, inner: ResponseStream, chance: random.Random) -> None:
        self._storm = storm
        self._inner = inner
        self._chance = chance
        self.status = inner.status
        self.headers = inner.headers

    async def read(self) -> bytes:
        data = await self._inner.read()
        if self._storm.blows:
            await asyncio.sleep(self._chance.choice(_LATE))
            if self._chance.randrange(1000) < _CUT_PERMILLE:
                raise Unreachable("the watch is cut", sent=True)
        return data

    def close(self) -> None:
        self._inner.close()
