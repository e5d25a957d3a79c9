"""Images to start from, as the program around the console knows them."""

from collections.abc import Collection
from typing import Protocol

import msgspec

from paddock.base.errors import Terminal
from paddock.fleet.creation.imagewords import ImageWord
from paddock.web.answers.editing import WebCatalogImage


class WebImageAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address that manifests name, and what the image needs; 0 and empty for what is not known."""

    address: str
    disk: str = ""
    memory: str = ""


class WebLibraryImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the library of the host. `created` is in seconds since the epoch."""

    digest: str
    name: str
    source: str
    size: int
    created: float


class WebImageSource(Protocol):
    """Images by name."""

    async def library(self) -> list[WebLibraryImage]:
        """Return the images that the host has; none for a library that cannot be read from here."""

    async def catalog(self) -> list[WebCatalogImage]:
        """Return all images that have a name."""

    async def names(self) -> tuple[Collection[str], Collection[str]]:
        """Return the names that need no network, and those of the catalogue."""

    async def provide(self, image: ImageWord) -> WebImageAddress:
        """Return the address of an image. Raises `Terminal` for one that the server cannot reach."""


class NoImages:
    """The images of a console that runs away from its server: none has a name, and addresses work."""

    async def library(self) -> list[WebLibraryImage]:
        return []

    async def catalog(self) -> list[WebCatalogImage]:
        return []

    async def names(self) -> tuple[Collection[str], Collection[str]]:
        return (), ()

    async def provide(self, image: ImageWord) -> WebImageAddress:
        """Return an address as it is."""
        if image.kind not in ("url", "registry"):
            raise Terminal(f"there is no image {image.text}", fix="name an http(s) URL or a container image")
        return WebImageAddress(address=image.text)
