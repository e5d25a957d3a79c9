"""The volume that an image of a machine stands for: a prepared image, an imported disk, or a file that somebody put into a pool."""

from pathlib import PurePosixPath
from typing import Any

import msgspec

from paddock.base import reasons
from paddock.contract.payloads import ImagePayload
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import pools, records, streams, volumexml
from paddock_drivers.libvirt.storageport import StoredDisk

_MAGIC = b"QFI\xfb"
_FORMATS = (volumexml.QCOW2, volumexml.RAW)
_DATA_FILE, _DATA_FILE_NAME, _BACKING_FORMAT = 4, 0x44415441, 0xE2792ACA
_HEAD = 64 << 10


class SourceVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A volume that a disk is made from. `taken`: it is an imported disk, which becomes the machine's own."""

    stored: StoredDisk
    taken: bool = False


def find(conn: Any, image: ImagePayload, pool: str, machine: str) -> SourceVolume:
    """Return the volume of an image; raises `ProviderError`. In a thread."""
    if image.url and not image.path:
        raise refusals.not_supported(
            "the image cannot be fetched while a machine is created", why="libvirt fetches nothing", fix="prepare it first"
        )
    volume = _volume(conn, image, pool)
    if volume is None:
        what = f"there is no volume {(image.template_name or image.path)[:200]}"
        raise refusals.not_found(
            what,
            "put it into a pool's directory, or name a prepared image; a path outside of all pools is not read",
            reason=reasons.TEMPLATE_MISSING,
        )
    place = volume.storagePoolLookupByVolume()
    stored = volumexml.parse_volume(volume.XMLDesc(0), place.name())
    record = records.read(conn, place, stored.volume)
    if record is not None and record.purpose == records.DISK:
        _check_free(conn, stored, machine)
        return SourceVolume(stored=stored, taken=True)
    if record is not None and record.purpose == records.IMAGE:
        return SourceVolume(stored=stored)
    if record is not None:
        raise refusals.conflict(f"volume {stored.volume} is not taken as an image", why="it is a part of machines' disks")
    check_foreign(conn, volume, stored)
    _check_unused(conn, stored)
    return SourceVolume(stored=stored)


def check_foreign(conn: Any, volume: Any, stored: StoredDisk) -> None:
    """Refuse a volume of somebody else's that refers to other files, or has a format that could. In a thread."""
    if stored.format not in _FORMATS:
        why = f"it is {stored.format}, which can refer to other files of the host"
        raise refusals.not_supported(f"volume {stored.volume} is not taken as an image", why=why, fix="convert it to qcow2 or raw")
    found = reference(streams.head(conn, volume, _HEAD))
    if found or stored.backing:
        fix = "flatten it into one file: qemu-img convert -O qcow2 old.img new.qcow2"
        raise refusals.invalid(f"volume {stored.volume} is not taken as an image", why=found or "it has a backing file", fix=fix)


def only_backed(head: bytes) -> bool:
    """Return whether a qcow2 file refers to nothing but a backing file. Pure."""
    if len(head) < 72 or any(head[32:36]):
        return False
    if int.from_bytes(head[4:8], "big") < 3:
        return True
    if int.from_bytes(head[72:80], "big") & _DATA_FILE:
        return False
    return _DATA_FILE_NAME not in _kinds(head, int.from_bytes(head[100:104], "big"))


def reference(head: bytes) -> str:
    """Return why a qcow2 file is not taken, by its first bytes; empty for a file that refers to nothing. Pure."""
    if head[:4] != _MAGIC:
        return ""
    if len(head) < 72:
        return "its header is cut off"
    if any(head[8:20]):
        return "it has a backing file"
    if any(head[32:36]):
        return "it is encrypted"
    if int.from_bytes(head[4:8], "big") < 3:
        return ""
    if int.from_bytes(head[72:80], "big") & _DATA_FILE:
        return "it keeps its data in another file"
    kinds = _kinds(head, int.from_bytes(head[100:104], "big"))
    return "its header names another file" if {_DATA_FILE_NAME, _BACKING_FORMAT} & kinds else ""


def _kinds(head: bytes, at: int) -> set[int]:
    """The kinds of a header's extensions. Of one that does not end, nothing good is assumed."""
    found: set[int] = set()
    while at + 8 <= len(head):
        kind, length = int.from_bytes(head[at : at + 4], "big"), int.from_bytes(head[at + 4 : at + 8], "big")
        if not kind:
            return found
        found.add(kind)
        at += 8 + length + -length % 8
    return {_DATA_FILE_NAME}


def _volume(conn: Any, image: ImagePayload, pool: str) -> Any | None:
    if not image.path:
        return pools.find_named(conn, image.template_name, pool) or pools.find_named(conn, f"{image.template_name}.qcow2", pool)
    found = pools.find(conn, image.path)
    if found is not None:
        return found
    # A manager that knows the id of a disk only makes up a path; its last part names the volume.
    return pools.find_named(conn, PurePosixPath(image.path).name, pool) if image.path.startswith("/") else None


def _check_free(conn: Any, stored: StoredDisk, machine: str) -> None:
    others = [name for name in pools.users(conn, stored.path) if name != machine]
    if others:
        raise refusals.conflict(f"the imported disk {stored.volume} belongs to machine {others[0]}", fix="import it again")


def _check_unused(conn: Any, stored: StoredDisk) -> None:
    others = pools.users(conn, stored.path)
    if others:
        why = f"it is a disk of machine {others[0]}"
        raise refusals.conflict(f"volume {stored.volume} is not taken as an image", why=why, fix="clone that machine instead")
