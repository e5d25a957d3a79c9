"""A provider's health over plain HTTP, for a kubelet: /healthz, /readyz and /health."""

import asyncio
import contextlib
from collections.abc import Callable

_LARGEST = 8192
_SECONDS = 5.0
_MOST = 64


class HealthProbes:
    """Serves the pages. `ready` says whether the provider takes calls."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self._ready = ready
        self._server: asyncio.Server | None = None
        self._open = 0

    async def listen(self, host: str, port: int) -> int:
        """Answer there; returns the port, which is chosen when 0 is given."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=_LARGEST)
        chosen: int = self._server.sockets[0].getsockname()[1]
        return chosen

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _MOST:
                async with asyncio.timeout(_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self.answer(head.split(b"\r\n", 1)[0]))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def answer(self, line: bytes) -> bytes:
        """The answer to a request line."""
        method, _, rest = line.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path not in (b"/healthz", b"/readyz", b"/health"):
            return _response("404 Not Found", "there is no such page\n", method)
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET is served here\n", method)
        if path == b"/healthz" or self._ready():
            return _response("200 OK", "ok\n", method)
        return _response("503 Service Unavailable", "not ready\n", method)


def _response(status: str, text: str, method: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\nconnection: close\r\n\r\n"
    return (head + ("" if method == b"HEAD" else text)).encode()
