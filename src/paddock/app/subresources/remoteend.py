"""Bytes between a WebSocket and something in the host: a pipe to a guest, a TCP connection, datagrams (docs/spec/kubevirt.md 4.2).

Both directions run at once and are bounded: what one end does not take is not read from the other. The session ends

- when the far end has no more to say: everything it said is sent, then the close frame with 1000, which clients take for a proper end.
  A WebSocket cannot be closed by halves, so what the client still had to say is lost to a far end that hung up;
- when the client closes, or is gone: everything that it had sent is delivered first, then the far end learns that no more comes. A
  WebSocket that is closed takes no more either, so the far end's answer has nowhere to go;
- when the client takes nothing for `patience` seconds, where there is one: a serial line that nobody reads stops the guest.
"""

import asyncio
import logging
from typing import Protocol

from paddock.server.edge.http import HttpRequest, Socket

_LOG = logging.getLogger(__name__)
PROTOCOL = "plain.kubevirt.io"
_BEARER = "base64url.bearer.authorization.k8s.io."
# The largest message that is sent: clients read with buffers of this size.
PIECE = 64 * 1024
TRY_LATER = 1013
_LAST_WORDS_SECONDS = 2.0


class RemoteEnd(Protocol):
    """The end that is not the client."""

    async def read(self) -> bytes:
        """The next bytes, or the next datagram; empty at the end."""

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more."""

    async def finish(self) -> None:
        """No more comes: what was written is to be delivered."""

    def close(self) -> None: ...


def subprotocol(request: HttpRequest) -> str:
    """The subprotocol to answer with: KubeVirt's when it is offered, otherwise the first one that is no token, or none."""
    offered = [each.strip() for each in request.headers.get("sec-websocket-protocol", "").split(",")]
    spoken = [each for each in offered if each and not each.startswith(_BEARER)]
    return PROTOCOL if PROTOCOL in spoken else next(iter(spoken), "")


async def pump(socket: Socket, far: RemoteEnd, *, patience: float | None = None) -> None:
    """Carry bytes both ways until one end is done; both are closed when this returns."""
    there = asyncio.ensure_future(_deliver(socket, far))
    back = asyncio.ensure_future(_send(socket, far, patience))
    try:
        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        if there.done() and isinstance(there.exception(), OSError):
            # The far end takes no more; what it said before that is on its way.
            await asyncio.wait((back,), timeout=_LAST_WORDS_SECONDS)
    finally:
        for task in (there, back):
            task.cancel()
        ended = await asyncio.gather(there, back, return_exceptions=True)
        far.close()
        socket.close()
    for error in ended:
        if isinstance(error, OSError):
            # The guest reset its connection, say: that is an end like any other.
            _LOG.debug("stream to guest closed", exc_info=error)
        elif isinstance(error, Exception):
            raise error


async def _deliver(socket: Socket, far: RemoteEnd) -> None:
    """Copy the client's data to the far end."""
    while (message := await socket.receive()) is not None:
        data = message.encode() if isinstance(message, str) else message
        if data:
            await far.write(data)
    await far.finish()


async def _send(socket: Socket, far: RemoteEnd, patience: float | None) -> None:
    """Copy the far end's data to the client, as fast as the client takes it."""
    while data := await far.read():
        for start in range(0, len(data), PIECE):
            socket.send(data[start : start + PIECE])
            try:
                async with asyncio.timeout(patience):
                    await socket.drained()
            except TimeoutError:
                socket.close(TRY_LATER, "the client does not keep up")
                return
        if socket.closed:
            return
