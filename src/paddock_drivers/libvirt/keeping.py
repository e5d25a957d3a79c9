"""Whole disks that come in from outside: images and imported disks. Each is uploaded as one plain file, and noted when it is whole."""

from typing import Any

import libvirt

from paddock_drivers.kit import refusals
from paddock_drivers.kit.diskimages import PlainDisk
from paddock_drivers.libvirt import failures, pools, records, streams, volumexml
from paddock_drivers.libvirt.records import VolumeNote
from paddock_drivers.libvirt.volumexml import PoolView, VolumeOrder

_HEAD = 4096


def path_of(pool: PoolView, volume: str) -> str:
    """Return the path that a volume of a pool has."""
    return f"{pool.path}/{volume}"


def volume_name(pool: PoolView, name: str) -> str:
    """Return the name of the volume of an image or a disk."""
    return f"{name}.qcow2" if pool.files else name


def noted(conn: Any, pool: str, volume: str) -> VolumeNote | None:
    """Return the note of a whole volume; None if there is none. Raises Conflict for a volume that is somebody else's. In a thread."""
    place = pools.active(conn, pool)
    found = records.lookup(place, volume)
    if found is None:
        return None
    note = records.read(conn, place, volume)
    if note is None and not records.is_begun(place, volume):
        why = "it was not made by Paddock"
        raise refusals.conflict(f"volume {volume} exists in pool {pool}", why=why, fix="rename it, or what is to be made")
    return note


def keep(conn: Any, pool: str, volume: str, disk: PlainDisk, note: VolumeNote) -> None:
    """Upload a disk to a new volume. What an earlier attempt left is replaced. In a thread."""
    place = pools.active(conn, pool)
    with records.making(place, volume):
        _replace(place, volume)
        # The definition has the format and the size at once; libvirt looks at the content itself only some time after an upload.
        made = place.createXML(volumexml.volume(VolumeOrder(name=volume, capacity=disk.size, format=disk.format)), 0)
        # Whoever tidied up between the mark and the volume has taken the mark for one that nobody needs.
        records.begin(place, volume)
        streams.upload(conn, made, disk.file.fileno())
        disk.file.seek(0)
        if streams.head(conn, made, _HEAD) != disk.file.read(_HEAD):
            raise refusals.retry_later(f"volume {volume} is not what was uploaded")
        records.write(conn, place, volume, note)


def _replace(pool: Any, volume: str) -> None:
    try:
        records.drop(pool, f"{volume}.json")
        records.drop(pool, volume)
    except libvirt.libvirtError as error:
        if failures.code_of(error) == failures.OPERATION_INVALID:
            raise refusals.retry_later(f"volume {volume} is being written") from error
        raise
