"""One HTTP/1.1 connection: an `asyncio.BufferedProtocol` around httptools.

Requests of a connection are answered one after the other. What protects the server from a client stands here: the time and size
that a request head and body may take, the number of requests waiting in a pipeline, and the time an idle connection is kept.
"""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import httptools

from paddock.edge.deadline import Deadline
from paddock.edge.http import Answer, ConnectionPeer, Handler, HttpRequest, HttpResponse, StreamingRoutes, StreamResponse, Upgrade
from paddock.edge.limits import ConnectionLimits, ConnectionStats
from paddock.edge.requestbody import RequestBody
from paddock.edge.responsewriter import ResponseWriter, head_of

if TYPE_CHECKING:
    from paddock.edge import websocket


_LOG = logging.getLogger(__name__)
# Shared by all connections: each copies its bytes out before another one reads. Otherwise each read would allocate as much.
_ARRIVING = memoryview(bytearray(256 * 1024))


_TOO_LARGE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Request entity too large: limit is %d",'
    b'"reason":"RequestEntityTooLarge","code":413}'
)
_TOO_MANY = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too many connections, please try again later",'
    b'"reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}'
)
# A plain number, because each answer compares with it, and the enumeration's member is slower to look up.
_TOO_MANY_STATUS = HTTPStatus.TOO_MANY_REQUESTS.value
_LARGE_HEAD = HttpResponse(431, b"request header fields too large\n")
# What a WebSocket sent in its last moment gets so long to be taken.
_LAST_WORDS_SECONDS = 30.0
# A connection that is not wanted gets so long for its request and the refusal.
_UNWANTED_SECONDS = 5.0
# The answer to a body that nobody wants is waited for so long.
_LINGER_SECONDS = 5.0
# The loop's timers are precise to a millisecond.
_SHORTEST_SECONDS = 0.002
_ONCE = frozenset(("content-length", "host", "transfer-encoding", "authorization"))
# The first request that is rejected (429) asks for the pause that its answer names, each further one in a row for twice as much.
LONGEST_REST = 8


async def _nobody(request: HttpRequest) -> Answer:
    return HttpResponse(404)


NO_DOORS = StreamingRoutes((), _nobody)


