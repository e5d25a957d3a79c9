"""The changes of a machine that a reconfigure asks for. Pure."""

from collections.abc import Mapping

import msgspec

from paddock.base import reasons
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import ClassPayload, DiskPayload, NetworkPayload
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import domainview, marks, observed
from paddock_drivers.libvirt.domainview import DiskView, DomainView, InterfaceView
from paddock_drivers.libvirt.marks import MachineMarks
from paddock_drivers.libvirt.storageport import StoredDisk

_GIB = 1 << 30
# Guests of Linux bring plugged memory online in blocks of this size.
BLOCK_MIB = 128
# How sentences about what a machine keeps begin.
_KEPT = ("networks: ", "userData: ")


class DiskGrowth(msgspec.Struct, frozen=True):
    """A disk that becomes larger."""

    name: str
    path: str
    bytes: int


class DomainChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a machine. 0: as it is."""

    cpus: int = 0
    memory_mib: int = 0
    grown: tuple[DiskGrowth, ...] = ()
    added: tuple[DiskPayload, ...] = ()
    detached: tuple[DiskView, ...] = ()

    @property
    def any(self) -> bool:
        """Return whether there is anything to do."""
        return bool(self.cpus or self.memory_mib or self.grown or self.added or self.detached)


def find(view: DomainView, description: MachineDescription, sizes: Mapping[str, StoredDisk]) -> DomainChanges:
    """Return the changes that bring a machine to what is wanted; raises InvalidSpec for a disk that would shrink."""
    hardware = description.hardware
    grown, added = [], []
    root = _root_growth(view, hardware, sizes)
    if root is not None:
        grown.append(root)
    for disk in description.disks:
        present = view.disk(disk.name)
        if present is None or present.path not in {each.path for each in observed.disks(view)}:
            added.append(disk)
            continue
        size = observed.size_of(view, present, sizes)
        if disk.size_gib * _GIB < size // _GIB * _GIB:
            raise refusals.invalid(
                f"disk {disk.name} cannot shrink",
                why=f"it has {size // _GIB} GiB",
                fix="ask for as much, or make another",
                reason=reasons.DISK_SHRINKS,
            )
        if disk.size_gib * _GIB > size:
            grown.append(DiskGrowth(disk.name, present.path, disk.size_gib * _GIB))
    return DomainChanges(
        cpus=hardware.cpu if hardware.cpu != view.cpus else 0,
        memory_mib=hardware.memory_mib if hardware.memory_mib != view.memory_mib else 0,
        grown=tuple(grown),
        added=tuple(added),
        detached=_detached(view, {each.name for each in description.disks}),
    )


def _root_growth(view: DomainView, hardware: ClassPayload, sizes: Mapping[str, StoredDisk]) -> DiskGrowth | None:
    """The growth of the root disk. A class that asks for less than the image has is no wish to shrink it."""
    root, wanted = view.disk(""), hardware.disk_defaults.size_gib * _GIB if hardware.disk_defaults is not None else 0
    if root is None or not root.path or wanted <= observed.size_of(view, root, sizes):
        return None
    return DiskGrowth(observed.name_of(view, root), root.path, wanted)


def _detached(view: DomainView, names: set[str]) -> tuple[DiskView, ...]:
    """The disks that the manager asked for once, and does not name any more. Disks of nobody's making stay."""
    known = view.marks.disks if view.marks is not None else ()
    gone = {each.path for each in known if each.name not in (marks.ROOT_DISK, marks.SEED_DISK, *names)}
    return tuple(each for each in observed.disks(view) if each.path in gone)


def unchangeable(view: DomainView, description: MachineDescription) -> tuple[str, ...]:
    """Return what of the networks and the documents of a machine does not reach one that exists."""
    limits = []
    if not _has_cards(view, description):
        limits.append("networks: a machine on libvirt keeps the interfaces that it was made with; make it anew for others")
    noted = view.marks.notes.get(marks.DOCUMENTS, "") if view.marks is not None else ""
    if description.user_data and not noted:
        limits.append("userData: the machine was made without a document for its guest, which reads one at its first boot only")
    elif description.user_data and noted != marks.documents_digest(view.uuid, description.user_data):
        limits.append("userData: a guest reads its document at its first boot only; the machine keeps the one that it was made with")
    return tuple(limits)


def limitations(known: MachineMarks, view: DomainView, description: MachineDescription) -> tuple[str, ...]:
    """Return the limitations of a machine after a reconfigure: those of its creation, and what no reconfigure changes."""
    limits = tuple(each for each in known.limitations if not each.startswith(_KEPT))
    return (*limits, *unchangeable(view, description))


def _has_cards(view: DomainView, description: MachineDescription) -> bool:
    """Return whether a machine has the interfaces of a description, as far as that says what they are."""
    if not description.networks:
        # One that asks for none has one on the default network, which has no name of the manager's.
        return not any(each.alias.startswith("ua-") for each in view.interfaces)
    if len(view.interfaces) != len(description.networks):
        return False
    return all(_is_card(has, asks) for has, asks in zip(view.interfaces, description.networks, strict=True))


def _is_card(has: InterfaceView, asks: NetworkPayload) -> bool:
    place = asks.bridge or asks.network_name
    mac = asks.mac_address.lower().replace("-", ":")
    return (not place or has.source == place) and (not mac or has.mac == mac) and (not asks.model or has.model == asks.model.lower())


def check_live(view: DomainView, changes: DomainChanges, slots: int) -> None:
    """Raise Conflict for a change that a machine cannot take while it runs; before anything of it is done."""
    if changes.cpus:
        if changes.cpus < view.cpus:
            raise _stopped(view, f"it has {view.cpus} CPUs, and loses none while it runs")
        if changes.cpus > view.most_cpus:
            raise _stopped(view, f"it can have {view.most_cpus} CPUs while it runs: cpuHotAddEnabled of its class makes room for more")
    if changes.memory_mib:
        more = changes.memory_mib - view.memory_mib
        if more < 0:
            raise _stopped(view, f"it has {view.memory_mib} MiB of memory, and loses none while it runs")
        if slots <= 0:
            raise _stopped(view, "it has no room for more memory: memoryHotAddEnabled of its class makes some")
        if more % BLOCK_MIB:
            raise _stopped(view, f"memory is added in steps of {BLOCK_MIB} MiB while it runs")


def free_slots(view: DomainView, more_mib: int) -> int:
    """Return the places for memory that a machine has left, 0 if so much does not fit."""
    from_root = view.root.find("maxMemory")
    if from_root is None or view.most_memory_mib + more_mib > size_mib(view):
        return 0
    slots = from_root.get("slots", "0")
    return (int(slots) if slots.isdigit() else 0) - len(view.root.findall("devices/memory"))


def size_mib(view: DomainView) -> int:
    """Return the memory that a machine can grow to while it runs."""
    return domainview.size(view.root.find("maxMemory")) >> 20


def _stopped(view: DomainView, why: str) -> Exception:
    return refusals.conflict(f"machine {view.name} cannot be changed while it runs", why=why, fix="power it off first")
