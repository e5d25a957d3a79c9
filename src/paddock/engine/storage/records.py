"""The record beside a disk: its files, oldest first, and the layers below them (docs/reference/on-disk.md)."""

from pathlib import Path
from typing import Literal

import msgspec

from paddock.engine import versions
from paddock.engine.storage import files
from paddock.engine.storage.errors import VolumeBroken

VERSION = 1
# Of a record with former chains: an older Paddock refuses it, and then merges and removes no layer.
_WITH_FORMER = 2
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


class FormerChain(msgspec.Struct, frozen=True):
    """Layers that a volume had before it was reverted, oldest first. Nobody writes them; others have them below theirs."""

    layers: tuple[LayerFile, ...]
    base: Base | None = None


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
    # what the volume was before it was reverted, as far as something needs it
    former: tuple[FormerChain, ...] = ()
    version: int = VERSION

    @property
    def chains(self) -> "tuple[Chain, ...]":
        """The layers that make the disk up, and the former ones."""
        return (self, *self.former)

    @property
    def files(self) -> set[str]:
        """The names of all files with layers."""
        return {each.path for chain in self.chains for each in chain.layers}

    @property
    def top(self) -> LayerFile:
        """The layer that is written."""
        return self.layers[-1]


Chain = VolumeRecord | FormerChain


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
        return _RECORDS.decode(_known(path, VERSION, _WITH_FORMER))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise VolumeBroken(f"cannot read {path}", why=str(error), fix="restore the file from a backup, or delete the claim") from error


def read_snapshot(path: Path) -> SnapshotRecord | None:
    """The record of a snapshot; None when there is none."""
    try:
        return _SNAPSHOTS.decode(_known(path, VERSION))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise VolumeBroken(f"cannot read {path}", why=str(error), fix="restore the file from a backup, or delete the snapshot") from error


def _known(path: Path, *known: int) -> bytes:
    """Return a record of a version that this Paddock knows."""
    raw = path.read_bytes()
    if why := versions.strange(raw, *known):
        raise VolumeBroken(f"cannot read {path}", why=why, fix=versions.FIX)
    return raw


def write(path: Path, record: VolumeRecord | SnapshotRecord) -> None:
    """Replace a record as a whole."""
    if isinstance(record, VolumeRecord):
        record = msgspec.structs.replace(record, version=_WITH_FORMER if record.former else VERSION)
    files.write_whole(path, msgspec.json.encode(record))
