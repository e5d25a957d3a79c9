"""Disk images on their way through this host: fetched or received, checked by their bytes, and written anew as one plain file.

Nobody's word about an image is believed. Its format is found by our own code, and one that refers to any other file, or is encrypted, is
refused before another program opens it. What leaves here is raw, or qcow2 of version 3 without a snapshot, a layer or a name inside.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import msgspec

from paddock.base.images.errors import Code, ImageError
from paddock.base.images.library import Image, ImageLibrary
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import Http, RegistryImage, Upload
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import conversion, refusals
from paddock_drivers.kit.conversion import OpenLayer

_FOLDER = "paddock-images"
_KINDS: dict[Code, ErrorKind] = {
    "NotFound": ErrorKind.NOT_FOUND,
    "NotAuthorized": ErrorKind.UNAUTHORIZED,
    "Unsupported": ErrorKind.NOT_SUPPORTED,
    "Encrypted": ErrorKind.NOT_SUPPORTED,
    "NoSpace": ErrorKind.UNAVAILABLE,
    "TimedOut": ErrorKind.TIMEOUT,
}


class WebImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image at an http address, or in a registry with a login. The checksum is ALGORITHM:DIGITS."""

    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    checksum: str = ""
    reference: str = ""
    username: str = ""
    password: str = ""
    # a document of the type .dockerconfigjson
    docker_config: str = ""

    def __repr__(self) -> str:
        # Addresses and headers may hold credentials.
        return "WebImage(<hidden>)"


class PlainDisk(msgspec.Struct, frozen=True):
    """A disk in one open file that refers to nothing. `digest` is the SHA-256 of what was fetched."""

    file: IO[bytes]
    format: str
    size: int
    digest: str


class DiskImages:
    """Images that pass through a directory of this host. A download that is cut off goes on where it ended."""

    def __init__(self, scratch: Path | None, allow: tuple[str, ...] = ()) -> None:
        self._scratch = scratch
        self._settings = ImageSettings(allow=allow)
        self._library: ImageLibrary | None = None

    async def close(self) -> None:
        """End what is under way."""
        if self._library is not None:
            await self._library.close()

    @asynccontextmanager
    async def fetched(self, image: WebImage, format: str, *, compress: bool = False) -> AsyncIterator[PlainDisk]:
        """Fetch an image and have it as a plain disk of this format. Raises `ProviderError`."""
        configs = (image.docker_config,) if image.docker_config else ()
        source: Http | RegistryImage = RegistryImage(
            image.reference, username=image.username, password=image.password, docker_configs=configs
        )
        if image.url:
            source = Http(image.url, secret_headers=image.headers, checksum=image.checksum)
        async with self._plain(source, format, compress and format == conversion.QCOW2) as disk:
            yield disk

    @asynccontextmanager
    async def received(self, chunks: AsyncIterator[bytes], size: int, format: str) -> AsyncIterator[PlainDisk]:
        """Take the bytes of an image in and have it as a plain disk of this format. Raises `ProviderError`."""
        async with self._plain(Upload(chunks, size=size), format, False) as disk:
            yield disk

    @asynccontextmanager
    async def _plain(self, source: Http | RegistryImage | Upload, format: str, compress: bool) -> AsyncIterator[PlainDisk]:
        library = await self._opened()
        image = await _image(library, source)
        try:
            with tempfile.TemporaryFile(dir=self._scratch) as made:
                try:
                    kept = image.path.open("rb")
                except FileNotFoundError:
                    # Another import of the same content has ended, and removed it.
                    raise refusals.retry_later("the image is on its way a second time") from None
                with kept:
                    await conversion.flatten((OpenLayer(kept.fileno(), image.format),), made.fileno(), format, compress=compress)
                yield PlainDisk(made, format, image.virtual_size, image.digest)
        finally:
            # It was on its way only; what needs it next time has it at the hypervisor.
            await asyncio.to_thread(library.remove, image.digest)

    async def _opened(self) -> ImageLibrary:
        if self._library is None:
            folder = Path(tempfile.gettempdir()) if self._scratch is None else self._scratch
            self._library = await asyncio.to_thread(ImageLibrary, folder / _FOLDER, self._settings)
        return self._library


async def _image(library: ImageLibrary, source: Http | RegistryImage | Upload) -> Image:
    try:
        return await library.fetch(source)
    except ImageError as error:
        kind = _KINDS.get(error.code, ErrorKind.INVALID_SPEC if error.fatal else ErrorKind.UNAVAILABLE)
        raise ProviderError(kind, error.what, why=error.why, fix=error.fix, reason=error.reason_code) from error
