"""The status of a running machine, from everything that one pass observed.

One function makes the whole status, so that the same observation gives the same status and an unchanged status is not written. Fields
that other controllers write into it (migration state, revision name) are kept.
"""

import msgspec

from paddock.kubernetes.meta.conditions import settled
from paddock.kubevirt.kinds.domain import MachineChipset
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import GuestOSInfo, InterfaceStatus, MemoryStatus, VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance import conditions, volumemoves
from paddock.kubevirt.plan.instance.identity import launcher_uid
from paddock.kubevirt.plan.instance.observed import ObservedInstance
from paddock.kubevirt.plan.instance.phases import FINAL, RUNNING, WAITING, phase_of, transitions


def status_of(instance: VirtualMachineInstance, observed: ObservedInstance) -> VirtualMachineInstanceStatus:
    """The status of a machine; equal to the one it has when nothing changed."""
    before = instance.status or VirtualMachineInstanceStatus()
    features = instance.spec.domain.features
    acpi = features is None or features.acpi is None or features.acpi.enabled is not False
    ready = observed.prepared or (observed.hold is not None and observed.hold.waits_for_host)
    phase = phase_of(before.phase or "", observed.observed, acpi=acpi, prepared=ready, receives=observed.receives)
    if before.phase in FINAL:
        # It is over: nothing is learned about it any more.
        return before
    wanted = list(conditions.of(instance, observed, phase))
    gone = conditions.OWN | ({volumemoves.CHANGE} if observed.move is not None and observed.move.done else set())
    kept = [each for each in before.conditions or () if each.type not in gone or any(w.type == each.type for w in wanted)]
    running = phase == RUNNING
    milestones = observed.observed.times if observed.observed is not None else ()
    return msgspec.structs.replace(
        before,
        phase=phase,
        phaseTransitionTimestamps=transitions(before.phaseTransitionTimestamps, phase, observed.now, milestones),
        reason=_reason(phase, observed),
        conditions=settled(kept, wanted, observed.now),
        nodeName=observed.node if observed.prepared or observed.observed is not None else before.nodeName,
        # What waits for a start has its cards plugged already; nobody reaches it there yet.
        interfaces=(_interfaces(before, observed) or before.interfaces) if phase not in WAITING else None,
        volumeStatus=list(observed.volumes) or None,
        guestOSInfo=_system(before, observed) if running else before.guestOSInfo,
        fsFreezeStatus=before.fsFreezeStatus if observed.guest is None else "frozen" if observed.guest.frozen else None,
        machine=MachineChipset(type=observed.machine_type) if observed.machine_type else before.machine,
        currentCPUTopology=observed.topology or before.currentCPUTopology,
        memory=_memory(observed) or before.memory,
        kernelBootStatus=observed.kernel or before.kernelBootStatus,
        runtimeUser=observed.user if observed.user is not None else before.runtimeUser,
        qosClass=before.qosClass or qos(instance),
        activePods=before.activePods or ({launcher_uid(instance): observed.node} if observed.prepared else None),
        **volumemoves.members(instance, observed.move, observed.now),
        **observed.extra,
    )


def _reason(phase: str, observed: ObservedInstance) -> str | None:
    if phase not in FINAL or observed.observed is None or observed.observed.end is None:
        return None
    return observed.observed.end.reason


def _system(before: VirtualMachineInstanceStatus, observed: ObservedInstance) -> GuestOSInfo:
    found = observed.guest.os if observed.guest is not None else None
    return found or before.guestOSInfo or GuestOSInfo()


def _interfaces(before: VirtualMachineInstanceStatus, observed: ObservedInstance) -> list[InterfaceStatus] | None:
    """The cards as the host knows them, with what the guest says of them; then those only the guest knows."""
    if observed.guest is None:
        heard = [each for each in before.interfaces or () if "guest-agent" in (each.infoSource or "")]
        reported = tuple(msgspec.structs.replace(each, ipAddresses=each.ipAddresses if not each.name else None) for each in heard)
    else:
        reported = observed.guest.interfaces
    said = {each.mac: each for each in reported if each.mac}
    found = []
    for nic in observed.cards:
        guest = said.pop(nic.mac or "", None)
        if guest is None:
            found.append(nic)
            continue
        # The address others use comes first, whatever the guest calls itself.
        addresses = list(dict.fromkeys([*(nic.ipAddresses or ()), *(guest.ipAddresses or () if nic.ipAddress is None else ())]))
        found.append(
            msgspec.structs.replace(
                nic,
                interfaceName=guest.interfaceName,
                ipAddress=nic.ipAddress or (addresses[0] if addresses else None),
                ipAddresses=addresses or None,
                infoSource=f"{nic.infoSource or 'domain'}, guest-agent",
            )
        )
    found += said.values()
    return found or None


def _memory(observed: ObservedInstance) -> MemoryStatus | None:
    if observed.memory is None:
        return None
    boot, now, asked, besides = (_bytes(each) for each in observed.memory)
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
