"""Preparing images: each content is fetched once, into a directory of its own with a raw disk, and machines copy it.

An image has its directory when it is complete. Its name ends in a sum of its source, so another content is another image.
"""

import asyncio
import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import msgspec

from paddock.base import names
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.payloads import ImagePayload
from paddock_drivers.firecracker import files
from paddock_drivers.firecracker.records import KeptImage
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.firecracker.work import WorkBoard
from paddock_drivers.kit import downloads, foreign, refusals
from paddock_drivers.kit.downloads import DownloadOrder
from paddock_drivers.kit.progress import DONE, TaskProgress, failed

IMAGE = "image"
_NO_CREDENTIALS = "the manager sends no client certificates"
_OTHER_CREDENTIALS = "use basicAuth, bearer or headers"
_HEAD = 512
# Packed files would be taken for raw disks.
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"PK\x03\x04": "zip"}
_SUFFIXES = {".qcow2": "qcow2", ".vmdk": "vmdk", ".vdi": "vdi", ".vhd": "vhd", ".vhdx": "vhdx"}
_BLOCKS = ("http", "libvirt")


class FetchedImage(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of an image."""

    url: str
    format: str = ""
    checksum: str = ""
    checksum_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    # the checksum is compared
    checked: bool = True

    def __repr__(self) -> str:
        return "FetchedImage(<hidden>)"

    @property
    def digest(self) -> str:
        """The mark that tells its content from others."""
        parts = (self.url, self.format, self.checksum if self.checked else "", self.checksum_type)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class ImageIntake:
    """Prepares images, and deletes them."""

    def __init__(self, store: MicroVmStore, settings: FirecrackerSettings, board: WorkBoard) -> None:
        self._store = store
        self._settings = settings
        self._board = board

    async def prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Fetch an image, or answer with the one that is there."""
        source = _source(payloads.decode_manifest(request.image_json))
        if request.target_name and not names.is_subdomain(request.target_name):
            raise refusals.invalid("the image's name is none", fix="use lower-case letters, digits, '.' and '-'")
        name = f"{(request.target_name or 'image')[:50].rstrip('.-')}-{source.digest[:10]}"
        task = await self._board.run(f"{IMAGE}:{name}", lambda: self._fetch(name, source))
        return m.ImagePrepareResponse(task=task, prepared_image_id=name, prepared_image_path=name)

    async def fetched(self, image: ImagePayload) -> str:
        """Return the image of a create that has an address and no preparation."""
        given = FetchedImage(url=image.url, format=image.format, checksum=image.checksum, checksum_type=image.checksum_type)
        source = _checked(given)
        name = f"url-{source.digest[:16]}"
        if await self._board.run(f"{IMAGE}:{name}", lambda: self._fetch(name, source)) is not None:
            raise refusals.retry_later("the image is being fetched")
        return name

    async def _fetch(self, name: str, source: FetchedImage) -> None:
        target = self._store.images / name
        if (target / "image.json").exists():
            return
        new = self._store.images / f".new-{secrets.token_hex(6)}"
        with files.failures("make an image"):
            (new / "download").mkdir(parents=True, mode=0o711)
        try:
            disk = await self._disk(new, source)
            sums = downloads.checksum(source.checksum, source.checksum_type) if source.checked else None
            record = KeptImage(name=name, size=disk.stat().st_size, checksum=":".join(sums) if sums else "", prepared=True)
            files.write(new / "image.json", record)
            with files.failures("make an image"):
                # One that somebody deleted in part makes room.
                await asyncio.to_thread(files.discard, target)
                os.rename(new, target)
        finally:
            await asyncio.to_thread(shutil.rmtree, new, True)

    async def _disk(self, new: Path, source: FetchedImage) -> Path:
        order = DownloadOrder(
            url=source.url,
            headers=source.headers,
            checksum=downloads.checksum(source.checksum, source.checksum_type) if source.checked else None,
            allowed=self._settings.sources,
        )
        with foreign.mapped():
            path = await downloads.fetch(order, new / "download")
            with open(path, "rb") as file:
                head = file.read(_HEAD)
        packed = next((name for start, name in _PACKED.items() if head.startswith(start)), "")
        if packed:
            raise refusals.not_supported(f"the image is packed with {packed}", fix="unpack it before it is served")
        # What the file is counts, and not what anybody calls it: a raw disk that begins like a qcow2 is refused by no one but here.
        said, found = source.format, foreign.recognized(head)
        if said and said != found and not (found == "raw" and said in ("vdi", "vhd", "vpc")):
            raise refusals.invalid(f"the image is no {said[:16]}", why=f"its first bytes are those of {found}")
        disk = new / "disk.raw"
        await foreign.unpack(path, said or found, disk)
        disk.chmod(0o600)
        await asyncio.to_thread(shutil.rmtree, new / "download", True)
        return disk

    async def delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image, or an imported disk that no machine has. Machines have copies, so they stay whole."""
        name = request.image_id or request.image_path
        if not names.is_subdomain(name):
            raise refusals.invalid("no image is named", fix="send the id or the path that ImagePrepare answered with")
        place = self._store.images / name
        record = files.read(place / "image.json", KeptImage)
        if (record is None and (place / "disk.raw").exists()) or (record is not None and not record.prepared):
            raise refusals.conflict(f"image {name} was put there by an administrator, and stays")
        if record is not None:
            await asyncio.to_thread(files.discarded, place)
            return m.TaskResponse()
        with files.failures("delete a disk"):
            for suffix in ("json", "raw"):
                (self._store.disks / f"{name}.{suffix}").unlink(missing_ok=True)
        return m.TaskResponse()

    def status(self, name: str) -> TaskProgress:
        """Judge the preparation of an image that this process does not know."""
        if names.is_subdomain(name) and (self._store.images / name / "image.json").exists():
            return DONE
        return failed("the image was not prepared to its end; prepare it again")


def _source(spec: dict[str, Any]) -> FetchedImage:
    """The source of an image; raises InvalidSpec and NotSupported."""
    given = spec.get("source")
    blocks = given if isinstance(given, dict) else {}
    block = next((blocks[name] for name in _BLOCKS if isinstance(blocks.get(name), dict) and blocks[name].get("url")), None)
    if block is None:
        known = ", ".join(sorted(str(name)[:32] for name in blocks)) or "none"
        raise refusals.not_supported("the image has no address", why=f"its sources are {known}", fix="name source.http.url")
    if block.get("authentication"):
        raise refusals.not_supported(
            "the image cannot be fetched with source.http.authentication", why=_NO_CREDENTIALS, fix=_OTHER_CREDENTIALS
        )
    headers = block.get("headers")
    prepare = spec.get("prepare")
    texts = {name: str(block.get(name) or "") for name in ("url", "format", "checksum", "checksumType")}
    if any(block.get(name) is not None and not isinstance(block[name], str) for name in texts):
        raise refusals.invalid("the image's source has a member that is no text")
    return _checked(
        FetchedImage(
            url=texts["url"],
            format=texts["format"] or _format_of(texts["url"]),
            checksum=texts["checksum"],
            checksum_type=texts["checksumType"],
            headers=tuple((str(name), str(value)) for name, value in headers.items()) if isinstance(headers, dict) else (),
            checked=not isinstance(prepare, dict) or prepare.get("validateChecksum") is not False,
        )
    )


def _checked(source: FetchedImage) -> FetchedImage:
    if not source.url.startswith(("http://", "https://")):
        raise refusals.not_supported("the image's address is out of reach", fix="serve it over http or https")
    if source.format and source.format not in foreign.FORMATS:
        raise refusals.not_supported(f"images of format {source.format[:16]!r} cannot be read", fix=f"use {', '.join(foreign.FORMATS)}")
    downloads.checksum(source.checksum, source.checksum_type)
    return source


def _format_of(url: str) -> str:
    path = url.partition("?")[0].partition("#")[0]
    return next((name for suffix, name in _SUFFIXES.items() if path.endswith(suffix)), "")
