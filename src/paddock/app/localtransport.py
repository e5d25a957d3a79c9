"""The way from the client in this process into the server in this process."""

from collections.abc import Iterable

from paddock.kubernetes.client.errors import BadAnswer
from paddock.kubernetes.client.localtransport import Door, LocalResponse
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock.server.edge.http import ConnectionPeer, Handler, HttpRequest, HttpResponse, StreamResponse


def door(api: Handler, user: str, groups: tuple[str, ...] = ()) -> Door:
    """Requests are done as this user, with the rights of this user, and audited under their name."""
    # What the edge puts here after it has verified a client certificate: nobody outside this process can make such a peer.
    peer = ConnectionPeer("in-process", user, groups, b"in-process")

    async def carry(ask: TransportRequest) -> TransportResponse | LocalResponse:
        headers = {"accept": ask.accept, "content-type": ask.content_type} if ask.body else {"accept": ask.accept}
        answer = await api(HttpRequest(ask.method, ask.target, headers, ask.body, peer))
        if isinstance(answer, HttpResponse):
            return TransportResponse(answer.status, _joined(answer.headers), answer.body)
        if isinstance(answer, StreamResponse):
            return LocalResponse(answer.status, _joined(answer.headers), answer.run)
        raise BadAnswer(f"{ask.target} wants a WebSocket", fix="connect to it through the server's address")

    return carry


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
