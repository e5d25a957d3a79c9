"""Notes of the driver beside volumes, since libvirt keeps none: two kinds of small volumes in the same pool.

VOLUME.json says what a prepared image or an imported disk is, or which machine a disk belongs to. It is written last: an image without it
is half made, and is made anew. A machine whose domain was undefined gets the disks back that are noted for it.
VOLUME.making stands while a machine's disk is copied. A volume beside one that nobody writes was cut off, and is made anew.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import libvirt
import msgspec

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.libvirt import failures, streams, volumexml
from paddock_drivers.libvirt.volumexml import VolumeOrder

IMAGE, DISK, MACHINE = "image", "disk", "machine"
# A disk that others stand on, and which goes with the last of them.
LAYER = "layer"
_RECORD, _MAKING = ".json", ".making"
_BYTES = 4096


class VolumeNote(msgspec.Struct, frozen=True, kw_only=True):
    """A whole volume: what it is for, the digest of the request that made it, and the SHA-256 of what came in."""

    purpose: str
    request: str
    checksum: str = ""
    size: int = 0
    format: str = volumexml.QCOW2


def lookup(pool: Any, name: str) -> Any | None:
    """Return the volume of a name, None if the pool positively has none."""
    try:
        return pool.storageVolLookupByName(name)
    except libvirt.libvirtError as error:
        if failures.code_of(error) == failures.NO_STORAGE_VOL:
            return None
        raise


def read(conn: Any, pool: Any, name: str) -> VolumeNote | None:
    """Return the record of a volume, None for a volume that is half made or somebody else's."""
    found = lookup(pool, name + _RECORD)
    if found is None:
        return None
    text = streams.head(conn, found, _BYTES).rstrip(b"\0")
    try:
        return msgspec.json.decode(text, type=VolumeNote)
    except msgspec.MsgspecError:
        # It was cut off, like a record that was never written.
        return None


def write(conn: Any, pool: Any, name: str, record: VolumeNote) -> None:
    """Note that a volume is whole."""
    drop(pool, name + _RECORD)
    made = pool.createXML(volumexml.volume(VolumeOrder(name=name + _RECORD, capacity=_BYTES, format=volumexml.RAW)), 0)
    streams.upload_bytes(conn, made, msgspec.json.encode(record).ljust(_BYTES, b"\0"))


def is_of(conn: Any, pool: Any, name: str, machine: str) -> bool:
    """Return whether a volume is noted for a machine."""
    note = read(conn, pool, name)
    return note is not None and note.purpose == MACHINE and note.request == machine


def own(conn: Any, pool: Any, name: str, machine: str) -> None:
    """Note that a volume is a machine's."""
    if not is_of(conn, pool, name, machine):
        write(conn, pool, name, VolumeNote(purpose=MACHINE, request=machine))


def noted(pool: Any) -> list[str]:
    """Return the names of the volumes of a pool that have a record."""
    return [each.removesuffix(_RECORD) for each in pool.listVolumes() if each.endswith(_RECORD)]


def sweep(pool: Any, is_wanted: Callable[[str], bool]) -> None:
    """Drop the marks of copies that never began, and that nobody wants any more."""
    names = pool.listVolumes()
    for each in names:
        volume = each.removesuffix(_MAKING)
        if volume != each and volume not in names and not is_wanted(volume):
            drop(pool, each)


def begin(pool: Any, name: str) -> None:
    """Note that a volume is being made."""
    if lookup(pool, name + _MAKING) is None:
        pool.createXML(volumexml.volume(VolumeOrder(name=name + _MAKING, capacity=_BYTES, format=volumexml.RAW)), 0)


class VolumeTaken(ProviderError):
    """A volume of somebody else has the name of one that is to be made."""


def taken(volume: str, pool: str) -> VolumeTaken:
    """Return the refusal of a volume that somebody else has made."""
    fix = "delete the volume, or rename the machine"
    return VolumeTaken(ErrorKind.CONFLICT, f"volume {volume} exists in pool {pool}", why="it was not made by Paddock", fix=fix)


def is_taken(error: ProviderError) -> bool:
    """Return whether a call failed because somebody else's volume, or a file that libvirt does not know, has the name of one."""
    return isinstance(error, VolumeTaken) or exists(error.__cause__)


def exists(error: BaseException | None) -> bool:
    """Return whether a volume was not made because a file of its name is there, which libvirt may not know as a volume."""
    code = failures.code_of(error) if error is not None else 0
    return code == failures.STORAGE_VOL_EXIST or (code == failures.OPERATION_INVALID and "already exists" in str(error))


@contextmanager
def making(pool: Any, name: str) -> Iterator[None]:
    """Note that a volume is made inside. The note stays if that is cut off, and goes if a file of somebody else's stands in the way."""
    begin(pool, name)
    try:
        yield
    except libvirt.libvirtError as error:
        if exists(error):
            end(pool, name)
        raise
    end(pool, name)


def is_begun(pool: Any, name: str) -> bool:
    """Return whether a volume was being made when its maker was cut off, or still is."""
    return lookup(pool, name + _MAKING) is not None


def end(pool: Any, name: str) -> None:
    """Note that a volume is made."""
    drop(pool, name + _MAKING)


def drop(pool: Any, name: str) -> None:
    """Delete a volume. One that is gone is deleted."""
    found = lookup(pool, name)
    try:
        if found is not None:
            found.delete(0)
    except libvirt.libvirtError as error:
        if failures.code_of(error) != failures.NO_STORAGE_VOL:
            raise


def forget(pool: Any, name: str) -> None:
    """Delete a volume with its notes; the record first, so that what is left of it counts for nothing."""
    drop(pool, name + _RECORD)
    drop(pool, name)
    drop(pool, name + _MAKING)
