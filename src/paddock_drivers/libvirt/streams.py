"""The bytes of volumes over libvirt's streams, so that they pass through any transport. All of it runs in threads.

Holes are sent as holes where both sides can. A stream that is not finished is aborted: nobody takes a part for the whole.
"""

import hashlib
import os
from contextlib import suppress
from typing import Any

import libvirt

from paddock_drivers.kit import refusals

_CHUNK = 256 << 10


def upload(conn: Any, volume: Any, handle: int) -> None:
    """Write the content of an open file to a volume, from its beginning."""
    size = os.fstat(handle).st_size
    os.lseek(handle, 0, os.SEEK_SET)
    stream = conn.newStream(0)
    try:
        volume.upload(stream, 0, size, libvirt.VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM)
        stream.sparseSendAll(_read, _hole, _skip, handle)
        stream.finish()
    except BaseException:
        with suppress(libvirt.libvirtError):
            stream.abort()
        raise


def upload_bytes(conn: Any, volume: Any, content: bytes) -> None:
    """Write bytes to the beginning of a volume."""
    stream = conn.newStream(0)
    try:
        volume.upload(stream, 0, len(content), 0)
        sent = 0
        while sent < len(content):
            sent += stream.send(content[sent : sent + _CHUNK])
        stream.finish()
    except BaseException:
        with suppress(libvirt.libvirtError):
            stream.abort()
        raise


def download(conn: Any, volume: Any, handle: int) -> int:
    """Write all of a volume to an open file, with its holes; returns its size."""
    os.lseek(handle, 0, os.SEEK_SET)
    stream = conn.newStream(0)
    try:
        volume.download(stream, 0, 0, libvirt.VIR_STORAGE_VOL_DOWNLOAD_SPARSE_STREAM)
        stream.sparseRecvAll(_write, _skipped, handle)
        stream.finish()
    except BaseException:
        with suppress(libvirt.libvirtError):
            stream.abort()
        raise
    size = os.lseek(handle, 0, os.SEEK_CUR)
    os.ftruncate(handle, size)
    return size


def head(conn: Any, volume: Any, length: int) -> bytes:
    """Return the first bytes of a volume, or all of a shorter one."""
    found = bytearray()
    stream = conn.newStream(0)
    try:
        volume.download(stream, 0, length, 0)
        while len(found) < length and (part := stream.recv(min(_CHUNK, length - len(found)))):
            if isinstance(part, int):
                break
            found += part
        stream.finish()
    except BaseException:
        with suppress(libvirt.libvirtError):
            stream.abort()
        raise
    return bytes(found)


def digest(conn: Any, volume: Any, algorithm: str) -> str:
    """Return the checksum of a volume's bytes in hex."""
    total = hashlib.new(algorithm, usedforsecurity=False)
    stream = conn.newStream(0)
    try:
        volume.download(stream, 0, 0, 0)
        while part := stream.recv(_CHUNK):
            if isinstance(part, int):
                raise refusals.retry_later("the volume cannot be read")
            total.update(part)
        stream.finish()
    except BaseException:
        with suppress(libvirt.libvirtError):
            stream.abort()
        raise
    return total.hexdigest()


def _read(_: Any, count: int, handle: int) -> bytes:
    return os.read(handle, min(count, _CHUNK))


def _hole(_: Any, handle: int) -> list[Any]:
    """Say whether data or a hole begins here, and how long it is."""
    here = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        data = os.lseek(handle, here, os.SEEK_DATA)
    except OSError:
        # Nothing but a hole is left.
        end = os.lseek(handle, 0, os.SEEK_END)
        os.lseek(handle, here, os.SEEK_SET)
        return [False, end - here]
    if data > here:
        os.lseek(handle, here, os.SEEK_SET)
        return [False, data - here]
    end = os.lseek(handle, here, os.SEEK_HOLE)
    os.lseek(handle, here, os.SEEK_SET)
    return [True, end - here]


def _skip(_: Any, length: int, handle: int) -> int:
    return os.lseek(handle, length, os.SEEK_CUR)


def _write(_: Any, data: bytes, handle: int) -> int:
    done = 0
    while done < len(data):
        done += os.write(handle, data[done:])
    return done


def _skipped(_: Any, length: int, handle: int) -> int:
    return os.lseek(handle, length, os.SEEK_CUR)
