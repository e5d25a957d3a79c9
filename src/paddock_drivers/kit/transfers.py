"""Exports and imports over staging storage, as work of this process.

A transfer is known by what it does: the same call again answers with the task that is under way, or with the result. A driver that was
started again knows none of them; their tasks have failed then, and the manager calls again. What a transfer writes has its name, and a
machine can take it, only when it is complete and its checksum is right.
"""

import asyncio
import hashlib
import logging
import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec

from paddock.base import reasons
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.s3 import S3Object, S3Refusal
from paddock_drivers.kit import conversion, refusals, staging
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.kit.staging import StagedFile, StagedObject, StagingSettings

_LOG = logging.getLogger(__name__)
_MOST_KNOWN, _MOST_RUNNING = 256, 4
_HEAD = 64 << 10
_GONE = 404
_SHA256 = re.compile(r"[0-9a-fA-F]{64}\Z")


class TransferResult(msgspec.Struct, frozen=True):
    """A complete transfer: the bytes that were written or read, the disk's size, and the SHA-256 of the stored object."""

    size: int
    disk_size: int
    checksum: str


class _Transfer(NamedTuple):
    address: str
    task: "asyncio.Task[TransferResult]"


class StagingTransfers:
    """The transfers of this process."""

    def __init__(self) -> None:
        self._known: dict[str, _Transfer] = {}
        self._slots = asyncio.Semaphore(_MOST_RUNNING)

    def begin(
        self, purpose: str, address: str, what: str, work: Callable[[], Awaitable[TransferResult]]
    ) -> tuple[str, TransferResult | None]:
        """The id of a transfer to or from an address, or its result. One that failed begins anew."""
        key = f"{address}\0{what}"
        digest = hashlib.sha256(f"{purpose}\0{key}".encode()).hexdigest()[:32]
        found = self._known.get(digest)
        if found is not None and found.task.done() and not found.task.cancelled() and found.task.exception() is None:
            return "", found.task.result()
        if found is None or found.task.done():
            self._known.pop(digest, None)
            self._known[digest] = _Transfer(address, asyncio.create_task(self._run(work), name=f"{purpose} {digest}"))
            self._forget()
        return digest, None

    async def _run(self, work: Callable[[], Awaitable[TransferResult]]) -> TransferResult:
        async with self._slots:
            try:
                return await work()
            except S3Refusal as error:
                raise mapped(error) from error

    async def settled(self, id: str, seconds: float) -> TransferResult | None:
        """Wait a while for the end of a transfer, so that a short one is answered by its call. Raises its `ProviderError`."""
        found = self._known.get(id)
        if found is None:
            return None
        done, _ = await asyncio.wait({found.task}, timeout=seconds)
        if not done or found.task.cancelled():
            return None
        error = found.task.exception()
        if isinstance(error, ProviderError):
            raise error
        return None if error is not None else found.task.result()

    def status(self, id: str) -> TaskProgress:
        """The progress of a transfer; one that this process does not know has ended with another."""
        found = self._known.get(id)
        if found is None:
            return failed("the transfer has ended with the program that carried it out; begin it again")
        if not found.task.done():
            return RUNNING
        if found.task.cancelled():
            return failed("the transfer was cancelled")
        error = found.task.exception()
        if error is None:
            return DONE
        if not isinstance(error, PaddockError):
            _LOG.error("transfer failed", exc_info=error)
            return failed("the transfer failed unexpectedly; the provider's log says more")
        return failed(error)

    async def delete(self, settings: StagingSettings, request: x.TransferDeleteRequest, clock: Clock) -> m.TaskResponse:
        """Delete an export from its storage; one that is gone, also with its bucket, is deleted."""
        try:
            await staging.remove(staging.of_request(settings, request, request.source_url), clock)
        except S3Refusal as error:
            if error.status != _GONE:
                raise mapped(error) from error
        except OSError as error:
            raise refusals.retry_later(f"cannot delete the export: {error.strerror or type(error).__name__}") from error
        self.forget(request.source_url)
        return m.TaskResponse()

    def forget(self, address: str) -> None:
        """Forget the transfers of an address whose object is gone."""
        self._known = {name: each for name, each in self._known.items() if each.address != address or not each.task.done()}

    def _forget(self) -> None:
        """Keep a bounded number of ended transfers."""
        ended = [name for name, each in self._known.items() if each.task.done()]
        for name in ended[: max(0, len(self._known) - _MOST_KNOWN)]:
            del self._known[name]


def expected_checksum(request: m.ImportDiskRequest) -> str:
    """Return the SHA-256 that an import must have; empty when nothing is compared."""
    if not request.verify_checksum or not request.expected_checksum:
        return ""
    digits = request.expected_checksum.removeprefix("sha256:")
    if _SHA256.match(digits) is None:
        raise refusals.invalid("the expected checksum is no SHA-256", fix="send 64 hexadecimal digits")
    return digits.lower()


class ExportOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A disk to export: where to, in which format."""

    target: StagedObject
    format: str
    compress: bool
    # the bytes that the guest has of it
    size: int
    # where files that are only needed meanwhile may be
    scratch: Path | None


# Takes the bytes of a file and their number.
DiskSink = Callable[[AsyncIterator[bytes], int], Awaitable[None]]


async def export(order: ExportOrder, disk: AsyncIterator[bytes], clock: Clock) -> TransferResult:
    """Store a raw disk."""
    source = _bounded(disk, order.size)
    if order.format == conversion.RAW and order.target.place is not None:
        sums = _Sums(source)
        await _store(order.target, sums.chunks(), order.size, clock)
        return TransferResult(sums.size, sums.size, sums.checksum)
    if order.format == conversion.RAW:
        with StagedFile(order.target) as file:
            sums = _Sums(source)
            await _save(file.handle, sums.chunks())
            file.finish()
        return TransferResult(sums.size, sums.size, sums.checksum)
    with TemporaryFile(dir=order.scratch) as raw:
        disk_size = await _save(raw.fileno(), source)
        if order.target.place is None:
            with StagedFile(order.target) as file:
                size, checksum = await _converted(raw.fileno(), file.handle, order)
                file.finish()
            return TransferResult(size, disk_size, checksum)
        with TemporaryFile(dir=order.scratch) as made:
            size, checksum = await _converted(raw.fileno(), made.fileno(), order)
            await _store(order.target, _again(made.fileno(), size), size, clock)
        return TransferResult(size, disk_size, checksum)


async def _converted(source: int, target: int, order: ExportOrder) -> tuple[int, str]:
    """Convert one file to another; returns its size and checksum."""
    await conversion.convert(source, target, order.format, compress=order.compress)
    size = os.fstat(target).st_size
    sums = _Sums(_again(target, size))
    async for _ in sums.chunks():
        pass
    return sums.size, sums.checksum


class ImportOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An export to read: where it is, and the checksum that it must have, if any."""

    source: StagedObject
    checksum: str = ""
    most: int = 1 << 47


async def import_(order: ImportOrder, clock: Clock, open_sink: Callable[[int], Awaitable[DiskSink]]) -> TransferResult:
    """Read an export and send it to the target, which learns the disk's size first (0: unknown).

    With a wrong checksum the last bytes are held back, so the target takes nothing.
    """
    size, chunks = await staging.opened(order.source, clock)
    if size > order.most:
        raise refusals.invalid("the export is larger than any disk can be")
    first, rest = await _head(chunks)
    disk_size = conversion.virtual_size(first, size)
    send = await open_sink(disk_size)
    sums = _Sums(rest)

    async def checked() -> AsyncIterator[bytes]:
        held = b""
        async for chunk in sums.chunks():
            if held:
                yield held
            held = chunk
        if sums.size != size:
            raise refusals.retry_later("the export has changed while it was read")
        if order.checksum and sums.checksum != order.checksum:
            raise ProviderError(ErrorKind.INVALID_SPEC, "the disk is damaged", why=f"its SHA-256 is {sums.checksum}, not {order.checksum}")
        yield held

    await send(checked(), size)
    return TransferResult(sums.size, disk_size, sums.checksum)


# --- streams ----------------------------------------------------------------------------------------------------------------------


class _Sums:
    """Counts and sums what goes by."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.size = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._source:
            self._digest.update(chunk)
            self.size += len(chunk)
            yield chunk
            await asyncio.sleep(0)

    @property
    def checksum(self) -> str:
        return self._digest.hexdigest()


async def _bounded(source: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """The bytes of a disk; a target that sends without end, or more than the disk can have, is cut off."""
    most, seen = 2 * size + (1 << 30), 0
    async for chunk in source:
        seen += len(chunk)
        if seen > most:
            raise refusals.retry_later(f"the target sends more than {most} bytes of a disk of {size}")
        yield chunk
    if not seen:
        raise refusals.retry_later("the target sent nothing of the disk")


async def _head(chunks: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """The first bytes, and all of them."""
    first = b""
    async for chunk in chunks:
        first += chunk
        if len(first) >= _HEAD:
            break

    async def everything() -> AsyncIterator[bytes]:
        if first:
            yield first
        async for chunk in chunks:
            yield chunk

    return first[:_HEAD], everything()


async def _save(handle: int, chunks: AsyncIterator[bytes]) -> int:
    """Write a raw disk with holes; returns its size."""
    at = 0
    async for chunk in chunks:
        staging.write_sparse(handle, chunk, at)
        at += len(chunk)
    os.ftruncate(handle, at)
    return at


def _again(handle: int, size: int) -> AsyncIterator[bytes]:
    return staging.pieces(os.dup(handle), size)


async def _store(target: StagedObject, chunks: AsyncIterator[bytes], size: int, clock: Clock) -> None:
    """Put an object into its bucket."""
    assert target.place is not None and target.keys is not None
    async with S3Object(target.place, target.keys, clock) as bucket:
        await bucket.write(chunks, math.ceil(size * 1.1) + (64 << 20))


def mapped(error: S3Refusal) -> ProviderError:
    """The provider's error for the refusal of a bucket."""
    if error.status in (401, 403):
        kind = ErrorKind.UNAUTHORIZED
    elif error.status == 404:
        kind = ErrorKind.NOT_FOUND
    else:
        kind = ErrorKind.INVALID_SPEC if error.status < 500 and error.status != 429 else ErrorKind.UNAVAILABLE
    reason = reasons.STAGING_UNAUTHORIZED if kind is ErrorKind.UNAUTHORIZED else ""
    return ProviderError(kind, error.what, why=error.why, fix=error.fix, reason=reason)
