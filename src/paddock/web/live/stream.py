"""Server-sent events: the messages of a page, written as fast as it takes them."""

import asyncio
import itertools
from collections.abc import Callable, Sequence

from paddock.server.edge.http import StreamSink
from paddock.web.live.page import LivePage, Message

# Proxies and browsers give up a connection on which nothing comes.
_HEARTBEAT_SECONDS = 15.0
_BACKLOG_BYTES = 256 * 1024
HEADERS = (("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no"))


async def write(page: LivePage, sink: StreamSink, is_alive: Callable[[], bool]) -> None:
    """Write messages until the page is closed or its session has ended."""
    numbers = itertools.count(1)
    sink.write(b": open\n\n")
    gone = asyncio.ensure_future(sink.gone())
    try:
        while is_alive():
            await _wait(page, gone)
            if gone.done():
                return
            if sink.backlog > _BACKLOG_BYTES:
                # Until the page takes what it has, changes of the same row become one.
                await sink.drained()
            messages = page.take()
            sink.write(framed(messages, numbers) if messages else b": alive\n\n")
    finally:
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)


async def _wait(page: LivePage, gone: "asyncio.Future[None]") -> None:
    waiting = asyncio.ensure_future(page.wait())
    try:
        await asyncio.wait((waiting, gone), timeout=_HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def framed(messages: Sequence[Message], numbers: "itertools.count[int]") -> bytes:
    """Return messages as server-sent events. JSON has no line breaks."""
    return b"".join(b"id: %d\nevent: %b\ndata: %b\n\n" % (next(numbers), name.encode(), data) for name, data in messages)
