"""A server that is asked to stop finishes what it has begun."""

import asyncio
from pathlib import Path

import pytest

from paddock.app.options.settings import ServerSettings
from paddock.app.server.server import ServerHandle
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.edge.server import Server as Edge
from tests.coroutines import run_by
from tests.scenario.chaos.chaos import Chaos


def test_it_ends_watches_cleanly_and_answers_what_it_does(tmp_path: Path) -> None:
    """No watch is cut off in the middle, and no write takes effect of which its writer is not told."""
    chaos = Chaos(tmp_path / "server", 3)
    try:
        asyncio.run(chaos.stop_gently())
    finally:
        chaos.server.finish()
    assert chaos.answers > 10


@run_by(asyncio.run)
async def test_it_is_not_ready_before_it_stops_to_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, bool]] = []
    close = Edge.close
    server = ServerHandle(ServerSettings(root=tmp_path / "server", port=0, controllers=False))
    await server.start()

    def ready() -> int:
        found = server.api.health.answer(HttpRequest("GET", "/readyz", {}, b"", ConnectionPeer("127.0.0.1")))
        assert isinstance(found, HttpResponse)
        return found.status

    async def noted(edge: Edge, seconds: float) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        said.append((ready(), writer.is_closing()))
        writer.close()
        await close(edge, seconds)

    monkeypatch.setattr(Edge, "close", noted)
    assert ready() == 200
    await server.stop()
    assert said == [(500, False)]
