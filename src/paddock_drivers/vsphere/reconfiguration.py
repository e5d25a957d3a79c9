"""Reconfiguring: the whole desired state is compared with the machine, and the difference is one task of vSphere.

A machine that was just cloned is finished in the same way: its marks hold what it is to be, so any driver can go on.
"""

import json
from typing import Any

import msgspec
from msgspec import UNSET
from pyVmomi import vim

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import DesiredPayload, DiskPayload, NetworkPayload
from paddock_drivers.kit import description, refusals
from paddock_drivers.vsphere import disks, guestinfo, hardware, marks, networks
from paddock_drivers.vsphere.disks import DiskWishes, VSphereDiskStorage
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.networks import NetworkFinder
from paddock_drivers.vsphere.target import SeenMachine, VSphereTarget, reference

_GIB = 1 << 30
# The second step of a machine with static addresses: the guest finds its cards by MAC addresses, which vSphere gives.
_ADDRESSES = "addresses"
_STEPS = 3


def pending(description: MachineDescription, *, step: str = "") -> str:
    """Return what is still to be done to a machine, for its marks. Documents for the guest are no part of it."""
    desired = DesiredPayload(
        name=description.name,
        machine_class=description.hardware,
        image=payloads.ImagePayload(),
        networks=description.networks,
        disks=description.disks,
        placement=description.placement,
        tags=description.tags,
    )
    return json.dumps({"step": step, "desired": msgspec.json.decode(payloads.encode(desired))}, sort_keys=True)


