"""One HTTP/1.1 connection: an `asyncio.BufferedProtocol` around httptools.

Requests of a connection are answered one after the other. What protects the server from a client stands here: the time and size
that a request head and body may take, the number of requests waiting in a pipeline, and the time an idle connection is kept.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import httptools

from paddock.server.edge import heads, http, refusals
from paddock.server.edge.deadline import Deadline
from paddock.server.edge.http import Answer, ConnectionPeer, Handler, HttpRequest, HttpResponse, StreamingRoutes, StreamResponse, Upgrade
from paddock.server.edge.limits import ConnectionLimits, ConnectionStats
from paddock.server.edge.refusals import HttpRefusal
from paddock.server.edge.rejections import Rejections
from paddock.server.edge.requestbody import CONTINUE, RequestBody
from paddock.server.edge.responsewriter import ResponseWriter, head_of
from paddock.server.edge.storedbody import StoredBody

if TYPE_CHECKING:
    from paddock.server.edge import websocket


_LOG = logging.getLogger(__name__)
# Shared by all connections: each copies its bytes out before another one reads. Otherwise each read would allocate as much.
_ARRIVING = memoryview(bytearray(256 * 1024))
# A read where nobody waits for a body. So much of a body comes with its head; for more, its sender has to have the right.
_AHEAD_BYTES = 16 * 1024
_SMALL = _ARRIVING[:_AHEAD_BYTES]
# What TLS reads ahead while nobody reads here. Above the lower limit is room for a whole record, which cannot be read in part.
_TLS_HIGH_BYTES, _TLS_LOW_BYTES = 64 * 1024, 32 * 1024
# The answers to credentials that are worth nothing, and to those of which nobody knows yet.
_UNKNOWN = (401, 403, 421, 429)
# What a WebSocket sent in its last moment gets so long to be taken.
_LAST_WORDS_SECONDS = 30.0
# A connection that is not wanted gets so long for its request and the refusal.
_UNWANTED_SECONDS = 5.0
# The answer to a body that nobody wants is waited for so long.
_LINGER_SECONDS = 5.0
# What a connection writes with that is lost.
_LOST = ResponseWriter(cast(asyncio.Transport, None))


class ServerConnection(asyncio.BufferedProtocol):
    """Reads requests, has them handled, writes answers."""

    # Kept small: a server holds thousands.
    __slots__ = (
        "_after_head",
        "_ahead",
        "_answered",
        "_begun",
        "_body",
        "_census",
        "_deadline",
        "_doors",
        "_expected",
        "_fields",
        "_handler",
        "_headers",
        "_in_head",
        "_incoming",
        "_is_arriving",
        "_is_fed",
        "_is_held",
        "_is_known",
        "_is_lost",
        "_is_streaming",
        "_is_welcome",
        "_limits",
        "_loop",
        "_parser",
        "_peer",
        "_peer_of",
        "_prefixes",
        "_received",
        "_refused",
        "_rejections",
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
        doors: StreamingRoutes = http.NO_DOORS,
    ) -> None:
        self._handler = handler
        self._doors = doors
        self._prefixes = doors.prefixes
        self._incoming: RequestBody | None = None
        self._limits = limits
        self._census = census
        self._peer_of = peer_of
        self._parser: Any = httptools.HttpRequestParser(self)
        # each with its body, if that is not all here, and whether the connection is kept after it
        self._waiting: list[tuple[HttpRequest, RequestBody | None, bool]] = []
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._deadline = Deadline(self._loop, self._expire)
        self._stopping = False
        self._socket: websocket.Session | None = None
        self._refused: HttpRefusal | None = None
        # requests and answers so far
        self._begun = self._answered = 0
        # nothing is read while a request waits for the answer to the one before it
        self._is_held = False
        # except for the end of a client that a stream is written to: bytes that came meanwhile
        self._is_streaming = False
        self._ahead = 0
        # valid credentials came with a request
        self._is_known = self._is_lost = False
        # answers that asked the client to come back later, and the end of the pause after the last
        self._rejections = Rejections()
        self._rest: asyncio.TimerHandle | None = None
        self._start_request()

    # --- what asyncio calls -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by class.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=256 * 1024)
        if self._transport.get_extra_info("ssl_object") is not None:
            self._transport.set_read_buffer_limits(_TLS_HIGH_BYTES, _TLS_LOW_BYTES)  # type: ignore[attr-defined]  # of TLS alone
        self._writing = ResponseWriter(self._transport)
        self._peer = self._peer_of(self._transport)
        self._is_welcome = self._census.join(self, self._peer.address)
        self._deadline.set(self._limits.receive_seconds if self._is_welcome else _UNWANTED_SECONDS)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._incoming is None and self._socket is None:
            return _SMALL
        return _ARRIVING if self._begun - self._answered <= 1 else _SMALL

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_ARRIVING[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.data_received(data)
            return
        if self._refused is not None:
            return
        if not self._is_welcome:
            self._refuse(refusals.many_connections())
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
                    raise refusals.large_head()
        except httptools.HttpParserUpgrade as upgrade:
            self._after_head = bytes(data[upgrade.args[0] :]) if upgrade.args else b""
        except HttpRefusal as refused:
            self._refuse(refused)
        except httptools.HttpParserError as error:
            self._refuse(refusals.of(error))
        else:
            if self._begun - self._answered > 1:
                self._hold(len(data))
            elif self._is_arriving and self._incoming is None and not self._takes_large_body() and self._begun > earlier:
                # Most requests arrive in one piece, and never get here.
                self._deadline.set(self._limits.receive_seconds)

    def _hold(self, size: int) -> None:
        """Let a client wait that sends the next request before it has its answer."""
        if not self._is_streaming:
            self._is_held = True
            self._transport.pause_reading()
            return
        self._ahead += size
        if self._ahead > _AHEAD_BYTES:
            self._transport.abort()

    def _read_on(self) -> None:
        self._is_held = False
        if not self._transport.is_closing():
            self._transport.resume_reading()

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
        self._is_lost = True
        if self._task is None:
            self._let_go()
        else:
            # What a WebSocket has sent before it went is still taken where it was meant to go; there is a time for it.
            if self._socket is None:
                self._task.cancel()
            else:
                self._loop.call_later(_LAST_WORDS_SECONDS, self._task.cancel)

    def _let_go(self) -> None:
        """Refer to nothing that refers to this connection. Otherwise it would wait for a collection, with the buffers of its TLS."""
        self._parser = self._socket = self._incoming = None
        self._writing = _LOST
        del self._transport

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
        self._size = self._expected = 0
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
            raise HttpRefusal(HttpResponse(431, b"too many header fields\n"))

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._is_fed = True
        self._headers, self._repeated = headers, _ = heads.merged(self._fields, self._limits.head_bytes - len(self._target))
        if not self._target.startswith(b"/"):
            raise refusals.malformed("the request target must be a path")
        if self._prefixes and self._target.startswith(self._prefixes):
            self._open_door()
            return
        length = headers.get("content-length")
        if length is not None:
            if not length.isdecimal() or int(length) > self._limits.body_bytes:
                raise refusals.large_body(self._limits.body_bytes)
            self._expected = int(length)
        if "expect" in headers and self._task is None and self._expected <= _AHEAD_BYTES and heads.expects(headers):
            self._transport.write(CONTINUE)

    def _open_door(self) -> None:
        """Hand the request on now; its body follows."""
        self._incoming = RequestBody(self._transport, self._limits.receive_seconds, expects=heads.expects(self._headers))
        request = self._request(b"")
        request.incoming = self._incoming
        self._take(request, self._incoming)

    def _takes_large_body(self) -> bool:
        """Hand a request on whose body is large and still arriving; whether it is received is up to the handler."""
        if not self._is_arriving or self._in_head or max(self._expected, self._size) <= _AHEAD_BYTES or self._incoming is not None:
            return False
        room = self._census.bodies, self._expected or self._limits.body_bytes
        self._incoming = StoredBody(self._transport, self._limits.receive_seconds, room, expects=heads.expects(self._headers))
        request = self._request(b"")
        request.arriving = self._incoming.whole
        for piece in self._body:
            self._incoming.feed(piece)
        self._body.clear()
        self._take(request, self._incoming)
        return True

    def on_body(self, body: bytes) -> None:
        self._is_fed = True
        if self._incoming is not None:
            self._incoming.feed(body)
            return
        self._size += len(body)
        if self._size > self._limits.body_bytes:
            raise refusals.large_body(self._limits.body_bytes)
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._is_arriving = False
        self._deadline.clear()
        if self._incoming is not None:
            self._incoming.finish()
            self._incoming = None
            return
        self._take(self._request(b"".join(self._body)), None)

    def _request(self, body: bytes) -> HttpRequest:
        request = HttpRequest(self._parser.get_method().decode(), self._target.decode("latin-1"), self._headers, body, self._peer)
        request.repeated = self._repeated
        request.is_first = self._begun == 1
        return request

    def _take(self, request: HttpRequest, incoming: RequestBody | None) -> None:
        if len(self._waiting) >= self._limits.pipelined:
            raise refusals.many_requests()
        self._deadline.clear()
        self._waiting.append((request, incoming, self._parser.should_keep_alive()))
        if self._task is None and self._rest is None:
            self._task = self._loop.create_task(self._answer_all())

    # --- answering --------------------------------------------------------------------------------------------------------

    async def _answer_all(self) -> None:
        try:
            while (self._waiting or self._takes_large_body()) and self._rest is None and not self._transport.is_closing():
                request, incoming, keep = self._waiting.pop(0)
                try:
                    seconds, keep = await self._serve(request, incoming, keep)
                finally:
                    if incoming is not None:
                        incoming.release()
                self._answered += 1
                if not keep:
                    self._transport.close()
                    return
                if self._is_held:
                    self._read_on()
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
            if self._is_lost:
                self._let_go()

    async def _serve(self, request: HttpRequest, incoming: RequestBody | None, keep: bool) -> tuple[int, bool]:
        """Answer a request. Return the seconds for which its client is asked to wait, and whether the connection is kept."""
        try:
            answer = await (self._handler if request.incoming is None else self._doors.handler)(request)
        except HttpRefusal as refused:
            answer = refused.response
        keep = keep and not self._stopping and (incoming is None or incoming.ended)
        seconds = self._rejections.note(answer)
        if not self._is_known:
            self._is_known = request.shows_credentials and (not isinstance(answer, HttpResponse) or answer.status not in _UNKNOWN)
        if not isinstance(answer, HttpResponse):
            # A stream may last long, and has read what it was asked.
            request.body = b""
            if incoming is not None:
                incoming.release()
        await self._answer(request, answer, keep=keep)
        if incoming is not None and not incoming.ended:
            await incoming.discard(_LINGER_SECONDS)
        return seconds, keep

    async def _answer(self, request: HttpRequest, answer: Answer, *, keep: bool) -> None:
        if isinstance(answer, HttpResponse):
            try:
                await self._writing.respond(answer, (keep, request.method != "HEAD"), self._limits.send_seconds)
            except TimeoutError:
                self._transport.abort()
        elif isinstance(answer, StreamResponse):
            # A stream may last long, and a timer takes more than a kilobyte.
            self._deadline.drop()
            self._is_streaming, self._ahead = True, 0
            # Its client would go unnoticed if nothing were read.
            if self._is_held:
                self._read_on()
            await self._writing.stream(answer, keep=keep)
            self._is_streaming = False
        else:
            await self._upgrade(request, answer)

    async def _upgrade(self, request: HttpRequest, answer: Upgrade) -> None:
        from paddock.server.edge import websocket  # noqa: PLC0415 - loaded with the first WebSocket; most servers see none

        self._socket = websocket.Session(self._transport, self._writing)
        if not await self._socket.serve(request, answer, self._after_head):
            self._end_with(refusals.malformed("malformed WebSocket handshake").response)
        elif self._transport.get_write_buffer_size():
            # It takes nothing of what it was sent.
            self._loop.call_later(self._limits.send_seconds, self._transport.abort)
        self._transport.close()

    # --- clients that come back too soon ------------------------------------------------------------------------------------

    def _pause(self, seconds: int) -> None:
        """Read nothing more until then: refusing a client that does not wait costs nearly as much as serving it."""
        if not self._transport.is_closing() and not self._stopping:
            self._transport.pause_reading()
            self._rest = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._rest = None
        if self._transport.is_closing():
            return
        if not self._is_held:
            self._transport.resume_reading()
        if self._waiting or self._takes_large_body():
            self._task = self._task or self._loop.create_task(self._answer_all())
        elif self._refused is not None:
            self._end_with(self._refused.response)
        else:
            self._arm_for_next()

    def _refuse(self, refused: HttpRefusal) -> None:
        self._refused = refused
        self._deadline.clear()
        if self._incoming is not None:
            self._incoming.fail("what came is no HTTP")
        if not self._in_head and self._target.startswith(b"/"):
            self._census.tell(self._request(b""), refused.response)
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
                self._end_with(refusals.slow().response)
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
        self._transport.abort()

    def dispensable(self, address: str) -> tuple[bool, float] | None:
        """Return how late this connection gives way: those with credentials after the others, and last the one that was used last."""
        is_busy = self._task is not None or self._waiting or self._transport.is_closing() or self._transport.get_write_buffer_size()
        if is_busy or address not in ("", self._peer.address):
            return None
        return self._is_known, self._deadline.since
