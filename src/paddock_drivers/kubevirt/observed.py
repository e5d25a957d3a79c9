"""The state of a machine, read from its VirtualMachine and its VirtualMachineInstance. Pure."""

import ipaddress
import json
from collections.abc import Mapping

import msgspec

from paddock.base import quantity
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, storage_request
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine, VirtualMachineStatus
from paddock.kubevirt.kinds.volumes import Volume
from paddock_drivers.kubevirt import booting, marks

ON, OFF, SUSPENDED, UNKNOWN = "On", "Off", "Suspended", "Unknown"
_FINAL = ("Succeeded", "Failed")
_MIB, _GIB = 1 << 20, 1 << 30
RESTART_REQUIRED = "RestartRequired"


class MachineSize(msgspec.Struct, frozen=True):
    """Processors, and memory in MiB."""

    cpus: int
    memory_mib: int


class ClaimDisk(msgspec.Struct, frozen=True):
    """A disk of a machine that lasts: the volume, its claim, and the bytes that the guest has of it as far as they are known."""

    name: str
    claim: str
    size: int
    device: str = ""


def status_of(machine: VirtualMachine) -> VirtualMachineStatus:
    """The status of a machine, or an empty one."""
    return machine.status or VirtualMachineStatus()


def instance_status(instance: VirtualMachineInstance | None) -> VirtualMachineInstanceStatus:
    """The status of a run, or an empty one."""
    return (instance.status if instance is not None else None) or VirtualMachineInstanceStatus()


def is_live(instance: VirtualMachineInstance | None) -> bool:
    """Return whether there is a run that has not ended."""
    return instance is not None and instance_status(instance).phase not in _FINAL


def is_going(instance: VirtualMachineInstance | None) -> bool:
    """Return whether a run is about to end."""
    return instance is not None and instance.metadata.deletionTimestamp is not None


def power_state(instance: VirtualMachineInstance | None) -> str:
    """Return On once the guest runs, Off before and after, Suspended while it is paused."""
    status = instance_status(instance)
    if status.phase == "Running":
        return SUSPENDED if holds(status.conditions, "Paused") else ON
    return UNKNOWN if status.phase == "Unknown" else OFF


def addresses(instance: VirtualMachineInstance | None) -> tuple[str, ...]:
    """Return the guest's addresses that others can reach, in the order of the interfaces."""
    found: dict[str, None] = {}
    for each in instance_status(instance).interfaces or ():
        for text in each.ipAddresses or ([each.ipAddress] if each.ipAddress else []):
            try:
                address = ipaddress.ip_address(text)
            except ValueError:
                continue
            if not address.is_link_local and not address.is_loopback:
                found[str(address)] = None
    return tuple(found)


def wanted_size(machine: VirtualMachine) -> MachineSize:
    """Return the size that the machine's template asks for."""
    return _size(machine.spec.template.spec.domain)


