"""Machines by the identifiers that the manager keeps, for the parts that work on what a machine has. For threads."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from paddock_drivers.kit import refusals
from paddock_drivers.vsphere import disks, marks
from paddock_drivers.vsphere.disks import VSphereDisk
from paddock_drivers.vsphere.inventory import InventoryRow, VSphereInventory

_MACHINE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII)
ON, SUSPENDED = "poweredOn", "suspended"
_PATHS = (
    "name",
    "config.extraConfig",
    "config.hardware.device",
    "config.template",
    "layoutEx",
    "runtime.powerState",
    "snapshot",
)


class FoundMachine(msgspec.Struct, frozen=True):
    """A machine and what it has."""

    id: str
    uuid: str
    row: InventoryRow

    @property
    def ref(self) -> Any:
        return self.row.ref

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def marks(self) -> dict[str, str]:
        """The notes of the driver on it."""
        return marks.read(self.row.get("config.extraConfig"))

    @property
    def is_live(self) -> bool:
        """Return whether its disks are in use by a guest, also by one that is suspended."""
        return str(self.row.get("runtime.powerState")) in (ON, SUSPENDED)

    @property
    def places(self) -> dict[str, str]:
        """The places of the disks that the manager named."""
        found: dict[str, str] = marks.loaded(self.marks, marks.DISKS, dict)
        return found

    @property
    def disks(self) -> tuple[VSphereDisk, ...]:
        """Its disks, the one that it boots from first."""
        return disks.observed(self.row.get("config.hardware.device", ()), self.places)

    @property
    def snapshots(self) -> tuple[Any, ...]:
        """The roots of its tree of snapshots."""
        found = self.row.get("snapshot")
        return tuple(found.rootSnapshotList) if found is not None else ()


class MachineLookup:
    def __init__(self, inventory: VSphereInventory) -> None:
        self._inventory = inventory

    def find(self, text: str, paths: Sequence[str] = ()) -> FoundMachine | None:
        """Return the machine of an id; None when the hypervisor does not have it."""
        uuid = text.rpartition("/")[2].lower()
        ref = self._inventory.machine_of(uuid) if _MACHINE.match(uuid) else None
        row = self._inventory.find(ref, (*_PATHS, *paths)) if ref is not None else None
        return FoundMachine(text, uuid, row) if row is not None else None

    def machine(self, text: str, paths: Sequence[str] = ()) -> FoundMachine:
        """Return the machine of an id; raises NotFound."""
        found = self.find(text, paths)
        if found is None:
            raise refusals.not_found("the machine does not exist")
        return found
