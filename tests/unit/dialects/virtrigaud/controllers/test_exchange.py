"""The GET of a hook: what it reaches, and what it makes of answers without an end."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.dialects.virtrigaud.controllers.machines.hooks import HookError, exchange
from paddock.dialects.virtrigaud.rules import hosts
from tests.coroutines import run_by


@asynccontextmanager
async def guest(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server on this host: its port, and the requests that it got."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readline())
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], seen


async def _leads_here(*_: Any, **__: Any) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]


@run_by(asyncio.run)
async def test_a_name_that_leads_to_this_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with guest(b"HTTP/1.1 200 OK\r\n") as (port, seen):
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", _leads_here, raising=False)
        with pytest.raises(HookError, match=r"refused: 127\.0\.0\.1 is a loopback address"):
            await exchange("guest.example", port, b"GET / HTTP/1.1\r\n\r\n", False)
        assert seen == []


@pytest.mark.parametrize(("answer", "fails"), [(b"HTTP/1.1 204 No Content\r\n", False), (b"x" * 100_000, True)])
@run_by(asyncio.run)
async def test_the_first_line_is_the_answer(monkeypatch: pytest.MonkeyPatch, answer: bytes, fails: bool) -> None:
    monkeypatch.setattr(hosts, "refusal", lambda host: "")
    async with guest(answer) as (port, _):
        if fails:
            with pytest.raises(HookError, match="has no end"):
                await exchange("127.0.0.1", port, b"GET / HTTP/1.1\r\n\r\n", False)
        else:
            assert await exchange("127.0.0.1", port, b"GET / HTTP/1.1\r\n\r\n", False) == answer
