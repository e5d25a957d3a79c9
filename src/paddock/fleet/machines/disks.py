"""Disks of a machine, as each dialect writes them. Pure.

A disk on a claim lives in two objects: the machine names it, and the claim has its size. In the dialects in front of KubeVirt, the machine
has the size as well, and its controller passes it on.
"""

from collections.abc import Collection, Sequence

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines.edits import copy
from paddock.fleet.machines.finding import MachineView
from paddock.kubevirt.plan.changes.adapters import ChangeRefused, check_new_disk, named, names, place, unknown_disk
from paddock.kubevirt.plan.changes.adapters import DiskWish as DiskWish

# Sources of a volume that is a claim, with the member that names it.
_CLAIMS = {"dataVolume": "name", "persistentVolumeClaim": "claimName", "memoryDump": "claimName"}
# Volumes that are no disks of their own, and why they neither grow nor count.
_CONFIGURATION = ("cloudInitNoCloud", "cloudInitConfigDrive", "sysprep", "configMap", "secret", "serviceAccount", "downwardAPI")


class DiskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A disk as `disk ls` shows it. `size` is in bytes, None when nobody knows it."""

    name: str
    size: int | None
    source: str
    claim: str
    bus: str
    # the guest's name for it, and its state: attached, waiting for a restart
    device: str
    state: str


# --- listing ----------------------------------------------------------------------------------------------------------------


def listed(machine: MachineView) -> list[DiskRow]:
    """Return the disks: the volumes of the VirtualMachine, or those of the spec where another hypervisor runs the machine."""
    below = at(machine.vm, "spec", "template", "spec") if machine.vm is not None else at(machine.vmi, "spec")
    if below is None:
        return [
            DiskRow(
                name=texts(each, "name"),
                size=_bytes(f"{at(each, 'sizeGiB')}Gi" if at(each, "sizeGiB") else at(each, "size")),
                source=texts(each, "type"),
                claim="",
                bus="",
                device="",
                state="",
            )
            for each in entries(machine.data, *machine.kind.adapter.disks)
        ]
    running = {texts(each, "name"): each for each in entries(at(machine.vmi, "spec"), "volumes")}
    volumes = {texts(each, "name"): each for each in entries(below, "volumes")}
    return [_row(machine, below, name, volume) for name, volume in {**running, **volumes}.items()]


def _row(machine: MachineView, below: Data, name: str, volume: Data) -> DiskRow:
    disk = named(at(below, "domain", "devices", "disks"), name) or named(at(machine.vmi, "spec", "domain", "devices", "disks"), name) or {}
    status = named(at(machine.vmi, "status", "volumeStatus"), name)
    kind = next((key for key in volume if key != "name"), "")
    device = next((key for key in ("disk", "lun", "cdrom") if key in disk), "")
    wanted, there = named(at(below, "volumes"), name) is not None, named(at(machine.vmi, "spec", "volumes"), name) is not None
    state = "" if machine.vmi is None else "attached" if wanted and there else "after a restart" if wanted else "until a restart"
    return DiskRow(
        name=name,
        size=_size(machine, kind, volume, status or {}),
        source=f"{kind} (cdrom)" if device == "cdrom" else kind,
        claim=claim_of(volume),
        bus=texts(disk, device, "bus"),
        device=texts(status or {}, "target"),
        state=state,
    )


def _size(machine: MachineView, kind: str, volume: Data, status: Data) -> int | None:
    """Return the size that the guest sees; where it does not run, the size that was asked for. A claim has a little more."""
    seen = at(status, "size")
    if isinstance(seen, int):
        return seen
    template = _template(machine.vm or {}, claim_of(volume))
    asked = _requested(template) if template is not None else at(volume, kind, "capacity")
    return _bytes(asked if asked is not None else at(status, "persistentVolumeClaimInfo", "capacity", "storage"))


def _bytes(text: object) -> int | None:
    return quantity.whole(text) if isinstance(text, int | str) and quantity.is_quantity(text) else None


def claim_of(volume: Data) -> str:
    """Return the claim of a volume; empty for other sources."""
    return next((texts(volume, kind, member) for kind, member in _CLAIMS.items() if kind in volume), "")


def _template(vm: Data, claim: str) -> Data | None:
    return next((each for each in entries(vm, "spec", "dataVolumeTemplates") if claim and texts(each, "metadata", "name") == claim), None)


def _requested(template: Data) -> object:
    spec = template.get("spec") or {}
    return at(spec, "storage", "resources", "requests", "storage") or at(spec, "pvc", "resources", "requests", "storage")


# --- adding -----------------------------------------------------------------------------------------------------------------


def added(machine: MachineView, wish: DiskWish) -> Data:
    """Return the object that the user wrote with one disk more. Raises `ChangeRefused`."""
    if wish.size:
        quantity.amount(wish.size, "20Gi")
    if machine.kind is not VM and wish.claim:
        raise ChangeRefused(
            f"cannot put the claim {wish.claim} into {machine}",
            why=f"{machine.dialect} makes the disks of its machines itself",
            fix="give a size: the disk is new and empty",
        )
    if machine.kind is VMI:
        raise _fixed(machine)
    data, present = copy(machine.data), [row.name for row in listed(machine)]
    if machine.kind is VM:
        _add_kubevirt(machine, data, wish, present)
    else:
        machine.kind.adapter.add_disk(machine, data, wish, present)
    return data


def _add_kubevirt(machine: MachineView, data: Data, wish: DiskWish, present: Collection[str]) -> None:
    spec = place(data, "spec", "template", "spec")
    devices = place(spec, "domain", "devices")
    check_new_disk(machine, present, spec.get("volumes"), wish.name)
    claim = wish.claim or f"{machine.name}-{wish.name}"
    if wish.claim:
        source = {"persistentVolumeClaim": {"claimName": claim, "hotpluggable": True}}
    else:
        source = {"dataVolume": {"name": claim, "hotpluggable": True}}
        storage: Data = {"resources": {"requests": {"storage": wish.size}}}
        if wish.storage_class:
            storage["storageClassName"] = wish.storage_class
        template = {"metadata": {"name": claim}, "spec": {"source": {"blank": {}}, "storage": storage}}
        data["spec"]["dataVolumeTemplates"] = [*(at(data, "spec", "dataVolumeTemplates") or ()), template]
    disk = {"name": wish.name, "serial": wish.name, "disk": {"bus": wish.bus or "virtio"}}
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": wish.name, **source}]
    devices["disks"] = [*(devices.get("disks") or ()), disk]


def _fixed(machine: MachineView) -> ChangeRefused:
    return ChangeRefused(
        f"cannot change the disks of {machine}",
        why="the spec of an instance without a VirtualMachine does not change",
        fix="make a VirtualMachine of it",
    )


# --- growing ----------------------------------------------------------------------------------------------------------------


def target_size(rows: Sequence[DiskRow], name: str, text: str) -> str:
    """Return the new size of a disk: as given, or with what `+20Gi` adds to the present one. Raises `ChangeRefused`."""
    if not text.startswith("+"):
        quantity.amount(text, "40Gi")
        return text
    more = quantity.amount(text[1:], "+20Gi")
    row = next((each for each in rows if each.name == name), None)
    if row is None:
        raise ChangeRefused(f'there is no disk "{name}"', fix=f"its disks: {names([{'name': each.name} for each in rows])}")
    if row.size is None:
        raise ChangeRefused(f'the present size of the disk "{name}" is not known', fix="give the whole new size")
    return quantity.binary(row.size + more)


def grown(machine: MachineView, name: str, size: str) -> tuple[Data, str]:
    """Return the object that the user wrote with a larger disk, and the claim that has to grow with it ("": the controller does that).

    Raises `ChangeRefused`.
    """
    wanted = quantity.amount(size, "40Gi")
    row = next((each for each in listed(machine) if each.name == name), None)
    if row is not None and row.size is not None and wanted < row.size:
        raise ChangeRefused(
            f'the disk "{name}" of {machine} cannot shrink to {size}',
            why=f"it has {quantity.binary(row.size)}, and a smaller one would lose data",
            fix="add a smaller disk and copy what you need",
        )
    if machine.kind is VMI:
        raise _fixed(machine)
    data = copy(machine.data)
    if machine.kind is VM:
        return data, _grow_kubevirt(machine, data, name, size)
    machine.kind.adapter.grow_disk(machine, data, DiskWish(name=name, size=size), [each.name for each in listed(machine)])
    return data, ""


def _unknown(machine: MachineView, name: str, present: object = ()) -> ChangeRefused:
    return unknown_disk(machine, [row.name for row in listed(machine)], name, present)


def _grow_kubevirt(machine: MachineView, data: Data, name: str, size: str) -> str:
    volume = named(at(data, "spec", "template", "spec", "volumes"), name)
    if volume is None:
        raise _unknown(machine, name)
    claim = claim_of(volume)
    if not claim:
        kind = next(key for key in volume if key != "name")
        if kind == "emptyDisk":
            volume[kind]["capacity"] = size
            return ""
        raise ChangeRefused(
            f'the disk "{name}" of {machine} cannot grow',
            why=_NO_GROWTH.get(kind, f"its content is a {kind}"),
            fix="add a disk: paddock disk add",
        )
    template = _template(data, claim)
    for member in ("storage", "pvc"):
        # The claim exists and grows by itself; the template says the same for a machine that is made again.
        requests = at(template or {}, "spec", member, "resources", "requests")
        if isinstance(requests, dict) and "storage" in requests:
            requests["storage"] = size
    return claim


_NO_GROWTH = {
    "containerDisk": "it is a copy of an image, and what the guest writes to it is gone when the machine stops",
    "ephemeral": "it is a layer over a claim, and what the guest writes to it is gone when the machine stops",
    "hostDisk": "it is a file of the host",
    **dict.fromkeys(_CONFIGURATION, "it is made from configuration and as large as that"),
}


# --- removing ---------------------------------------------------------------------------------------------------------------


def removed(machine: MachineView, name: str) -> tuple[Data, str]:
    """Return the object that the user wrote without a disk, and the claim that is left of it ("": the dialect decides about it).

    Raises `ChangeRefused`.
    """
    if machine.kind is VMI:
        raise _fixed(machine)
    data = copy(machine.data)
    if machine.kind is VM:
        return data, _remove_kubevirt(machine, data, name)
    path = machine.kind.adapter.disks
    owner = place(data, *path[:-1])
    present = owner.get(path[-1]) or []
    if named(present, name) is None:
        if name in {row.name for row in listed(machine)}:
            raise ChangeRefused(
                f'cannot remove the disk "{name}" of {machine}',
                why=f"it is part of every {machine.dialect} machine, or comes from its template",
                fix=f"`paddock rm {machine.name}` removes the machine with all its disks",
            )
        raise _unknown(machine, name, present)
    owner[path[-1]] = [each for each in present if each.get("name") != name]
    return data, ""


def _remove_kubevirt(machine: MachineView, data: Data, name: str) -> str:
    spec = place(data, "spec", "template", "spec")
    volume = named(spec.get("volumes"), name)
    if volume is None:
        raise _unknown(machine, name)
    claim = claim_of(volume)
    spec["volumes"] = [each for each in spec["volumes"] if each.get("name") != name]
    devices = place(spec, "domain", "devices")
    for member in ("disks", "filesystems"):
        if member in devices:
            devices[member] = [each for each in devices[member] if each.get("name") != name]
    templates = at(data, "spec", "dataVolumeTemplates")
    if templates:
        data["spec"]["dataVolumeTemplates"] = [each for each in templates if not claim or texts(each, "metadata", "name") != claim]
    return claim
