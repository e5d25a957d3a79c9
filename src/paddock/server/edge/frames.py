"""Streams of lines over a WebSocket: what dashboards in a browser open instead of a long answer (docs/spec/kube-api.md item 68)."""

from paddock.server.edge.http import HttpRequest, Socket, StreamResponse, StreamSink, Upgrade

_BEARER = "base64url.bearer.authorization.k8s.io."


def asked(request: HttpRequest) -> bool:
    """Return whether a request wants a WebSocket."""
    connection = request.headers.get("connection", "").lower().split(",")
    return request.headers.get("upgrade", "").lower() == "websocket" and "upgrade" in (each.strip() for each in connection)


def upgrade(request: HttpRequest, stream: StreamResponse) -> Upgrade:
    """The stream as messages: each line is one, of text. A token among the subprotocols is no protocol, and is not sent back."""
    offered = [each.strip() for each in request.headers.get("sec-websocket-protocol", "").split(",")]
    spoken = next((each for each in offered if each and not each.startswith(_BEARER)), "")
    return Upgrade(lambda socket: stream.run(LineFrames(socket)), spoken)


class LineFrames(StreamSink):
    """A sink whose lines are messages."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket

    @property
    def backlog(self) -> int:
        return self._socket.backlog

    @property
    def closed(self) -> bool:
        return self._socket.closed

    def write(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line:
                self._socket.send(line.decode())

    async def drained(self) -> None:
        await self._socket.drained()

    async def gone(self) -> None:
        await self._socket.gone()
