"""Series of VirtualMachineInstances, from what their objects say."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from paddock.app.metrics.series.facts import NONE, cards, nature
from paddock.app.metrics.series.page import Sample, labels, prefixed, sample
from paddock.base import quantity
from paddock.kubevirt.kinds.instance import OUTDATED, VirtualMachineInstance
from paddock.kubevirt.kinds.status import GuestOSInfo, VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance.conditions import FAULTS

_SIZES = {"instance_type": "instancetype-name", "preference": "preference-name"}


class InstanceMetrics(NamedTuple):
    """The series of one instance, ready for the page."""

    samples: tuple[Sample, ...]
    # the labels of everything that is measured of it
    at: str
    # node, phase and kind, by which instances are counted
    kind: str


def metrics_of(instance: VirtualMachineInstance) -> InstanceMetrics:
    meta, status = instance.metadata, instance.status or VirtualMachineInstanceStatus()
    place = {"node": status.nodeName or "", "namespace": meta.namespace or "", "name": meta.name}
    at = labels(**place) + prefixed("kubernetes_vmi_label_", meta.labels)
    phase = (status.phase or "Pending").lower()
    guest = status.guestOSInfo or GuestOSInfo()
    about = {**nature(meta.annotations), **_sizes(meta.annotations or {})}
    system = {
        "guest_os_kernel_release": guest.kernelRelease or NONE,
        "guest_os_machine": guest.machine or NONE,
        "guest_os_arch": guest.machine or NONE,
        "guest_os_name": guest.name or NONE,
        "guest_os_version_id": guest.versionId or NONE,
    }
    stuck = _is_stuck(instance, status)
    ends = {
        "evictable": "false" if stuck else "true",
        "outdated": "true" if OUTDATED in (meta.labels or {}) else "false",
        "vmi_pod": "none",
    }
    found = [
        sample("kubevirt_vmi_info", labels(**place, phase=phase, **about, **system, **ends), 1),
        sample("kubevirt_vmi_non_evictable", labels(**place), 1 if stuck else 0),
        *_faults(place, status),
        *_addresses(place, status),
        *cards("kubevirt_vmi_vnic_info", place, instance.spec),
    ]
    overhead = status.memory.memoryOverhead if status.memory is not None else None
    if overhead is not None and quantity.is_quantity(overhead):
        found.append(sample("kubevirt_vmi_launcher_memory_overhead_bytes", labels(**place), quantity.whole(overhead)))
    system.pop("guest_os_arch")
    return InstanceMetrics(tuple(found), at, labels(node=place["node"], phase=phase, **about, **system))


def _sizes(notes: dict[str, str]) -> dict[str, str]:
    """The instancetype and the preference it was made with."""
    return {name: notes.get(f"kubevirt.io/{note}") or notes.get(f"kubevirt.io/cluster-{note}") or NONE for name, note in _SIZES.items()}


def _is_stuck(instance: VirtualMachineInstance, status: VirtualMachineInstanceStatus) -> bool:
    if instance.spec.evictionStrategy != "LiveMigrate":
        return False
    return not any(each.type == "LiveMigratable" and each.status == "True" for each in status.conditions or ())


def _faults(machine_labels: dict[str, str], status: VirtualMachineInstanceStatus) -> Iterator[Sample]:
    for each in status.conditions or ():
        if each.type == "Ready" and each.reason in FAULTS:
            yield sample("paddock_vmi_fault", labels(**machine_labels, reason=each.reason or ""), 1)


def _addresses(machine_labels: dict[str, str], status: VirtualMachineInstanceStatus) -> Iterator[Sample]:
    seen = set()
    for interface in status.interfaces or ():
        for address in (interface.ipAddress or "", *(interface.ipAddresses or ())):
            name = interface.name or interface.interfaceName or ""
            if address and (name, address) not in seen:
                seen.add((name, address))
                about = labels(**machine_labels, network_interface=name, address=address, type="InternalIP")
                yield sample("kubevirt_vmi_status_addresses", about, 1)


def counts(kinds: Iterable[str]) -> Iterator[Sample]:
    """Yield the number of instances of each kind."""
    found: dict[str, int] = {}
    for kind in kinds:
        found[kind] = found.get(kind, 0) + 1
    for kind, count in sorted(found.items()):
        for name in ("kubevirt_vmi_phase_count", "node:kubevirt_vmi_phase:sum"):
            yield sample(name, kind, count)
