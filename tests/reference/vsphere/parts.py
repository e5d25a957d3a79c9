"""The parts of the driver that work on disks, on a simulator: what the driver makes of them, without the driver."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from pyVmomi import vim

from paddock.base.clock import SystemClock
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.vsphere import settings
from paddock_drivers.vsphere.datastores import DatastoreInventory
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.lookups import MachineLookup
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.snapshots import VSphereSnapshots
from paddock_drivers.vsphere.stores import DiskStore
from paddock_drivers.vsphere.transfers import TransferSettings, VSphereTransfers
from tests.reference.vsphere.vcenter import Simulator

T = TypeVar("T")


class StorageParts:
    """The parts, with one session."""

    def __init__(self, simulator: Simulator, folder: Path, **variables: str) -> None:
        self.session = VSphereSession(settings.of_environment(simulator.environment(**variables)), simulator.credentials)
        connection = self.session.connection
        self.inventory = VSphereInventory(connection)
        self.lookup = MachineLookup(self.inventory)
        self.datastores = DatastoreInventory(self.inventory)
        self.store = DiskStore(self.session, self.inventory)
        self.snapshots = VSphereSnapshots(self.lookup)
        staging = StagingSettings(claims=folder)
        given = TransferSettings(staging=staging, scratch=folder, allowed=("127.0.0.1",))
        self.settings = given
        self.transfers = VSphereTransfers(self.session, self.lookup, self.store, self.datastores, given, SystemClock())

    def machine(self, name: str) -> str:
        """Return the id of a machine."""
        row = self.inventory.named(vim.VirtualMachine, name, paths=("config.instanceUuid",))
        return str(row.get("config.instanceUuid"))

    def ref(self, name: str) -> Any:
        """Return a machine of vSphere."""
        return self.inventory.named(vim.VirtualMachine, name).ref

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Carry out work of the driver's own."""

        async def whole() -> T:
            return await work()

        return asyncio.run(whole())

    def close(self) -> None:
        """End the session."""
        self.session.connection.close()


def local_file(parts: StorageParts, path: str) -> Path:
    """Return the file of this host that a path on a datastore of the simulator is."""
    name, _, rest = path.removeprefix("[").partition("] ")
    return Path(parts.inventory.named(vim.Datastore, name).ref.summary.url, rest)
