"""Values that the edge exchanges with the pipeline. Plain values; the sockets are in `server` and `connection`."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

from paddock.server.edge.requestbody import RequestBody

# A longer query is taken apart each time.
_LONGEST_KEPT = 512


class ConnectionPeer(msgspec.Struct, frozen=True):
    """The other end of the connection. A certificate is given only when its chain was verified."""

    address: str
    # subject of the client certificate: common name and organizations, and its DER form for the record
    common_name: str = ""
    organizations: tuple[str, ...] = ()
    certificate: bytes = b""


class HttpRequest:
    """One request. Header names are lower case; of a repeated header the values are joined by commas.

    A small body is there from the beginning. A larger one is there after `receive`, so that only those have theirs kept who may send it.
    """

    __slots__ = (
        "_query",
        "arriving",
        "body",
        "headers",
        "incoming",
        "is_first",
        "method",
        "path",
        "peer",
        "query_text",
        "repeated",
        "target",
    )

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: ConnectionPeer) -> None:
        self.method = method
        self.target = target
        path, _, self.query_text = target.partition("?")
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        self.body = body
        self.peer = peer
        self._query: dict[str, list[str]] | None = None
        # the first of its connection
        self.is_first = False
        # the values of headers that came more than once
        self.repeated: Mapping[str, list[str]] | None = None
        # reads the rest of a large body for its owner, once
        self.arriving: Callable[[str], Awaitable[bytes]] | None = None
        # the body where it is read while it arrives (`StreamingRoutes`); `body` is empty then
        self.incoming: RequestBody | None = None

    async def receive(self, owner: str) -> None:
        """Have the whole body, which counts as its owner's. Raises `HttpRefusal` when it does not arrive or there is no room."""
        if self.arriving is not None:
            arriving, self.arriving = self.arriving, None
            self.body = await arriving(owner)

    @property
    def shows_credentials(self) -> bool:
        """True for a request that says whose it is, truly or not."""
        return bool(self.peer.certificate) or "authorization" in self.headers or "cookie" in self.headers

    def values(self, header: str) -> list[str]:
        """The values of a header, each as it came."""
        if self.repeated and header in self.repeated:
            return list(self.repeated[header])
        return [self.headers[header]] if header in self.headers else []

    @property
    def query(self) -> dict[str, list[str]]:
        """The parameters, each with all its values, in order."""
        if self._query is None:
            self._query = {}
            text = self.query_text
            for name, value in (_usual_pairs if len(text) <= _LONGEST_KEPT else _pairs)(text) if text else ():
                self._query.setdefault(name, []).append(value)
        return self._query

    def parameter(self, name: str, default: str = "") -> str:
        """The first value of a parameter."""
        values = self.query.get(name) if self.query_text else None
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """A boolean parameter: false only when it is absent, `0` or `false`."""
        values = self.query.get(name) if self.query_text else None
        return values is not None and values[0] not in ("0", "false")


def _pairs(query: str) -> list[tuple[str, str]]:
    # The size of a head bounds their number.
    return parse_qsl(query, keep_blank_values=True)


# A client says the same with every write.
_usual_pairs = lru_cache(maxsize=256)(_pairs)


class LongBody:
    """A body of many parts. Each piece is joined when it is sent, so the body never exists as a whole."""

    __slots__ = ("_length", "_parts", "_separator")

    def __init__(self, parts: Sequence[bytes], separator: bytes) -> None:
        self._parts = parts
        self._separator = separator
        self._length = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)

    def __len__(self) -> int:
        return self._length

    def __bytes__(self) -> bytes:
        return self._separator.join(self._parts)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of at most this size, except that a larger part is a piece of its own."""
        gathered: list[bytes] = []
        left = size
        for part in self._parts:
            left -= len(part) + len(self._separator)
            if left < 0 and gathered:
                # The piece ends with a separator, because another part follows.
                gathered.append(b"")
                yield self._separator.join(gathered)
                gathered.clear()
                left = size - len(part) - len(self._separator)
            gathered.append(part)
        yield self._separator.join(gathered)


class HttpResponse:
    __slots__ = ("_body", "headers", "status")

    def __init__(self, status: int, body: bytes | LongBody = b"", headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.status = status
        self._body = body
        self.headers = headers

    @property
    def body(self) -> bytes:
        """The body as a whole."""
        return bytes(self._body)

    @property
    def length(self) -> int:
        """The number of bytes of the body."""
        return len(self._body)

    def pieces(self, size: int) -> Iterator[bytes | memoryview]:
        """Yield the body in pieces of at most this size."""
        for part in self._body.pieces(size) if isinstance(self._body, LongBody) else (self._body,):
            if len(part) <= size:
                yield part
            else:
                whole = memoryview(part)
                yield from (whole[start : start + size] for start in range(0, len(part), size))


class StreamSink(Protocol):
    """The destination of a streamed answer."""

    @property
    def backlog(self) -> int:
        """Bytes that were written and not yet taken by the other end."""

    @property
    def closed(self) -> bool:
        """True when the other end has gone, or the server is stopping."""

    def write(self, data: bytes) -> None:
        """Send bytes, at once if the connection takes them. Does nothing on a closed sink."""

    async def drained(self) -> None:
        """Wait until the other end has taken most of the backlog, or is gone."""

    def gone(self) -> Awaitable[None]:
        """Wait until the other end has gone, or the server is stopping."""


class StreamResponse:
    """An answer that is written piece by piece; it ends when `run` returns. `run` is cancelled when the connection ends."""

    __slots__ = ("headers", "run", "status")

    def __init__(self, status: int, run: Callable[[StreamSink], Awaitable[None]], headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.status = status
        self.run = run
        self.headers = headers


class Socket(Protocol):
    """A WebSocket that has been accepted."""

    @property
    def backlog(self) -> int:
        """Bytes that were sent and not yet taken by the other end."""

    @property
    def closed(self) -> bool:
        """True when nothing more can be sent."""

    async def gone(self) -> None:
        """Wait until the other end has gone, or the server is stopping. What is received meanwhile is dropped."""

    async def receive(self) -> bytes | str | None:
        """The next message: bytes, text, or None when the other end has closed."""

    def send(self, message: bytes | str) -> None:
        """Send a binary or a text message."""

    async def drained(self) -> None:
        """Wait until the other end has taken most of the backlog, or is gone."""

    def close(self, code: int = 1000, reason: str = "") -> None: ...


class Upgrade:
    """An answer that turns the connection into a WebSocket; `subprotocol` is echoed when it is not empty."""

    __slots__ = ("run", "subprotocol")

    def __init__(self, run: Callable[[Socket], Awaitable[None]], subprotocol: str = "") -> None:
        self.run = run
        self.subprotocol = subprotocol


Answer = HttpResponse | StreamResponse | Upgrade
Handler = Callable[[HttpRequest], Awaitable[Answer]]


class StreamingRoutes(msgspec.Struct, frozen=True):
    """Paths, by what they begin with, whose requests go to a handler of their own, with bodies as `RequestBody`."""

    prefixes: tuple[bytes, ...]
    handler: Handler


async def _nobody(request: HttpRequest) -> Answer:
    return HttpResponse(404)


NO_DOORS = StreamingRoutes((), _nobody)
