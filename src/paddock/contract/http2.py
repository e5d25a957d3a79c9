"""HTTP/2 connections under gRPC: one asyncio protocol for both sides, over the state machine of `h2`.

A peer is trusted with nothing. What it may send is bounded per stream (bytes), per connection (streams, resets, frames that do no work,
answers it does not read) and in time (pings). Between some tens of frames everybody else has a turn. A connection that is lost or broken
ends each of its streams with an error, by one path.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import msgspec

from paddock.base.errors import Transient
from paddock.contract import frames
from paddock.contract.frames import FrameBudget, FrameBuffer, Http2Frame

Headers = Sequence[tuple[str, str]]
_WINDOW = 1 << 20
_CONNECTION_WINDOW = 8 << 20
# Answers that the peer does not read: more than this, and the connection ends.
_UNREAD = 4 << 20
# Frames that are handled before the event loop turns, and bytes of them: uvloop hands out many reads in one turn.
_FRAMES_A_TURN = 64
_BYTES_A_TURN = 128 << 10
# Seconds that a peer which is shut out has to read why.
_LAST_WORD = 1.0


class Http2Limits(msgspec.Struct, frozen=True):
    """What the other side may do, and when it counts as gone."""

    # bytes of a stream's body
    body: int
    # streams at one time, of the connection
    streams: int = 100
    # seconds without a sign of life before a ping, and then before the end
    ping_after: float = 30.0
    ping_timeout: float = 10.0
    # streams that the peer may open and reset, before each one that it lets end
    resets: int = 200
    # seconds without a stream, and of a whole life, after which a server says goodbye; and that streams then have to end
    idle: float = 900.0
    age: float = 7200.0
    grace: float = 300.0


class StreamFailed(Transient):
    """A stream did not end. `processed` is false if the other side promises that it did nothing."""

    def __init__(self, why: str, *, processed: bool = True, reason: str = "") -> None:
        super().__init__("the connection to the other side failed", why=why)
        self.processed = processed
        self.reason_code = reason


class BodyTooLarge(StreamFailed):
    """The other side sends more than is allowed."""


class Http2Stream:
    """What the other side has sent on a stream. `ended` is done when all of it is here, or has an error."""

    def __init__(self, number: int, ended: "asyncio.Future[None]") -> None:
        self.number = number
        self.ended = ended
        self.headers: dict[str, str] = {}
        self.trailers: dict[str, str] = {}
        self.body = bytearray()

    def fail(self, error: StreamFailed) -> None:
        """End the stream with an error, unless it has ended."""
        if not self.ended.done():
            self.ended.set_exception(error)
            # Nobody may be waiting any more.
            self.ended.exception()


def text_of(headers: Sequence[Any]) -> dict[str, str]:
    """The headers as text. Of a repeated one the last counts; none of gRPC's may be repeated."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