def size(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> MachineSize:
    """Return the size that the guest has now; that of the next start when it is off."""
    if instance is None or not is_live(instance):
        return wanted_size(machine)
    status, given = instance_status(instance), _size(instance.spec.domain)
    now = status.currentCPUTopology
    cpus = (now.cores or 1) * (now.sockets or 1) * (now.threads or 1) if now is not None else given.cpus
    memory = status.memory.guestCurrent if status.memory is not None else None
    return MachineSize(cpus, quantity.whole(memory) // _MIB if memory is not None else given.memory_mib)


def instance_size(instance: VirtualMachineInstance) -> MachineSize:
    """Return the size that a run was started with."""
    return _size(instance.spec.domain)


def _size(domain: DomainSpec) -> MachineSize:
    cpu, requests = domain.cpu, (domain.resources.requests if domain.resources is not None else None) or {}
    memory = (domain.memory.guest if domain.memory is not None else None) or requests.get("memory") or 0
    if cpu is not None and (cpu.cores or cpu.sockets or cpu.threads):
        count = (cpu.cores or 1) * (cpu.sockets or 1) * (cpu.threads or 1)
    else:
        count = max(1, quantity.whole(requests.get("cpu", 1)))
    return MachineSize(count, quantity.whole(memory) // _MIB)


def claim_of(volume: Volume) -> str:
    """The claim that a volume is on; empty for one that is on none."""
    if volume.dataVolume is not None:
        return volume.dataVolume.name
    return volume.persistentVolumeClaim.claimName if volume.persistentVolumeClaim is not None else ""


def known_disks(machine: VirtualMachine) -> dict[str, int]:
    """Return the disks that the manager asked for, with the size in GiB that it last asked for."""
    try:
        return msgspec.json.decode((machine.metadata.annotations or {}).get(marks.DISKS, "{}"), type=dict[str, int])
    except msgspec.MsgspecError:
        return {}


def disks(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, claims: Mapping[str, PersistentVolumeClaim]
) -> tuple[ClaimDisk, ...]:
    """Return the disks on claims, the one that the machine boots from first."""
    seen = {each.name: each for each in instance_status(instance).volumeStatus or ()}
    devices = {each.name for each in machine.spec.template.spec.domain.devices.disks or ()}
    first, known = (machine.metadata.annotations or {}).get(marks.BOOT_VOLUME, ""), known_disks(machine)
    found = []
    for volume in machine.spec.template.spec.volumes or ():
        name = claim_of(volume)
        if not name or volume.name not in devices:
            continue
        status = seen.get(volume.name)
        has = (status.size if status is not None else None) or _guest_size(known.get(volume.name, 0), claims.get(name))
        found.append(ClaimDisk(volume.name, name, has, status.target if status is not None else ""))
    return tuple(sorted(found, key=lambda each: each.name != first))


def _guest_size(known_gib: int, claim: PersistentVolumeClaim | None) -> int:
    """The bytes that a guest has of a claim. A claim may be larger than its disk, by what a file system takes."""
    asked = storage_request(claim.spec) if claim is not None else None
    if claim is None or asked is None:
        return 0
    here = (claim.status.capacity or {}).get("storage") if claim.status is not None else None
    request, capacity = quantity.whole(asked), quantity.whole(here if here is not None else asked)
    # What grows has asked for its new size already.
    disk = known_gib * _GIB or booting.noted_size(claim)
    return disk * min(capacity, request) // request if disk and request else capacity


def restart_required(machine: VirtualMachine) -> Condition | None:
    """The condition that a change waits for a restart, if it does."""
    return next((each for each in status_of(machine).conditions or () if each.type == RESTART_REQUIRED and each.status == "True"), None)


def limitations(machine: VirtualMachine) -> tuple[str, ...]:
    """Return what the target does in another way than the manager asked."""
    try:
        return msgspec.json.decode((machine.metadata.annotations or {}).get(marks.LIMITATIONS, "[]"), type=tuple[str, ...])
    except msgspec.MsgspecError:
        return ()


def details(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, claims: Mapping[str, PersistentVolumeClaim]
) -> dict[str, str]:
    """Return what else is known of a machine, all texts."""
    status, run, wants, has = status_of(machine), instance_status(instance), wanted_size(machine), size(machine, instance)
    notes, waits = machine.metadata.annotations or {}, restart_required(machine)
    found = {
        "namespace": machine.metadata.namespace or "",
        "name": machine.metadata.name,
        "uid": machine.metadata.uid or "",
        "owner": notes.get(marks.OWNER, ""),
        "status": status.printableStatus,
        "node": run.nodeName or "",
        "guestOS": (run.guestOSInfo.prettyName if run.guestOSInfo is not None else None) or "",
        "cpus": str(has.cpus),
        "memoryMiB": str(has.memory_mib),
        "desiredCPUs": str(wants.cpus),
        "desiredMemoryMiB": str(wants.memory_mib),
        "restartRequired": "true" if waits is not None else "false",
        "restartReason": (waits.message or waits.reason or "") if waits is not None else "",
        "disks": _as_json([msgspec.to_builtins(each) for each in disks(machine, instance, claims)]),
        "limitations": _as_json(limitations(machine)) if limitations(machine) else "",
        "problem": problem(machine),
    }
    return {key: value for key, value in found.items() if value}


# What a machine cannot leave without somebody's help.
_PROBLEMS = ("ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError", "CrashLoopBackOff")


def problem(machine: VirtualMachine) -> str:
    """Return why a machine does not run although it should; empty when nothing is wrong."""
    status = status_of(machine)
    if status.printableStatus not in _PROBLEMS:
        return ""
    message = next((each.message for each in status.conditions or () if each.status == "False" and each.message), "")
    failed = next((each.message for each in status.conditions or () if each.type == "Failure" and each.status == "True"), "")
    return f"{status.printableStatus}: {failed or message}" if failed or message else status.printableStatus


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True)
