"""A WebSocket whose client is hostile or slow: what waits here for it is bounded. Without sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from paddock.server.edge import websocket
from paddock.server.edge.http import ConnectionPeer, HttpRequest
from paddock.server.edge.responsewriter import ResponseWriter
from tests import virtualtime
from tests.coroutines import played_by

OPENING = {
    "host": "a",
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


class Wire:
    """The transport of a session, and the client's end of it. A client that takes nothing fills the writer."""

    def __init__(self) -> None:
        self.written = b""
        self.reads = True
        self.aborted = False
        self.writer = ResponseWriter(cast(asyncio.Transport, self))
        self.session = websocket.Session(cast(asyncio.Transport, self), self.writer)
        request = HttpRequest("GET", "/x", OPENING, b"", ConnectionPeer("a"))
        assert self.session.accept(request, "")
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True
        self.writer.lose()
        self.session.connection_lost()


def frame(first: int, payload: bytes = b"") -> bytes:
    """A frame of a client, its mask zero."""
    return bytes((first, 0x80 | len(payload), 0, 0, 0, 0)) + payload


def ping(payload: bytes) -> bytes:
    return frame(0x89, payload)


def play(script: Callable[[Wire], Awaitable[None]]) -> None:
    async def inside() -> None:
        wire = Wire()
        try:
            await script(wire)
        finally:
            wire.session.close()

    virtualtime.run(inside())


async def until_taken(wire: Wire) -> None:
    """Let the session have its turns; a client sends nothing while it is not read."""
    for _ in range(2000):
        await asyncio.sleep(0)
        if wire.reads:
            return


@played_by(play)
async def test_a_client_that_takes_nothing_has_one_answer_waiting(wire: Wire, /) -> None:
    wire.writer.pause()
    wire.session.data_received(b"".join(ping(b"%d" % number) for number in range(100)))
    assert (wire.written, wire.reads) == (b"", False)
    wire.writer.resume()
    await asyncio.sleep(0.01)
    # the newest answers those before it
    assert (wire.written, wire.reads) == (b"\x8a\x0299", True)
    wire.session.data_received(ping(b"next"))
    assert wire.written.endswith(b"\x8a\x04next")


@played_by(play)
async def test_a_client_that_takes_nothing_for_long_is_cut_off(wire: Wire, /) -> None:
    wire.writer.pause()
    wire.session.data_received(ping(b"a"))
    await asyncio.sleep(websocket.SEND_SECONDS - 1)
    aborted = [wire.aborted]
    await asyncio.sleep(2)
    aborted.append(wire.aborted)
    assert aborted == [False, True]


@played_by(play)
async def test_empty_messages_that_nobody_receives_pause_reading(wire: Wire, /) -> None:
    sent = 0
    while wire.reads and sent < 100_000:
        wire.session.data_received(frame(0x82) * 1000)
        await until_taken(wire)
        sent += 1000
    assert sent < 20_000
    for _ in range(sent):
        assert await wire.session.receive() == b""
    assert wire.reads


@played_by(play)
async def test_a_message_of_too_many_empty_frames_is_too_large(wire: Wire, /, monkeypatch: pytest.MonkeyPatch) -> None:
    assert websocket.MOST_PARTS <= 300_000
    monkeypatch.setattr(websocket, "MOST_PARTS", 1000)

    wire.session.data_received(frame(0x02) + frame(0x00) * 990)
    await until_taken(wire)
    assert wire.written == b""
    wire.session.data_received(frame(0x00) * 10)
    await until_taken(wire)
    assert b"\x03\xf1message too large" in wire.written


@played_by(play)
async def test_a_read_of_many_frames_leaves_turns_to_others(wire: Wire, /) -> None:
    wire.session.data_received(ping(b"") * 5000)
    pongs = [len(wire.written) // 2]
    while pongs[-1] < 5000 and len(pongs) < 100:
        await asyncio.sleep(0)
        pongs.append(len(wire.written) // 2)
    assert pongs[-1] == 5000
    assert max(later - earlier for earlier, later in zip([0, *pongs], pongs, strict=False)) <= 500


@pytest.mark.parametrize("leave", [websocket.Session.eof_received, websocket.Session.connection_lost])
@played_by(play)
async def test_what_came_before_the_end_is_received(wire: Wire, /, leave: Callable[[websocket.Session], None]) -> None:
    wire.session.data_received(frame(0x82, b"a") * 5000)
    leave(wire.session)
    received = 0
    while await wire.session.receive() is not None:
        received += 1
    assert received == 5000
