from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from paddock.app.metrics.series.facts import NONE, cards, nature
from paddock.app.metrics.series.families import GROUPS
from paddock.app.metrics.series.page import Sample, labels, prefixed, sample
from paddock.base import quantity
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta import ages
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.instance.volumes import claim_of

_OF_GROUP = {
    "starting": ("Provisioning", "Starting", "WaitingForVolumeBinding", "WaitingForReceiver"),
    "running": ("Running",),
    "migrating": ("Migrating",),
    "non_running": ("Stopped", "Paused", "Suspended", "Stopping", "Terminating"),
}
_GROUP = {word: group for group, words in _OF_GROUP.items() for word in words}
_STATES = {group: f"kubevirt_vm_{group}_status_last_transition_timestamp_seconds" for group in GROUPS}
_UNITS = {"cpu": "cores", "memory": "bytes"}
_REQUESTS, _LIMITS = "kubevirt_vm_resource_requests", "kubevirt_vm_resource_limits"
# Of claims, by namespace and name: bytes and the mode of the volume.
Sizes = Callable[[str, str], tuple[int, str] | None]


class MachineMetrics(NamedTuple):
    """The series of one machine, ready for the page."""

    namespace: str
    name: str
    samples: tuple[Sample, ...]
    # claims, and the disks that are on them
    disks: tuple[tuple[str, str], ...]


def group_of(word: str) -> str:
    """The group of a printable status; what is no state of a machine that is well is an error."""
    return _GROUP.get(word, "error")


def samples(machine: VirtualMachine) -> Iterator[Sample]:
    """Everything but its disks."""
    meta = machine.metadata
    place = {"name": meta.name, "namespace": meta.namespace or ""}
    at = labels(**place)
    template = machine.spec.template
    word = machine.status.printableStatus if machine.status is not None else ""
    group = group_of(word)
    chipset = template.spec.domain.machine
    yield sample(
        "kubevirt_vm_info",
        labels(
            **place,
            **nature(template.metadata.annotations if template.metadata is not None else None),
            machine_type=(chipset.type if chipset is not None else None) or NONE,
            instance_type=(machine.spec.instancetype.name if machine.spec.instancetype is not None else None) or NONE,
            preference=(machine.spec.preference.name if machine.spec.preference is not None else None) or NONE,
            status=word.lower(),
            status_group=group,
        ),
        1,
    )
    yield sample("kubevirt_vm_labels", at + prefixed("label_", meta.labels), 1)
    made = ages.seconds_of(meta.creationTimestamp or "") or 0.0
    yield sample("kubevirt_vm_create_date_timestamp_seconds", at, made)
    for each, name in _STATES.items():
        yield sample(name, at, _since(machine, made) if each == group else 0)
    yield from cards("kubevirt_vm_vnic_info", place, template.spec)
    yield from _resources(at, template.spec.domain, machine.spec.instancetype is None)


def _since(machine: VirtualMachine, made: float) -> float:
    """Return the time of the last change: the newest transition of its conditions."""
    conditions = (machine.status.conditions if machine.status is not None else None) or ()
    return max((ages.seconds_of(each.lastTransitionTime or "") or 0.0 for each in conditions), default=made)


def _resources(at: str, domain: DomainSpec, own_size: bool) -> Iterator[Sample]:
    """Yield the machine's own requests and limits; the share of an instancetype has series of its own."""
    given = domain.resources
    for resource, unit in _UNITS.items():
        for name, amounts in ((_REQUESTS, given and given.requests), (_LIMITS, given and given.limits)):
            if (amount := (amounts or {}).get(resource)) is not None and quantity.is_quantity(amount):
                source = ',source="' + ("requests" if resource == "cpu" else "domain") + '"' if name == _REQUESTS else ""
                yield sample(name, f'{at},resource="{resource}",unit="{unit}"{source}', quantity.parse(amount) / quantity.UNIT)
    cpu = domain.cpu
    if cpu is not None and (cpu.cores or cpu.sockets or cpu.threads):
        for unit in ("cores", "sockets", "threads"):
            if (count := getattr(cpu, unit)) is not None:
                yield sample(_REQUESTS, f'{at},resource="cpu",unit="{unit}",source="domain"', count)
    elif own_size and "cpu" not in ((given.requests if given is not None else None) or {}):
        yield sample(_REQUESTS, f'{at},resource="cpu",unit="cores",source="default"', 1)
    memory = domain.memory
    if memory is not None and memory.guest is not None and quantity.is_quantity(memory.guest):
        yield sample(_REQUESTS, f'{at},resource="memory",unit="bytes",source="guest"', quantity.whole(memory.guest))
    if memory is not None and memory.hugepages is not None and quantity.is_quantity(size := memory.hugepages.pageSize or ""):
        yield sample(_REQUESTS, f'{at},resource="memory",unit="bytes",source="hugepages"', quantity.whole(size))


def metrics_of(machine: VirtualMachine) -> MachineMetrics:
    meta = machine.metadata
    names: dict[str, str] = {}
    for volume in machine.spec.template.spec.volumes or ():
        if claim := claim_of(volume):
            names.setdefault(claim, volume.name)
    return MachineMetrics(meta.namespace or "", meta.name, tuple(samples(machine)), tuple(names.items()))


def size(claim: PersistentVolumeClaim) -> tuple[int, str]:
    """Return the size of a claim, and the mode of its volume; 0 without a size."""
    spec = claim.spec
    if spec is None:
        return 0, ""
    asked = ((spec.resources.requests if spec.resources is not None else None) or {}).get("storage")
    return (quantity.whole(asked) if asked is not None and quantity.is_quantity(asked) else 0), spec.volumeMode or "Filesystem"


def disks(machine: MachineMetrics, sizes: Sizes) -> Iterator[Sample]:
    """The sizes of its claims, as far as they are there."""
    for claim, device in machine.disks:
        found = sizes(machine.namespace, claim)
        if found is not None and found[0]:
            place = labels(name=machine.name, namespace=machine.namespace)
            about = labels(persistentvolumeclaim=claim, volume_mode=found[1], device=device)
            yield sample("kubevirt_vm_disk_allocated_size_bytes", f"{place},{about}", found[0])


def numbers(machines: Iterable[str]) -> Iterator[Sample]:
    """Yield the number of machines, from the namespace of each."""
    counts: dict[str, int] = {}
    for namespace in machines:
        counts[namespace] = counts.get(namespace, 0) + 1
    for namespace, count in sorted(counts.items()):
        for name in ("kubevirt_number_of_vms", "namespace:kubevirt_vm:sum"):
            yield sample(name, labels(namespace=namespace), count)
