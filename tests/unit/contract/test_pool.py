"""Calls that come to a pool of connections at every moment of a connection's beginning, and connections that are of no use."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock.contract.http2 import Http2ClientConnection, Http2Limits
from paddock.contract.pool import ConnectionPool, PoolSettings, PoolTarget
from tests.coroutines import played_by
from tests.kit.providers.providerdrivers import REMOTE, ScriptedDriver, calling, listening, refused, run, serving

VALIDATE = m.ValidateRequest()


@contextlib.contextmanager
def turning(seconds: int = 60) -> Iterator[None]:
    """Fail if the block does not end: a loop that stands still reaches no timeout of its own."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("the event loop stands still")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class QuickPool(ConnectionPool):
    """A pool whose connections begin after some turns of the loop."""

    turns = 1

    async def _connect(self) -> Http2ClientConnection:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        connection = Http2ClientConnection(Http2Limits(body=1), self._lost)
        # h2 allows a hundred streams before it hears of the other side.
        connection._transport = asyncio.Transport()
        return connection


@pytest.mark.spec("virtrigaud", 161)
@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("later", range(6))
@played_by(run)
async def test_a_call_that_comes_at_any_turn_of_connecting(turns: int, later: int) -> None:
    with turning():
        pool = QuickPool(PoolTarget("127.0.0.1", 1), PoolSettings(), Http2Limits(body=1))
        pool.turns = turns
        first = asyncio.create_task(pool.acquire())
        for _ in range(later):
            await asyncio.sleep(0)
        assert await pool.acquire() is await first
        assert pool.size == 1


@pytest.mark.spec("virtrigaud", 161)
@played_by(run)
async def test_calls_spread_over_the_time_of_connecting() -> None:
    """Sixty calls within some milliseconds, again and again: some meet each step of a real connection's beginning."""
    with turning():
        async with serving(ScriptedDriver()) as server:
            for _ in range(5):
                async with calling(server.port) as client:
                    calls = []
                    for number in range(60):
                        calls.append(asyncio.create_task(client.validate(VALIDATE)))
                        if number % 3:
                            await asyncio.sleep(0)
                        else:
                            time.sleep(0.0002)  # real time passes for the other end as well
                    await asyncio.gather(*calls)


@pytest.mark.spec("virtrigaud", 161)
@pytest.mark.parametrize("fails", [0, 1], ids=["refused", "closed"])
@played_by(run)
async def test_all_that_wait_hear_of_a_failure(fails: int) -> None:
    with turning():

        async def closes(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            await reader.read(10)

        async with listening(closes) as port, calling(port if fails else 1) as client:
            errors = await asyncio.gather(*(refused(client.validate(VALIDATE)) for _ in range(30)))
            assert {error.kind for error in errors} == {ErrorKind.UNAVAILABLE}


@played_by(run)
async def test_a_provider_that_ends_each_connection_at_once_is_not_connected_to_again_and_again() -> None:
    connections = 0

    async def leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        # Settings, and goodbye.
        writer.write(bytes.fromhex("000000040000000000") + bytes.fromhex("0000080700000000000000000000000000"))
        await reader.read(1000)

    with turning():
        settings = msgspec.structs.replace(REMOTE, pool=PoolSettings(connections=2))
        async with listening(leaves) as port, calling(port, None, settings) as client:
            assert "as soon as it begins" in str(await refused(client.validate(VALIDATE)))
        assert connections == 1
