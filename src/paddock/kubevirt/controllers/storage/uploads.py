"""Filling a claim with what somebody sends. The transfer is the sender's; it ends as every other does, with a volume or without."""

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Literal

from paddock.base.errors import Transient
from paddock.base.images.progress import Progress
from paddock.base.images.sources import Upload
from paddock.engine.storage import archives, errors
from paddock.engine.storage.errors import TooSmall, VolumeBroken
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, is_bound
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.controllers.storage.ports import ImageLibraryPort, VolumeStorePort
from paddock.kubevirt.controllers.storage.targets import POOL
from paddock.kubevirt.controllers.storage.transfers import Tell, Transfers
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.plan.storage import contents
from paddock.kubevirt.plan.storage.contents import VolumeContent

_SLACK_BYTES = 64 << 20
State = Literal["ready", "filled", "busy"] | str


class NotATarget(Transient):
    """The claim is not one that is uploaded to, or not now."""


class UploadTargets:
    """Knows which claims can be uploaded to, and does it."""

    def __init__(self, view: StorageView, running: Transfers, images: ImageLibraryPort, volumes: VolumeStorePort) -> None:
        self._view = view
        self._transfers = running
        self._images = images
        self._volumes = volumes

    def state(self, claim: Key, uid: str) -> State:
        """Return the state of an upload target: `ready`, `filled`, `busy`, or the reason why it is not ready."""
        found = self._view.claim(claim)
        if found is None or found.metadata.uid != uid:
            return "it is not there"
        try:
            if self._volumes.get(uid) is not None:
                return "filled"
        except VolumeBroken as error:
            return str(error)
        if self._view.was_filled(uid):
            return "its volume is lost"
        content = contents.of_claim(found, self._view.lookup)
        if not isinstance(content, VolumeContent) or content.kind != "upload":
            return "it is no target of an upload"
        if self._transfers.progress(uid).stage == "running":
            return "busy"
        return "ready" if is_bound(found) else "it is not bound yet"

    async def receive(self, key: Key, uid: str, chunks: AsyncIterator[bytes], length: int | None) -> None:
        """Fill the claim with what is sent. Raises what went wrong; the claim is ready for another upload then."""
        claim = self._view.claim(key)
        state = self.state(key, uid)
        if claim is None or state != "ready":
            raise NotATarget(f"the claim {key} is not ready for an upload", why=state)
        content = contents.of_claim(claim, self._view.lookup)
        assert isinstance(content, VolumeContent)
        found = self._view.storage_class(claim.spec.storageClassName if claim.spec is not None else None)
        pool = ((found.parameters if found is not None else None) or {}).get(POOL, "")

        async def work(tell: Tell) -> None:
            if content.archive:
                await self._unpack(claim, chunks, pool)
            else:
                await self._import(claim, content, (chunks, length), pool, tell)

        await self._transfers.run(uid, key, work)

    async def _import(
        self, claim: PersistentVolumeClaim, content: VolumeContent, sent: tuple[AsyncIterator[bytes], int | None], pool: str, tell: Tell
    ) -> None:
        size, uid = claimsizes.guest_size(claim), claim.metadata.uid or ""

        def report(progress: Progress) -> None:
            tell(progress.fraction)

        chunks, length = sent
        image = await self._images.fetch(Upload(_bounded(chunks, size), length), report, limit=size)
        preallocate = content.preallocate or bool(self._view.config.spec.preallocation)
        await self._volumes.create(uid, size, base=image, preallocate=preallocate, pool=pool)

    async def _unpack(self, claim: PersistentVolumeClaim, chunks: AsyncIterator[bytes], pool: str) -> None:
        """An archive is kept beside the volume until it is whole, and then unpacked."""
        size, uid = claimsizes.guest_size(claim), claim.metadata.uid or ""
        spool = self._volumes.spool(uid)
        try:
            await _write(spool, chunks, size)
            await self._volumes.create_files(uid, size, partial(_unpack, spool, size), pool)
        finally:
            await asyncio.to_thread(spool.unlink, True)


async def _bounded(chunks: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """An image in a format of its own may be a little longer than the disk that is in it."""
    largest, sent = size + size // 8 + _SLACK_BYTES, 0
    async for piece in chunks:
        sent += len(piece)
        if sent > largest:
            raise TooSmall(
                "the image does not fit into the volume", why=f"it is longer than {largest} bytes", fix="A larger PVC is required"
            )
        yield piece


async def _write(path: Path, chunks: AsyncIterator[bytes], largest: int) -> None:
    with errors.spoken("cannot keep an archive", path.parent):
        number = await asyncio.to_thread(os.open, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    written = 0
    try:
        async for piece in chunks:
            written += len(piece)
            if written > largest:
                raise TooSmall(
                    "the archive does not fit into the volume", why=f"it is longer than {largest} bytes", fix="A larger PVC is required"
                )
            with errors.spoken("cannot keep an archive", path.parent):
                await asyncio.to_thread(os.write, number, piece)
    finally:
        os.close(number)


def _unpack(archive: Path, largest: int, directory: Path) -> None:
    archives.unpack(archive, directory, largest)
