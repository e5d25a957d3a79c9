"""The interface of the driver's storage half for the machine's half (`volumes.VolumeStore` implements it).

A plan is made before anything else: it resolves pools, images and imported disks, and refuses what cannot be. Then the domain is
defined with the paths of the plan, marked as incomplete, and the disks are made. So the domain names all that an interrupted creation left.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from paddock.contract.description import MachineDescription
from paddock.contract.payloads import DiskPayload


class NamedMachine(msgspec.Struct, frozen=True):
    """A machine: its name, which its volumes begin with, and the UUID of its domain."""

    name: str
    uuid: str


class DomainDisk(msgspec.Struct, frozen=True, kw_only=True):
    """A disk as a definition names it. The storage half alone reads what `recipe` holds."""

    name: str
    path: str
    pool: str
    volume: str
    # raw or qcow2, as the definition's driver element says
    format: str = "qcow2"
    # file, or block for a volume that is a device
    kind: str = "file"
    bytes: int = 0
    # an imported disk that stays whole if the creation fails, or somebody's; `own`: it goes with the machine when that is deleted
    imported: bool = False
    own: bool = True
    # options of the driver element: cache, io, discard, detect_zeroes
    options: Mapping[str, str] = {}
    # the most operations in a second; 0: no limit
    iops: int = 0
    recipe: Mapping[str, str] = {}
    # the UUID of the machine that the volume is noted for
    machine: str = ""
    # its volume was there when it was planned, and is the machine's
    there: bool = False


class StoredDisk(msgspec.Struct, frozen=True, kw_only=True):
    """A volume as it is."""

    path: str
    pool: str = ""
    volume: str = ""
    format: str = ""
    capacity: int = 0
    allocation: int = 0
    backing: str = ""


class MachineStorage(Protocol):
    async def plan(self, description: MachineDescription, uuid: str) -> tuple[DomainDisk, ...]:
        """Return the disks of a new machine: the root disk first (`marks.ROOT_DISK`). Raises for what is not there or not possible."""

    async def plan_disk(self, machine: NamedMachine, disk: DiskPayload, datastore: str) -> DomainDisk:
        """Return one more disk for a machine that exists."""

    async def make(self, disks: Sequence[DomainDisk]) -> None:
        """Make the volumes. One that exists under its name and was made before is taken as it is if it is whole, or made again."""

    async def delete(self, paths: Iterable[str]) -> None:
        """Delete volumes by their paths. One that is gone is deleted."""

    async def delete_left(self, uuid: str, name: str) -> None:
        """Delete the disks of a machine that no domain has any more; the name, where it is known, says where to look."""

    async def tidy(self) -> None:
        """Drop what copies that were cut off have left and that nobody wants, once for each process."""

    async def keep_seed(self, machine: NamedMachine, datastore: str, content: bytes) -> DomainDisk:
        """Store the documents of a guest's first boot as the raw volume MACHINE-cloud-init.iso, in the place of an older one."""

    async def grow(self, uuid: str, path: str, size: int) -> None:
        """Make a disk of a machine larger, with the running guest's knowledge if it runs. A disk that is as large is left."""

    async def measured(self, paths: Iterable[str]) -> Mapping[str, StoredDisk]:
        """Return the volumes of paths. A path that no pool has is missing in the answer."""
