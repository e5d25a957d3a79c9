"""Peers whose frames do no work: the loop turns between some tens of them, they are shut out, and others are served meanwhile."""

import asyncio
import contextlib
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import msgspec
import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import grpc
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock.contract.frames import FrameBudget, FrameBuffer
from paddock.contract.http2 import Http2ClientConnection, Http2Limits, StreamFailed
from paddock.contract.messages import WireMessage
from paddock.contract.pool import PoolSettings
from tests.coroutines import played_by
from tests.kit.hostile import hostilepeers
from tests.kit.hostile.hostilepeers import ACK, FLOODS, KINDS, PREFACE, SETTINGS, frame
from tests.kit.providers import providertls
from tests.kit.providers.providerdrivers import NAME, REMOTE, ScriptedDriver, calling, refused, run, serving

VALIDATE = m.ValidateRequest()
CALM = 11


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closing = self.paused = False

    def write(self, data: Any) -> None:
        assert not self.closing
        self.written += bytes(data)

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_reading(self) -> bool:
        return not self.paused

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = True

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return None

    def frames(self) -> list[tuple[int | None, bytes]]:
        """The kinds and payloads of the frames that were written."""
        buffer = FrameBuffer(len(PREFACE))
        buffer.feed(self.written)
        return [(each.kind, each.data[9:]) for each in iter(buffer.next, None) if each.kind is not None]

    def pongs(self) -> int:
        """How many pings were answered."""
        return sum(kind == 6 for kind, _ in self.frames())


HEADERS = grpc.request_headers("/provider.v1.Provider/Validate", "x", 5, scheme="http")


@contextlib.asynccontextmanager
async def called() -> AsyncIterator[tuple[Wire, Http2ClientConnection, "asyncio.Task[Any]"]]:
    """A client's connection with a call that goes on."""
    wire = Wire()
    connection = Http2ClientConnection(Http2Limits(body=1 << 20), lambda _connection: None)
    connection.connection_made(wire)
    connection.data_received(SETTINGS + ACK)
    call = asyncio.create_task(connection.call(HEADERS, b"x"))
    await asyncio.sleep(0)
    try:
        yield wire, connection, call
    finally:
        call.cancel()
        connection.abort("the test is over")
        await asyncio.gather(call, return_exceptions=True)


async def settled(wire: Wire) -> None:
    """Wait until all that was received is handled, or the connection ends."""
    while wire.paused and not wire.closing:
        await asyncio.sleep(0)


