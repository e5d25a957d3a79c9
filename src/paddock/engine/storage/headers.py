"""The names of lower files in the headers of qcow2 layers, for people who read a disk without Paddock. Paddock itself follows none of them.

After a merge the layers above name a file that is gone. A header is corrected when nobody has its file open for writing; one that is in
use keeps the old name until its volume is at rest.
"""

import asyncio
import contextlib
import struct
from collections.abc import Iterator
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


async def correct(places: VolumePaths, volume: str) -> None:
    """Correct the headers of the layers of a volume that nobody changes meanwhile. There may be thousands: each has a turn of its own."""
    await asyncio.sleep(0)
    # What cannot be corrected keeps no other volume from its end.
    with contextlib.suppress(VolumeBroken):
        directory = places.find(volume)
        record = records.read(directory / RECORD) if directory is not None else None
        if directory is None or record is None:
            return
        for layer, wanted in _wrong(places, directory, record):
            with contextlib.suppress(VolumeBusy):
                await qemuimg.rename_below(layer, wanted.name, wanted.format)


def _wrong(places: VolumePaths, directory: Path, record: VolumeRecord) -> Iterator[tuple[DiskLayer, BackingFile]]:
    layer: DiskLayer | None = chains.top(places, directory, record)
    while layer is not None and layer.path.parent == directory:
        if layer.format == "qcow2" and layer.backing is not None:
            wanted = BackingFile(overlays.name_of(layer.backing.path, directory), layer.backing.format)
            found = read(layer.path)
            if found is not None and found != wanted:
                yield layer, wanted
        layer = layer.backing
