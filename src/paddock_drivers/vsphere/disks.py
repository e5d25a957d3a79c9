"""The disks of a machine: what is there, and the changes that make it what is wanted. Pure: devices in, specifications out.

A disk that the manager names keeps its place, "BUS:UNIT" of a SCSI controller, in the machine's marks: labels and keys of devices change
when hardware does. The first disk in the order of places is the one that the machine boots from; it is "root" unless it has a name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET
from pyVmomi import vim

from paddock.base import reasons
from paddock.contract.payloads import DiskPayload, ScsiPayload
from paddock_drivers.kit import refusals

ROOT = "root"
_GIB = 1 << 30
# A controller has sixteen units, and one of them is its own.
_OWN_UNIT, _UNITS, _BUSES = 7, 16, 4
_MODELS: Mapping[str, type[vim.vm.device.VirtualSCSIController]] = {
    "pvscsi": vim.vm.device.ParaVirtualSCSIController,
    "lsilogic": vim.vm.device.VirtualLsiLogicController,
    "buslogic": vim.vm.device.VirtualBusLogicController,
    "lsilogic-sas": vim.vm.device.VirtualLsiLogicSASController,
}
_SHARING = ("noSharing", "virtualSharing", "physicalSharing")
_THIN, _THICK, _EAGER = "thin", "thick", "eagerzeroedthick"
TYPES = (_THIN, _THICK, _EAGER)
# What a class may say of disks that vSphere decides by where they are.
_PLACED = ("ssd", "hdd")
_Change = vim.vm.device.VirtualDeviceSpec
_Operation = vim.vm.device.VirtualDeviceSpec.Operation
_FileOperation = vim.vm.device.VirtualDeviceSpec.FileOperation


class VSphereDisk(msgspec.Struct, frozen=True):
    """A disk that a machine has."""

    name: str
    key: int
    # "BUS:UNIT"
    place: str
    size: int
    # "[DATASTORE] FOLDER/FILE.vmdk"
    path: str
    type: str
    # the file below it, when it is a delta
    parent: str = ""
    uuid: str = ""

    @property
    def datastore(self) -> str:
        """The name of the datastore."""
        return self.path.partition("]")[0].removeprefix("[")


class VSphereDiskStorage(msgspec.Struct, frozen=True):
    """The place of a new disk: a datastore by name, or wherever a policy lets it be."""

    datastore: str = ""
    policy: str = ""


class DiskChanges(msgspec.Struct, frozen=True):
    """Changes of devices, and the places of the named disks afterwards."""

    changes: tuple[vim.vm.device.VirtualDeviceSpec, ...] = ()
    places: Mapping[str, str] = {}
    limitations: tuple[str, ...] = ()


class DiskWishes(msgspec.Struct, frozen=True, kw_only=True):
    """The disks that a machine is to have beside the one it boots from."""

    disks: tuple[DiskPayload, ...] = ()
    # the size of the disk that it boots from; 0: as it is
    root_gib: int = 0
    # of disks that do not say it, as the class does
    type: str = ""
    # the most operations a second of new disks and of the one that it boots from; 0: no limit
    iops: int = 0
    # the datastore or the policy of a storage class
    storage: Callable[[str], VSphereDiskStorage] = lambda _: VSphereDiskStorage()


def observed(devices: Iterable[vim.vm.device.VirtualDevice], places: Mapping[str, str] = {}) -> tuple[VSphereDisk, ...]:
    """Return the disks of a machine in the order of their places; `places` has the names that the manager gave them."""
    known = tuple(devices)
    buses = {each.key: (_rank(each), each.busNumber) for each in known if isinstance(each, vim.vm.device.VirtualController)}
    names = {place: name for name, place in places.items()}
    found = []
    for each in known:
        if isinstance(each, vim.vm.device.VirtualDisk):
            rank, bus = buses.get(each.controllerKey, (9, 0))
            found.append(((rank, bus, each.unitNumber or 0), each))
    made = []
    for order, ((rank, bus, unit), each) in enumerate(sorted(found, key=lambda pair: pair[0])):
        place = f"{bus}:{unit}" if rank == 0 else f"{type(each).__name__.rsplit('.', 1)[-1]}{rank}:{bus}:{unit}"
        name = names.get(place) or (ROOT if order == 0 else f"disk-{place.replace(':', '-').lower()}")
        made.append(_disk(name, place, each))
    return tuple(made)


def find(disks: Sequence[VSphereDisk], wanted: str) -> VSphereDisk | None:
    """Return the disk of a name, a key, a file or a place; the first one for an empty text."""
    if not wanted:
        return disks[0] if disks else None
    return next((each for each in disks if wanted in (each.name, str(each.key), each.path, each.place)), None)


def _rank(controller: vim.vm.device.VirtualController) -> int:
    """The order in which a BIOS looks for disks: SCSI, then the others."""
    kinds = (vim.vm.device.VirtualSCSIController, vim.vm.device.VirtualAHCIController, vim.vm.device.VirtualIDEController)
    return next((rank for rank, kind in enumerate(kinds) if isinstance(controller, kind)), len(kinds))


def _disk(name: str, place: str, device: vim.vm.device.VirtualDisk) -> VSphereDisk:
    backing = device.backing
    parent = getattr(backing, "parent", None)
    return VSphereDisk(
        name=name,
        key=device.key,
        place=place,
        size=device.capacityInBytes or (device.capacityInKB or 0) * 1024,
        path=getattr(backing, "fileName", "") or "",
        type=_type(backing),
        parent=(parent.fileName if parent is not None else "") or "",
        uuid=getattr(backing, "uuid", "") or "",
    )


def _type(backing: object) -> str:
    if getattr(backing, "thinProvisioned", False):
        return _THIN
    return _EAGER if getattr(backing, "eagerlyScrub", False) else _THICK


# --- changes ----------------------------------------------------------------------------------------------------------------------


def changes(devices: Iterable[vim.vm.device.VirtualDevice], places: Mapping[str, str], wishes: DiskWishes) -> DiskChanges:
    """Return what makes the disks of a machine those that are wanted. A named disk that is not wanted is detached; its file stays.

    Disks without a name of the manager's are left alone. Raises InvalidSpec for a disk that would shrink.
    """
    known = tuple(devices)
    present = {each.name: each for each in observed(known, places)}
    plan = _DiskPlan(known, wishes)
    if wishes.root_gib and present:
        plan.grow(next(iter(present.values())), wishes.root_gib, ROOT)
    if wishes.type and present:
        plan.judge_root(next(iter(present.values())))
    if wishes.iops and present:
        plan.limit(next(iter(present.values())))
    wanted = {each.name for each in wishes.disks}
    for name in places:
        if name not in wanted and name in present:
            plan.detach(present[name])
    for each in wishes.disks:
        there = present.get(each.name) if each.name in places else None
        if there is None:
            plan.add(each)
        else:
            plan.keep(each, there)
    return DiskChanges(tuple(plan.made), plan.places, tuple(plan.limitations))


class _DiskPlan:
    """The changes so far, and what they have taken of the controllers."""

    def __init__(self, devices: tuple[vim.vm.device.VirtualDevice, ...], wishes: DiskWishes) -> None:
        self._wishes = wishes
        self._devices = {each.key: each for each in devices}
        self._controllers = {each.busNumber: each for each in devices if isinstance(each, vim.vm.device.VirtualSCSIController)}
        self._taken = {(each.controllerKey, each.unitNumber) for each in devices if each.unitNumber is not None}
        # Devices that are not there yet have keys below zero.
        self._key = -100
        self.made: list[vim.vm.device.VirtualDeviceSpec] = []
        self.places: dict[str, str] = {}
        self.limitations: list[str] = []

    def keep(self, wish: DiskPayload, there: VSphereDisk) -> None:
        self.places[wish.name] = there.place
        if wish.size_gib:
            self.grow(there, wish.size_gib, wish.name)
        kind = self._kind(wish)
        if kind and kind != there.type:
            self.limitations.append(f"disks.{wish.name}.type: the disk stays {there.type}; vSphere changes it only by copying the disk")

    def grow(self, there: VSphereDisk, gib: int, name: str) -> None:
        if gib * _GIB < there.size:
            why = f"it has {there.size} bytes, and {gib} GiB are wanted"
            raise refusals.invalid(
                f'disk "{name}" cannot shrink', why=why, fix="make a smaller disk and copy what is on it", reason=reasons.DISK_SHRINKS
            )
        if gib * _GIB == there.size:
            return
        if there.parent:
            what = f'disk "{name}" cannot grow'
            raise refusals.conflict(what, why="it is based on a snapshot or on the disk of another machine", fix="delete the snapshots")
        device = self._devices[there.key]
        device.capacityInKB, device.capacityInBytes = gib * _GIB // 1024, gib * _GIB
        self.made.append(_Change(operation=_Operation.edit, device=device))

    def judge_root(self, there: VSphereDisk) -> None:
        kind = self._wishes.type.lower()
        if kind != there.type:
            self.limitations.append(f"diskDefaults.type: the disk that the machine boots from stays {there.type}, as its template has it")

    def limit(self, there: VSphereDisk) -> None:
        device = self._devices[there.key]
        if getattr(device.storageIOAllocation, "limit", None) == self._wishes.iops:
            return
        device.storageIOAllocation = _allocation(self._wishes.iops)
        if all(each.device is not device for each in self.made):
            self.made.append(_Change(operation=_Operation.edit, device=device))

    def detach(self, there: VSphereDisk) -> None:
        # Without an operation on the file it stays on its datastore.
        self.made.append(_Change(operation=_Operation.remove, device=self._devices[there.key]))

    def add(self, wish: DiskPayload) -> None:
        controller = self._controller(wish.scsi if isinstance(wish.scsi, ScsiPayload) else None)
        unit = self._unit(controller)
        storage = (
            self._wishes.storage(wish.storage_class) if wish.storage_class is not UNSET and wish.storage_class else VSphereDiskStorage()
        )
        backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(diskMode="persistent")
        path = wish.path if wish.path is not UNSET else ""
        backing.fileName = path or (f"[{storage.datastore}]" if storage.datastore else "")
        kind = self._kind(wish) or _THIN
        if not path:
            backing.thinProvisioned, backing.eagerlyScrub = kind == _THIN, kind == _EAGER
        self._key -= 1
        device = vim.vm.device.VirtualDisk(key=self._key, controllerKey=controller.key, unitNumber=unit, backing=backing)
        if wish.size_gib:
            device.capacityInKB, device.capacityInBytes = wish.size_gib * _GIB // 1024, wish.size_gib * _GIB
        if self._wishes.iops:
            device.storageIOAllocation = _allocation(self._wishes.iops)
        change = _Change(operation=_Operation.add, device=device)
        if not path:
            change.fileOperation = _FileOperation.create
        if storage.policy:
            change.profile = [vim.vm.DefinedProfileSpec(profileId=storage.policy)]
        self.made.append(change)
        self.places[wish.name] = f"{controller.busNumber}:{unit}"

    def _kind(self, wish: DiskPayload) -> str:
        kind = (wish.type or self._wishes.type).lower()
        if kind in _PLACED:
            self.limitations.append(f"disks.{wish.name}.type: {kind} is decided by the datastore; name one in storageClass")
            return ""
        if kind and kind not in TYPES:
            raise refusals.not_supported(f"a disk of type {kind[:32]!r} cannot be made", fix=f"use {', '.join(TYPES)}")
        return kind

    def _controller(self, wish: ScsiPayload | None) -> vim.vm.device.VirtualSCSIController:
        """The controller that is asked for, made if it is not there; without a wish the first that has room."""
        if wish is None or (wish.controller is None and not wish.controller_type and not wish.shared_bus):
            roomy = next((each for _, each in sorted(self._controllers.items()) if self._has_room(each)), None)
            return roomy or self._new_controller(None, ScsiPayload())
        if wish.controller is not None and wish.controller in self._controllers:
            found = self._controllers[wish.controller]
            self._check(found, wish)
            return found
        fitting = (each for _, each in sorted(self._controllers.items()) if self._fits(each, wish) and self._has_room(each))
        if wish.controller is None and (found := next(fitting, None)) is not None:
            return found
        return self._new_controller(wish.controller, wish)

    def _fits(self, controller: vim.vm.device.VirtualSCSIController, wish: ScsiPayload) -> bool:
        model, sharing = _model(wish), _sharing(wish)
        return type(controller) is model and str(controller.sharedBus) == sharing

    def _check(self, controller: vim.vm.device.VirtualSCSIController, wish: ScsiPayload) -> None:
        if not self._fits(controller, wish):
            what = f"SCSI controller {controller.busNumber} is of another model, or shares its bus in another way, than a disk asks for"
            raise refusals.conflict(what, fix="name another controller")

    def _has_room(self, controller: vim.vm.device.VirtualSCSIController) -> bool:
        return any((controller.key, unit) not in self._taken for unit in range(_UNITS) if unit != _OWN_UNIT)

    def _new_controller(self, bus: int | None, wish: ScsiPayload) -> vim.vm.device.VirtualSCSIController:
        chosen = bus if bus is not None else next((each for each in range(_BUSES) if each not in self._controllers), _BUSES)
        if not 0 <= chosen < _BUSES:
            raise refusals.invalid(f"a machine has no SCSI controller {chosen}", why=f"there are {_BUSES}, counted from 0")
        self._key -= 1
        made = _model(wish)(key=self._key, busNumber=chosen, sharedBus=_sharing(wish))
        self._controllers[chosen] = made
        self.made.append(_Change(operation=_Operation.add, device=made))
        return made

    def _unit(self, controller: vim.vm.device.VirtualSCSIController) -> int:
        for unit in range(_UNITS):
            if unit != _OWN_UNIT and (controller.key, unit) not in self._taken:
                self._taken.add((controller.key, unit))
                return unit
        raise refusals.invalid(f"SCSI controller {controller.busNumber} has no room for another disk", fix="name another controller")


def _allocation(iops: int) -> vim.StorageResourceManager.IOAllocationInfo:
    return vim.StorageResourceManager.IOAllocationInfo(limit=iops)


def _model(wish: ScsiPayload) -> type[vim.vm.device.VirtualSCSIController]:
    model = _MODELS.get((wish.controller_type or "pvscsi").lower())
    if model is None:
        what = f"a SCSI controller of type {wish.controller_type[:32]!r} cannot be made"
        raise refusals.not_supported(what, fix=f"use {', '.join(_MODELS)}")
    return model


def _sharing(wish: ScsiPayload) -> str:
    sharing = wish.shared_bus or _SHARING[0]
    if sharing not in _SHARING:
        raise refusals.not_supported(f"a SCSI bus cannot be shared as {sharing[:32]!r}", fix=f"use {', '.join(_SHARING)}")
    return sharing