@pytest.mark.spec("virtrigaud", 163)
@pytest.mark.parametrize("kind", FLOODS)
@played_by(run)
async def test_a_provider_whose_frames_do_no_work_is_shut_out(kind: str) -> None:
    turns = 0

    async def turning() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with called() as (wire, connection, call):
        other = asyncio.create_task(turning())
        read = 0
        for piece in hostilepeers.endless(kind):
            await settled(wire)
            if wire.closing:
                break
            connection.data_received(piece)
            read += len(piece)
            await asyncio.sleep(0)
        other.cancel()
        size = len(KINDS[kind].endless)
        handled = min(read // size, FrameBudget.MOST)
        # The frames behind the last turn, fewer than 64, need none.
        assert turns >= max(handled // 64, min(read, 4 << 20) // (192 << 10))
        # A whole read, which may be nothing but heads, is in hand when the last frame is counted.
        assert read <= (FrameBudget.MOST + 2000) * size + (2 << 16)
        assert connection.misbehaviour or kind == "goaway", "its call ended with the first one"
        with pytest.raises(StreamFailed):
            await call
        if kind != "goaway":
            assert [payload[4:8] for found, payload in wire.frames() if found == 7] == [CALM.to_bytes(4, "big")]


@pytest.mark.spec("virtrigaud", 163, 164)
@played_by(run)
async def test_the_loop_turns_between_some_tens_of_frames() -> None:
    """Nothing is read meanwhile, and what comes behind the end is not looked at."""
    async with called() as (wire, connection, _):
        connection.data_received(frame(6, 0, bytes(8)) * 1000)
        answers = []
        while wire.paused:
            answers.append(wire.pongs())
            await asyncio.sleep(0)
        assert answers[0] == 64 and max(after - before for before, after in itertools.pairwise(answers)) <= 64
        assert wire.pongs() == 1000
        connection.data_received(frame(6, 0, bytes(8)) * 20_000)
        await settled(wire)
        # Time gives some frames back.
        assert wire.pongs() < 1000 + 1.5 * FrameBudget.MOST


@played_by(run)
async def test_frames_that_wait_for_their_turn_end_with_the_connection() -> None:
    async with called() as (wire, connection, call):
        connection.data_received(frame(6, 0, bytes(8)) * 1000)
        connection.connection_lost(None)
        written = wire.written
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert wire.written == written
        with pytest.raises(StreamFailed):
            await call


class Hostile:
    """A hostile server in a process of its own."""

    def __init__(self, kind: str, *files: Path) -> None:
        command = [sys.executable, "-m", "tests.kit.hostile.hostilepeers", kind, *map(str, files)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def hostile(kind: str, *files: Path) -> Iterator[int]:
    server = Hostile(kind, *files)
    try:
        yield server.port
    finally:
        server.close()


@pytest.mark.spec("virtrigaud", 163)
@pytest.mark.parametrize("kind", KINDS)
@played_by(run)
async def test_calls_to_others_are_answered_beside_a_hostile_provider(kind: str) -> None:
    """In one process, as a server calls its providers: several calls of it, and each ends."""
    with hostile(kind) as port:
        settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connect_seconds=2.0))
        async with calling(port, None, settings) as bad, serving(ScriptedDriver()) as server, calling(server.port) as good:
            calls = [asyncio.create_task(refused(bad.validate(VALIDATE))) for _ in range(3)]
            for _ in range(20):
                await good.validate(VALIDATE)
            if kind in ("zero-window", "no-streams", "informational"):
                # They have as long as a call has.
                await bad.close()
            for call in calls:
                assert (await call).kind in (ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL)


@pytest.mark.spec("virtrigaud", 163)
@played_by(run)
async def test_a_provider_that_misbehaved_is_not_connected_to_at_once() -> None:
    with hostile("settings") as port:
        async with calling(port) as client:
            first = await refused(client.validate(VALIDATE))
            assert "frames without end" in str(first)
            assert "connects again after 60 seconds" in str(await refused(client.validate(VALIDATE)))
            assert client.connections == 0


@pytest.mark.spec("virtrigaud", 163)
@played_by(run)
async def test_a_provider_that_misbehaves_over_tls(tmp_path: Path) -> None:
    authority = providertls.Authority()
    folder = providertls.write(tmp_path, authority.issue(NAME))
    with hostile("ping", folder / "tls.crt", folder / "tls.key") as port:
        async with calling(port, authority.issue(NAME)) as client:
            assert "frames without end" in str(await refused(client.validate(VALIDATE)))


# What a manager sends without end, each behind a request that is being answered.
MANAGERS = {
    "ping": frame(6, 0, bytes(8)),
    "settings": frame(4),
    "window-update": frame(8, 0, (1).to_bytes(4, "big")),
    "priority": frame(2, 0, bytes(5), 1),
    "unknown": frame(0xFA),
    "empty-data": frame(0, 0, b"", 1),
    "padding": frame(0, 8, b"\xff" + bytes(255), 1),
}


@pytest.mark.spec("virtrigaud", 164)
@pytest.mark.parametrize("kind", MANAGERS)
@played_by(run)
async def test_a_manager_that_floods_is_shut_out_and_others_are_answered(kind: str) -> None:
    peer = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    peer.initiate_connection()
    peer.send_headers(1, HEADERS)
    async with serving(ScriptedDriver()) as server, calling(server.port) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(peer.data_to_send())
        sent = 0

        async def flood() -> None:
            nonlocal sent
            with contextlib.suppress(OSError):
                while True:
                    writer.write(MANAGERS[kind] * 1000)
                    sent += 1000
                    await writer.drain()

        flooding = asyncio.create_task(flood())
        for _ in range(20):
            await client.validate(VALIDATE)
        received = b""
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                received += data
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)
        writer.close()
        await client.validate(VALIDATE)
        # What lies in the buffers of the system was never looked at.
        assert sent * len(MANAGERS[kind]) < 64 << 20


@played_by(run)
async def test_those_that_work_are_never_shut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """More frames than the budget has, in small calls and in large ones in both directions at a time, over one connection."""
    monkeypatch.setattr(FrameBudget, "MOST", 400.0)
    monkeypatch.setattr(FrameBudget, "A_SECOND", 0.0)

    async def large(_request: WireMessage) -> WireMessage:
        return x.ExecResponse(stdout=bytes(2 << 20))

    settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connections=1))
    async with serving(ScriptedDriver(exec=large)) as server, calling(server.port, None, settings) as client:
        small = [client.validate(VALIDATE) for _ in range(300)]
        answers = await asyncio.gather(*(client.exec(x.ExecRequest(command=("a" * (1 << 20),))) for _ in range(3)), *small)
        assert sum(len(each.stdout) for each in answers[:3] if isinstance(each, x.ExecResponse)) == 3 * (2 << 20)
        assert client.connections == 1
