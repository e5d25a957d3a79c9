"""The public view of a volume, a snapshot and the space for them."""

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from paddock.base import quantity
from paddock.base.disksizes import LARGEST
from paddock.engine.machine.config import DiskLayer, Format
from paddock.engine.storage import files as on_disk
from paddock.engine.storage.errors import SizeTooLarge, TooSmall, VolumeBusy

SECTOR = 512


class BaseImage(Protocol):
    """The needed part of an image of the library."""

    @property
    def digest(self) -> str: ...
    @property
    def path(self) -> Path: ...
    @property
    def format(self) -> Format: ...
    @property
    def virtual_size(self) -> int: ...


class StoredVolume(Struct, frozen=True):
    """A volume as it is now."""

    id: str
    layer: DiskLayer
    # what a guest sees, in bytes
    size: int
    # what its own files take on the disk of the host
    allocated: int
    directory: Path
    # digest of the image below it, if there is one
    image: str = ""
    # an archive was unpacked here: files, and no disk
    files: Path | None = None
    # a suspended machine, or one that is about to start, goes on with it
    held: bool = False

    @property
    def busy(self) -> bool:
        """True when a QEMU has it open, or will go on with it as it is."""
        return self.files is None and (self.held or on_disk.in_use(self.layer.path) or self.is_behind)

    @property
    def is_behind(self) -> bool:
        """True while a QEMU writes an older layer: a snapshot has begun, and the machine has not gone on in the new one yet."""
        layer = self.layer.backing
        while layer is not None and layer.path.parent == self.directory:
            if on_disk.is_written(layer.path):
                return True
            layer = layer.backing
        return False


class Snapshot(Struct, frozen=True):
    """A frozen state of a volume."""

    id: str
    volume: str
    size: int
    layer: DiskLayer


class FilesystemCapacity(Struct, frozen=True):
    """The file system where volumes are, in bytes."""

    total: int
    free: int


def busy(id: str) -> VolumeBusy:
    """The refusal of a volume that a machine writes."""
    return VolumeBusy(f"volume {id} is in use", why="a machine has it open", fix="stop the machine, or wait until it ends")


def suspended(id: str) -> VolumeBusy:
    """The refusal of a volume that the guest of a suspended machine goes on with."""
    why = "a machine that is suspended to disk goes on with it"
    return VolumeBusy(f"volume {id} is in use", why=why, fix="resume the machine, or discard its saved state")


def too_large(size: int) -> SizeTooLarge:
    """The refusal of a volume that no layer can have."""
    why = f"{size} bytes were asked for, and a disk has at most {quantity.binary(LARGEST)}"
    return SizeTooLarge("cannot make the volume", why=why, fix="ask for less")


def too_small(needed: int, size: int) -> TooSmall:
    """The refusal of a volume that is smaller than what should be in it."""
    why = f"its virtual size is {needed} bytes, and {size} were asked for"
    return TooSmall("the image does not fit into the volume", why=why, fix="A larger PVC is required")


def rounded(size: int) -> int:
    """Disks have whole sectors. Raises `SizeTooLarge`."""
    if size > LARGEST:
        raise too_large(size)
    return -(-size // SECTOR) * SECTOR
