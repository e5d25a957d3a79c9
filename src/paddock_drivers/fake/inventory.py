"""The inventory of a fake driver: its machines, images and disks, and the work that changes them."""

import random
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from paddock.base.clock import Clock
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import GetCapabilitiesResponse, ObjectIdentity, TaskRef
from paddock_drivers.fake.machines import GIB, FakeDisk, FakeHardware, FakeMachine, FakeNic
from paddock_drivers.fake.settings import FakeSettings
from paddock_drivers.fake.specs import FakeDiskSpec
from paddock_drivers.fake.tasks import FakeTasks, Work

# The size of an image that nobody has described.
IMAGE_BYTES = 10 * GIB
_ALL = GetCapabilitiesResponse(
    supports_reconfigure_online=True,
    supports_disk_expansion_online=True,
    supports_snapshots=True,
    supports_memory_snapshots=True,
    supports_linked_clones=True,
    supports_image_import=True,
    supported_disk_types=("thin", "thick"),
    supported_network_types=("bridge", "nat"),
    supports_disk_export=True,
    supports_disk_import=True,
    supported_export_formats=("qcow2", "raw"),
    supported_import_formats=("qcow2", "raw"),
    supported_export_backends=("pvc",),
    supported_import_backends=("pvc",),
    supported_transfer_modes=("relay",),
)


class TaskFault(NamedTuple):
    """What the script does to the task of a call."""

    failure: ProviderError | None = None
    hangs: bool = False


# of the call that is being served
TASK_FAULT: ContextVar[TaskFault] = ContextVar("TASK_FAULT")
_NO_FAULT = TaskFault()


@dataclass(slots=True)
class FakeImage:
    """A prepared image: the request that it was made from, and its disk."""

    source: str
    disk: FakeDisk
    task: str = ""


