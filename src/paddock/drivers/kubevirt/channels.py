"""The ways of a disk's bytes into and out of the target: KubeVirt's exports, and CDI's uploads."""

import asyncio
import base64
import json
import secrets
import zlib
from collections.abc import AsyncIterator
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from paddock.client.access import Access, Credential, StaticCredential, bearer
from paddock.client.errors import Unreachable
from paddock.client.http.https import Https
from paddock.client.target import Target
from paddock.client.transport import ResponseStream, TransportRequest
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt.export import ExportLink, ExportSpec, VirtualMachineExport
from paddock.dialects.kubevirt.virtualmachine import VirtualMachine
from paddock.driverkit import refusals
from paddock.drivers.kubevirt import marks, targets
from paddock.drivers.kubevirt.cluster import R, TargetCluster, id_of
from paddock.meta.objects import ObjectMeta, owned_by
from paddock.meta.storage import TypedLocalReference

_HEADER = "x-kubevirt-export-token"
_PURPOSE = "export"
_RAW, _GZIP = "raw", "gzip"
_WINDOW, _PIECE = 16 + zlib.MAX_WBITS, 1 << 20
_READY_SECONDS, _SILENT_SECONDS = 600.0, 300.0
_UPLOAD = "/v1beta1/upload"


class DiskLink(msgspec.Struct, frozen=True):
    """The address that a disk is fetched from or sent to, with the means to open it."""

    url: str
    authority: str
    token: str
    # the bytes are compressed with gzip
    packed: bool = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


class DiskChannel(Protocol):
    """Carries bytes to and from the target."""

    def fetch(self, link: DiskLink) -> AsyncIterator[bytes]:
        """The bytes of an exported disk."""

    async def upload(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int) -> None:
        """Send a disk."""


class HttpChannel:
    """Carries them over HTTP."""

    async def fetch(self, link: DiskLink) -> AsyncIterator[bytes]:
        """The bytes of an exported disk."""
        parts = urlsplit(link.url)
        shown = StaticCredential(Credential(((_HEADER, link.token),)))
        http = Https(Access(server=f"{parts.scheme}://{parts.netloc}", authority=link.authority.encode(), credentials=shown))
        try:
            stream = await http.stream(TransportRequest(method="GET", target=parts.path, accept="*/*", seconds=_SILENT_SECONDS))
            if stream.status != 200:
                raise refusals.retry_later(f"the target answers {stream.status} to the download of an export")
            chunks = _read(stream)
            async for chunk in _unpacked(chunks) if link.packed else chunks:
                yield chunk
        finally:
            await http.close()

    async def upload(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int) -> None:
        """Send a disk."""
        parts = urlsplit(link.url)
        shown = StaticCredential(bearer(link.token))
        http = Https(Access(server=f"{parts.scheme}://{parts.netloc}", authority=link.authority.encode(), credentials=shown))
        try:
            ask = TransportRequest(
                method="POST", target=parts.path, content_type="application/octet-stream", accept="*/*", seconds=_SILENT_SECONDS
            )
            answer = await http.send_stream(ask, chunks, length)
        finally:
            await http.close()
        if not 200 <= answer.status < 300:
            why = answer.body[:300].decode(errors="replace")
            kind = ErrorKind.INVALID_SPEC if answer.status == 400 else ErrorKind.UNAVAILABLE
            raise ProviderError(kind, f"the target answers {answer.status} to the upload", why=why)


async def _read(stream: ResponseStream) -> AsyncIterator[bytes]:
    try:
        while True:
            async with asyncio.timeout(_SILENT_SECONDS):
                chunk = await stream.read()
            if not chunk:
                return
            yield chunk
    except TimeoutError:
        raise Unreachable("the target sends nothing of the export any more", sent=True) from None
    finally:
        stream.close()


