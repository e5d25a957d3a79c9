"""The status of a running machine, from everything that one pass observed.

One function makes the whole status, so that the same observation gives the same status and an unchanged status is not written. Fields
that other controllers write into it (migration state, revision name) are kept.
"""

import msgspec

from paddock.dialects.kubevirt.domain import MachineChipset
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.status import GuestOSInfo, InterfaceStatus, MemoryStatus, VirtualMachineInstanceStatus
from paddock.meta.conditions import settled
from paddock.plan.instance import conditions
from paddock.plan.instance.identity import launcher_uid
from paddock.plan.instance.observed import ObservedInstance
from paddock.plan.instance.phases import FINAL, RUNNING, WAITING, phase_of, transitions


def status_of(instance: VirtualMachineInstance, sight: ObservedInstance) -> VirtualMachineInstanceStatus:
    """The status of a machine; equal to the one it has when nothing changed."""
    before = instance.status or VirtualMachineInstanceStatus()
    features = instance.spec.domain.features
    acpi = features is None or features.acpi is None or features.acpi.enabled is not False
    ready = sight.prepared or (sight.hold is not None and sight.hold.waits_for_host)
    phase = phase_of(before.phase or "", sight.observed, acpi=acpi, prepared=ready)
    if before.phase in FINAL:
        # It is over: nothing is learned about it any more.
        return before
    wanted = list(conditions.of(instance, sight, phase))
    kept = [each for each in before.conditions or () if each.type not in conditions.OWN or any(w.type == each.type for w in wanted)]
    running = phase == RUNNING
    milestones = sight.observed.times if sight.observed is not None else ()
    return msgspec.structs.replace(
        before,
        phase=phase,
        phaseTransitionTimestamps=transitions(before.phaseTransitionTimestamps, phase, sight.now, milestones),
        reason=_reason(phase, sight),
        conditions=settled(kept, wanted, sight.now),
        nodeName=sight.node if sight.prepared or sight.observed is not None else before.nodeName,
        # What waits for a start has its cards plugged already; nobody reaches it there yet.
        interfaces=(_interfaces(before, sight) or before.interfaces) if phase not in WAITING else None,
        volumeStatus=list(sight.volumes) or None,
        guestOSInfo=_system(before, sight) if running else before.guestOSInfo,
        fsFreezeStatus=before.fsFreezeStatus if sight.guest is None else "frozen" if sight.guest.frozen else None,
        machine=MachineChipset(type=sight.machine_type) if sight.machine_type else before.machine,
        currentCPUTopology=sight.topology or before.currentCPUTopology,
        memory=_memory(sight) or before.memory,
        kernelBootStatus=sight.kernel or before.kernelBootStatus,
        runtimeUser=sight.user if sight.user is not None else before.runtimeUser,
        qosClass=before.qosClass or qos(instance),
        activePods=before.activePods or ({launcher_uid(instance): sight.node} if sight.prepared else None),
        **sight.extra,
    )


def _reason(phase: str, sight: ObservedInstance) -> str | None:
    if phase not in FINAL or sight.observed is None or sight.observed.end is None:
        return None
    return sight.observed.end.reason


def _system(before: VirtualMachineInstanceStatus, sight: ObservedInstance) -> GuestOSInfo:
    found = sight.guest.os if sight.guest is not None else None
    return found or before.guestOSInfo or GuestOSInfo()


def _interfaces(before: VirtualMachineInstanceStatus, sight: ObservedInstance) -> list[InterfaceStatus] | None:
    """The cards as the host knows them, with what the guest says of them; then those only the guest knows."""
    if sight.guest is None:
        heard = [each for each in before.interfaces or () if "guest-agent" in (each.infoSource or "")]
        told = tuple(msgspec.structs.replace(each, ipAddresses=each.ipAddresses if not each.name else None) for each in heard)
    else:
        told = sight.guest.interfaces
    said = {each.mac: each for each in told if each.mac}
    found = []
    for card in sight.cards:
        guest = said.pop(card.mac or "", None)
        if guest is None:
            found.append(card)
            continue
        # The address others use comes first, whatever the guest calls itself.
        addresses = list(dict.fromkeys([*(card.ipAddresses or ()), *(guest.ipAddresses or () if card.ipAddress is None else ())]))
        found.append(
            msgspec.structs.replace(
                card,
                interfaceName=guest.interfaceName,
                ipAddress=card.ipAddress or (addresses[0] if addresses else None),
                ipAddresses=addresses or None,
                infoSource=f"{card.infoSource or 'domain'}, guest-agent",
            )
        )
    found += said.values()
    return found or None


def _memory(sight: ObservedInstance) -> MemoryStatus | None:
    if sight.memory is None:
        return None
    boot, now, asked, besides = (_bytes(each) for each in sight.memory)
    return MemoryStatus(guestAtBoot=boot, guestCurrent=now, guestRequested=asked, memoryOverhead=besides)


def _bytes(count: int) -> str:
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def qos(instance: VirtualMachineInstance) -> str:
    """The class of service, from what is asked for and what is allowed."""
    resources = instance.spec.domain.resources
    requests = dict(resources.requests or {}) if resources is not None else {}
    limits = dict(resources.limits or {}) if resources is not None else {}
    if limits and {"cpu", "memory"} <= limits.keys() and all(requests.get(name, value) == value for name, value in limits.items()):
        return "Guaranteed"
    return "Burstable"
