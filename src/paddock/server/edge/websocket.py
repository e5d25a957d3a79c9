"""WebSockets: framing by wsproto on a connection that asked for it. Pings keep idle sessions alive through load balancers."""

import asyncio
from collections import deque
from itertools import islice

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.events import Request as Opening
from wsproto.utilities import ProtocolError

from paddock.server.edge.http import HttpRequest, Upgrade
from paddock.server.edge.responsewriter import ResponseWriter

PING_SECONDS = 15.0
# Messages are joined from frames; one that is larger ends the session.
LARGEST_MESSAGE = 16 * 1024 * 1024
# So long the other end has to say goodbye, too, before the connection is taken from it.
FAREWELL_SECONDS = 2.0
# A client that takes nothing for so long, and wants its pings answered, is cut off.
SEND_SECONDS = 60.0
# What may wait to be received before reading pauses.
_UNREAD_BYTES = 1024 * 1024
# A frame takes memory, even an empty one.
_LEAST_COST = 64
# A message in more parts ends the session, too.
MOST_PARTS = LARGEST_MESSAGE // _LEAST_COST
# A read may bring forty thousand frames, which take a second; other connections get their turn in between.
_FRAMES_PER_TURN = 256


class Session:
    """One WebSocket of a client."""

    def __init__(self, transport: asyncio.Transport, writing: ResponseWriter) -> None:
        self._transport = transport
        self._writing = writing
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._messages: deque[bytes | str] = deque()
        self._unread = 0
        self._parts: list[bytes | str] = []
        self._part_size = 0
        self._arrived = asyncio.Event()
        self._closed = False
        self._stopping = False
        # the other end has closed as well, or is gone
        self._over = asyncio.Event()
        self._pinger: asyncio.TimerHandle | None = None
        # the next turn, while frames wait for it
        self._turn: asyncio.Handle | None = None
        self._is_left = False
        # the newest ping, while the other end takes nothing, and what answers it
        self._unanswered: Ping | None = None
        self._answering: asyncio.Task[None] | None = None

    async def serve(self, request: HttpRequest, upgrade: Upgrade, early: bytes) -> bool:
        """Run what an upgrade is for, from the handshake to the farewell. Return False if the handshake is malformed."""
        if not self.accept(request, upgrade.subprotocol):
            return False
        if early:
            self.data_received(early)
        try:
            await upgrade.run(self)
        finally:
            self.close()
        await self.farewell()
        return True

    @property
    def backlog(self) -> int:
        """Bytes that were sent and not yet taken."""
        return self._writing.backlog

    @property
    def closed(self) -> bool:
        """True when nothing more can be sent."""
        return self._closed or self._writing.closed

    async def gone(self) -> None:
        """Wait for the end, and let nothing that is received pile up meanwhile."""
        ends = [asyncio.ensure_future(self._unheard()), asyncio.ensure_future(self._writing.gone())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _unheard(self) -> None:
        while await self.receive() is not None:
            pass

    def accept(self, request: HttpRequest, subprotocol: str) -> bool:
        """Accept the opening handshake; False, without an answer, when it is none."""
        lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers.items())]
        try:
            self._protocol.receive_data(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
            opening = [event for event in self._protocol.events() if isinstance(event, Opening)]
        except ProtocolError:
            opening = []
        if not opening:
            return False
        self._send(AcceptConnection(subprotocol=subprotocol or None))
        self._ping_later()
        return True

    async def receive(self) -> bytes | str | None:
        """The next message, or None at the end."""
        while not self._messages:
            if self._closed or self._stopping:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._unread -= _cost(message)
        if self._unread <= _UNREAD_BYTES // 2:
            self._pace()
        return message

    def send(self, message: bytes | str) -> None:
        if not self._closed:
            self._send(BytesMessage(data=message) if isinstance(message, bytes) else TextMessage(data=message))

    async def drained(self) -> None:
        """Wait until the other end has taken most of it."""
        await self._writing.drained()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close with a code; twice is once."""
        if not self._closed:
            self._send(CloseConnection(code=code, reason=reason or None))
            self._end()

    async def farewell(self) -> None:
        """Wait until the other end has closed, too: a connection that ends with bytes unread takes the close frame with it."""
        self._pace()
        try:
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._over.wait()
        except TimeoutError:
            pass

    # --- what the connection tells ----------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The server is going: nothing more is received."""
        self._stopping = True
        self._arrived.set()

    def data_received(self, data: bytes) -> None:
        if self._over.is_set():
            return
        try:
            self._protocol.receive_data(data)
        except ProtocolError as error:
            self._fail(error)
            return
        if self._turn is None:
            self._take_some()

    def eof_received(self) -> None:
        """The other end will send no more."""
        self._leave()

    def connection_lost(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._turn is not None:
            # The frames that came before are taken first.
            self._is_left = True
            return
        self._over.set()
        self._end()

    def _take_some(self) -> None:
        """Take the frames that have come, a number of them in each turn of the loop."""
        self._turn, taken = None, 0
        try:
            for event in islice(self._protocol.events(), _FRAMES_PER_TURN):
                taken += 1
                self._take(event)
        except ProtocolError as error:
            self._fail(error)
        if taken == _FRAMES_PER_TURN and not self._over.is_set():
            self._turn = asyncio.get_running_loop().call_soon(self._take_some)
        elif self._is_left:
            self._leave()
        self._pace()

    def _fail(self, error: ProtocolError) -> None:
        self.close(1002, str(error)[:100])
        self._over.set()

    def _pace(self) -> None:
        """Read on, or pause while what came before waits here. After the close nothing does but the end, which is read for."""
        if self._transport.is_closing():
            return
        waits = not self._closed and (self._unread > _UNREAD_BYTES or self._unanswered is not None)
        if waits or self._turn is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _take(self, event: object) -> None:
        if self._closed:
            # What was on its way when we closed is for nobody.
            if isinstance(event, CloseConnection):
                self._over.set()
        elif isinstance(event, TextMessage | BytesMessage):
            self._take_part(event)
        elif isinstance(event, Ping):
            self._answer(event)
        elif isinstance(event, CloseConnection):
            self._send(event.response())
            self._over.set()
            self._end()

    def _take_part(self, event: TextMessage | BytesMessage) -> None:
        data = bytes(event.data) if isinstance(event, BytesMessage) else str(event.data)
        self._part_size += len(data)
        if self._part_size > LARGEST_MESSAGE or len(self._parts) >= MOST_PARTS:
            self.close(1009, "message too large")
            return
        self._parts.append(data)
        if not event.message_finished:
            return
        whole = (
            "".join(map(str, self._parts)) if isinstance(data, str) else b"".join(each for each in self._parts if isinstance(each, bytes))
        )
        self._parts, self._part_size = [], 0
        self._messages.append(whole)
        self._unread += _cost(whole)
        self._arrived.set()

    def _answer(self, ping: Ping) -> None:
        """Answer a ping; while the other end takes nothing, the newest waits, whose answer is one to all before it (RFC 6455 5.5.3)."""
        if not self._writing.full:
            self._send(ping.response())
            return
        self._unanswered = ping
        if self._answering is None:
            self._answering = asyncio.get_running_loop().create_task(self._answer_later())

    async def _answer_later(self) -> None:
        try:
            await self._writing.taken(SEND_SECONDS)
        except TimeoutError:
            self._transport.abort()
            return
        ping, self._unanswered, self._answering = self._unanswered, None, None
        if ping is not None and not self._closed:
            self._send(ping.response())
        self._pace()

    def _send(self, event: object) -> None:
        try:
            self._writing.write(self._protocol.send(event))  # type: ignore[arg-type]  # a closed union of wsproto's
        except ProtocolError:
            self._end()

    def _ping_later(self) -> None:
        self._pinger = asyncio.get_running_loop().call_later(PING_SECONDS, self._ping)

    def _ping(self) -> None:
        if not self._closed:
            # Of a client with messages waiting here there is no need to ask. It may have left already: what is written to it then
            # would break the connection, and with it go those bytes that were not read yet.
            if not self._messages:
                self._send(Ping(payload=b"keep alive"))
            self._ping_later()

    def _end(self) -> None:
        self._closed = True
        self._arrived.set()
        if self._pinger is not None:
            self._pinger.cancel()
        if self._answering is not None:
            self._answering.cancel()


def _cost(message: bytes | str) -> int:
    """The cost of an unread message, in bytes."""
    return max(len(message), _LEAST_COST)