async def _unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Unpack a stream in pieces of bounded size: little can stand for much."""
    press = zlib.decompressobj(_WINDOW)
    try:
        async for chunk in chunks:
            left = chunk
            while left or press.unconsumed_tail:
                piece = press.decompress(press.unconsumed_tail or left, _PIECE)
                left = b""
                if piece:
                    yield piece
                elif not press.unconsumed_tail:
                    break
    except zlib.error as error:
        raise refusals.retry_later("the target's export is damaged on its way") from error
    if not press.eof:
        raise Unreachable("the target ended the export too early", sent=True)


class TargetExports:
    """Makes exports at the target: one for each transfer, which ends with it."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def open(self, machine: VirtualMachine, source: TypedLocalReference, volume: str, name: str) -> DiskLink:
        """Make an export and wait until a disk can be fetched. `volume` is the disk's name in the export."""
        token = secrets.token_urlsafe(24)
        await self.close(name)
        labels = {marks.PURPOSE: _PURPOSE}
        export = await self._cluster.ensure(
            targets.EXPORTS,
            VirtualMachineExport(
                apiVersion=targets.EXPORTS.api_version,
                kind=targets.EXPORTS.kind,
                metadata=ObjectMeta(name=name, namespace=self._cluster.namespace, labels=labels, ownerReferences=owned_by(machine)),
                spec=ExportSpec(source=source, tokenSecretRef=name, ttlDuration="24h"),
            ),
        )
        secret = Secret(
            apiVersion="v1",
            kind="Secret",
            metadata=ObjectMeta(name=name, namespace=self._cluster.namespace, labels=labels, ownerReferences=owned_by(export)),
            type="Opaque",
            data={"token": base64.b64encode(token.encode()).decode()},
        )
        await self._cluster.client.create(targets.SECRETS, secret, self._cluster.namespace)
        link = await self._ready(name)
        found = next((each for each in link.volumes or () if each.name == volume), None)
        if found is None and len(link.volumes or ()) == 1:
            found = (link.volumes or [])[0]
        urls = {each.format: each.url for each in (found.formats if found is not None else None) or ()}
        # Most of a disk is holes, which take no time when they are compressed.
        chosen = _GZIP if _GZIP in urls else _RAW
        if chosen not in urls:
            raise refusals.not_supported(f"the disk {volume} cannot be exported", why="the target offers it in no raw format")
        return DiskLink(urls[chosen], link.cert, token, chosen == _GZIP)

    async def _ready(self, name: str) -> ExportLink:
        end = asyncio.get_running_loop().time() + _READY_SECONDS
        while True:
            found = await self._cluster.find(targets.EXPORTS, name)
            if found is None:
                raise refusals.retry_later("the export is gone")
            status = found.status
            links = status.links if status is not None else None
            link = (links.internal or links.external) if links is not None else None
            if status is not None and status.phase == "Ready" and link is not None:
                return link
            told = next((each.message for each in (status.conditions if status is not None else None) or () if each.message), "")
            if asyncio.get_running_loop().time() > end:
                raise refusals.conflict("the disk cannot be exported now", why=told or "", fix="power the machine off, or name a snapshot")
            await asyncio.sleep(self._cluster.settings.poll_seconds)

    async def close(self, name: str) -> None:
        """Delete an export with its token."""
        await self._delete(targets.EXPORTS, name)
        await self._delete(targets.SECRETS, name)

    async def _delete(self, target: Target[R], name: str) -> None:
        found = await self._cluster.find(target, name)
        if found is not None and (found.metadata.labels or {}).get(marks.PURPOSE) == _PURPOSE:
            await self._cluster.delete(target, id_of(found))


class TargetUploads:
    """Finds where to upload, and gets tokens for it."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def open(self, claim: str) -> DiskLink:
        """The address for an upload into a claim, and a token for it."""
        config = json.loads(await self._cluster.client.request("GET", "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config"))
        status = config.get("status") or {}
        address = str(status.get("uploadProxyURL") or "")
        if not address:
            why = "CDIConfig names no uploadProxyURL"
            raise refusals.not_supported("disks cannot be uploaded", why=why, fix="set uploadProxyURLOverride in the CDI object")
        if "://" not in address:
            address = f"https://{address}"
        path = f"/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/{self._cluster.namespace}/uploadtokenrequests"
        body = {
            "apiVersion": "upload.cdi.kubevirt.io/v1beta1",
            "kind": "UploadTokenRequest",
            "metadata": {"name": claim, "namespace": self._cluster.namespace},
            "spec": {"pvcName": claim},
        }
        answer = json.loads(await self._cluster.client.request("POST", path, body=json.dumps(body).encode()))
        token = str((answer.get("status") or {}).get("token") or "")
        if not token:
            raise refusals.retry_later("the target gives no token for an upload")
        return DiskLink(f"{address.rstrip('/')}{_UPLOAD}", str(status.get("uploadProxyCA") or ""), token)
