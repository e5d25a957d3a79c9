"""Disks as files of datastores: looked for, written, deleted. A disk is there when its descriptor is, which is written last."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
from pyVmomi import vim, vmodl

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import credentials, descriptors, files
from paddock_drivers.vsphere.descriptors import FlatDisk
from paddock_drivers.vsphere.files import FileServer
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.paths import DatastorePath
from paddock_drivers.vsphere.session import VSphereSession

_SECTOR = 512
_FLAT, _DISK = "-flat.vmdk", ".vmdk"
# Datastores that keep disks as objects, and not as files that could be uploaded.
OBJECTS = ("vsan", "vvol", "pmem")


class StoreContext(msgspec.Struct, frozen=True):
    """The datacenter that paths on datastores belong to."""

    ref: Any
    # its path in the inventory
    path: str


class DiskStore:
    """The disks on the datastores of a datacenter."""

    def __init__(self, session: VSphereSession, inventory: VSphereInventory) -> None:
        self._session = session
        self._inventory = inventory

    # --- for threads --------------------------------------------------------------------------------------------------------------

    def server(self) -> FileServer:
        """Return the endpoint as a server of files."""
        connection = self._session.connection
        settings = connection.settings
        # The session has to be there before its cookie is.
        cookie = connection.cookie if connection.content is not None else ""
        return FileServer(settings.endpoint.origin, cookie, credentials.authority(connection.folder), settings.insecure)

    def context(self, ref: Any = None) -> StoreContext:
        """Return the datacenter of an object, or that of the settings."""
        home = self._inventory.datacenter().ref if ref is None else self._above(ref)
        names, at = [], home
        while at is not None and (row := self._inventory.find(at, ("name", "parent"))) is not None and row.get("parent") is not None:
            names.append(row.name)
            at = row.get("parent")
        return StoreContext(home, "/".join(reversed(names)))

    def _above(self, ref: Any) -> Any:
        """The datacenter of an object."""
        at = ref
        while not isinstance(at, vim.Datacenter):
            row = self._inventory.find(at, ("parent",))
            if row is None or row.get("parent") is None:
                return self._inventory.datacenter().ref
            at = row.get("parent")
        return at

    def has(self, path: DatastorePath, context: StoreContext) -> bool:
        """Return whether a disk is there."""
        try:
            self._session.connection.content.virtualDiskManager.QueryVirtualDiskUuid(str(path), context.ref)
        except (vim.fault.FileNotFound, vim.fault.InvalidDatastore):
            return False
        return True

    def prepare(self, path: DatastorePath, context: StoreContext) -> None:
        """Make the folder of a disk."""
        with suppress(vim.fault.FileAlreadyExists):
            self._session.connection.content.fileManager.MakeDirectory(str(path.folder), context.ref, True)

    def remove(self, path: DatastorePath, context: StoreContext) -> vim.Task | None:
        """Delete a disk; one that is gone is deleted."""
        if not self.has(path, context):
            return None
        return self._session.connection.content.virtualDiskManager.DeleteVirtualDisk_Task(str(path), context.ref)

    def discard(self, path: DatastorePath, context: StoreContext) -> None:
        """Delete what an upload that failed has left of a disk."""
        manager = self._session.connection.content.fileManager
        for each in (path, extent_of(path)):
            with suppress(vmodl.MethodFault):
                manager.DeleteDatastoreFile_Task(str(each), context.ref)

    # --- bytes --------------------------------------------------------------------------------------------------------------------

    async def read(self, path: DatastorePath, context: StoreContext, size: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a disk, from the file that holds them; raises `ProviderError` for a disk that is no such file."""
        server = await self._session.run(self.server)
        head = await files.read_small(server, path.target(context.path), descriptors.MOST, "the descriptor of the disk")
        found = descriptors.read(head)
        if found.size != size:
            raise refusals.conflict("the disk cannot be read from its datastore", why="its descriptor says another size than its machine")
        seen = 0
        async for chunk in files.read(server, path.beside(found.extent).target(context.path), "the disk"):
            seen += len(chunk)
            yield chunk
        if seen != size:
            raise refusals.retry_later(f"the datastore sent {seen} bytes of a disk of {size}")

    async def write(self, path: DatastorePath, context: StoreContext, chunks: AsyncIterator[bytes], size: int) -> None:
        """Store a disk. What cannot be stored completely is deleted."""
        server = await self._session.run(self.server)
        await self._session.run(lambda: self.prepare(path, context))
        whole = -(-size // _SECTOR) * _SECTOR
        extent = extent_of(path)
        try:
            await files.write(server, extent.target(context.path), _padded(chunks, whole - size), whole, "the disk")
            text = descriptors.written(FlatDisk(whole, extent.name))
            await files.write(server, path.target(context.path), files.once(text), len(text), "the descriptor of the disk")
        except BaseException:
            await self._session.run(lambda: self.discard(path, context))
            raise


def extent_of(path: DatastorePath) -> DatastorePath:
    """Return the file that holds the bytes of a disk of ours."""
    return path.beside(path.name.removesuffix(_DISK) + _FLAT)


def check_kind(kind: str) -> None:
    """Raise NotSupported for a datastore that disks cannot be uploaded to."""
    if kind.lower() in OBJECTS:
        why = f"a datastore of type {kind} takes no files"
        raise ProviderError(ErrorKind.NOT_SUPPORTED, "the disk cannot be imported", why=why, fix="name a VMFS or NFS datastore")


async def _padded(chunks: AsyncIterator[bytes], missing: int) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk
    if missing:
        yield bytes(missing)
