"""Links to disks: KubeVirt's exports to fetch from, and CDI's uploads to send to. The provider's driver and `paddock move` use them.

Nothing here knows a provider's errors: a command that imports this module knows none.
"""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.kubernetes.client.access import Access, Credential, CredentialProvider, StaticCredential, bearer
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest

HEADER = "x-kubevirt-export-token"
RAW, GZIP = "raw", "gzip"
_WINDOW, _PIECE = 16 + zlib.MAX_WBITS, 1 << 20
_SILENT_SECONDS = 300.0
_UPLOAD = "/v1beta1/upload"
_CONFIG = "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config"


class LinkKind(msgspec.Struct, frozen=True):
    """The server behind a link, and where the authority of its certificate is configured, both for errors."""

    server: str
    authority: str


EXPORT = LinkKind("the export server", "the field cert in status.links of the VirtualMachineExport")
UPLOAD = LinkKind("the upload proxy", "the configuration of CDI")


class DiskLink(msgspec.Struct, frozen=True):
    """The address that a disk is fetched from or sent to, with the means to open it."""

    url: str
    authority: str
    token: str
    # the bytes are compressed with gzip
    packed: bool = False
    # the address of the same disk without compression, which knows its length; empty if there is none
    raw_url: str = ""
    # checked in place of the address's host
    tls_name: str = ""
    kind: LinkKind = EXPORT
    # the API server that the disk belongs to, as errors name it
    owner: str = ""

    @property
    def title(self) -> str:
        """Return how errors name the server behind the link."""
        place = f"{self.kind.server} {self.tls_name or urlsplit(self.url).netloc}"
        return f"{place} of {self.owner}" if self.owner else place

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


class UploadPlace(NamedTuple):
    """The address of an upload proxy, and its authority."""

    address: str
    authority: str


class LinkRefused(Transient):
    """A server answered a download or an upload with an error. `why` is its answer."""

    def __init__(self, link: DiskLink, status: int, verb: str, text: str = "") -> None:
        super().__init__(f"{link.title} answers {status} to the {verb} of a disk", why=text)
        self.status = status


class NoUploads(Terminal):
    """A cluster takes no uploads."""


class NoToken(Transient):
    """A server gave no token for an upload."""


class DamagedExport(Transient):
    """A compressed export cannot be unpacked."""


class LinkChannel(Protocol):
    """Carries the bytes of disks."""

    async def length(self, link: DiskLink) -> int | None:
        """The length of the raw disk; None if the server does not say."""

    def receive(self, link: DiskLink) -> AsyncIterator[bytes]:
        """The bytes of an exported disk, as they are sent."""

    async def send(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int | None, seconds: float = _SILENT_SECONDS) -> None:
        """Send a disk; without a length, in chunks. `seconds` are for the answer."""


class HttpLinkChannel:
    async def length(self, link: DiskLink) -> int | None:
        """The length of the raw disk; None if the server does not say."""
        if not link.raw_url:
            return None
        parts, http = _connected(msgspec.structs.replace(link, url=link.raw_url), _token(link))
        try:
            stream = await http.stream(TransportRequest(method="HEAD", target=parts, accept="*/*", seconds=_SILENT_SECONDS))
            stream.close()
        finally:
            await http.close()
        said = stream.headers.get("content-length", "")
        # `paddock up` does not know the length before it has made the disk whole, and says 0.
        return (int(said) or None) if stream.status == 200 and said.isdecimal() else None

    async def receive(self, link: DiskLink) -> AsyncIterator[bytes]:
        """The bytes of an exported disk, as they are sent."""
        parts, http = _connected(link, _token(link))
        try:
            stream = await http.stream(TransportRequest(method="GET", target=parts, accept="*/*", seconds=_SILENT_SECONDS))
            if stream.status != 200:
                stream.close()
                raise LinkRefused(link, stream.status, "download")
            async for chunk in read(stream, link.title):
                yield chunk
        finally:
            await http.close()

    async def send(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int | None, seconds: float = _SILENT_SECONDS) -> None:
        """Send a disk; without a length, in chunks."""
        parts, http = _connected(link, StaticCredential(bearer(link.token)))
        try:
            ask = TransportRequest(method="POST", target=parts, content_type="application/octet-stream", accept="*/*", seconds=seconds)
            answer = await http.send_stream(ask, chunks, length)
        finally:
            await http.close()
        if not 200 <= answer.status < 300:
            raise LinkRefused(link, answer.status, "upload", answer.body[:300].decode(errors="replace").strip())


def _token(link: DiskLink) -> CredentialProvider:
    return StaticCredential(Credential(((HEADER, link.token),)))


