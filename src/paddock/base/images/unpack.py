"""Wrappers around a disk: gzip, xz, zstd, and tar with one file in it.

Everything is read in bounded pieces; what comes out is counted, and stops where no honest image would go on. Wrappers may nest
twice.
"""

import lzma
import os
import zlib
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from paddock.base.images.errors import ImageRefused
from paddock.base.images.formats import HEAD_BYTES, Wrapper, head_of, stays, wrapper_of
from paddock.base.images.progress import Meter
from paddock.base.images.sparse import SparseWriter
from paddock.base.images.stopflag import StopFlag
from paddock.base.images.tar import Tar

_IN = 128 * 1024
_OUT = 1024 * 1024
_DEEPEST = 2
# Packed files that unpack to more than this are held to a ratio, too.
_FREE_BYTES = 64 << 30
_MOST_RATIO = 200
_XZ_MEMORY = 256 << 20
# Empty members in a row. Each takes a decompressor of its own, and an honest file has hardly one.
_MOST_EMPTY = 4096
# 128 MiB
_ZSTD_WINDOW_LOG = 27


class UnpackReader(Protocol):
    """Unpacked bytes in pieces of at most `limit`; empty at the end."""

    def read(self, limit: int) -> bytes: ...


class _Empty:
    """The empty members that one `read` goes through: without an end to them it would not come back."""

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        self._count += 1
        if self._count > _MOST_EMPTY:
            raise ImageRefused("Unsafe", f"the packed file has more than {_MOST_EMPTY} empty parts in a row")


class _Gzip:
    """Members one after another; padding after the last one is ignored."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(wbits=31)
        self._rest = b""

    def read(self, limit: int) -> bytes:
        empty = _Empty()
        while True:
            if self._inflate.eof:
                rest = (self._inflate.unused_data or self._file.read(_IN)).lstrip(b"\0")
                if len(rest) == 1:
                    rest += self._file.read(_IN)
                if not rest.startswith(b"\x1f\x8b"):
                    return b""
                empty.add()
                self._inflate, self._rest = zlib.decompressobj(wbits=31), rest
            data = self._rest or self._file.read(_IN)
            if not data:
                raise EOFError
            out: bytes = self._inflate.decompress(data, limit)
            self._rest = self._inflate.unconsumed_tail
            if out:
                return out


class _Decompressor(Protocol):
    """One stream of xz, or one frame of zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Streams:
    """Streams one after another; padding of these bytes after one is ignored."""

    def __init__(self, file: IO[bytes], new: Callable[[], _Decompressor], padding: bytes, check: Callable[[], None]) -> None:
        self._file = file
        self._new = new
        self._padding = padding
        self._check = check
        self._state = new()

    def read(self, limit: int) -> bytes:
        empty = _Empty()
        while True:
            self._check()
            data = b""
            if self._state.eof:
                data = (self._state.unused_data or self._file.read(_IN)).lstrip(self._padding)
                if not data:
                    return b""
                empty.add()
                self._state = self._new()
            elif self._state.needs_input:
                data = self._file.read(_IN)
                if not data:
                    raise EOFError
            out = self._state.decompress(data, limit)
            if out:
                return out


def _xz(file: IO[bytes], check: Callable[[], None]) -> _Streams:
    return _Streams(file, lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY), b"\0", check)


def _zstd(file: IO[bytes], check: Callable[[], None]) -> _Streams:
    from paddock.base.images import zstd  # noqa: PLC0415 - few images need it

    return _Streams(file, lambda: zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}), b"", check)


