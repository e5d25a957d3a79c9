"""The files of a disk, and the ones that something needs. Reads records; changes nothing but who may read a frozen layer."""

import contextlib
import stat
from collections.abc import Collection
from pathlib import Path

import msgspec

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import records
from paddock.engine.storage.errors import StoreFailed, VolumeBroken, VolumeMissing
from paddock.engine.storage.paths import RECORD, VolumePaths, checked
from paddock.engine.storage.records import Base, Chain, FormerChain, FrozenBase, ImageBase, LayerFile, VolumeRecord

# Deeper is a circle, or a mistake.
_DEEPEST = 500


def top(places: VolumePaths, directory: Path, record: VolumeRecord) -> DiskLayer:
    """The layer of a volume that is written, with all below it."""
    return layer_of(places, directory, record, record.top)


def layer_of(places: VolumePaths, directory: Path, chain: Chain, layer: LayerFile, depth: int = 0) -> DiskLayer:
    """A layer of a volume with all below it."""
    below = None if chain.base is None else resolved(places, chain.base, depth + 1)
    for each in chain.layers:
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
    found = next(((chain, each) for chain in record.chains for each in chain.layers if each.name == base.layer), None) if record else None
    if directory is None and places.closed:
        why = "a pool is not mounted, and it may be there"
        raise StoreFailed(f"cannot find volume {base.volume}", why=why, fix="mount the pool and restart the server")
    if directory is None or record is None or found is None or depth > _DEEPEST:
        raise VolumeBroken(f"layer {base.layer} of volume {base.volume} is not there", fix="restore it from a backup")
    return layer_of(places, directory, *found, depth)


def image_of(places: VolumePaths, record: VolumeRecord) -> str:
    """The digest of the image that lies below a volume; empty when none does."""
    base = record.base
    for _ in range(_DEEPEST):
        if not isinstance(base, FrozenBase):
            return base.digest if base is not None else ""
        directory = places.find(base.volume)
        below = records.read(directory / RECORD) if directory is not None else None
        base = next((chain.base for chain in below.chains if base.layer in names(chain)), None) if below is not None else None
    return ""


def names(chain: Chain) -> list[str]:
    """Return the names of layers, oldest first."""
    return [each.name for each in chain.layers]


def next_name(snapshot: str) -> str:
    """The name of the layer in which a volume goes on over a snapshot."""
    return f"after-{checked(snapshot)}.img"


def below(volume: str, record: VolumeRecord, snapshot: str) -> str:
    """The name of the layer that a snapshot freezes: the one below its next layer, or the one that is written while that is not there."""
    found = names(record)
    place = found.index(next_name(snapshot)) if next_name(snapshot) in found else len(found)
    if not place:
        raise VolumeMissing(f"volume {volume} has lost the layer below {found[0]}", fix="delete the snapshot, and take another one")
    return found[place - 1]


def is_covered(record: VolumeRecord, layer: str) -> bool:
    """Return whether a volume does not write this layer any more."""
    return layer != record.top.name and any(layer in names(chain) for chain in record.chains)


def superfluous(record: VolumeRecord, needed: Collection[str]) -> int | None:
    """The place of a layer of a volume that nothing else needs, so that the one above it can be merged into it; None: each is needed."""
    return next((place for place, each in enumerate(record.layers[:-1]) if each.name not in needed), None)


def reverted(record: VolumeRecord, size: int, top: LayerFile, base: FrozenBase) -> VolumeRecord:
    """The record of a volume that goes on in an empty layer over a frozen one. What it was is a former chain."""
    former = FormerChain(record.layers, record.base)
    return VolumeRecord(size, (top,), base, former=(*record.former, former))


def pruned(volume: str, record: VolumeRecord, needed: Collection[str]) -> VolumeRecord:
    """A volume without the former layers that nothing has below its own. `needed`: those that snapshots and other volumes have.

    A volume that lies over the last layer of a former chain goes on with it as one chain, whose layers can be merged.
    """
    while True:
        own = {chain.base.layer for chain in record.chains if isinstance(chain.base, FrozenBase) and chain.base.volume == volume}
        cut = [FormerChain(_until(chain, own.union(needed)), chain.base) for chain in record.former]
        former = tuple(chain for chain in cut if chain.layers)
        if former == record.former:
            break
        record = msgspec.structs.replace(record, former=former)
    for chain in record.former:
        if record.base == FrozenBase(volume, chain.layers[-1].name):
            rest = tuple(each for each in record.former if each is not chain)
            joined = msgspec.structs.replace(record, layers=(*chain.layers, *record.layers), base=chain.base, former=rest)
            return pruned(volume, joined, needed)
    return record


def _until(chain: FormerChain, needed: Collection[str]) -> tuple[LayerFile, ...]:
    """Return the layers of a chain up to the last that is needed."""
    last = max((place for place, name in enumerate(names(chain), 1) if name in needed), default=0)
    return chain.layers[:last]


def close_to_others(places: VolumePaths) -> None:
    """Earlier versions let everybody read frozen layers. Now their QEMUs have groups for them, which they get when they start."""
    for directory, record in places.volumes():
        for name in record.files - (set() if record.deleted else {record.top.path}):
            path = directory / name
            with contextlib.suppress(FileNotFoundError):
                if path.stat(follow_symlinks=False).st_mode & stat.S_IROTH:
                    path.chmod(0o600)