def _connected(link: DiskLink, shown: CredentialProvider) -> tuple[str, Https]:
    parts = urlsplit(link.url)
    access = Access(
        server=f"{parts.scheme}://{parts.netloc}",
        authority=link.authority.encode(),
        authority_source=link.kind.authority,
        tls_name=link.tls_name,
        credentials=shown,
        title=link.title,
    )
    return parts.path, Https(access)


async def read(stream: ResponseStream, server: str = "the server") -> AsyncIterator[bytes]:
    """The bytes of an answer. Raises `Unreachable` when the server falls silent."""
    try:
        while True:
            async with asyncio.timeout(_SILENT_SECONDS):
                chunk = await stream.read()
            if not chunk:
                return
            yield chunk
    except TimeoutError:
        raise Unreachable(f"{server} stopped sending the export", sent=True) from None
    finally:
        stream.close()


class Unpacker:
    """Unpacks a gzip stream in pieces of bounded size: little can stand for much."""

    def __init__(self, server: str = "the server") -> None:
        self._server = server
        self._press = zlib.decompressobj(_WINDOW)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what is in the next bytes. Raises `DamagedExport`."""
        try:
            left = chunk
            while left or self._press.unconsumed_tail:
                piece = self._press.decompress(self._press.unconsumed_tail or left, _PIECE)
                left = b""
                if piece:
                    yield piece
                elif not self._press.unconsumed_tail:
                    return
        except zlib.error as error:
            raise DamagedExport("the export is damaged on its way", why=str(error)) from error

    def finish(self) -> None:
        """Raise `Unreachable` unless the stream has come to its end."""
        if not self._press.eof:
            raise Unreachable(f"{self._server} ended the export too early", sent=True)


async def unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    unpacker = Unpacker()
    async for chunk in chunks:
        for piece in unpacker.feed(chunk):
            yield piece
    unpacker.finish()


async def whole(chunks: AsyncIterator[bytes], length: int | None) -> AsyncIterator[bytes]:
    """A raw disk of this length. Raises `DamagedExport` at the end of one with another length.

    KubeVirt's export server ends a compressed disk that it could not read as if it were complete.
    """
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        yield chunk
    if length is not None and size != length:
        raise DamagedExport("the export ended too early", why=f"{size} of {length} bytes came")


def export_link(link: Mapping[str, Any], volume: str, token: str) -> DiskLink | None:
    """Return the link of a disk in `status.links.internal` or `external` of an export; None if it is offered in no raw format.

    Compressed is better: most of a disk is holes, which take no room then.
    """
    volumes = link.get("volumes") or []
    found = next((each for each in volumes if each.get("name") == volume), volumes[0] if len(volumes) == 1 else {})
    urls = {each.get("format"): str(each.get("url")) for each in found.get("formats") or ()}
    chosen = GZIP if GZIP in urls else RAW
    if chosen not in urls:
        return None
    return DiskLink(urls[chosen], str(link.get("cert") or ""), token, packed=chosen == GZIP, raw_url=urls.get(RAW, ""))


async def upload_link(client: Client, namespace: str, claim: str, upload_place: UploadPlace | None = None) -> DiskLink:
    """Return the link for an upload into a claim; without a place, CDI's configuration names it. Raises `NoUploads` and `NoToken`."""
    address, authority = upload_place or await upload_address(client)
    path = f"/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/{namespace}/uploadtokenrequests"
    body = {
        "apiVersion": "upload.cdi.kubevirt.io/v1beta1",
        "kind": "UploadTokenRequest",
        "metadata": {"name": claim, "namespace": namespace},
        "spec": {"pvcName": claim},
    }
    answer = json.loads(await client.request("POST", path, body=json.dumps(body).encode()))
    token = str((answer.get("status") or {}).get("token") or "")
    if not token:
        raise NoToken("the server gives no token for an upload")
    return DiskLink(f"{address}{_UPLOAD}", authority, token, kind=UPLOAD)


async def upload_address(client: Client) -> UploadPlace:
    """Return the address of the upload proxy and its authority. Raises `NoUploads`."""
    found = await configured_uploads(client)
    if not found.address:
        why = "CDIConfig names no uploadProxyURL"
        raise NoUploads("disks cannot be uploaded", why=why, fix="set uploadProxyURLOverride in the CDI object")
    return found


async def configured_uploads(client: Client) -> UploadPlace:
    """Return the upload proxy that CDI's configuration names; its address is empty if it names none."""
    status = json.loads(await client.request("GET", _CONFIG)).get("status") or {}
    address = str(status.get("uploadProxyURL") or "").rstrip("/")
    return UploadPlace(f"https://{address}" if address and "://" not in address else address, str(status.get("uploadProxyCA") or ""))


# What a link can raise besides the errors of a client.
ERRORS: tuple[type[PaddockError], ...] = (LinkRefused, NoUploads, NoToken, DamagedExport)
