"""Shared parts of the parsers of headers: bytes of a file that are there or are an error, and the facts in them."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paddock.base import reasons
from paddock.base.images.errors import ImageRefused
from paddock.base.images.formats import Disk


@dataclass(frozen=True)
class ImageFacts:
    """The facts about an image that may be opened."""

    format: Disk
    virtual_size: int
    # as it is, it can be a layer below others
    layerable: bool = False
    compressed: bool = False


class ImageBytes:
    """A file that parsers look into. What is not there is an error, not a short answer. `check` raises when the work shall end."""

    def __init__(self, path: Path, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by `close`
        self.size = self._file.seek(0, 2)

    def at(self, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        self._check()
        self.holds(offset, length)
        self._file.seek(offset)
        data = b""
        while len(data) < length and (more := self._file.read(length - len(data))):
            data += more
        if len(data) < length:
            raise truncated()
        return data

    def holds(self, offset: int, length: int) -> None:
        """Refuse a file that ends before these bytes do. Nothing is read."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise truncated()

    def numbers(self, layout: str, offset: int) -> tuple[int, ...]:
        """Numbers in the layout of `struct`."""
        return struct.unpack(layout, self.at(offset, struct.calcsize(layout)))

    def close(self) -> None:
        self._file.close()


def truncated() -> ImageRefused:
    """The file ends before what its header promises."""
    return ImageRefused("Truncated", "the image is truncated: it ends before the end of its own tables", fix="download or export it again")


def oversized(text: str) -> ImageRefused:
    """The image says that its disk is larger than it can be."""
    return ImageRefused("TooLarge", text, reason=reasons.IMAGE_LIMIT)


def unsafe(what: str) -> ImageRefused:
    """It would read other files."""
    return ImageRefused("Unsafe", f"the image {what}", fix="flatten it into one file: qemu-img convert -O qcow2 old.img new.qcow2")


def damaged(what: str) -> ImageRefused:
    """Its header contradicts itself."""
    return ImageRefused("NotAnImage", f"the header of the image is damaged: {what}")
