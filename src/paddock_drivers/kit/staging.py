"""The storage between two providers: directories of claims and of NFS exports, and buckets.

Other providers write the same directories, so nothing in them is believed: every part of a path is opened below the one before it, and a
symbolic link is an error. A file that is being written has another name until it is complete. Providers that run as other users read it by
their common group, so files and directories have its permissions whatever the umask of this process is.
"""

import asyncio
import os
import secrets
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from paddock.base import reasons
from paddock.base.clock import Clock
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.presigned import S3Keys
from paddock.kubernetes.client.s3 import S3Object, S3Place
from paddock_drivers.kit import refusals

PVC, NFS, S3 = "pvc", "nfs", "s3"
_MOUNTS = "PROVIDER_NFS_MOUNTS"
CHUNK = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_MODE, _FILE_MODE = 0o770, 0o660
_ZEROS = bytes(CHUNK)


# The requests that name an object of staging storage.
TransferRequest = m.ExportDiskRequest | m.ImportDiskRequest | x.TransferDeleteRequest


class StagedObject(msgspec.Struct, frozen=True):
    """One export at its backend."""

    backend: str
    # of a file: the directory that is trusted, and the parts below it
    root: Path = Path()
    parts: tuple[str, ...] = ()
    # of a file on NFS: its user and group; -1 leaves them
    user: int = -1
    group: int = -1
    place: S3Place | None = None
    keys: S3Keys | None = None

    def __repr__(self) -> str:
        return f"StagedObject({self.backend})"


class StagingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The storage that a driver reaches."""

    # a subdirectory for each staging claim; None: claims are out of reach
    claims: Path | None = None
    # where NFS exports are mounted, by SERVER:/EXPORT
    mounts: Mapping[str, Path] = {}

    @property
    def backends(self) -> tuple[str, ...]:
        return (*((PVC,) if self.claims is not None else ()), S3, *((NFS,) if self.mounts else ()))


def nfs_mounts(environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the NFS exports mounted beside a provider's program: SERVER:/EXPORT=/DIRECTORY, separated by commas."""
    pairs = (each.strip().partition("=") for each in environment.get(_MOUNTS, "").split(",") if each.strip())
    return {name: Path(path) for name, _, path in pairs if ":/" in name and path.startswith("/")}


def of_request(settings: StagingSettings, request: TransferRequest, url: str) -> StagedObject:
    """Return the object of a request's address; raises `ProviderError` for what is out of reach."""
    if request.backend_type not in ("", urlsplit(url).scheme):
        raise refusals.invalid("backend_type and the address name different storage")
    return find(settings, url, request.credentials, request.storage_options_json, request.transfer_mode)


def find(settings: StagingSettings, url: str, credentials: Mapping[str, str], options_json: str, mode: str) -> StagedObject:
    """The object of a staging address; raises `ProviderError` for what is out of reach. No error repeats the address."""
    if mode not in ("", "auto", "relay"):
        raise refusals.not_supported(f"the transfer mode {mode[:32]!r} is not supported", fix="use relay")
    try:
        parts = urlsplit(url)
        host, path = parts.hostname or "", unquote(parts.path)
    except ValueError:
        raise refusals.invalid("the staging address cannot be read") from None
    if not parts.scheme:
        raise refusals.invalid("the staging address is empty or has no scheme")
    if parts.scheme not in settings.backends:
        known = ", ".join(settings.backends)
        raise refusals.not_supported(f"the storage {parts.scheme[:32]!r} is out of reach", why=f"this provider reaches {known}")
    if parts.scheme == S3:
        return _bucket(parts.netloc, path, credentials, options_json)
    if parts.scheme == NFS:
        return _export(settings, host, path, parse_qs(parts.query))
    assert settings.claims is not None
    return StagedObject(PVC, settings.claims, _checked((parts.netloc, *path.removeprefix("/").split("/"))))


def _bucket(bucket: str, path: str, credentials: Mapping[str, str], options_json: str) -> StagedObject:
    options: dict[str, Any] = payloads.decode_manifest(options_json) if options_json else {}
    missing = next((key for key in ("accessKeyID", "secretAccessKey") if not credentials.get(key)), None)
    if missing is not None:
        raise refusals.invalid(f"the credentials for S3 have no {missing}")
    region, name = str(options.get("region") or ""), path.lstrip("/")
    if not bucket or not name:
        raise refusals.invalid("the staging address names no object", fix="send s3://BUCKET/KEY")
    place = S3Place(
        bucket=bucket, name=name, endpoint=str(options.get("endpoint") or ""), region=region, path_style=bool(options.get("usePathStyle"))
    )
    keys = S3Keys(
        key=credentials["accessKeyID"], secret=credentials["secretAccessKey"], token=credentials.get("sessionToken", ""), region=region
    )
    return StagedObject(S3, place=place, keys=keys)


def _export(settings: StagingSettings, host: str, path: str, query: Mapping[str, list[str]]) -> StagedObject:
    for named, root in settings.mounts.items():
        server, _, export = named.partition(":")
        below = f"{export.rstrip('/')}/"
        if server.lower() == host and path.startswith(below):
            owner = [int(query[key][0]) if query.get(key, [""])[0].isdecimal() else -1 for key in ("uid", "gid")]
            return StagedObject(NFS, root, _checked(path.removeprefix(below).split("/")), owner[0], owner[1])
    raise refusals.not_supported("the NFS export is not mounted here", fix="mount it, and name the mount in PROVIDER_NFS_MOUNTS")


