"""What parsers of headers share: bytes of a file that are there or are an error, and what is found out of them."""

import struct
from dataclasses import dataclass
from pathlib import Path

from paddock.engine.images.errors import ImageRefused
from paddock.engine.images.formats import Disk


@dataclass(frozen=True)
class ImageFacts:
    """What is known of an image that may be opened."""

    format: Disk
    virtual_size: int
    # as it is, it can be a layer below others
    layerable: bool = False
    compressed: bool = False


class ImageBytes:
    """A file that parsers look into. What is not there is an error, not a short answer."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by `close`
        self.size = self._file.seek(0, 2)

    def at(self, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise truncated()
        self._file.seek(offset)
        data = b""
        while len(data) < length and (more := self._file.read(length - len(data))):
            data += more
        if len(data) < length:
            raise truncated()
        return data

    def numbers(self, layout: str, offset: int) -> tuple[int, ...]:
        """Numbers in the layout of `struct`."""
        return struct.unpack(layout, self.at(offset, struct.calcsize(layout)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def truncated() -> ImageRefused:
    """The file ends before what its header promises."""
    return ImageRefused("Truncated", "the image is truncated: it ends before the end of its own tables", fix="download or export it again")


def unsafe(what: str) -> ImageRefused:
    """It would read other files."""
    return ImageRefused("Unsafe", f"the image {what}", fix="flatten it into one file: qemu-img convert -O qcow2 old.img new.qcow2")


def damaged(what: str) -> ImageRefused:
    """Its header contradicts itself."""
    return ImageRefused("NotAnImage", f"the header of the image is damaged: {what}")
