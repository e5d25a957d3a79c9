"""The ways of a disk's bytes into and out of the target: KubeVirt's exports, and CDI's uploads."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Protocol

from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt import disklinks
from paddock.kubevirt.disklinks import DiskLink, HttpLinkChannel
from paddock.kubevirt.kinds.export import ExportLink, ExportSpec, VirtualMachineExport
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import marks, targets
from paddock_drivers.kubevirt.cluster import R, TargetCluster, id_of

_PURPOSE = "export"
_READY_SECONDS = 600.0


class DiskChannel(Protocol):
    """Carries bytes to and from the target."""

    def fetch(self, link: DiskLink) -> AsyncIterator[bytes]:
        """The bytes of an exported disk."""

    async def upload(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int) -> None: ...


class HttpChannel:
    def __init__(self) -> None:
        self._http = HttpLinkChannel()

    async def fetch(self, link: DiskLink) -> AsyncIterator[bytes]:
        """The bytes of an exported disk."""
        with _mapped():
            chunks = self._http.receive(link)
            raw = disklinks.unpacked(chunks) if link.packed else chunks
            async for chunk in disklinks.whole(raw, await self._http.length(link)):
                yield chunk

    async def upload(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int) -> None:
        with _mapped():
            await self._http.send(link, chunks, length)


@contextmanager
def _mapped() -> Iterator[None]:
    """Raise the errors of links as a `ProviderError`, and leave all others to the caller."""
    try:
        yield
    except disklinks.ERRORS as error:
        raise _of_link(error) from error


def _of_link(error: PaddockError) -> ProviderError:
    if isinstance(error, disklinks.LinkRefused):
        kind = ErrorKind.INVALID_SPEC if error.status == 400 else ErrorKind.UNAVAILABLE
        return ProviderError(kind, error.what, why=error.why)
    if isinstance(error, disklinks.NoUploads):
        return refusals.not_supported(error.what, why=error.why, fix=error.fix)
    return refusals.retry_later(error.what)


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
        found = disklinks.export_link(to_data(link), volume, token)
        if found is None:
            raise refusals.not_supported(f"the disk {volume} cannot be exported", why="the target offers it in no raw format")
        return found

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
            message = next((each.message for each in (status.conditions if status is not None else None) or () if each.message), "")
            if asyncio.get_running_loop().time() > end:
                raise refusals.conflict(
                    "the disk cannot be exported now", why=message or "", fix="power the machine off, or name a snapshot"
                )
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
        with _mapped():
            return await disklinks.upload_link(self._cluster.client, self._cluster.namespace, claim)