class VSphereReconfiguration:
    """Brings machines to their desired state."""

    def __init__(self, target: VSphereTarget) -> None:
        self._target = target

    def apply(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Carry out the difference; raises Conflict for a change that needs the machine off."""
        machine = self._target.machine(request.id, request.owner)
        if machine.get("config") is None:
            raise refusals.conflict(f"machine {machine.name} cannot be changed", why="its host is not connected")
        wanted = description.of_desired(machine.name, request.desired_json)
        spec = self._specification(machine, wanted, fresh=False)
        if spec is None:
            return m.TaskResponse()
        what = f"machine {machine.name} cannot be changed"
        task = machine.ref.ReconfigVM_Task(spec)
        if self._target.quick(task, what) is not None:
            return m.TaskResponse()
        sizes = f"{wanted.hardware.cpu}x{wanted.hardware.memory_mib}"
        return m.TaskResponse(task=m.TaskRef(id=str(VSphereTaskId(VSphereGoal.RECONFIGURED, machine.id, reference(task), sizes))))

    def finish(self, machine: SeenMachine) -> bool:
        """Do what a new machine still needs. Returns whether it is complete; raises what makes that impossible."""
        for _ in range(_STEPS):
            left = marks.loaded(machine.marks, marks.PENDING, dict)
            if not left:
                return True
            if self._target.is_worked_on(machine):
                return False
            wanted = description.of_desired(machine.name, json.dumps(left.get("desired") or {}))
            task = self._step(machine, wanted, str(left.get("step") or ""))
            if self._target.quick(task, f"machine {machine.name} cannot be completed") is None:
                return False
            machine = self._target.machine(machine.id)
        return not machine.marks.get(marks.PENDING)

    def _step(self, machine: SeenMachine, description: MachineDescription, step: str) -> Any:
        """Start what comes next: a newer hardware version, which allows the rest; the rest; the addresses."""
        version = hardware.version_of(description.hardware)
        if not step and version > hardware.current_version(machine.get("config")):
            return machine.ref.UpgradeVM_Task(hardware.version_name(version))
        return machine.ref.ReconfigVM_Task(
            self._addresses(machine, description) if step == _ADDRESSES else self._fresh(machine, description)
        )

    def _fresh(self, machine: SeenMachine, description: MachineDescription) -> Any:
        spec = self._specification(machine, description, fresh=True)
        static = any(each.static_ip and not each.mac_address for each in description.networks)
        left = {marks.PENDING: pending(description, step=_ADDRESSES) if static else ""}
        spec = spec if spec is not None else vim.vm.ConfigSpec()
        spec.extraConfig = [*(spec.extraConfig or ()), *marks.written(left)]
        return spec

    def _addresses(self, machine: SeenMachine, description: MachineDescription) -> Any:
        config = machine.get("config")
        there = networks.named(config.hardware.device, marks.loaded(machine.marks, marks.CARDS, dict))
        known = _with_addresses(description.networks, there)
        texts = guestinfo.settings(machine.id, description.name, b"", guestinfo.metadata(config.extraConfig), known)
        return vim.vm.ConfigSpec(extraConfig=marks.written({**texts, marks.PENDING: ""}))

    def _specification(self, machine: SeenMachine, description: MachineDescription, *, fresh: bool) -> Any:
        """The specification of the difference, None if there is none; raises Conflict, InvalidSpec and NotFound."""
        hardware.check(description.hardware)
        hardware.check_endpoint(description.hardware, self._target.connection.speaks)
        config, running = machine.get("config"), machine.is_on
        made = hardware.changes(config, description.hardware, running=running)
        if made.needs_off:
            why = f"{', '.join(made.needs_off)} needs it off, or a class that allows hot-add"
            raise refusals.conflict(f"machine {machine.name} is running", why=why, fix="power it off first")
        placed = disks.changes(config.hardware.device, marks.loaded(machine.marks, marks.DISKS, dict), self._wishes(machine, description))
        keys = {str(name): int(key) for name, key in marks.loaded(machine.marks, marks.CARDS, dict).items() if isinstance(key, int)}
        finder = NetworkFinder(self._target.inventory, self._target.settings.defaults.network, self._datacenter)
        cards = networks.changes(config.hardware.device, keys, description.networks, finder.backing, fresh=fresh)
        limitations = (*made.limitations, *placed.limitations, *cards.limitations, *_tags(description))
        notes = {
            marks.DISKS: _text(dict(placed.places)),
            marks.CARDS: _text(dict(cards.keys)),
            marks.LIMITATIONS: _text(list(limitations)),
            marks.TAGS: _text(list(description.tags)),
        }
        if not fresh:
            notes |= self._documents(machine, description)
        has = {each.key: str(each.value) for each in config.extraConfig or ()}
        notes = {key: value for key, value in notes.items() if has.get(key, "") != value}
        changes = [*(made.spec.deviceChange or ()), *placed.changes, *cards.changes]
        if not made.changed and not changes and not notes:
            return None
        made.spec.deviceChange = changes
        made.spec.extraConfig = [*(made.spec.extraConfig or ()), *marks.written(notes)]
        return made.spec

    @property
    def _datacenter(self) -> Any:
        return self._target.inventory.datacenter().ref

    def _documents(self, machine: SeenMachine, description: MachineDescription) -> dict[str, str]:
        """The documents for the guest, which count from its next first boot on; those of an adopted machine stay."""
        if marks.OWNER_UID not in machine.marks or not (description.user_data or description.meta_data):
            return {}
        devices = machine.get("config").hardware.device
        there = networks.named(devices, marks.loaded(machine.marks, marks.CARDS, dict))
        known = _with_addresses(description.networks, there)
        return guestinfo.settings(machine.id, machine.name, description.user_data, description.meta_data, known)

    def _wishes(self, machine: SeenMachine, description: MachineDescription) -> DiskWishes:
        defaults = description.hardware.disk_defaults
        there = disks.observed(machine.get("config").hardware.device)
        # A class makes the first disk larger, and never smaller.
        root = defaults.size_gib if defaults is not None and there and defaults.size_gib * _GIB > there[0].size else 0
        kind = defaults.type if defaults is not None else ""
        iops = (defaults.iops or 0) if defaults is not None else 0
        return DiskWishes(disks=tuple(map(_disk, description.disks)), root_gib=root, type=kind, iops=iops, storage=self._storage)

    def _storage(self, name: str) -> VSphereDiskStorage:
        """The datastore that a storage class is."""
        found = self._target.inventory.named(vim.Datastore, name)
        return VSphereDiskStorage(datastore=found.name)


def _disk(disk: DiskPayload) -> DiskPayload:
    return msgspec.structs.replace(disk, path=UNSET) if disk.path == "" else disk


def _with_addresses(network_payloads: tuple[NetworkPayload, ...], there: dict[str, Any]) -> tuple[NetworkPayload, ...]:
    """The networks with the MAC addresses that their cards have."""
    found = []
    for index, each in enumerate(network_payloads):
        nic = there.get(networks.label(each, index))
        mac = each.mac_address or str((nic.macAddress if nic is not None else None) or "")
        found.append(msgspec.structs.replace(each, mac_address=mac))
    return tuple(found)


def _tags(description: MachineDescription) -> tuple[str, ...]:
    return (f"tags: they are kept in the setting {marks.TAGS} of the machine, and not as tags of vCenter",) if description.tags else ()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=isinstance(value, list)) if value else ""