class PackedFile:
    """A file, unpacked while it is read. Whatever its library raises becomes an `ImageRefused`.

    `check` raises when the work shall end; it runs also where a read finds nothing to return for long.
    """

    def __init__(self, file: FileIO, wrapper: Wrapper | None, check: Callable[[], None] = lambda: None) -> None:
        self._file = file
        self._wrapper = wrapper
        self._reader: UnpackReader
        match wrapper:
            case "gzip":
                self._reader = _Gzip(self._file)
            case "xz":
                self._reader = _xz(self._file, check)
            case "zstd":
                self._reader = _zstd(self._file, check)
            case _:
                self._reader = self._file

    def read(self, limit: int) -> bytes:
        """At most so many bytes; empty at the end."""
        if self._wrapper is None:
            return self._reader.read(limit)
        try:
            return self._reader.read(limit)
        except EOFError as error:
            raise ImageRefused("Truncated", f"the {self._wrapper} file ends in its middle") from error
        except OSError:
            raise
        except Exception as error:
            # zlib.error, LZMAError and ZstdError have no base of their own; none of them is loaded before it is needed.
            if type(error).__module__.split(".")[0] not in ("zlib", "_lzma", "lzma", "backports", "compression", "_zstd"):
                raise
            raise ImageRefused("Truncated", f"the {self._wrapper} file is damaged", why=str(error)) from error

    @property
    def position(self) -> int:
        """Packed bytes that were read."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "PackedFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class UnpackLimit:
    """Bytes that may come out. `limit` may rise while it is used: others may have joined who have larger volumes."""

    def __init__(self, packed: int, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._most = max(_FREE_BYTES, packed * _MOST_RATIO)

    def check(self, count: int) -> None:
        """Refuse more than is allowed."""
        most = min(self._limit(), self._most)
        if count > most:
            raise ImageRefused("TooLarge", f"the image unpacks to more than {most} bytes", fix="a larger volume (PVC) is required")


def unpack(path: Path, limit: Callable[[], int], watched: tuple[Meter, StopFlag], outer: Path | None = None) -> Path:
    """Take wrappers off; the files between are removed, `path` itself is kept. Returns `path` when there is none.

    `outer` is what the outer wrapper held, if that is off already.
    """
    inner = outer or path
    for depth in range(1 if outer else 0, _DEEPEST + 1):
        wrapper = wrapper_of(head_of(inner))
        if wrapper is None:
            return inner
        if depth == _DEEPEST:
            raise ImageRefused("Unsupported", f"the image is packed more than {_DEEPEST} times")
        out = path.with_name(f"unpacked.{depth}")
        unpack_one(FileIO(inner), wrapper, out, UnpackLimit(inner.stat().st_size, limit), watched)
        if inner != path:
            inner.unlink()
        inner = out
    return inner


def unpack_one(source: FileIO, wrapper: Wrapper, target: Path, budget: UnpackLimit, watched: tuple[Meter, StopFlag]) -> None:
    """Take one wrapper off. The source is closed in the end."""
    meter, stop = watched
    with PackedFile(source, None if wrapper == "tar" else wrapper, stop.check) as packed, SparseWriter(target) as file:
        meter.begin("unpacking", os.fstat(source.fileno()).st_size)
        reader: UnpackReader = _only_file(packed) if wrapper == "tar" else packed
        while data := reader.read(_OUT):
            stop.check()
            budget.check(file.offset + len(data))
            if not file.offset and stays(data[:HEAD_BYTES]):
                file.flush_along()
            file.write(data)
            meter.at(packed.position)
        if wrapper == "tar":
            _no_more(reader)


def _only_file(packed: PackedFile) -> Tar:
    tar = Tar(packed.read)
    for entry in tar:
        if entry.kind == "file":
            return tar
        if entry.kind != "directory":
            raise ImageRefused("Unsafe", f"the archive holds {entry.kind} {entry.shown}, not only one disk image")
    raise ImageRefused("NotAnImage", "the archive holds no file")


def _no_more(tar: UnpackReader) -> None:
    if isinstance(tar, Tar) and any(entry.kind != "directory" for entry in tar):
        raise ImageRefused("NotAnImage", "the archive holds more than one file", fix="pack only the disk image")
