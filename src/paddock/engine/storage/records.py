"""The record beside a disk: its files, oldest first, and the layers below them (docs/reference/on-disk.md)."""

from pathlib import Path
from typing import Literal

import msgspec

from paddock.engine import versions
from paddock.engine.storage import files
from paddock.engine.storage.errors import VolumeBroken

VERSION = 1
Format = Literal["raw", "qcow2"]


class ImageBase(msgspec.Struct, frozen=True, tag="image", tag_field="kind"):
    """An image of the library lies below; `path` is relative to the engine's directory."""

    digest: str
    path: str
    format: Format


class FrozenBase(msgspec.Struct, frozen=True, tag="volume", tag_field="kind"):
    """A layer of another volume lies below, which nobody writes any more."""

    volume: str
    layer: str


Base = ImageBase | FrozenBase


class LayerFile(msgspec.Struct, frozen=True):
    """A layer by the name that others know it by, and the file in the volume's directory that holds it."""

    name: str
    format: Format
    # after a merge the file has the name of the layer that went
    file: str = ""

    @property
    def path(self) -> str:
        """The name of the file."""
        return self.file or self.name


class VolumeRecord(msgspec.Struct, frozen=True):
    """`volume.json`."""

    size: int
    # oldest first; the last is the one that is written
    layers: tuple[LayerFile, ...]
    base: Base | None = None
    # an archive was unpacked: the volume is a directory of files, and no disk
    is_files: bool = False
    # nobody's any more; kept for those that have a layer of it below theirs
    deleted: bool = False
    version: int = VERSION

    @property
    def top(self) -> LayerFile:
        """The layer that is written."""
        return self.layers[-1]


class SnapshotRecord(msgspec.Struct, frozen=True):
    """`snapshots/ID.json`: a layer as it was frozen."""

    volume: str
    layer: str
    size: int
    # the volume has not gone on yet: there is no snapshot, and the layer is kept for it
    pending: bool = False
    version: int = VERSION


_RECORDS = msgspec.json.Decoder(VolumeRecord)
_SNAPSHOTS = msgspec.json.Decoder(SnapshotRecord)


def read(path: Path) -> VolumeRecord | None:
    """The record of a volume; None when there is none."""
    try:
        return _RECORDS.decode(_known(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise VolumeBroken(f"cannot read {path}", why=str(error), fix="restore the file from a backup, or delete the claim") from error


def read_snapshot(path: Path) -> SnapshotRecord | None:
    """The record of a snapshot; None when there is none."""
    try:
        return _SNAPSHOTS.decode(_known(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise VolumeBroken(f"cannot read {path}", why=str(error), fix="restore the file from a backup, or delete the snapshot") from error


def _known(path: Path) -> bytes:
    """Return a record of the version that this Paddock knows."""
    raw = path.read_bytes()
    if why := versions.strange(raw, VERSION):
        raise VolumeBroken(f"cannot read {path}", why=why, fix=versions.FIX)
    return raw


def write(path: Path, record: VolumeRecord | SnapshotRecord) -> None:
    """Replace a record as a whole."""
    files.write_whole(path, msgspec.json.encode(record))
