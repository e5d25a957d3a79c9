"""The side of an HTTP/2 connection that is called: it answers each stream by a task of its own."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import h2.errors
import h2.events

from paddock.contract.http2 import Http2Connection, Http2Limits, Http2Stream, text_of


class ConnectionHost(Protocol):
    """The owner of a server's connections."""

    def opened(self, connection: "Http2ServerConnection") -> bool:
        """Note a connection whose handshake has ended; false refuses it."""

    def closed(self, connection: Http2Connection) -> None:
        """Note the end of a connection."""

    async def answer(self, connection: "Http2ServerConnection", stream: Http2Stream) -> None:
        """Answer a stream, from the moment that its headers are here. Cancelled if the caller gives up."""


class Http2ServerConnection(Http2Connection):
    """The side that is called."""

    CLIENT = False

    def __init__(self, limits: Http2Limits, host: ConnectionHost) -> None:
        super().__init__(limits, host.closed)
        self._host = host
        self._began = self.used = self._loop.time()
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def peer(self) -> object:
        """The other end by its certificate, and without one by its address."""
        transport = self._transport
        if transport is None:
            return None
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        return certificate or (transport.get_extra_info("peername") or ("",))[0]

    def _is_welcome(self) -> bool:
        return self._host.opened(self)

    def _request_received(self, event: Any) -> None:
        number = event.stream_id
        if self.draining:
            self.reset(number, h2.errors.ErrorCodes.REFUSED_STREAM)
            return
        stream = self.streams[number] = Http2Stream(number, self._loop.create_future())
        stream.headers = text_of(event.headers)
        task = self._tasks[number] = self._loop.create_task(self._host.answer(self, stream))
        task.add_done_callback(lambda task: self._answered(number, given_up=task.cancelled()))

    def _answered(self, number: int, *, given_up: bool) -> None:
        self.streams.pop(number, None)
        self._tasks.pop(number, None)
        self.used = self._loop.time()
        if not given_up:
            self._worked()
        # A caller that still sends is stopped; after an answer that has ended this is nothing.
        self.reset(number, h2.errors.ErrorCodes.NO_ERROR)
        if self.draining and not self.streams and self._transport is not None:
            self._transport.close()

    def _stream_reset(self, event: Any) -> None:
        super()._stream_reset(event)
        if (task := self._tasks.get(event.stream_id)) is not None:
            task.cancel()

    def _end(self, why: str) -> None:
        super()._end(why)
        for task in list(self._tasks.values()):
            task.cancel()

    def cancel_calls(self) -> None:
        """Cancel every call that goes on."""
        for task in list(self._tasks.values()):
            task.cancel()

    def _is_watched(self) -> bool:
        return True

    def _tick(self) -> None:
        now, limits = self._loop.time(), self.limits
        if now - self._began >= limits.age + limits.grace:
            self.abort("the connection is too old")
        elif not self.streams and (self.draining or now - self.used >= limits.idle):
            self.close()
        else:
            if now - self._began >= limits.age and not self.draining:
                self.say_goodbye()
            super()._tick()

    _REACTIONS: ClassVar[dict[type[Any], Callable[[Any, Any], None]]] = {
        **Http2Connection._REACTIONS,
        h2.events.RequestReceived: _request_received,
        h2.events.StreamReset: _stream_reset,
    }
