"""Images for new machines: the catalogue's, and those of this host if the server is on it."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.app.running import localimages
from paddock.app.running.localimages import TINY, LocalImages
from paddock.base.errors import Terminal
from paddock.base.images import catalogue
from paddock.base.images.errors import ImageRefused
from paddock.base.images.library import ImageRecord
from paddock.base.images.registry import host_architecture
from paddock.cli.console import Console
from paddock.cli.progress import ProgressBar
from paddock.fleet.creation.imagewords import ImageWord
from paddock.web.answers.editing import WebCatalogImage
from paddock.web.images import WebImageAddress, WebLibraryImage

_TINY_MEMORY, _TINY_BYTES = "192Mi", 192 << 20
# name without its version -> what people call it, and the user that its cloud-init makes
_SYSTEMS: Mapping[str, tuple[str, str]] = {
    "almalinux": ("AlmaLinux", "almalinux"),
    "arch": ("Arch Linux", "arch"),
    "centos-stream": ("CentOS Stream", "cloud-user"),
    "cirros": ("CirrOS", "cirros"),
    "debian": ("Debian", "debian"),
    "fedora": ("Fedora", "fedora"),
    "opensuse-leap": ("openSUSE Leap", "opensuse"),
    "rocky": ("Rocky Linux", "rocky"),
    TINY: ("Tiny Linux", "root"),
    "ubuntu": ("Ubuntu", "ubuntu"),
}


class HostImages:
    """The images that a server can start from. `root` is the directory of the server, if that is on this host."""

    def __init__(self, server: str, root: Path) -> None:
        self._server = server
        self._root = root

    async def catalog(self) -> list[WebCatalogImage]:
        """Return all images that have a name, those of this host first."""
        return await asyncio.to_thread(self._catalog)

    async def library(self) -> list[WebLibraryImage]:
        """Return the images of the server's library, the newest first."""
        return await asyncio.to_thread(self._records)

    def _records(self) -> list[WebLibraryImage]:
        images = self._images()
        try:
            found = images.records() if images is not None else []
        except (Terminal, OSError):
            # A library that belongs to another user.
            return []
        return [_library_image(each) for each in sorted(found, key=lambda each: -each.created)]

    async def names(self) -> tuple[Collection[str], Collection[str]]:
        """Return the names that need no network, and those of the catalogue."""
        images = self._images()
        return (await asyncio.to_thread(_names, images) if images is not None else ()), catalogue.KNOWN

    async def provide(self, image: ImageWord) -> WebImageAddress:
        """Return the address of an image; what is only on this host is put into the library of the server first."""
        images = self._images() or LocalImages(None)
        # A quiet bar prints nothing.
        with ProgressBar(Console(), quiet=True) as bar:
            found = await asyncio.to_thread(images.provide, image, bar)
        size = localimages.disk_size(1 if image.text == TINY else found.size)
        return WebImageAddress(address=found.address, disk=size, memory=_TINY_MEMORY if image.text == TINY else "")

    def _images(self) -> LocalImages | None:
        """Return the images of this host; None if the server is elsewhere, or its directory is not known."""
        found = process.find(DataPaths(self._root))
        if found is not None and found.address.rstrip("/") == self._server.rstrip("/"):
            return LocalImages(self._root)
        root = localimages.directory_of(self._server, None)
        return LocalImages(root) if root is not None else None

    def _catalog(self) -> list[WebCatalogImage]:
        images = self._images()
        there = _names(images) if images is not None else []
        return [_entry(name, images if name in there else None) for name in dict.fromkeys((*there, *sorted(catalogue.KNOWN)))]


def _names(images: LocalImages) -> list[str]:
    """Return the names of this host's images; none for a library that belongs to another user, who alone can add to it."""
    try:
        return images.names()
    except (Terminal, OSError):
        return []


def _library_image(record: ImageRecord) -> WebLibraryImage:
    # What stands behind a question mark may be a credential.
    source = next(iter(record.sources), "").partition("?")[0]
    image = record.image
    name = source.rstrip("/").rpartition("/")[2] or f"sha256:{image.digest[:12]}"
    return WebLibraryImage(digest=image.digest, name=name, source=source, size=image.virtual_size, created=record.created)


def _entry(name: str, images: LocalImages | None) -> WebCatalogImage:
    system = next((each for each in _SYSTEMS if name == each or name.startswith(f"{each}-")), name)
    title, user = _SYSTEMS.get(system, (name, ""))
    address, missing, size = "", "", -1
    if images is not None:
        known = _known(images, name)
        size = known if known else -1
    else:
        try:
            address = catalogue.address(name, host_architecture())
        except ImageRefused as error:
            missing = error.what
    return WebCatalogImage(
        id=name,
        name=title,
        version=name.removeprefix(system).lstrip("-"),
        os=system,
        arch=host_architecture(),
        address=address,
        size=size,
        min_disk=max(size, 0),
        min_memory=_TINY_BYTES if name == TINY else 0,
        user=user,
        local=images is not None,
        missing=missing,
    )


def _known(images: LocalImages, name: str) -> int:
    try:
        found = images.image(name)
    except (Terminal, OSError):
        # The library belongs to another user: its images work all the same.
        return 0
    return found.virtual_size if found is not None else 0