class Http2Connection(asyncio.Protocol):
    """One side of a connection. Subclasses say what a stream's beginning and end mean."""

    CLIENT: ClassVar[bool]

    def __init__(self, limits: Http2Limits, closed: "Callable[[Http2Connection], None]") -> None:
        self.limits = limits
        self._closed = closed
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=self.CLIENT, header_encoding=None))
        # A client begins with the preface of HTTP/2.
        self._frames = FrameBuffer(0 if self.CLIENT else 24)
        self._loop = asyncio.get_running_loop()
        self._budget = FrameBudget(self._loop.time)
        # the next turn, while frames wait for it
        self._turn: asyncio.Handle | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._resets = 0
        self._paused = False
        self._heard = self._loop.time()
        self._pinged: float | None = None
        self.streams: dict[int, Http2Stream] = {}
        # no stream may begin any more
        self.draining = False
        # why the peer was shut out, if it was
        self.misbehaviour = ""
        self.ready: asyncio.Future[None] = self._loop.create_future()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What uvloop makes is a transport, and no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        if not self._is_welcome():
            self.abort("there are too many connections")
            return
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self.abort("the other side does not speak HTTP/2")
            return
        codes = h2.settings.SettingCodes
        values = {codes.MAX_CONCURRENT_STREAMS: self.limits.streams, codes.INITIAL_WINDOW_SIZE: _WINDOW, codes.ENABLE_PUSH: 0}
        if not self.CLIENT:
            del values[codes.ENABLE_PUSH]
        values[codes.MAX_HEADER_LIST_SIZE] = 1 << 16
        self._h2.local_settings = h2.settings.Settings(client=self.CLIENT, initial_values=values)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW - 65535)
        self._flush()
        self._timer = self._loop.call_later(self.limits.ping_timeout, self._tick)

    def data_received(self, data: bytes) -> None:
        self._heard, self._pinged = self._loop.time(), None
        self._frames.feed(data)
        if self._turn is None:
            self._take_turn()

    def _take_turn(self) -> None:
        """Handle some frames. While more are here, nothing is read."""
        self._turn, count, size = None, 0, 0
        try:
            while count < _FRAMES_A_TURN and size < _BYTES_A_TURN and self._is_open and (frame := self._frames.next()) is not None:
                self._receive(frame)
                count, size = count + 1, size + len(frame.data)
        except h2.exceptions.ProtocolError:
            # h2 has prepared what tells the peer.
            self._flush()
            self.abort("the other side breaks the protocol")
        self._flush()
        if self._transport is None or not self._is_open:
            # What comes behind the frame that ended the connection is nothing to anybody.
            return
        if count >= _FRAMES_A_TURN or size >= _BYTES_A_TURN:
            self._turn = self._loop.call_soon(self._take_turn)
            if self._transport.is_reading():
                self._transport.pause_reading()
        elif not self._transport.is_reading():
            self._transport.resume_reading()

    @property
    def _is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def _receive(self, frame: Http2Frame) -> None:
        stream = self.streams.get(frame.stream) if frame.kind == frames.DATA else None
        if not self._budget.spend(len(frame.data), awaited=stream is not None and not stream.ended.done()):
            self._shut_out("the other side sends frames without end")
        elif frame.kind == frames.GOAWAY:
            self._said_goodbye(frames.last_stream(frame))
        else:
            for event in self._h2.receive_data(frame.data):
                if (react := self._REACTIONS.get(type(event))) is not None:
                    react(self, event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc is not None else "the connection was closed")

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._wake()

    # What arrives.

    def _headers_received(self, event: Any) -> None:
        if (stream := self.streams.get(event.stream_id)) is not None:
            stream.headers = text_of(event.headers)

    def _trailers_received(self, event: Any) -> None:
        if (stream := self.streams.get(event.stream_id)) is not None:
            stream.trailers = text_of(event.headers)

    def _data_received(self, event: Any) -> None:
        self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        if (stream := self.streams.get(event.stream_id)) is None or stream.ended.done():
            return
        if len(stream.body) + len(event.data) > self.limits.body:
            stream.fail(BodyTooLarge(f"a message may have {self.limits.body} bytes at most"))
            stream.body.clear()
            return
        stream.body += event.data

    def _stream_ended(self, event: Any) -> None:
        if (stream := self.streams.get(event.stream_id)) is not None and not stream.ended.done():
            stream.ended.set_result(None)

    def _stream_reset(self, event: Any) -> None:
        self._resets += 1
        if stream := self.streams.get(event.stream_id):
            refused = event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
            stream.fail(StreamFailed("the other side ended the call", processed=not refused))
        self._wake()
        if self._resets > self.limits.resets:
            self._shut_out("the other side resets streams without end")

    def _said_goodbye(self, last: int) -> None:
        """The other side begins nothing new, and answers no stream after `last`."""
        self.draining = True
        for number, stream in list(self.streams.items()):
            if self.CLIENT and number > last:
                stream.fail(StreamFailed("the other side is ending", processed=False))
        if not self.streams:
            self.close()

    def _window_changed(self, _event: Any) -> None:
        self._wake()

    def _settings_changed(self, _event: Any) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        self._wake()

    _REACTIONS: ClassVar[dict[type[Any], Callable[[Any, Any], None]]] = {
        h2.events.ResponseReceived: _headers_received,
        h2.events.TrailersReceived: _trailers_received,
        h2.events.DataReceived: _data_received,
        h2.events.StreamEnded: _stream_ended,
        h2.events.StreamReset: _stream_reset,
        h2.events.WindowUpdated: _window_changed,
        h2.events.RemoteSettingsChanged: _settings_changed,
    }

    # What is sent.

    def send_headers(self, number: int, headers: Headers, *, end: bool = False) -> None:
        """Send headers or trailers; raises `StreamFailed`."""
        try:
            self._h2.send_headers(number, list(headers), end_stream=end)
        except h2.exceptions.ProtocolError as error:
            raise StreamFailed(str(error)) from None
        self._flush()

    async def send_body(self, number: int, data: bytes, *, end: bool) -> None:
        """Send a body as fast as the other side takes it; raises `StreamFailed`."""
        at = 0
        try:
            while at < len(data):
                size = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size, len(data) - at)
                if size <= 0 or self._paused:
                    await self._change()
                    continue
                self._h2.send_data(number, data[at : at + size], end_stream=end and at + size == len(data))
                at += size
                # The other side makes room for more with frames of its own.
                self._budget.earn(size / 1024)
                self._flush()
            if not data and end:
                self._h2.end_stream(number)
                self._flush()
        except h2.exceptions.ProtocolError as error:
            raise StreamFailed(str(error)) from None

    def reset(self, number: int, code: h2.errors.ErrorCodes = h2.errors.ErrorCodes.CANCEL) -> None:
        """Give a stream up; nothing if it has ended."""
        with contextlib.suppress(h2.exceptions.ProtocolError):
            self._h2.reset_stream(number, code)
        self._flush()

    def close(self, code: h2.errors.ErrorCodes = h2.errors.ErrorCodes.NO_ERROR) -> None:
        """Say goodbye and close. Streams that go on end with an error."""
        self.say_goodbye(code)
        if self._transport is not None:
            self._transport.close()

    def say_goodbye(self, code: h2.errors.ErrorCodes = h2.errors.ErrorCodes.NO_ERROR) -> None:
        """Begin no more streams, and ask the other side not to. Those that go on may end."""
        self.draining = True
        if self._transport is not None:
            # h2 would end the connection with it.
            self._flush()
            self._transport.write(frames.goodbye(self._h2.highest_inbound_stream_id, code))

    def abort(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._end(why)

    def _worked(self) -> None:
        """A call was answered. The end of a request alone proves nothing: it comes with the first frame."""
        self._resets = 0
        self._budget.earn()

    def _shut_out(self, why: str) -> None:
        """End with a peer that misbehaves. It has a moment to read that."""
        self.misbehaviour = why
        transport = self._transport
        self.close(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
        self._end(why)
        if transport is not None:
            self._loop.call_later(_LAST_WORD, transport.abort)

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport, while there is one."""
        return self._transport

    # Below.

    def _flush(self) -> None:
        if self._transport is not None and (data := self._h2.data_to_send()):
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > _UNREAD:
                self._loop.call_soon(self.abort, "the other side does not read")

    def _end(self, why: str) -> None:
        for handle in filter(None, (self._timer, self._turn)):
            handle.cancel()
        self._timer = self._turn = None
        self.draining = True
        transport, self._transport = self._transport, None
        error = StreamFailed(why)
        for stream in list(self.streams.values()):
            stream.fail(error)
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()
        self._wake()
        if transport is not None:
            self._closed(self)

    async def _change(self) -> None:
        """Wait until a window, a stream or the connection changes."""
        if self._transport is None:
            raise StreamFailed("the connection was closed")
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        await waiter
        if self._transport is None:
            raise StreamFailed("the connection was closed")

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _tick(self) -> None:
        """Ping a silent peer, and end with one that does not answer."""
        now, limits = self._loop.time(), self.limits
        if not self.ready.done():
            self.abort("the other side does not begin")
            return
        if self._pinged is not None and now - self._pinged >= limits.ping_timeout:
            self.abort("the other side does not answer a ping")
            return
        if self._pinged is None and now - self._heard >= limits.ping_after and self._is_watched():
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self._h2.ping(b"liveness")
            self._flush()
            self._pinged = now
        self._timer = self._loop.call_later(limits.ping_timeout, self._tick)

    def _is_watched(self) -> bool:
        return bool(self.streams)

    def _is_welcome(self) -> bool:
        return True


class Http2ClientConnection(Http2Connection):
    CLIENT = True

    def __init__(self, limits: Http2Limits, closed: Callable[[Http2Connection], None]) -> None:
        super().__init__(limits, closed)
        self.idle_since = self._loop.time()

    @property
    def room(self) -> int:
        """How many more streams may begin."""
        if self.draining or self._transport is None:
            return 0
        return min(self.limits.streams, self._h2.remote_settings.max_concurrent_streams) - len(self.streams)

    async def call(self, headers: Headers, body: bytes) -> Http2Stream:
        """Send a request and return what came back; raises `StreamFailed`. Cancelled, it gives the stream up."""
        if self.room <= 0:
            raise StreamFailed("the connection takes no more calls", processed=False)
        try:
            number = self._h2.get_next_available_stream_id()
        except h2.exceptions.ProtocolError as error:
            raise StreamFailed(str(error), processed=False) from None
        stream = self.streams[number] = Http2Stream(number, self._loop.create_future())
        try:
            self.send_headers(number, headers)
            sending = self._loop.create_task(self.send_body(number, body, end=True))
            try:
                # An answer may come before all of the request is sent.
                await asyncio.wait((sending, stream.ended), return_when=asyncio.FIRST_COMPLETED)
                if sending.done() and not stream.ended.done():
                    sending.result()
                await stream.ended
                self._worked()
            finally:
                sending.cancel()
                with contextlib.suppress(asyncio.CancelledError, StreamFailed):
                    await sending
        finally:
            self.reset(number)
            del self.streams[number]
            self.idle_since = self._loop.time()
            self._wake()
            if self.draining and not self.streams and self._transport is not None:
                self.close()
        return stream