class FakeInventory:
    """Machines, images and disks by id, name and path."""

    def __init__(self, settings: FakeSettings, clock: Clock, chance: random.Random) -> None:
        self.settings = settings
        self.clock = clock
        self.chance = chance
        self.tasks = FakeTasks(clock)
        self.machines: dict[str, FakeMachine] = {}
        # name -> prepared image
        self.images: dict[str, FakeImage] = {}
        # path -> a disk that no machine has: imported, or detached
        self.disks: dict[str, FakeDisk] = {}
        # what exports and imports have been asked for, by address and by name, with the answers
        self.exports: dict[str, tuple[object, m.ExportDiskResponse]] = {}
        self.imports: dict[str, tuple[object, m.ImportDiskResponse]] = {}
        # every export and import that has really ended well, in order
        self.exported: list[str] = []
        self.imported: list[str] = []
        self.capabilities = _capabilities(settings)
        self._count = 0
        for each in settings.machines:
            self._add_foreign(each.name, FakeHardware(each.cpu, each.memory_mib), each.disk_gib, each.power)

    def _add_foreign(self, name: str, hardware: FakeHardware, disk_gib: int, power: str) -> None:
        machine = self.make(name, hardware)
        machine.disks.append(self.make_disk(machine, "root", disk_gib * GIB, "thin"))
        machine.nics = (FakeNic("lan", f"02:fb:00:00:00:{machine.number & 255:02x}"),)
        machine.power = power
        self.machines[machine.id] = machine

    # --- finding ----------------------------------------------------------------------------------------------------------

    def machine(self, id: str, owner: ObjectIdentity | None = None) -> FakeMachine:
        """The machine of an id. Raises `ProviderError` if there is none, or if another owner has it."""
        found = self.machines.get(id)
        if found is None:
            raise ProviderError(ErrorKind.NOT_FOUND, f"machine {shown(id)} does not exist")
        if is_other(found.owner, owner):
            raise ProviderError(ErrorKind.CONFLICT, f"machine {found.id} belongs to another owner", why=named(found.owner))
        return found

    def of_owner(self, owner: ObjectIdentity | None) -> FakeMachine | None:
        """The machine of an owner."""
        if owner is None or not owner.uid:
            return None
        return next((each for each in self.machines.values() if each.owner is not None and each.owner.uid == owner.uid), None)

    def named(self, name: str) -> FakeMachine | None:
        """The machine of a name."""
        return next((each for each in self.machines.values() if each.name == name), None)

    def require(self, capability: str) -> None:
        """Raise `ProviderError` if the capability is switched off."""
        if not getattr(self.capabilities, capability):
            raise ProviderError(ErrorKind.NOT_SUPPORTED, f"this provider does not have {capability}")

    def check_quota(self, hardware: FakeHardware, instead_of: FakeMachine | None = None) -> None:
        """Raise `ProviderError` if all machines together would have too much."""
        others = [each.hardware for each in self.machines.values() if each is not instead_of]
        limits = (("CPUs", self.settings.most_cpu, "cpu"), ("MiB of memory", self.settings.most_memory_mib, "memory_mib"))
        for what, most, member in limits:
            wanted = getattr(hardware, member) + sum(getattr(each, member) for each in others)
            if most and wanted > most:
                raise ProviderError(ErrorKind.QUOTA_EXCEEDED, f"the machines would have {wanted} {what}", why=f"the quota is {most}")

    # --- making -----------------------------------------------------------------------------------------------------------

    def make(self, name: str, hardware: FakeHardware) -> FakeMachine:
        """A machine with the next number; the caller adds it."""
        self._count += 1
        return FakeMachine(f"vm-{self._count}", name, self._count, hardware, [])

    def make_disk(self, machine: FakeMachine, name: str, size: int, type: str) -> FakeDisk:
        """A disk of a machine, empty."""
        disk = self.next_id("disk")
        return FakeDisk(disk, name, size, type, f"/fake/{machine.id}/{disk}.qcow2")

    def make_data_disk(self, machine: FakeMachine, fake_disk_spec: FakeDiskSpec) -> FakeDisk:
        """A disk beside the first one, as a request wants it."""
        disk = self.make_disk(machine, fake_disk_spec.name, fake_disk_spec.size_gib * GIB, fake_disk_spec.type)
        disk.storage_class, disk.scsi = fake_disk_spec.storage_class, fake_disk_spec.scsi
        if fake_disk_spec.path:
            # An imported disk becomes the machine's own, and goes with it.
            imported = self.disks.pop(fake_disk_spec.path)
            disk.id, disk.path, disk.data, disk.size = imported.id, imported.path, imported.data, max(disk.size, imported.size)
        return disk

    def next_id(self, kind: str) -> str:
        """An id that nothing else has."""
        self._count += 1
        return f"{kind}-{self._count}"

    # --- working ----------------------------------------------------------------------------------------------------------

    def work(self, machine: FakeMachine | None, work: Work, undo: Work | None = None, *, seconds: float | None = None) -> TaskRef:
        """Start a task, after those that the machine has already. Its work fails if the machine is gone by then."""
        spread = self.settings.task_seconds
        length = self.chance.uniform(spread.least, max(spread.least, spread.most)) if seconds is None else seconds
        start = max(self.clock.seconds(), machine.busy_until if machine else 0.0)
        fault = TASK_FAULT.get(_NO_FAULT)
        if machine is not None and not fault.hangs:
            machine.busy_until = start + length
        at = None if fault.hangs else start + length
        task = self.tasks.start(at, self._guarded(machine, work), undo or _nothing, fault.failure)
        return TaskRef(id=task.id)

    def _guarded(self, machine: FakeMachine | None, work: Work) -> Work:
        def guarded() -> None:
            if machine is not None:
                self.machine(machine.id)
            work()

        return guarded


def _nothing() -> None:
    pass


def _capabilities(settings: FakeSettings) -> GetCapabilitiesResponse:
    """All capabilities, without those that the settings switch off and what depends on these."""
    off = {each if each.startswith("supports_") else f"supports_{each}" for each in settings.without}
    if "supports_snapshots" in off:
        off.add("supports_memory_snapshots")
    changes: dict[str, object] = dict.fromkeys(off & set(_ALL.__struct_fields__), False)
    for direction in ("export", "import"):
        if f"supports_disk_{direction}" in off:
            changes |= {f"supported_{direction}_formats": (), f"supported_{direction}_backends": ()}
        else:
            changes |= {f"supported_{direction}_backends": settings.backends}
    return msgspec.structs.replace(_ALL, **changes, supports_clustering=bool(settings.hosts))


def is_other(owner: ObjectIdentity | None, caller: ObjectIdentity | None) -> bool:
    """Return True if both are known by uid and differ."""
    return bool(owner and caller and owner.uid and caller.uid and owner.uid != caller.uid)


def named(owner: ObjectIdentity | None) -> str:
    """Namespace and name of an owner."""
    return f"the owner is {owner.namespace}/{owner.name}" if owner is not None else "nobody owns it"


def shown(text: str) -> str:
    """A caller's text as a message can have it: short and printable."""
    cut = text[:64] + ("..." if len(text) > 64 else "")
    return repr(cut)