def _checked(parts: "tuple[str, ...] | list[str]") -> tuple[str, ...]:
    if len(parts) < 1 or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise refusals.invalid("the staging address is no path below its storage")
    return tuple(parts)


# --- files ------------------------------------------------------------------------------------------------------------------------


@contextmanager
def _folder(staged_object: StagedObject, *, make: bool) -> Iterator[int]:
    """The directory of a file, opened part by part."""
    handle = os.open(staged_object.root, _DIRECTORY)
    try:
        for part in staged_object.parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, _FOLDER_MODE, dir_fd=handle)
            below = os.open(part, _DIRECTORY, dir_fd=handle)
            if make:
                _share(below, handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _share(below: int, above: int) -> None:
    """Open a directory of ours to its group, which new files take from the directory above if that says so."""
    has = os.fstat(below)
    wanted = _FOLDER_MODE | (os.fstat(above).st_mode & stat.S_ISGID)
    if has.st_uid == os.geteuid() and stat.S_IMODE(has.st_mode) != wanted:
        os.fchmod(below, wanted)


class StagedFile:
    """A new file, which gets its name when it is complete."""

    def __init__(self, staged_object: StagedObject) -> None:
        self._found = staged_object
        self._part = f".{staged_object.parts[-1]}.{secrets.token_hex(6)}.part"
        self.handle = -1

    def __enter__(self) -> "StagedFile":
        if self._found.backend == PVC and len(self._found.parts) < 2:
            raise refusals.invalid("the staging address names no file")
        with _failures("write"), _folder(self._found, make=True) as folder:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self.handle = os.open(self._part, flags, _FILE_MODE, dir_fd=folder)
            os.fchmod(self.handle, _FILE_MODE)
            if (self._found.user, self._found.group) != (-1, -1):
                os.fchown(self.handle, self._found.user, self._found.group)
        return self

    def finish(self) -> None:
        """Give the file its name."""
        with _failures("write"), _folder(self._found, make=False) as folder:
            os.fsync(self.handle)
            os.rename(self._part, self._found.parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            self._part = ""

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)
        if self._part:
            with suppress(OSError), _folder(self._found, make=False) as folder:
                os.unlink(self._part, dir_fd=folder)


async def opened(staged_object: StagedObject, clock: Clock) -> tuple[int, AsyncIterator[bytes]]:
    """The size of an export, and its bytes."""
    if staged_object.place is not None and staged_object.keys is not None:
        bucket = S3Object(staged_object.place, staged_object.keys, clock)
        try:
            size, chunks = await bucket.open()
        except BaseException:
            await bucket.__aexit__()
            raise
        return size, _closing(bucket, chunks)
    with _failures("read"), _folder(staged_object, make=False) as folder:
        handle = os.open(staged_object.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        os.close(handle)
        raise refusals.invalid("the export is no file")
    return state.st_size, pieces(handle, state.st_size)


async def _closing(bucket: S3Object, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async with bucket:
        async for chunk in chunks:
            yield chunk


async def pieces(handle: int, size: int) -> AsyncIterator[bytes]:
    """The first bytes of an open file, which is closed at the end. A file that shrinks is an error of its reader."""
    try:
        at = 0
        while at < size and (chunk := os.pread(handle, min(CHUNK, size - at), at)):
            at += len(chunk)
            yield chunk
            await asyncio.sleep(0)
    finally:
        os.close(handle)


async def remove(staged_object: StagedObject, clock: Clock) -> None:
    """Delete an export, and the directories that are empty then. One that is gone is deleted."""
    if staged_object.place is not None and staged_object.keys is not None:
        async with S3Object(staged_object.place, staged_object.keys, clock) as bucket:
            await bucket.delete()
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        with _folder(staged_object, make=False) as folder:
            os.unlink(staged_object.parts[-1], dir_fd=folder)
        for end in range(len(staged_object.parts) - 1, 0, -1):
            with _folder(msgspec.structs.replace(staged_object, parts=staged_object.parts[:end]), make=False) as folder, suppress(OSError):
                os.rmdir(staged_object.parts[end - 1], dir_fd=folder)


def write_sparse(handle: int, chunk: bytes, at: int) -> None:
    """Write what is not zero; holes read as zeros."""
    for start in range(0, len(chunk), CHUNK):
        piece = chunk[start : start + CHUNK]
        if piece != _ZEROS[: len(piece)]:
            os.pwrite(handle, piece, at + start)


@contextmanager
def _failures(verb: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise refusals.not_found(
            f"cannot {verb} the export: its file or directory does not exist", reason=reasons.STAGING_UNREADABLE
        ) from None
    except OSError as error:
        what, why = f"cannot {verb} the export", error.strerror or type(error).__name__
        reason = reasons.STAGING_UNREADABLE if isinstance(error, PermissionError) else ""
        raise ProviderError(ErrorKind.UNAVAILABLE, what, why=why, fix="call again", retry_after=5.0, reason=reason) from error
