"""The differences between a machine and what the manager wants of it, as changes that KubeVirt can carry out. Pure."""

import json
from typing import Any

import msgspec

from paddock.base import quantity, reasons
from paddock.base.jsondata import Data, copied
from paddock.contract.payloads import DiskPayload
from paddock.kubernetes.core.persistentvolumeclaim import GUEST_SIZE, PersistentVolumeClaim, storage_request
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine
from paddock.kubevirt.kinds.volumes import Volume
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import marks, observed
from paddock_drivers.kubevirt.documents import template_name

_GIB = 1 << 30
# Of the domain, these members follow the manager's wish; what else a machine is made of stays.
_SIZES = ("cpu", "memory", "resources")
_NOTES = ("virtrigaud.io/tags", marks.LIMITATIONS)


class ClaimGrowth(msgspec.Struct, frozen=True):
    """A claim that becomes larger: its new request, and the notes that go with it."""

    claim: str
    request: int
    notes: dict[str, str]


class NewDisk(msgspec.Struct, frozen=True):
    """A disk that is added: its volume and its DataVolume."""

    volume: Volume
    template: DataVolumeTemplate
    disk: Data


def spec_changes(found: Data, vm: VirtualMachine) -> Data:
    """Return the merge patch that brings size, place, grace and interfaces of a machine to what is wanted."""
    template, aim = found["spec"]["template"]["spec"], to_data(vm.spec.template.spec)
    domain = template.get("domain") or {}
    changes: Data = {}
    sizes = {each: change for each in _SIZES if (change := _member_change(domain.get(each), aim["domain"].get(each)))}
    if sizes:
        changes["domain"] = sizes
    for each in ("nodeSelector", "terminationGracePeriodSeconds", "hostname"):
        if each in aim and template.get(each) != aim[each]:
            changes[each] = aim[each]
    interfaces = _interface_changes(template, aim)
    if interfaces is not None:
        changes["networks"] = interfaces[1]
        changes.setdefault("domain", {})["devices"] = {"interfaces": interfaces[0]}
    return {"template": {"spec": changes}} if changes else {}


def note_changes(vm: VirtualMachine, virtual_machine: VirtualMachine, sizes: dict[str, int]) -> Data:
    """Return the annotations that change."""
    before, after = vm.metadata.annotations or {}, virtual_machine.metadata.annotations or {}
    notes = {name: after.get(name) for name in _NOTES} | {marks.DISKS: json.dumps(sizes, sort_keys=True)}
    return {name: value for name, value in notes.items() if before.get(name) != value}


def disk_changes(
    vm: VirtualMachine, virtual_machine: VirtualMachine, disks: tuple[DiskPayload, ...]
) -> tuple[tuple[NewDisk, ...], tuple[str, ...]]:
    """Return the disks to add and the volumes to take away. Only what the manager asked for once is taken away."""
    first = (vm.metadata.annotations or {}).get(marks.BOOT_VOLUME) or boot_name(vm)
    there = {each.name for each in vm.spec.template.spec.volumes or ()}
    names = {each.name for each in disks}
    templates = {template_name(each): each for each in virtual_machine.spec.dataVolumeTemplates or ()}
    devices = {each.name: each for each in virtual_machine.spec.template.spec.domain.devices.disks or ()}
    added = tuple(
        NewDisk(volume, templates[volume.dataVolume.name], to_data(devices[volume.name]))
        for volume in virtual_machine.spec.template.spec.volumes or ()
        if volume.name in names and volume.name not in there and volume.dataVolume is not None
    )
    removed = tuple(name for name in observed.known_disks(vm) if name != first and name in there and name not in names)
    return added, removed


def boot_name(vm: VirtualMachine) -> str:
    """The name of the volume that a machine which the driver did not make boots from."""
    disks = vm.spec.template.spec.domain.devices.disks or []
    if not disks:
        return ""
    return min(enumerate(disks), key=lambda pair: (pair[1].bootOrder or 1 << 16, pair[0]))[1].name


def sizes_after(vm: VirtualMachine, disks: tuple[DiskPayload, ...], root_gib: int) -> dict[str, int]:
    """Return the sizes in GiB that are wanted, by the names of volumes. A class makes a root disk larger, never smaller."""
    before = observed.known_disks(vm)
    first = (vm.metadata.annotations or {}).get(marks.BOOT_VOLUME, "")
    root = {first: max(root_gib, before[first])} if before.get(first) else {}
    return {**root, **{each.name: each.size_gib for each in disks}}


