"""A connection on which something comes between: time, other requests, the end of the process. All at moments that a test chooses."""

import asyncio
from collections.abc import Awaitable, Callable

from paddock.app.localtransport import door
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse
from paddock.server.builtin.trust import CONTROLLER, CONTROLLER_GROUPS
from tests.kit.servers.apiharness import Harness


class Interruption(Transport):
    """Carries the requests of controllers. They take time; before one of them something else happens, or the process ends."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests = 0
        self.writes = 0
        # what requests have to be about to count: parts of their targets
        self.about: tuple[str, ...] = ("",)
        # before which request what happens
        self.at = -1
        self.act: Callable[[], Awaitable[None]] | None = None
        # before which write the process ends
        self.ends_at = -1
        # seconds by which the news of a kind is late, by the plural of the kind
        self.late: dict[str, float] = {}
        # seconds until a request arrives: one that reads, one that writes
        self.reading, self.writing = 0.0, 0.0

    @classmethod
    def of(cls, api: Harness) -> "Interruption":
        """To a server in memory, as its controllers."""
        return cls(LocalTransport(door(api.api, CONTROLLER, CONTROLLER_GROUPS)))

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """Carry a request."""
        await asyncio.sleep(self.reading if ask.method == "GET" else self.writing)
        if ask.method != "GET":
            if 0 <= self.ends_at <= self.writes and "/events" not in ask.target:
                await asyncio.Event().wait()
            self.writes += "/events" not in ask.target
        if not any(each in ask.target for each in self.about):
            return await self._inner.send(ask)
        number, self.requests = self.requests, self.requests + 1
        if number == self.at and self.act is not None:
            await self.act()
        return await self._inner.send(ask)

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """Carry a watch."""
        late = next((seconds for plural, seconds in self.late.items() if f"/{plural}" in ask.target), 0.0)
        return _Late(await self._inner.stream(ask), late)

    async def close(self) -> None:
        """Let go."""
        await self._inner.close()


class _Late:
    """A watch whose news comes late."""

    def __init__(self, inner: ResponseStream, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds
        self.status = inner.status
        self.headers = inner.headers

    async def read(self) -> bytes:
        data = await self._inner.read()
        await asyncio.sleep(self._seconds)
        return data

    def close(self) -> None:
        self._inner.close()
