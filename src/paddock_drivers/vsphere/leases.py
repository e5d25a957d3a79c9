"""Leases: permissions of vSphere to read or write the disks of a machine over HTTP, which it keeps open as long as progress is reported.

    async with LeaseHolder(session, lease) as files:
        ...

A lease that is not completed is aborted, and vSphere takes away what an import has begun.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType

import msgspec
from pyVmomi import vim, vmodl

from paddock.contract.errors import ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import failures
from paddock_drivers.vsphere.disks import VSphereDisk
from paddock_drivers.vsphere.session import VSphereSession

_READY_SECONDS, _POLL_SECONDS, _REPORT_SECONDS = 300.0, 0.5, 20.0
_STATES = vim.HttpNfcLease.State


class LeaseFile(msgspec.Struct, frozen=True):
    """A file of a lease."""

    url: str
    key: str
    # of an import: the device of the specification
    import_key: str = ""
    target: str = ""
    is_disk: bool = True


class LeaseHolder:
    """Keeps a lease open for the length of a block, and ends it as the block ends."""

    def __init__(self, session: VSphereSession, lease: vim.HttpNfcLease) -> None:
        self._session = session
        self._lease = lease
        self._percent = 0
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> tuple[LeaseFile, ...]:
        try:
            files = await self._ready()
        except BaseException:
            await self._end(complete=False)
            raise
        self._keeper = asyncio.create_task(self._keep(), name="lease")
        return files

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        await self._end(complete=kind is None)

    @property
    def entity(self) -> vim.VirtualMachine:
        """The machine of a ready lease. For threads."""
        return self._lease.info.entity

    def progress(self, done: int, total: int) -> None:
        """Note how much is transferred; it is reported with the next sign of life."""
        self._percent = min(99, done * 100 // total) if total > 0 else self._percent

    async def _ready(self) -> tuple[LeaseFile, ...]:
        end = asyncio.get_running_loop().time() + _READY_SECONDS
        while True:
            state, found, fault = await self._session.run(self._state)
            if state == _STATES.ready:
                return found
            if state == _STATES.error:
                raise failures.of(fault) if isinstance(fault, Exception) else refusals.retry_later("vSphere opens no lease")
            if asyncio.get_running_loop().time() > end:
                raise refusals.retry_later("vSphere does not open the lease in time")
            await asyncio.sleep(_POLL_SECONDS)

    def _state(self) -> tuple[str, tuple[LeaseFile, ...], object]:
        state = self._lease.state
        if state == _STATES.error:
            return state, (), self._lease.error
        if state != _STATES.ready:
            return state, (), None
        urls = self._lease.info.deviceUrl or ()
        return state, tuple(_file(each) for each in urls), None

    async def _keep(self) -> None:
        """Say every now and then that the transfer goes on."""
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            with contextlib.suppress(ProviderError):
                await self._session.run(lambda: self._lease.HttpNfcLeaseProgress(self._percent))

    async def _end(self, *, complete: bool) -> None:
        def end() -> None:
            if complete:
                self._lease.HttpNfcLeaseProgress(100)
                self._lease.HttpNfcLeaseComplete()
                return
            # A lease that has an error, or has run out, is gone.
            with contextlib.suppress(vmodl.MethodFault):
                self._lease.HttpNfcLeaseAbort(None)

        if complete:
            await self._session.run(end)
            return
        with contextlib.suppress(ProviderError):
            await self._session.run(end)


def _file(url: vim.HttpNfcLease.DeviceUrl) -> LeaseFile:
    return LeaseFile(url.url, url.key, url.importKey or "", url.targetId or "", bool(url.disk))


def file_of(files: Sequence[LeaseFile], disk: VSphereDisk, number: int) -> LeaseFile:
    """Return the file of a disk: by its place in the key, by the name of its file, or by its number among the disks."""
    found = [each for each in files if each.is_disk]
    placed = [each for each in found if disk.place.count(":") == 1 and each.key.rpartition("/")[2].endswith(f"Controller{disk.place}")]
    named = [each for each in found if each.target and each.target == disk.path.rpartition("/")[2]]
    for fitting in (placed, named):
        if len(fitting) == 1:
            return fitting[0]
    if number < len(found):
        return found[number]
    raise refusals.conflict(f'disk "{disk.name}" cannot be exported', why="vSphere offers no file for it")
