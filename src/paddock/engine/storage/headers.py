"""The names of lower files in the headers of qcow2 layers, for people who read a disk without Paddock. Paddock itself follows none of them.

After a merge the layers above name the merged file, which stays until each of them is corrected. A layer that is in use keeps the old name
until its volume is at rest, and so does one that a suspended machine goes on with: it must find its disks as it left them.
"""

import asyncio
import contextlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from paddock.engine.machine.config import DiskLayer
from paddock.engine.storage import chains, overlays, qemuimg, records
from paddock.engine.storage.errors import VolumeBroken, VolumeBusy
from paddock.engine.storage.paths import RECORD, VolumePaths
from paddock.engine.storage.records import VolumeRecord

_MAGIC = b"QFI\xfb"
_FORMAT = 0xE2792ACA
_AREA = 1 << 16


class BackingFile(NamedTuple):
    """The layer below, as a header names it."""

    name: str
    format: str


def read(path: Path) -> BackingFile | None:
    """Return the backing file of a header; None when it names none, or is of another version."""
    with path.open("rb") as file:
        head = file.read(_AREA)
    if len(head) < 104 or head[:4] != _MAGIC or int.from_bytes(head[4:8], "big") < 3:
        return None
    offset, length = struct.unpack_from(">QI", head, 8)
    return BackingFile(head[offset : offset + length].decode(errors="replace"), _format(head)) if offset and offset < _AREA else None


def _format(head: bytes) -> str:
    place = int.from_bytes(head[100:104], "big")
    while place + 8 <= len(head):
        kind, length = struct.unpack_from(">II", head, place)
        if not kind:
            break
        if kind == _FORMAT:
            return head[place + 8 : place + 8 + length].decode(errors="replace")
        place += 8 + (length + 7 & ~7)
    return ""


async def correct(places: VolumePaths, volume: str, is_held: Callable[[Path], bool]) -> bool:
    """Correct the headers of a volume that nobody changes meanwhile, and return whether all are right. There may be thousands: each has
    a turn of its own. `is_held`: the layer of this path belongs to a suspended machine."""
    await asyncio.sleep(0)
    # What cannot be corrected keeps no other volume from its end.
    with contextlib.suppress(VolumeBroken):
        directory = places.find(volume)
        record = records.read(directory / RECORD) if directory is not None else None
        if directory is not None and record is not None:
            return all([await _is_corrected(layer, is_held) for layer in _own(places, directory, record)])
    return False


async def _is_corrected(layer: DiskLayer, is_held: Callable[[Path], bool]) -> bool:
    """Correct a header, and return False where somebody has the layer open, or goes on with it as it is."""
    if (wanted := _correction(layer)) is None:
        return True
    if is_held(layer.path):
        return False
    try:
        await qemuimg.rename_below(layer, wanted.name, wanted.format)
    except VolumeBusy:
        return False
    return True


async def correct_layer(layer: DiskLayer) -> None:
    """Correct the header of one layer. Raises `VolumeBusy` when somebody has it open."""
    if (wanted := _correction(layer)) is not None:
        await qemuimg.rename_below(layer, wanted.name, wanted.format)


def _correction(layer: DiskLayer) -> BackingFile | None:
    """Return what the header of a layer should name; None: it does."""
    if layer.format != "qcow2" or layer.backing is None:
        return None
    wanted = BackingFile(overlays.name_of(layer.backing.path, layer.path.parent), layer.backing.format)
    found = read(layer.path)
    return wanted if found is not None and found != wanted else None


def _own(places: VolumePaths, directory: Path, record: VolumeRecord) -> Iterator[DiskLayer]:
    """Yield the layers of a volume, and none of those below it."""
    seen: set[Path] = set()
    for chain in record.chains:
        layer: DiskLayer | None = chains.layer_of(places, directory, chain, chain.layers[-1])
        while layer is not None and layer.path.parent == directory and layer.path not in seen:
            seen.add(layer.path)
            yield layer
            layer = layer.backing