def growth(
    vm: VirtualMachine, sizes: dict[str, int], claims: dict[str, PersistentVolumeClaim], asked_at_first: dict[str, int]
) -> tuple[ClaimGrowth, ...]:
    """Return the claims that have to grow; raises InvalidSpec for one that would shrink.

    A claim may be larger than its disk, by what a file system takes. So the request grows in the proportion that it had at first.
    """
    grown = []
    for volume in vm.spec.template.spec.volumes or ():
        name = observed.claim_of(volume)
        claim, wanted = claims.get(name), sizes.get(volume.name, 0) * _GIB
        asked = storage_request(claim.spec) if claim is not None else None
        if claim is None or asked is None or not wanted:
            continue
        request = quantity.whole(asked)
        base, stood = _base(claim, request, asked_at_first.get(name, 0))
        now = -(-base * request // stood)
        if wanted == now:
            continue
        if wanted < now:
            why = f"it has {-(-now // _GIB)} GiB, and a disk cannot lose what is on it"
            raise refusals.invalid(
                f"disk {volume.name} of machine {vm.metadata.name} cannot shrink",
                why=why,
                fix="ask for its size",
                reason=reasons.DISK_SHRINKS,
            )
        grown.append(_growth(claim, wanted, base, stood))
    return tuple(grown)


def _growth(claim: PersistentVolumeClaim, wanted: int, base: int, stood: int) -> ClaimGrowth:
    """The growth of a claim, with what later ones are measured by, and with what a guest of Paddock's gets of it."""
    request, notes = -(-stood * wanted // base), {marks.GROWTH: f"{base}/{stood}"}
    if GUEST_SIZE in (claim.metadata.annotations or {}):
        notes[GUEST_SIZE] = f"{wanted}/{request}"
    return ClaimGrowth(claim.metadata.name, request, notes)


def _base(claim: PersistentVolumeClaim, request: int, asked: int) -> tuple[int, int]:
    """Return the size of the disk at first, and the request that stood for it."""
    size, _, stood = (claim.metadata.annotations or {}).get(marks.GROWTH, "").partition("/")
    if size.isdecimal() and stood.isdecimal() and int(size) and int(stood):
        return int(size), int(stood)
    return (asked, request) if 0 < asked <= request else (request, request)


def with_disks(found: Data, added: tuple[NewDisk, ...], removed: tuple[str, ...]) -> Data:
    """Return the merge patch of the spec that adds and takes away disks for the next start. What is taken away keeps its data."""
    spec = copied(found["spec"])
    inner = spec["template"]["spec"]
    devices = inner.setdefault("domain", {}).setdefault("devices", {})
    gone = {_claim(each) for each in inner.get("volumes") or () if each["name"] in removed}
    volumes = [each for each in inner.get("volumes") or () if each["name"] not in removed] + [to_data(each.volume) for each in added]
    disks = [each for each in devices.get("disks") or () if each["name"] not in removed] + [each.disk for each in added]
    templates = [each for each in spec.get("dataVolumeTemplates") or () if each.get("metadata", {}).get("name") not in gone]
    templates += [to_data(each.template) for each in added]
    changes: Data = {"template": {"spec": {"volumes": volumes, "domain": {"devices": {"disks": disks}}}}}
    if templates != (spec.get("dataVolumeTemplates") or []):
        changes["dataVolumeTemplates"] = templates or None
    return changes


def is_hot(vm: VirtualMachine, name: str) -> bool:
    """Return whether a volume can be unplugged while the machine runs."""
    volume = next((each for each in vm.spec.template.spec.volumes or () if each.name == name), None)
    if volume is None:
        return False
    source = volume.dataVolume or volume.persistentVolumeClaim
    return source is not None and bool(source.hotpluggable)


def unchangeable(vm: VirtualMachine, virtual_machine: VirtualMachine) -> tuple[str, ...]:
    """Return what of a class or an image does not reach a machine that exists."""
    limits = []
    has, asks = vm.spec.template.spec.domain, virtual_machine.spec.template.spec.domain
    if asks.firmware is not None and has.firmware is not None and asks.firmware.bootloader != has.firmware.bootloader:
        limits.append("Class.Firmware: a guest boots with the firmware it was installed with; the machine keeps its own")
    if (asks.devices.tpm is None) != (has.devices.tpm is None):
        limits.append("Class.SecurityProfile.TPMEnabled: a TPM is a machine's from the start; it keeps what it has")
    if _has_document(virtual_machine) and not _has_document(vm):
        limits.append("UserData: the machine was made without a document for its guest, which reads one at its first boot only")
    return tuple(limits)


def _has_document(machine: VirtualMachine) -> bool:
    volumes = machine.spec.template.spec.volumes or ()
    return any(each.cloudInitNoCloud is not None or each.cloudInitConfigDrive is not None for each in volumes)


def _claim(volume: Data) -> str:
    source = volume.get("dataVolume") or volume.get("persistentVolumeClaim") or {}
    return str(source.get("name") or source.get("claimName") or "")


def _member_change(before: Any, after: Any) -> Data | None:
    """Return the merge patch of one member. Limits that are no longer wanted are removed; what the server added stays."""
    if after is None:
        return None
    has = before or {}
    change: Data = {}
    for name, value in after.items():
        if isinstance(value, dict):
            nested = _member_change(has.get(name), value)
            if nested:
                change[name] = nested
        elif not _same(has.get(name), value):
            change[name] = value
    for name in ("maxSockets", "maxGuest"):
        if name in has and name not in after:
            change[name] = None
    return change or None


def _same(left: Any, right: Any) -> bool:
    if left == right:
        return True
    if not _is_amount(left) or not _is_amount(right):
        return False
    return quantity.is_quantity(left) and quantity.is_quantity(right) and quantity.parse(left) == quantity.parse(right)


def _is_amount(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _interface_changes(template: Data, aim: Data) -> tuple[list[Data], list[Data]] | None:
    """Return the interfaces and networks, if they are to be others. An address that nobody asked for is kept."""
    has = {each["name"]: each for each in (template.get("domain") or {}).get("devices", {}).get("interfaces") or ()}
    wants = aim["domain"].get("devices", {}).get("interfaces")
    if wants is None:
        return None
    on = {each["name"]: each for each in template.get("networks") or ()}
    to = {each["name"]: each for each in aim.get("networks") or ()}
    kept = [
        {**each, **({"macAddress": mac} if not each.get("macAddress") and (mac := has.get(each["name"], {}).get("macAddress")) else {})}
        for each in wants
    ]
    if on == to and [_comparable(each) for each in has.values()] == [_comparable(each) for each in kept]:
        return None
    return kept, list(to.values())


def _comparable(interface: Data) -> Data:
    return {name: interface.get(name) for name in ("name", "model", "macAddress", "bridge", "masquerade")}
