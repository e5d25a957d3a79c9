"""The content of a machine's disk: its volume and the layers below it, brought here as files and read as one disk.

The format of the newest layer is what the machine's definition says, and that of each other one what the layer above it says. What a guest
has written is never taken for a format.
"""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from paddock.base import reasons
from paddock_drivers.kit import conversion, refusals
from paddock_drivers.kit.conversion import OpenLayer
from paddock_drivers.libvirt import imagesources, pools, streams, volumexml
from paddock_drivers.libvirt.connection import LibvirtConnection

_MOST_LAYERS = 64
_HEAD = 64 << 10


class DiskContent(msgspec.Struct, frozen=True, kw_only=True):
    """A disk to read: its newest file, and the internal snapshot in it that counts."""

    path: str
    format: str
    snapshot: str = ""


@asynccontextmanager
async def raw(connection: LibvirtConnection, content: DiskContent, scratch: Path | None) -> AsyncIterator[IO[bytes]]:
    """Have the content of a disk as a sparse raw file. Raises `ProviderError`."""
    with ExitStack() as stack:
        layers = []
        path, kind = content.path, content.format
        for _ in range(_MOST_LAYERS):
            file = stack.enter_context(tempfile.TemporaryFile(dir=scratch))
            below = await connection.run(_fetch, path, kind, file.fileno())
            layers.append((file, kind))
            if not below.path:
                break
            path, kind = below.path, below.format
        else:
            raise refusals.not_supported(f"the disk has more than {_MOST_LAYERS} layers", fix="delete snapshots")
        if [each for _, each in layers] == [volumexml.RAW]:
            yield layers[0][0]
            return
        made = stack.enter_context(tempfile.TemporaryFile(dir=scratch))
        opened = [OpenLayer(file.fileno(), each) for file, each in layers]
        await conversion.flatten(opened, made.fileno(), conversion.RAW, snapshot=content.snapshot)
        yield made


def _fetch(conn: Any, path: str, format: str, handle: int) -> DiskContent:
    """Bring one layer here; returns the one below it."""
    if format not in (volumexml.QCOW2, volumexml.RAW):
        why = f"it is kept as {format or 'an unknown format'}"
        raise refusals.not_supported("the disk cannot be read", why=why, fix="convert it to qcow2 or raw at the host")
    volume = pools.find(conn, path)
    if volume is None:
        fix = "define a storage pool for its directory"
        why = f"no storage pool has its file {path}"
        raise refusals.not_supported("the disk cannot be read", why=why, fix=fix, reason=reasons.POOL_MISSING)
    streams.download(conn, volume, handle)
    if format == volumexml.RAW:
        return DiskContent(path="", format="")
    head = os.pread(handle, _HEAD, 0)
    found = imagesources.reference(head)
    if not found:
        return DiskContent(path="", format="")
    text = volume.XMLDesc(0)
    stored = volumexml.parse_volume(text)
    below = volumexml.backing_format(text)
    if not stored.backing or below not in (volumexml.QCOW2, volumexml.RAW) or not imagesources.only_backed(head):
        raise refusals.not_supported("the disk cannot be read", why=found, fix="flatten it at the host: qemu-img convert -O qcow2")
    return DiskContent(path=stored.backing, format=below)
