"""Providers that never stop talking, over real connections: each call ends with an error, and what they send is not kept."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import methods
from paddock.contract.errors import ErrorKind
from tests.coroutines import played_by
from tests.kit.providers.providerdrivers import REMOTE, calling, listening, refused, run

_SETTINGS, _ACK = bytes.fromhex("000000040000000000"), bytes.fromhex("000000040100000000")
# :status 200 and content-type application/grpc, as literals without an index
_ANSWER = b"\x88\x00\x0ccontent-type\x10application/grpc"
_STREAM = 1


def frame(kind: int, flags: int, payload: bytes, stream: int = _STREAM) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def data() -> Iterator[bytes]:
    """A message of four gigabytes, as its length says."""
    yield frame(1, 4, _ANSWER)
    yield frame(0, 0, b"\x00\xff\xff\xff\xff" + bytes(16000))
    while True:
        yield frame(0, 0, bytes(16000))


def headers() -> Iterator[bytes]:
    """Headers that go on in frame after frame."""
    yield frame(1, 0, _ANSWER)
    while True:
        yield frame(9, 0, b"\x00\x01x\x7f\x00" + bytes(127))


def pings() -> Iterator[bytes]:
    """Pings, and never an answer."""
    while True:
        yield frame(6, 0, bytes(8), 0)


def noise() -> Iterator[bytes]:
    """No HTTP at all."""
    while True:
        yield b"\xff" * 4096


@pytest.mark.spec("virtrigaud", 102)
@pytest.mark.parametrize("talk", [data, headers, pings, noise])
@played_by(run)
async def test_a_provider_that_never_stops(talk: Callable[[], Iterator[bytes]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "DESCRIBE", msgspec.structs.replace(methods.DESCRIBE, deadline=0.5))
    sent = 0

    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(_SETTINGS + _ACK)
        # The preface and the call.
        await reader.read(1024)
        await asyncio.sleep(0.05)
        try:
            for piece in talk():
                writer.write(piece)
                sent += len(piece)
                await writer.drain()
                if talk is pings:
                    await asyncio.sleep(0.01)
        except OSError:
            return

    async with listening(talks) as port, calling(port, None, msgspec.structs.replace(REMOTE, response=1 << 20)) as client:
        error = await refused(client.describe(m.DescribeRequest(id="vm-1")))
        assert error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.INTERNAL)
        assert len(str(error)) < 2048
    # What it could send besides lies in the buffers of the system.
    assert sent < 64 << 20
