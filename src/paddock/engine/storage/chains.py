"""The files of a disk, and the ones that something needs. Reads records; changes nothing but who may read a frozen layer."""

import contextlib
import stat
from collections.abc import Collection
from pathlib import Path

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import records
from paddock.engine.storage.errors import StoreFailed, VolumeBroken, VolumeMissing
from paddock.engine.storage.paths import RECORD, VolumePaths, checked
from paddock.engine.storage.records import Base, FrozenBase, ImageBase, LayerFile, VolumeRecord

# Deeper is a circle, or a mistake.
_DEEPEST = 500


def top(places: VolumePaths, directory: Path, record: VolumeRecord) -> DiskLayer:
    """The layer of a volume that is written, with all below it."""
    return layer_of(places, directory, record, record.top)


def layer_of(places: VolumePaths, directory: Path, record: VolumeRecord, layer: LayerFile, depth: int = 0) -> DiskLayer:
    """A layer of a volume with all below it."""
    below = None if record.base is None else resolved(places, record.base, depth + 1)
    for each in record.layers:
        below = DiskLayer(directory / each.path, each.format, below)
        if each == layer:
            return below
    raise VolumeBroken(f"volume {directory.name} has no layer {layer.name}", fix="restore it from a backup")


def resolved(places: VolumePaths, base: Base, depth: int = 0) -> DiskLayer:
    """Return the layer below a volume."""
    if isinstance(base, ImageBase):
        return DiskLayer(places.root / base.path, base.format)
    directory = places.find(base.volume)
    record = records.read(directory / RECORD) if directory is not None else None
    found = next((each for each in record.layers if each.name == base.layer), None) if record is not None else None
    if directory is None and places.closed:
        why = "a pool is not mounted, and it may be there"
        raise StoreFailed(f"cannot find volume {base.volume}", why=why, fix="mount the pool and restart the server")
    if directory is None or record is None or found is None or depth > _DEEPEST:
        raise VolumeBroken(f"layer {base.layer} of volume {base.volume} is not there", fix="restore it from a backup")
    return layer_of(places, directory, record, found, depth)


def image_of(places: VolumePaths, record: VolumeRecord) -> str:
    """The digest of the image that lies below a volume; empty when none does."""
    base = record.base
    for _ in range(_DEEPEST):
        if not isinstance(base, FrozenBase):
            return base.digest if base is not None else ""
        directory = places.find(base.volume)
        below = records.read(directory / RECORD) if directory is not None else None
        base = below.base if below is not None else None
    return ""


def next_name(snapshot: str) -> str:
    """The name of the layer in which a volume goes on over a snapshot."""
    return f"after-{checked(snapshot)}.img"


def below(volume: str, record: VolumeRecord, snapshot: str) -> str:
    """The name of the layer that a snapshot freezes: the one below its next layer, or the one that is written while that is not there."""
    names = [each.name for each in record.layers]
    place = names.index(next_name(snapshot)) if next_name(snapshot) in names else len(names)
    if not place:
        raise VolumeMissing(f"volume {volume} has lost the layer below {names[0]}", fix="delete the snapshot, and take another one")
    return names[place - 1]


def is_covered(record: VolumeRecord, layer: str) -> bool:
    """Return whether a volume goes on in a layer above this one."""
    return layer in [each.name for each in record.layers[:-1]]


def superfluous(record: VolumeRecord, needed: Collection[str]) -> int | None:
    """The place of a layer of a volume that nothing else needs, so that the one above it can be merged into it; None: each is needed."""
    return next((place for place, each in enumerate(record.layers[:-1]) if each.name not in needed), None)


def close_to_others(places: VolumePaths) -> None:
    """Earlier versions let everybody read frozen layers. Now their QEMUs have groups for them, which they get when they start."""
    for directory, record in places.volumes():
        for each in record.layers if record.deleted else record.layers[:-1]:
            path = directory / each.path
            with contextlib.suppress(FileNotFoundError):
                if path.stat(follow_symlinks=False).st_mode & stat.S_IROTH:
                    path.chmod(0o600)
