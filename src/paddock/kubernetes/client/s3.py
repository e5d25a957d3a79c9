"""An object in an S3 bucket: fetched, stored in parts, deleted. Every request has its signature in its address (see `presigned`).

async with S3Object(place, keys, clock) as found:
    async for chunk in found.read(): ...
"""

import re
from collections.abc import AsyncIterator
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.kubernetes.client import presigned
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.errors import BadAccess, BadAnswer, Unreachable
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.presigned import S3Keys
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse

# What S3 takes: parts of 5 MiB at least but for the last one, and 10,000 of them.
PART = 16 << 20
_MOST_PARTS = 9_000
_SECONDS = 120.0
_MOST_XML = 1 << 20
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,64})</Code>")
_UPLOAD = re.compile(rb"<UploadId>([^<>]{1,1024})</UploadId>")
_XML = "application/xml"
_BINARY = "application/octet-stream"


class S3Refusal(PaddockError):
    """The bucket did not do it; `status` is that of its answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__("the bucket refused the request", why=reason, fix="check the bucket and the access key")
        self.status = status


class S3Place(msgspec.Struct, frozen=True, kw_only=True):
    """The address of an object."""

    bucket: str
    name: str
    # with a scheme, or without one for https; empty: Amazon's for the region
    endpoint: str = ""
    region: str = ""
    path_style: bool = False

    @property
    def url(self) -> str:
        """The address of the object."""
        endpoint = self.endpoint or f"https://s3.{self.region or 'us-east-1'}.amazonaws.com"
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise BadAccess("the endpoint of the bucket is no address", fix="write https://HOST:PORT")
        name = quote(self.name, safe="/-_.~")
        # A name with dots has no certificate as a host; most servers but Amazon's know paths alone.
        in_path = self.path_style or "." in self.bucket or not parts.hostname.endswith("amazonaws.com")
        host, path = (parts.netloc, f"/{self.bucket}/{name}") if in_path else (f"{self.bucket}.{parts.netloc}", f"/{name}")
        return f"{parts.scheme}://{host}{parts.path.rstrip('/')}{path}"


class S3Object:
    def __init__(self, s3_place: S3Place, keys: S3Keys, clock: Clock, *, part: int = PART) -> None:
        self._url = s3_place.url
        parts = urlsplit(self._url)
        self._keys = msgspec.structs.replace(keys, region=keys.region or s3_place.region)
        self._clock = clock
        self._part = part
        self._http = Https(Access(server=f"{parts.scheme}://{parts.netloc}", credentials=StaticCredential()))

    async def __aenter__(self) -> "S3Object":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    # --- the three things to do -----------------------------------------------------------------------------------------------

    async def open(self) -> tuple[int, AsyncIterator[bytes]]:
        """The size of the object, and its bytes. Raises `S3Refusal` for an answer other than the object."""
        stream = await self._http.stream(self._ask("GET"))
        if stream.status != 200:
            await _refuse(stream)
        length = stream.headers.get("content-length", "")
        if not length.isdecimal():
            stream.close()
            raise BadAnswer("the bucket's answer has no length")
        return int(length), _chunks(stream, int(length))

    async def write(self, chunks: AsyncIterator[bytes], size: int) -> None:
        """Store the object; `size` is how large it may become, to choose parts by. A broken upload leaves nothing."""
        part = max(self._part, -(-size // _MOST_PARTS))
        answer = await self._http.send(self._ask("POST", "uploads=", media=_XML))
        _check(answer)
        found = _UPLOAD.search(answer.body[:_MOST_XML])
        if found is None:
            raise BadAnswer("the bucket's answer has no UploadId")
        upload = quote(found[1].decode("latin-1"), safe="")
        try:
            tags = [await self._send(upload, number, body) async for number, body in _numbered(_sized(chunks, part))]
            items = "".join(f"<Part><PartNumber>{at}</PartNumber><ETag>{escape(tag)}</ETag></Part>" for at, tag in enumerate(tags, 1))
            body = f"<CompleteMultipartUpload>{items}</CompleteMultipartUpload>".encode()
            done = await self._http.send(self._ask("POST", f"uploadId={upload}", body, _XML))
            _check(done)
            if b"<Error>" in done.body[:_MOST_XML]:
                # S3 says 200 before it knows.
                raise _error(500, done.body)
        except BaseException:
            await self._abort(upload)
            raise

    async def delete(self) -> None:
        """Delete the object; one that is gone is deleted."""
        answer = await self._http.send(self._ask("DELETE"))
        if answer.status != 404:
            _check(answer)

    # --- requests -------------------------------------------------------------------------------------------------------------

    async def _send(self, upload: str, number: int, body: bytes) -> str:
        answer = await self._http.send(self._ask("PUT", f"partNumber={number}&uploadId={upload}", body))
        _check(answer)
        return answer.headers.get("etag", "")[:256]

    async def _abort(self, upload: str) -> None:
        try:
            await self._http.send(self._ask("DELETE", f"uploadId={upload}"))
        except Unreachable:
            # What an upload without an end holds, the bucket's own rules remove.
            return

    def _ask(self, method: str, query: str = "", body: bytes = b"", media: str = _BINARY) -> TransportRequest:
        address = f"{self._url}?{query}" if query else self._url
        parts = urlsplit(presigned.signed(method, address, self._keys, self._clock.seconds(), seconds=3600))
        return TransportRequest(
            method=method, target=f"{parts.path}?{parts.query}", body=body, content_type=media, accept="*/*", seconds=_SECONDS
        )


async def _chunks(stream: ResponseStream, length: int) -> AsyncIterator[bytes]:
    left = length
    try:
        while left and (chunk := await stream.read()):
            left -= len(chunk)
            if left < 0:
                raise BadAnswer("the bucket sent more than it announced")
            yield chunk
        if left:
            raise Unreachable("the bucket sent less than it announced", sent=True)
    finally:
        stream.close()


async def _sized(chunks: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """The same bytes in pieces of one size; at least one piece."""
    held, empty = bytearray(), True
    async for chunk in chunks:
        held += chunk
        while len(held) >= size:
            empty = False
            yield bytes(held[:size])
            del held[:size]
    if held or empty:
        yield bytes(held)


async def _numbered(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    number = 0
    async for piece in pieces:
        number += 1
        yield number, piece


async def _refuse(stream: ResponseStream) -> None:
    body = await stream.read()
    stream.close()
    raise _error(stream.status, body)


def _check(answer: TransportResponse) -> None:
    if not 200 <= answer.status < 300:
        raise _error(answer.status, answer.body)


def _error(status: int, body: bytes) -> S3Refusal:
    """The error of an answer. Of its text only the code is shown: the rest repeats what was signed."""
    found = _CODE.search(body[:_MOST_XML])
    return S3Refusal(status, found[1].decode() if found is not None else f"status {status}")