class _Refused(Exception):
    """The request is refused before anybody looks at it, and the connection ends."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


class ServerConnection(asyncio.BufferedProtocol):
    """Reads requests, has them handled, writes answers."""

    # Kept small: a server holds thousands.
    __slots__ = (
        "_after_head",
        "_begun",
        "_body",
        "_census",
        "_deadline",
        "_doors",
        "_fields",
        "_handler",
        "_headers",
        "_in_head",
        "_incoming",
        "_is_arriving",
        "_is_fed",
        "_is_welcome",
        "_limits",
        "_loop",
        "_parser",
        "_peer",
        "_peer_of",
        "_prefixes",
        "_received",
        "_refused",
        "_rejected",
        "_repeated",
        "_rest",
        "_size",
        "_socket",
        "_stopping",
        "_target",
        "_task",
        "_transport",
        "_waiting",
        "_writing",
    )

    def __init__(
        self,
        handler: Handler,
        limits: ConnectionLimits,
        census: ConnectionStats,
        peer_of: Callable[[asyncio.Transport], ConnectionPeer],
        doors: StreamingRoutes = NO_DOORS,
    ) -> None:
        self._handler = handler
        self._doors = doors
        self._prefixes = doors.prefixes
        self._incoming: RequestBody | None = None
        self._limits = limits
        self._census = census
        self._peer_of = peer_of
        self._parser: Any = httptools.HttpRequestParser(self)
        self._waiting: list[tuple[HttpRequest, bool]] = []
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline = Deadline(self._loop, self._expire)
        self._stopping = False
        self._socket: websocket.Session | None = None
        self._refused: _Refused | None = None
        # requests so far
        self._begun = 0
        # answers in a row that asked the client to come back later, and the end of the pause after the last
        self._rejected = 0
        self._rest: asyncio.TimerHandle | None = None
        self._start_request()

    # --- what asyncio calls -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by class.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=256 * 1024)
        self._writing = ResponseWriter(self._transport)
        self._peer = self._peer_of(self._transport)
        self._is_welcome = self._census.join(self, self._peer.address)
        self._deadline.set(self._limits.receive_seconds if self._is_welcome else _UNWANTED_SECONDS)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _ARRIVING

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_ARRIVING[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self._socket is not None:
            self._socket.data_received(data)
            return
        if self._refused is not None:
            return
        if not self._is_welcome:
            said = (("content-type", "application/json"), ("retry-after", "1"))
            self._refuse(_Refused(HttpResponse(429, _TOO_MANY, said)))
            return
        earlier = self._begun
        # What came is all of one head or one trailer, if it brought nothing else and began at most once, at the beginning.
        begun = earlier + (not self._is_arriving)
        self._is_fed = False
        try:
            self._parser.feed_data(data)
            if self._is_fed:
                self._received = 0
            elif self._begun <= begun:
                self._received += len(data)
                if self._received > self._limits.head_bytes:
                    raise _Refused(_LARGE_HEAD)
        except httptools.HttpParserUpgrade as upgrade:
            self._after_head = bytes(data[upgrade.args[0] :]) if upgrade.args else b""
        except _Refused as refused:
            self._refuse(refused)
        except httptools.HttpParserError as error:
            self._refuse(_reason(error))
        else:
            if self._is_arriving and self._begun > earlier and self._incoming is None:
                # Most requests arrive in one piece, and never get here.
                self._deadline.set(self._limits.receive_seconds)

    def eof_received(self) -> bool:
        if self._socket is not None:
            self._socket.eof_received()
        if self._incoming is not None:
            self._incoming.fail("the sender has gone")
        # A client that has sent all it wants still gets its answers. TLS knows no half-closed connections.
        return self._task is not None and self._transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self._census.leave(self, self._peer.address)
        self._deadline.end()
        if self._rest is not None:
            self._rest.cancel()
        self._writing.lose()
        if self._incoming is not None:
            self._incoming.fail("the sender has gone")
        if self._socket is not None:
            self._socket.connection_lost()
        if self._task is not None:
            # What a WebSocket has sent before it went is still taken where it was meant to go; there is a time for it.
            if self._socket is None:
                self._task.cancel()
            else:
                self._loop.call_later(_LAST_WORDS_SECONDS, self._task.cancel)

    def pause_writing(self) -> None:
        self._writing.pause()

    def resume_writing(self) -> None:
        self._writing.resume()

    # --- what httptools calls ---------------------------------------------------------------------------------------------

    def _start_request(self) -> None:
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._headers: dict[str, str] = {}
        self._repeated: dict[str, list[str]] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._received = 0
        self._in_head = True
        self._is_fed = False
        self._is_arriving: bool = False
        self._after_head = b""

    def on_message_begin(self) -> None:
        self._begun += 1
        self._start_request()
        self._is_arriving = True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            # A trailer. Nothing here uses trailers, and as a header it would pass for one that a proxy has checked.
            return
        self._fields.append((name, value))
        if len(self._fields) > self._limits.headers:
            raise _Refused(HttpResponse(431, b"too many header fields\n"))

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._is_fed = True
        self._read_fields()
        headers = self._headers
        if "transfer-encoding" in headers and "content-length" in headers:
            raise _Refused(HttpResponse(400, b"both content-length and transfer-encoding\n"))
        if self._prefixes and self._target.startswith(self._prefixes):
            self._open_door()
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limits.body_bytes:
            raise self._too_large()
        if self._task is None and headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _read_fields(self) -> None:
        """Merge the header fields of a complete head, and check their size."""
        headers, size = self._headers, len(self._target)
        for name, value in self._fields:
            size += len(name) + len(value)
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            if key in headers:
                if key in _ONCE:
                    # Two answers to one question are how requests are smuggled past a proxy.
                    raise _Refused(HttpResponse(400, f"repeated header {key}\n".encode()))
                self._repeated.setdefault(key, [headers[key]]).append(text)
                text = f"{headers[key]}, {text}"
            headers[key] = text
        if size > self._limits.head_bytes:
            raise _Refused(_LARGE_HEAD)

    def _open_door(self) -> None:
        """Hand the request on now; its body follows."""
        if len(self._waiting) >= self._limits.pipelined:
            raise _Refused(HttpResponse(429, b"too many requests in one pipeline\n"))
        self._deadline.clear()
        expects = self._headers.get("expect", "").lower() == "100-continue"
        self._incoming = RequestBody(self._transport, self._limits.receive_seconds, expects=expects)
        request = self._request(b"")
        request.incoming = self._incoming
        self._take(request)

    def on_body(self, body: bytes) -> None:
        self._is_fed = True
        if self._incoming is not None:
            self._incoming.feed(body)
            return
        self._size += len(body)
        if self._size > self._limits.body_bytes:
            raise self._too_large()
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._is_arriving = False
        self._deadline.clear()
        if self._incoming is not None:
            self._incoming.finish()
            self._incoming = None
            return
        if len(self._waiting) >= self._limits.pipelined:
            raise _Refused(HttpResponse(429, b"too many requests in one pipeline\n"))
        self._take(self._request(b"".join(self._body)))

    def _request(self, body: bytes) -> HttpRequest:
        method = self._parser.get_method().decode()
        target = self._target.decode("latin-1")
        if not target.startswith("/"):
            raise _Refused(HttpResponse(400, b"the request target must be a path\n"))
        request = HttpRequest(method, target, self._headers, body, self._peer)
        request.repeated = self._repeated
        request.is_first = self._begun == 1
        return request

    def _take(self, request: HttpRequest) -> None:
        self._waiting.append((request, self._parser.should_keep_alive()))
        if self._task is None and self._rest is None:
            self._task = self._loop.create_task(self._answer_all())

    def _too_large(self) -> _Refused:
        body = _TOO_LARGE % self._limits.body_bytes
        return _Refused(HttpResponse(413, body, (("content-type", "application/json"),)))

    # --- answering --------------------------------------------------------------------------------------------------------

    async def _answer_all(self) -> None:
        try:
            while self._waiting and self._rest is None and not self._transport.is_closing():
                request, keep = self._waiting.pop(0)
                incoming = request.incoming
                answer = await (self._handler if incoming is None else self._doors.handler)(request)
                keep = keep and not self._stopping and (incoming is None or incoming.ended)
                seconds = self._note(answer)
                await self._answer(request, answer, keep=keep)
                if incoming is not None and not incoming.ended:
                    await incoming.discard(_LINGER_SECONDS)
                if not keep:
                    self._transport.close()
                    return
                if seconds:
                    self._pause(seconds)
            if self._refused is not None:
                self._end_with(self._refused.response)
            elif self._rest is None and not self._transport.is_closing():
                self._arm_for_next()
        except Exception:
            # Handlers answer everything, so this is a defect; the client must not wait for ever.
            _LOG.exception("a request was not answered", extra={"address": self._peer.address})
            self._transport.abort()
        finally:
            self._task = None

    async def _answer(self, request: HttpRequest, answer: Answer, *, keep: bool) -> None:
        if isinstance(answer, HttpResponse):
            try:
                await self._writing.respond(answer, (keep, request.method != "HEAD"), self._limits.send_seconds)
            except TimeoutError:
                self._transport.abort()
        elif isinstance(answer, StreamResponse):
            # A stream may last long, and a timer takes more than a kilobyte.
            self._deadline.drop()
            await self._writing.stream(answer, keep=keep)
        else:
            await self._upgrade(request, answer)

    async def _upgrade(self, request: HttpRequest, answer: Upgrade) -> None:
        from paddock.edge import websocket  # noqa: PLC0415 - loaded with the first WebSocket; most servers see none

        self._socket = websocket.Session(self._transport, self._writing)
        if self._socket.accept(request, answer.subprotocol):
            if self._after_head:
                self._socket.data_received(self._after_head)
            try:
                await answer.run(self._socket)
            finally:
                self._socket.close()
            await self._socket.farewell()
            if self._transport.get_write_buffer_size():
                # It takes nothing of what it was sent.
                self._loop.call_later(self._limits.send_seconds, self._transport.abort)
        else:
            self._end_with(HttpResponse(400, b"malformed WebSocket handshake\n"))
        self._transport.close()

    # --- clients that come back too soon ------------------------------------------------------------------------------------

    def _note(self, answer: Answer) -> int:
        """Seconds that the client is asked to wait; when it is rejected again and again, the answer asks for more."""
        if not isinstance(answer, HttpResponse) or answer.status != _TOO_MANY_STATUS:
            self._rejected = 0
            return 0
        asked = next((value for name, value in answer.headers if name == "retry-after"), "")
        if not asked.isdecimal() or not int(asked):
            return 0
        seconds = min(int(asked) << min(self._rejected, 8), max(int(asked), LONGEST_REST))
        self._rejected += 1
        answer.headers = tuple((name, str(seconds) if name == "retry-after" else value) for name, value in answer.headers)
        return seconds

    def _pause(self, seconds: int) -> None:
        """Read nothing more until then: refusing a client that does not wait costs nearly as much as serving it."""
        if not self._transport.is_closing() and not self._stopping:
            self._transport.pause_reading()
            self._rest = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._rest = None
        if self._transport.is_closing():
            return
        self._transport.resume_reading()
        if self._waiting:
            self._task = self._loop.create_task(self._answer_all())
        elif self._refused is not None:
            self._end_with(self._refused.response)
        else:
            self._arm_for_next()

    def _refuse(self, refused: _Refused) -> None:
        self._refused = refused
        self._deadline.clear()
        if self._incoming is not None:
            self._incoming.fail("what came is no HTTP")
        target = self._target.decode("latin-1")
        if not self._in_head and target.startswith("/"):
            method = self._parser.get_method().decode()
            self._census.tell(HttpRequest(method, target, self._headers, b"", self._peer), refused.response)
        if self._task is None and self._rest is None:
            self._end_with(refused.response)

    def _end_with(self, response: HttpResponse) -> None:
        if not self._transport.is_closing():
            secured = HttpResponse(response.status, response.body, (*response.headers, *self._limits.refusal_headers))
            self._transport.write(head_of(secured, secured.length, keep=False) + secured.body)
            self._transport.close()

    # --- time -------------------------------------------------------------------------------------------------------------

    def _arm_for_next(self) -> None:
        self._deadline.set(self._limits.receive_seconds if self._is_arriving else self._limits.idle_seconds)

    def _expire(self) -> None:
        if self._task is None:
            if self._is_arriving and not self._stopping:
                self._end_with(HttpResponse(408, b"the request took too long to arrive\n"))
            self._transport.close()

    def stop(self) -> None:
        """Finish what is being answered, then close."""
        self._stopping = True
        if self._task is None:
            # A client that idles does not answer the goodbye of TLS, and nothing is lost on it.
            if self._transport.get_write_buffer_size():
                self._transport.close()
            else:
                self._transport.abort()
        else:
            self._writing.stop()
            if self._socket is not None:
                self._socket.stop()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()


def _reason(error: httptools.HttpParserError) -> _Refused:
    """Return the refusal behind a parser's error: our own, raised inside a callback, or one of a request that is no HTTP."""
    cause = error.__context__
    if isinstance(cause, _Refused):
        return cause
    return _Refused(HttpResponse(400, b"malformed HTTP request\n"))
