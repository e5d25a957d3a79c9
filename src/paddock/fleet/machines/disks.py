"""Disks of a machine, as each dialect writes them. Pure.

A disk on a claim lives in two objects: the machine names it, and the claim has its size. In the dialects in front of KubeVirt, the machine
has the size as well, and its controller passes it on.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.kinds import STAKATER, VIRTRIGAUD, VITISTACK, VM, VMI, MachineKind, is_own_form
from paddock.fleet.machines.edits import ChangeRefused, copy, named, names, place
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.sizekeys import amount

_GIB = 2**30
ROOT = "root"
# Of a machine in Vitistack's own form that lists no disk.
_OWN_ROOT_GB = 10
_COUNTS = {VIRTRIGAUD: "VirtRigaud", VITISTACK: "Vitistack's own form"}
# Sources of a volume that is a claim, with the member that names it.
_CLAIMS = {"dataVolume": "name", "persistentVolumeClaim": "claimName", "memoryDump": "claimName"}
# Volumes that are no disks of their own, and why they neither grow nor count.
_CONFIGURATION = ("cloudInitNoCloud", "cloudInitConfigDrive", "sysprep", "configMap", "secret", "serviceAccount", "downwardAPI")


class DiskWish(msgspec.Struct, frozen=True, kw_only=True):
    """A new disk: an empty one of a size, or one on a claim that exists."""

    name: str
    size: str = ""
    claim: str = ""
    storage_class: str = ""
    bus: str = ""


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
            for each in entries(machine.data, *_PATHS.get(machine.kind, ("spec", "disks")))
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
        amount(wish.size, "20Gi")
    if machine.kind is not VM and wish.claim:
        raise ChangeRefused(
            f"cannot put the claim {wish.claim} into {machine}",
            why=f"{machine.dialect} makes the disks of its machines itself",
            fix="give a size: the disk is new and empty",
        )
    data = copy(machine.data)
    _ADDING[machine.kind](machine, data, wish)
    return data


def _unused(machine: MachineView, present: object, name: str) -> None:
    taken = name in {row.name for row in listed(machine)} or named(present, name) is not None
    if taken:
        raise ChangeRefused(
            f'{machine} already has a disk "{name}"', fix=f"choose another name; `paddock disk ls {machine.name}` lists them"
        )


def _add_kubevirt(machine: MachineView, data: Data, wish: DiskWish) -> None:
    spec = place(data, "spec", "template", "spec")
    devices = place(spec, "domain", "devices")
    _unused(machine, spec.get("volumes"), wish.name)
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


def _add_stakater(machine: MachineView, data: Data, wish: DiskWish) -> None:
    parameters = place(data, "spec", "parameters")
    _unused(machine, parameters.get("additionalDisks"), wish.name)
    disk: Data = {"name": wish.name, "size": wish.size, "sourceType": "blank"}
    disk |= {key: value for key, value in (("storageClassName", wish.storage_class), ("bus", wish.bus)) if value}
    parameters["additionalDisks"] = [*(parameters.get("additionalDisks") or ()), disk]


def _add_vitistack(machine: MachineView, data: Data, wish: DiskWish) -> None:
    spec = place(data, "spec")
    _unused(machine, spec.get("disks"), wish.name)
    if is_own_form(data):
        _no_class(machine, wish)
        own = {"name": wish.name, "sizeGB": _gib(machine, wish.size), **({"type": wish.bus} if wish.bus else {})}
        # Without a list there is the default root disk, which the list then has to name.
        spec["disks"] = [*(spec.get("disks") or ({"name": ROOT, "sizeGB": _OWN_ROOT_GB, "boot": True},)), own]
        return
    _no_bus(machine, wish)
    disk = {"name": wish.name, "size": wish.size, **({"storageClass": wish.storage_class} if wish.storage_class else {})}
    spec["disks"] = [*(spec.get("disks") or ()), disk]


def _add_virtrigaud(machine: MachineView, data: Data, wish: DiskWish) -> None:
    _no_bus(machine, wish)
    spec = place(data, "spec")
    _unused(machine, spec.get("disks"), wish.name)
    disk = {"name": wish.name, "sizeGiB": _gib(machine, wish.size), **({"storageClass": wish.storage_class} if wish.storage_class else {})}
    spec["disks"] = [*(spec.get("disks") or ()), disk]


def _no_class(machine: MachineView, wish: DiskWish) -> None:
    if wish.storage_class:
        raise ChangeRefused(
            f"cannot put a disk of {machine} on a storage class of your choice",
            why="Vitistack's own form of the Machine has no field for it",
            fix="leave --storage-class out: the default class is used",
        )


def _no_bus(machine: MachineView, wish: DiskWish) -> None:
    if wish.bus:
        raise ChangeRefused(
            f"cannot choose the bus of a disk of {machine}", why=f"{machine.dialect} has no field for it", fix="leave --bus out"
        )


def _gib(machine: MachineView, size: str) -> int:
    count, rest = divmod(amount(size, "20Gi"), _GIB)
    if rest:
        raise ChangeRefused(
            f"a disk of {machine} cannot have {size}", why=f"{_COUNTS[machine.kind]} counts disks in whole GiB", fix=f"write {count + 1}Gi"
        )
    return count


def _no_instance(machine: MachineView, *_: object) -> None:
    raise ChangeRefused(
        f"cannot change the disks of {machine}",
        why="the spec of an instance without a VirtualMachine does not change",
        fix="make a VirtualMachine of it",
    )


# --- growing ----------------------------------------------------------------------------------------------------------------


def target_size(rows: Sequence[DiskRow], name: str, text: str) -> str:
    """Return the new size of a disk: as given, or with what `+20Gi` adds to the present one. Raises `ChangeRefused`."""
    if not text.startswith("+"):
        amount(text, "40Gi")
        return text
    more = amount(text[1:], "+20Gi")
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
    wanted = amount(size, "40Gi")
    row = next((each for each in listed(machine) if each.name == name), None)
    if row is not None and row.size is not None and wanted < row.size:
        raise ChangeRefused(
            f'the disk "{name}" of {machine} cannot shrink to {size}',
            why=f"it has {quantity.binary(row.size)}, and a smaller one would lose data",
            fix="add a smaller disk and copy what you need",
        )
    data = copy(machine.data)
    claim = _GROWING[machine.kind](machine, data, name, size)
    return data, claim


def _unknown(machine: MachineView, name: str, present: object = ()) -> ChangeRefused:
    rows = [{"name": row.name} for row in listed(machine)] or present
    return ChangeRefused(f'{machine} has no disk "{name}"', fix=f"its disks: {names(rows)}")


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


def _grow_stakater(machine: MachineView, data: Data, name: str, size: str) -> str:
    parameters = place(data, "spec", "parameters")
    disk = named(parameters.get("additionalDisks"), name)
    if disk is not None:
        disk["size"] = size
    elif name in (ROOT, "rootdisk"):
        place(parameters, "storage")["size"] = size
    else:
        raise _unknown(machine, name, [{"name": ROOT}, *(parameters.get("additionalDisks") or ())])
    return ""


def _grow_vitistack(machine: MachineView, data: Data, name: str, size: str) -> str:
    spec = place(data, "spec")
    disk = named(spec.get("disks"), name)
    if is_own_form(data):
        own: Data | None = disk if disk is not None else {"name": name} if name == ROOT and not spec.get("disks") else None
        if own is None:
            raise _unknown(machine, name, spec.get("disks"))
        own["sizeGB"] = _gib(machine, size)
        spec["disks"] = spec.get("disks") or [own]
    elif disk is not None:
        disk["size"] = size
    elif spec.get("template") and (name == ROOT or name in {row.name for row in listed(machine)}):
        # The template's disk: the machine's own entry adds to it.
        spec["disks"] = [*(spec.get("disks") or ()), {"name": name, "size": size}]
    else:
        raise _unknown(machine, name, spec.get("disks"))
    return ""


def _grow_virtrigaud(machine: MachineView, data: Data, name: str, size: str) -> str:
    disk = named(at(data, "spec", "disks"), name)
    if disk is not None:
        disk["sizeGiB"] = _gib(machine, size)
        return ""
    if name == ROOT or name in {row.name for row in listed(machine)}:
        class_name = texts(data, "spec", "classRef", "name")
        raise ChangeRefused(
            f'the disk "{name}" of {machine} cannot grow',
            why=f"VirtRigaud takes its size from diskDefaults of the VMClass {class_name} when it makes the machine",
            fix=f"add a disk: paddock disk add {machine.name} NAME SIZE",
        )
    raise _unknown(machine, name, at(data, "spec", "disks"))


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
        _no_instance(machine)
    data = copy(machine.data)
    if machine.kind is VM:
        return data, _remove_kubevirt(machine, data, name)
    path = _PATHS[machine.kind]
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


_PATHS: Mapping[MachineKind, tuple[str, ...]] = {
    STAKATER: ("spec", "parameters", "additionalDisks"),
    VITISTACK: ("spec", "disks"),
    VIRTRIGAUD: ("spec", "disks"),
}
_ADDING: Mapping[MachineKind, Callable[[MachineView, Data, DiskWish], None]] = {
    VM: _add_kubevirt,
    STAKATER: _add_stakater,
    VITISTACK: _add_vitistack,
    VIRTRIGAUD: _add_virtrigaud,
    VMI: _no_instance,
}


def _no_growth(machine: MachineView, *_: object) -> str:
    _no_instance(machine)
    return ""


_GROWING: Mapping[MachineKind, Callable[[MachineView, Data, str, str], str]] = {
    VM: _grow_kubevirt,
    STAKATER: _grow_stakater,
    VITISTACK: _grow_vitistack,
    VIRTRIGAUD: _grow_virtrigaud,
    VMI: _no_growth,
}
