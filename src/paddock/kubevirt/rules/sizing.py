"""Machines that take their size from an instancetype: V15 and V16 (docs/spec/kubevirt.md sections 2.11 and 7.5).

What conflicts, and whether the needs of a preference are met, depends on the objects: whoever has them (the server, its controllers, a
command with the documents of its input) asks `conflicts` and `unmet`. Every instancetype sets processors and memory, so a machine that
names any and gives them is warned of at once.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.base import quantity
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubevirt.rules.place import HardwareContext, MachinePlace, check

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.instancetype import InstancetypeSpec
    from paddock.kubevirt.kinds.preference import PreferenceSpec

_PROCESSORS = tuple(("domain", "cpu", name) for name in ("sockets", "cores", "threads"))
_MEMORY = ("domain", "memory", "guest")
_AMOUNTS = tuple(("domain", "resources", kind, resource) for kind in ("requests", "limits") for resource in ("cpu", "memory"))
# Members of an instancetype, and what they are called in a machine.
_GIVEN = (
    (("cpu", "model"), ("domain", "cpu", "model")),
    (("cpu", "dedicatedCPUPlacement"), ("domain", "cpu", "dedicatedCpuPlacement")),
    (("cpu", "isolateEmulatorThread"), ("domain", "cpu", "isolateEmulatorThread")),
    (("cpu", "numa"), ("domain", "cpu", "numa")),
    (("cpu", "realtime"), ("domain", "cpu", "realtime")),
    (("cpu", "maxSockets"), ("domain", "cpu", "maxSockets")),
    (("cpu", "features"), ("domain", "cpu", "features")),
    (("memory", "hugepages"), ("domain", "memory", "hugepages")),
    (("memory", "maxGuest"), ("domain", "memory", "maxGuest")),
    (("gpus",), ("domain", "devices", "gpus")),
    (("hostDevices",), ("domain", "devices", "hostDevices")),
    (("ioThreadsPolicy",), ("domain", "ioThreadsPolicy")),
    (("ioThreads",), ("domain", "ioThreads")),
    (("launchSecurity",), ("domain", "launchSecurity")),
    (("nodeSelector",), ("nodeSelector",)),
    (("schedulerName",), ("schedulerName",)),
)
_TOPOLOGY = {
    "cores": ("cores",),
    "sockets": ("sockets",),
    "threads": ("threads",),
    "any": ("cores", "sockets", "threads"),
}
_SPREAD = {
    "SocketsCores": ("sockets", "cores"),
    "CoresThreads": ("cores", "threads"),
    "SocketsCoresThreads": ("sockets", "cores", "threads"),
}


def _member(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        value = getattr(value, name, None)
    return value


def _conflict(path: Path) -> Finding:
    words = f"VM field(s) {finding.format_path(path)} conflicts with selected instance type"
    return Finding(path=path, message=f"Invalid value: {words}; leave it out", rule="kubevirt/V15", words=words)


def _own_sizes(hardware: HardwareContext) -> Iterator[Path]:
    """Yield the processors and the memory that a machine gives itself: every instancetype sets both."""
    # 0 means that none is given.
    yield from (hardware.at(*path) for path in _PROCESSORS if _member(hardware.spec, path))
    if _member(hardware.spec, _MEMORY) is not None:
        yield hardware.at(*_MEMORY)
    yield from (hardware.at(*amount) for amount in _AMOUNTS if hardware.written(amount) is not None)


@check("kubevirt/V15", warns=True, given=("spec.instancetype",))
def size_is_said_once(machine_place: MachinePlace) -> Iterator[Finding]:
    """A machine that names an instancetype says nothing of processors and memory itself: such a machine does not start (a warning)."""
    matcher = machine_place.spec.instancetype
    if matcher is None or (not matcher.name and matcher.inferFromVolumeFailurePolicy == "Ignore"):
        return
    for path in _own_sizes(machine_place.hardware):
        yield finding.warning(
            path, "conflicts with the instancetype, which sets it: the machine does not start; leave it out", "kubevirt/V15"
        )


def conflicts(machine_place: MachinePlace, instancetype: "InstancetypeSpec") -> Iterator[Finding]:
    """Yield the fields that a machine sets although its instancetype does (V15)."""
    hardware = machine_place.hardware
    yield from map(_conflict, _own_sizes(hardware))
    for given, path in _GIVEN:
        if _member(instancetype, given) not in (None, []) and _member(hardware.spec, path) not in (None, [], False):
            yield _conflict(hardware.at(*path))


def unmet(machine_place: MachinePlace, preference: "PreferenceSpec", instancetype: "InstancetypeSpec | None") -> Iterator[Finding]:
    """Yield the requirements of a preference that neither the machine nor its instancetype meets (V16)."""
    needs = preference.requirements
    if needs is None:
        return
    hardware = machine_place.hardware
    if needs.cpu is not None:
        yield from _few_processors(machine_place, preference, needs.cpu.guest, instancetype)
    if needs.memory is not None:
        memory = hardware.spec.domain.memory
        guest = memory.guest if memory is not None else None
        has = instancetype.memory.guest if instancetype is not None else guest
        path = machine_place.at("instancetype") if instancetype is not None else hardware.at("domain", "memory")
        if has is None or quantity.parse(has) < quantity.parse(needs.memory.guest):
            yield _unmet(path, _insufficient("Memory", f"{has or 0}", f"{needs.memory.guest}", instancetype))
    if needs.architecture is not None and hardware.architecture != needs.architecture:
        why = f"preference requires architecture {needs.architecture} but {hardware.architecture} is being requested"
        yield _unmet(hardware.at("architecture"), why)


def _few_processors(
    machine_place: MachinePlace, preference: "PreferenceSpec", needed: int, instancetype: "InstancetypeSpec | None"
) -> Iterator[Finding]:
    hardware = machine_place.hardware
    if instancetype is not None:
        has, path = instancetype.cpu.guest, machine_place.at("instancetype")
    else:
        has, path = _processors(hardware, preference)
    if has < needed:
        members = "" if instancetype is not None or hardware.spec.domain.cpu is None else f" provided as {', '.join(_counted(preference))}"
        yield _unmet(path, _insufficient("CPU", f"{has} vCPU", f"{needed} vCPU", instancetype) + members)


def _processors(hardware: HardwareContext, preference: "PreferenceSpec") -> tuple[int, Path]:
    """The vCPUs of a machine as the preference counts them (one that says nothing has one), and where it would have to say more."""
    cpu, path, count = hardware.spec.domain.cpu, hardware.at("domain", "cpu"), 1
    members = _counted(preference)
    for member in members:
        count *= getattr(cpu, member, None) or 1
    return count, (*path, members[0]) if cpu is not None else path


def _counted(preference: "PreferenceSpec") -> tuple[str, ...]:
    cpu = preference.cpu
    # The older words are preferCores and the like.
    wanted = ((cpu.preferredCPUTopology if cpu is not None else None) or "sockets").removeprefix("prefer").lower()
    if wanted != "spread":
        return _TOPOLOGY.get(wanted, ("sockets",))
    options = cpu.spreadOptions if cpu is not None else None
    return _SPREAD[(options.across if options is not None else None) or "SocketsCores"]


def _insufficient(resource: str, has: str, needed: str, instancetype: "InstancetypeSpec | None") -> str:
    giver = "instance type" if instancetype is not None else "VirtualMachine"
    return f"insufficient {resource} resources of {has} provided by {giver}, preference requires {needed}"


def _unmet(path: Path, why: str) -> Finding:
    message = f"Not found: failure checking preference requirements: {why}"
    return Finding(path=path, message=message, rule="kubevirt/V16", cause=CauseType.NOT_FOUND)


CHECKS = (size_is_said_once,)
