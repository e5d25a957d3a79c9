"""The header of an image, read by our own code.

No other program opens an image before it passed here. An image is refused when it refers to any other file, when it is
encrypted, and when its tables do not fit into the file: everything that a program could be led by is a number or name in the header.
"""

from collections.abc import Callable
from pathlib import Path

from paddock.base.images import qcow2, virtualdisks, vmdk
from paddock.base.images.facts import ImageBytes, ImageFacts
from paddock.base.images.formats import Disk


def inspect(path: Path, format: Disk, check: Callable[[], None] = lambda: None) -> ImageFacts:
    """Read the header of a file of this format; refuse what may not be opened. `check` runs at each table."""
    data = ImageBytes(path, check)
    try:
        match format:
            case "raw":
                return ImageFacts("raw", -(-data.size // 512) * 512, layerable=True)
            case "qcow2":
                return qcow2.inspect(data)
            case "vmdk":
                return vmdk.inspect(data)
            case "vdi":
                return virtualdisks.inspect_vdi(data)
            case "vpc":
                return virtualdisks.inspect_vpc(data)
            case "vhdx":
                return virtualdisks.inspect_vhdx(data)
    finally:
        data.close()
