"""Many clients at once: new ones are let in, and those who do not wait when they are asked to are not read meanwhile."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from paddock.server.edge import listener
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse
from paddock.server.edge.limits import ConnectionLimits
from paddock.server.edge.rejections import LONGEST_REST
from paddock.server.edge.server import Server
from tests.coroutines import run_by, timeless
from tests.unit.server.edge.fakeclient import ASK, connected

# Turns of the loop in which all are let in.
TURNS = 6


async def ok(request: HttpRequest) -> Answer:
    return HttpResponse(200, b"ok")


@pytest.fixture
def in_loop(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> Iterator[Callable[[Coroutine[Any, Any, None]], None]]:
    """Runs a coroutine in a loop of a kind."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        yield runner.run


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@run_by("in_loop")
async def test_all_who_knock_are_let_in_within_a_few_turns() -> None:
    server = Server(ok, tls=None, limits=ConnectionLimits())
    port = await server.listen("127.0.0.1", 0)
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert len(server.census.members) == len(clients)
    for client in clients:
        client.close()
    await server.close(0.0)


@pytest.mark.spec("kube-api", 164)
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@run_by("in_loop")
async def test_the_longest_handshake_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listener.MOST_HANDSHAKES == 2048
    monkeypatch.setattr(listener, "MOST_HANDSHAKES", 3)

    server = Server(ok, tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), limits=ConnectionLimits())
    port = await server.listen("127.0.0.1", 0)
    silent = []
    for _ in range(5):
        silent.append(await asyncio.open_connection("127.0.0.1", port))
        await asyncio.sleep(0.01)
    assert [await reader.read() for reader, _ in silent[:2]] == [b"", b""]
    await asyncio.sleep(0.05)
    assert [reader.at_eof() for reader, _ in silent] == [True, True, False, False, False]
    for _, writer in silent:
        writer.transport.abort()
    await server.close(0.0)


@pytest.mark.spec("kube-api", 165)
@run_by(uvloop.run)
async def test_a_handshake_has_the_time_of_a_request() -> None:
    server = Server(ok, tls=ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), limits=ConnectionLimits(receive_seconds=0.2))
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.listen("127.0.0.1", 0))
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.transport.abort()
    await server.close(0.0)


def busy(request: HttpRequest) -> HttpResponse:
    return HttpResponse(429, b"", (("retry-after", "1"),))


def fine(request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, b"ok")


@timeless
async def test_a_client_that_does_not_wait_is_not_read_before_its_pause_is_over() -> None:
    _, client = connected(busy)
    client.send(ASK)
    await asyncio.sleep(30)
    # The pause is what the answer said, twice as long each time.
    assert client.answers == [(0, 429, "1"), (1, 429, "2"), (3, 429, "4"), (7, 429, "8"), (15, 429, "8"), (23, 429, "8")]
    assert LONGEST_REST == 8
    client.close()


@timeless
async def test_an_answer_ends_the_row_of_rejections() -> None:
    answers = [busy, busy, fine, busy]
    _, client = connected(lambda request: (answers.pop(0) if len(answers) > 1 else answers[0])(request))
    client.send(ASK)
    await asyncio.sleep(3.5)
    assert client.answers == [(0, 429, "1"), (1, 429, "2"), (3, 200, ""), (3, 429, "1")]
    client.close()


@timeless
async def test_a_client_that_waits_is_answered_at_once() -> None:
    answers = [busy, fine]
    _, client = connected(lambda request: answers.pop(0)(request), greedy=False)
    client.send(ASK)
    await asyncio.sleep(1.5)
    client.send(ASK)
    await asyncio.sleep(0.1)
    assert client.answers == [(0, 429, "1"), (1.5, 200, "")]
    client.close()


@timeless
async def test_requests_that_were_read_with_the_rejected_one_wait_too() -> None:
    seen: list[float] = []

    def handle(request: HttpRequest) -> HttpResponse:
        seen.append(asyncio.get_running_loop().time())
        return busy(request) if len(seen) == 1 else HttpResponse(200, b"ok")

    _, client = connected(handle, greedy=False)
    client.send(ASK * 3)
    await asyncio.sleep(5)
    assert seen == [0, 1, 1]
    client.close()


@timeless
async def test_a_rejection_that_names_no_time_costs_none() -> None:
    answers = [HttpResponse(429, b""), HttpResponse(200, b"ok")]
    _, client = connected(lambda _: answers.pop(0), greedy=False)
    client.send(ASK * 2)
    await asyncio.sleep(0.1)
    assert client.answers == [(0, 429, ""), (0, 200, "")]
    client.close()


@timeless
async def test_a_server_that_ends_does_not_wait_for_those_who_rest() -> None:
    connection, client = connected(busy)
    client.send(ASK)
    await asyncio.sleep(0.5)
    connection.stop()
    await asyncio.sleep(0)
    assert client.is_closing()
    await asyncio.sleep(10)
    assert len(client.answers) == 1


@timeless
async def test_the_first_request_of_a_connection_is_known() -> None:
    seen: list[bool] = []

    def handle(request: HttpRequest) -> HttpResponse:
        seen.append(request.is_first)
        return HttpResponse(200, b"ok")

    for pieces in ((ASK, ASK), (ASK * 2,), (ASK[:10], ASK[10:] + ASK)):
        _, client = connected(handle, greedy=False)
        for piece in pieces:
            client.send(piece)
            await asyncio.sleep(0.1)
        client.close()
    assert seen == [True, False] * 2 + [True, False]
