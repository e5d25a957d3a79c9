"""Machines in memory: what a hypervisor would keep about each."""

import copy
from dataclasses import dataclass, field

import msgspec

from paddock.contract.messages import ObjectIdentity

ON, OFF, SUSPENDED = "On", "Off", "Suspended"
GIB = 1 << 30


@dataclass(slots=True)
class FakeDisk:
    """A disk: a size and the data at its beginning (see `diskfiles`)."""

    id: str
    name: str
    size: int
    type: str
    path: str
    data: bytes = b""
    # of a linked clone: the path of the source's disk
    backing: str = ""
    storage_class: str = ""
    # of its SCSI controller, as the request has it
    scsi: str = ""

    def copy(self) -> "FakeDisk":
        """The disk as it is now."""
        return copy.copy(self)


class FakeNic(msgspec.Struct, frozen=True):
    name: str
    mac: str
    # empty: the guest asks DHCP
    static_ip: str = ""


@dataclass(slots=True)
class FakeHardware:
    """The hardware of a machine, without disks."""

    cpu: int
    memory_mib: int
    hot_add_cpu: bool = False
    hot_add_memory: bool = False
    # what the class asked for the first disk, which may be smaller than its image
    root_gib: int = 0
    version: int = 0


@dataclass(slots=True)
class FakeSnapshot:
    """A machine as it was."""

    id: str
    name: str
    description: str
    # with memory: the machine goes on from here; without: it is off
    memory: bool
    hardware: FakeHardware
    disks: list[FakeDisk]


@dataclass(slots=True)
class FakeMachine:
    id: str
    name: str
    number: int
    hardware: FakeHardware
    disks: list[FakeDisk]
    owner: ObjectIdentity | None = None
    nics: tuple[FakeNic, ...] = ()
    tags: tuple[str, ...] = ()
    host: str = ""
    power: str = OFF
    snapshots: list[FakeSnapshot] = field(default_factory=list)
    # the ids of snapshots by the names that they were asked for, also of those under way
    snapshot_ids: dict[str, str] = field(default_factory=dict)
    # the source of a clone
    cloned_from: str = ""
    # the task that creates or deletes it
    create_task: str = ""
    delete_task: str = ""
    # works on it are done one after another; the last ends then
    busy_until: float = 0.0
    # when the guest has its address
    address_at: float = 0.0
    boots: int = 0
    resource_pool: str = ""
    datastore: str = ""
    # what ran in the guest
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def boot(self, now: float, address_seconds: float) -> None:
        """Start the guest, which writes to its first disk."""
        self.power = ON
        self.boots += 1
        self.address_at = now + address_seconds
        self.disks[0].data = f"{self.id} has booted {self.boots} times\n".encode()

    def addresses(self, now: float) -> tuple[str, ...]:
        """The addresses that the guest reports."""
        if self.power != ON or now < self.address_at:
            return ()
        dynamic = f"10.{self.number >> 16 & 255}.{self.number >> 8 & 255}.{self.number & 255}"
        return tuple(nic.static_ip or dynamic for nic in self.nics[:1]) or (dynamic,)

    def snapshot(self, id: str) -> FakeSnapshot | None:
        """The snapshot of this id."""
        return next((each for each in self.snapshots if each.id == id), None)
