"""Files of datastores, and the files of leases, over HTTP: the ways of a disk's bytes into and out of vSphere."""

import asyncio
import http.client as protocol
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.access import Access, Credential, StaticCredential
from paddock.kubernetes.client.errors import BadAccess, TimedOut, Unreachable
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import TransportRequest
from paddock_drivers.kit import refusals

_SILENT_SECONDS = 300.0
_BINARY = "application/octet-stream"
_KINDS: dict[int, ErrorKind] = {
    protocol.UNAUTHORIZED: ErrorKind.UNAUTHORIZED,
    protocol.FORBIDDEN: ErrorKind.UNAUTHORIZED,
    protocol.NOT_FOUND: ErrorKind.NOT_FOUND,
    protocol.INSUFFICIENT_STORAGE: ErrorKind.QUOTA_EXCEEDED,
}


class FileServer(msgspec.Struct, frozen=True):
    """A server of files and what opens it."""

    # https://HOST:PORT
    origin: str
    cookie: str = ""
    authority: Path | None = None
    insecure: bool = False

    def __repr__(self) -> str:
        return f"FileServer({self.origin!r})"

    def at(self, url: str) -> tuple["FileServer", str]:
        """Return the server of a URL of a lease, and its target. A host of "*" is the one that the lease came from."""
        parts = urlsplit(url)
        # Leases are opened by their addresses, and the cookie is for the endpoint alone.
        here = urlsplit(self.origin)
        netloc = here.netloc if parts.hostname in (None, "*") else parts.netloc
        same = (parts.scheme, netloc) == (here.scheme, here.netloc)
        made = FileServer(f"{parts.scheme}://{netloc}", self.cookie if same else "", self.authority, self.insecure)
        return made, parts.path + (f"?{parts.query}" if parts.query else "")

    def open(self) -> Https:
        shown = Credential((("cookie", self.cookie),) if self.cookie else ())
        authority = self.authority.read_bytes() if self.authority is not None else b""
        return Https(Access(server=self.origin, authority=authority, insecure=self.insecure, credentials=StaticCredential(shown)))


async def read(server: FileServer, target: str, what: str) -> AsyncGenerator[bytes, None]:
    """The bytes of a file; raises `ProviderError`, also when it ends too early."""
    async with aclosing(_read(server, target, what)) as chunks:
        while True:
            with _mapped(f"{what} cannot be read"):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk


async def _read(server: FileServer, target: str, what: str) -> AsyncGenerator[bytes, None]:
    http = server.open()
    try:
        stream = await http.stream(TransportRequest(method="GET", target=target, accept="*/*", seconds=_SILENT_SECONDS))
        try:
            _check(stream.status, f"{what} cannot be read")
            length, seen = stream.headers.get("content-length", ""), 0
            while True:
                async with asyncio.timeout(_SILENT_SECONDS):
                    chunk = await stream.read()
                if not chunk:
                    break
                seen += len(chunk)
                yield chunk
            if length.isdecimal() and seen != int(length):
                raise Unreachable(f"{what} ended too early", sent=True)
        except TimeoutError:
            raise Unreachable(f"vSphere sends nothing of {what} any more", sent=True) from None
        finally:
            stream.close()
    finally:
        await http.close()


async def read_small(server: FileServer, target: str, most: int, what: str) -> bytes:
    """Return the beginning of a file, this many bytes at most."""
    data = b""
    async with aclosing(read(server, target, what)) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) >= most:
                break
    return data[:most]


async def write(server: FileServer, target: str, chunks: AsyncIterator[bytes], length: int, what: str, *, method: str = "PUT") -> None:
    """Store a file of this length; raises `ProviderError`."""
    http = server.open()
    try:
        ask = TransportRequest(method=method, target=target, content_type=_BINARY, accept="*/*", seconds=_SILENT_SECONDS)
        with _mapped(f"{what} cannot be stored"):
            answer = await http.send_stream(ask, chunks, length)
    finally:
        await http.close()
    _check(answer.status, f"{what} cannot be stored")


async def once(data: bytes) -> AsyncIterator[bytes]:
    """Bytes as a stream."""
    yield data


@contextmanager
def _mapped(what: str) -> Iterator[None]:
    """Raise the errors of the client as those of a provider."""
    try:
        yield
    except TimedOut as error:
        raise ProviderError(ErrorKind.TIMEOUT, what, why=error.what) from error
    except Unreachable as error:
        raise ProviderError(ErrorKind.UNAVAILABLE, what, why=error.what) from error
    except BadAccess as error:
        raise ProviderError(ErrorKind.UNAVAILABLE, what, why=f"{error.what}: {error.why}", fix=error.fix) from error


def _check(status: int, what: str) -> None:
    if 200 <= status < 300:
        return
    if status == protocol.CONFLICT:
        raise refusals.conflict(what, why="the file is in use or exists")
    kind = _KINDS.get(status, ErrorKind.UNAVAILABLE)
    raise ProviderError(kind, what, why=f"vSphere answers {status}")
