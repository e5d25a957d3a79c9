"""Adoption of machines that a Provider has and no VirtualMachine is of: which, and as what (docs/spec/virtrigaud.md 2.4).

An adopted machine is described and kept up as its spec says, and never made again. Its object leaves it at the Provider when it is deleted,
until somebody takes the annotation for that away.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from paddock.base import names
from paddock.base.errors import Terminal
from paddock.contract import messages as m
from paddock.dialects.virtrigaud.kinds.machine import IMPORTED_FORMATS, ImportedDiskRef, VirtrigaudMachineSpec, VirtualMachineResources
from paddock.dialects.virtrigaud.kinds.provider import AdoptionStatus, Provider
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION, ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass, VMClassSpec
from paddock.dialects.virtrigaud.plan import marks, power
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema import patterns
from paddock.kubernetes.schema.patterns import BadPattern

# Seconds between two discoveries: the least, and when nothing calls for one.
THROTTLE_SECONDS, PERIOD_SECONDS = 300.0, 3600.0
# The sizes of a class for machines of which the Provider does not tell them.
_UNKNOWN_CPU, _UNKNOWN_MEMORY_MIB = 2, 4096
_MEMORY_MIB = range(128, 1048577)
_LONGEST_NAME, _LONGEST_TEXT, _MOST_NAMED = 63, 1024, 5
_SEPARATORS = str.maketrans("_. ", "---")
_Count = Annotated[int, Meta(ge=0)]


class BadFilter(Terminal):
    """A filter that cannot be read."""


class AdoptionFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The machines to adopt. A bound of a size leaves out machines of which the Provider does not tell it."""

    namePattern: str = ""
    powerState: str = ""
    minCPU: _Count | None = None
    maxCPU: _Count | None = None
    minMemoryMiB: _Count | None = None
    maxMemoryMiB: _Count | None = None

    def matches(self, machine: m.VMInfo) -> bool:
        """Return whether a machine is to be adopted."""
        if self.namePattern and not patterns.matcher(self.namePattern)(machine.name):
            return False
        if self.powerState and power.known(machine.power_state) != self.powerState:
            return False
        return _within(machine.cpu, self.minCPU, self.maxCPU) and _within(machine.memory_mib, self.minMemoryMiB, self.maxMemoryMiB)


class KnownMachines(msgspec.Struct, frozen=True):
    """The machines of a Provider that are known already."""

    # of the VirtualMachines that name the Provider
    ids: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    # VirtualMachines that were made for machines and have no id yet, by name
    unbound: frozenset[str] = frozenset()
    # names that clones are making machines under
    reserved: frozenset[str] = frozenset()


class AdoptionPlan(msgspec.Struct, frozen=True):
    """The machines to adopt, by the name of their objects, and the problems of those that cannot be."""

    machines: Mapping[str, m.VMInfo]
    problems: tuple[str, ...] = ()
    # machines that were adopted before and are still there
    adopted: int = 0


def is_wanted(provider: Provider) -> bool:
    """Return whether the machines of a Provider are to be adopted."""
    return (provider.metadata.annotations or {}).get(marks.ADOPT) == marks.TRUE


def read_filter(provider: Provider) -> AdoptionFilter:
    """The filter of a Provider; raises `BadFilter`."""
    text = (provider.metadata.annotations or {}).get(marks.ADOPT_FILTER, "").strip()
    if not text:
        return AdoptionFilter()
    fix = "give a JSON object with namePattern, powerState, minCPU, maxCPU, minMemoryMiB, maxMemoryMiB"
    what = f"the annotation {marks.ADOPT_FILTER} cannot be read"
    try:
        found = msgspec.json.decode(text, type=AdoptionFilter)
        if found.namePattern:
            patterns.check(found.namePattern)
    except (msgspec.MsgspecError, BadPattern) as error:
        raise BadFilter(what, why=str(error), fix=fix) from None
    if found.powerState not in ("", power.ON, power.OFF):
        raise BadFilter(what, why=f'powerState "{found.powerState[:40]}" is neither On nor Off', fix=fix)
    for name, least, most in (("CPU", found.minCPU, found.maxCPU), ("MemoryMiB", found.minMemoryMiB, found.maxMemoryMiB)):
        if least is not None and most is not None and least > most:
            raise BadFilter(what, why=f"min{name} {least} is more than max{name} {most}", fix=fix)
    return found


def decide(listed: Iterable[m.VMInfo], adoption_filter: AdoptionFilter, known: KnownMachines, adopted: frozenset[str]) -> AdoptionPlan:
    """Choose among the machines that a Provider lists; `adopted` are the ids of those that were adopted before."""
    machines: dict[str, m.VMInfo] = {}
    problems: list[str] = []
    before = 0
    for each in listed:
        before += each.id in adopted
        if each.id in known.ids or each.provider_raw.get("managed") == marks.TRUE or each.name in known.reserved:
            continue
        name = object_name(each.name)
        if (each.name in known.names and name not in known.unbound) or not adoption_filter.matches(each):
            continue
        problem = _problem(each, name, machines)
        if problem:
            problems.append(problem)
        else:
            machines[name] = each
    return AdoptionPlan(machines, tuple(problems), before)


def object_name(name: str) -> str:
    """The name of the object of a machine."""
    return name.lower().translate(_SEPARATORS)[:_LONGEST_NAME].rstrip("-")


def _problem(machine: m.VMInfo, name: str, taken: Mapping[str, m.VMInfo]) -> str:
    shown = machine.name[:_LONGEST_NAME]
    if not machine.id:
        return f"{shown}: the Provider lists it without an id"
    if not names.is_label(name):
        return f"{shown}: its name cannot become that of an object; rename it at the Provider"
    if name in taken:
        return f"{shown}: its object would have the name of that of {taken[name].name[:_LONGEST_NAME]}, {name}; rename one of them"
    if power.known(machine.power_state) not in (power.ON, power.OFF):
        # An object asks for On or Off, and either would end what the machine is in.
        return f"{shown}: its power state is {machine.power_state[:20] or 'not known'}; it is adopted when it is On or Off"
    return ""


# --- what is made -----------------------------------------------------------------------------------------------------------


def sizes(machine: m.VMInfo) -> MachineSizes | None:
    """The sizes that the Provider tells of a machine; its disks keep theirs, whatever they are."""
    return MachineSizes(machine.cpu, machine.memory_mib) if machine.cpu > 0 and machine.memory_mib > 0 else None


def machine_class(machine: m.VMInfo, namespace: str) -> VMClass:
    """The class of an adopted machine."""
    cpu, memory = machine.cpu or _UNKNOWN_CPU, machine.memory_mib or _UNKNOWN_MEMORY_MIB
    metadata = ObjectMeta(name=f"adopted-{cpu}cpu-{memory}mb", namespace=namespace)
    return VMClass(apiVersion=API_VERSION, kind="VMClass", metadata=metadata, spec=VMClassSpec(cpu=cpu, memory=f"{memory}Mi"))


def virtual_machine(machine: m.VMInfo, name: str, provider: Provider) -> VirtrigaudVirtualMachine:
    """The object of a machine: as it is, so that nothing about it changes."""
    namespace, known = namespace_of(provider), sizes(machine)
    spec = VirtrigaudMachineSpec(
        providerRef=ObjectRef(name=provider.metadata.name),
        classRef=ObjectRef(name=machine_class(machine, namespace).metadata.name),
        importedDisk=_first_disk(machine),
        powerState=power.known(machine.power_state),
        resources=_resources(known),
    )
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels={marks.ADOPTED_LABEL: marks.TRUE},
        annotations={marks.ORPHAN_ON_DELETE: marks.TRUE},
    )
    return VirtrigaudVirtualMachine(apiVersion=API_VERSION, kind="VirtualMachine", metadata=metadata, spec=spec)


def _resources(known: MachineSizes | None) -> VirtualMachineResources | None:
    """The sizes as the object's own. The field has bounds that a class does not have, and the class says the same."""
    if known is None or known.memory_mib not in _MEMORY_MIB:
        return None
    return VirtualMachineResources(cpu=known.cpu, memoryMiB=known.memory_mib)


def _first_disk(machine: m.VMInfo) -> ImportedDiskRef | None:
    """The first disk as the Provider lists it; None for a format that the field does not know."""
    disk = next(iter(machine.disks), None)
    if disk is None or not disk.id or len(disk.id) > 253 or disk.format not in IMPORTED_FORMATS:
        return None
    return ImportedDiskRef(diskID=disk.id, path=disk.path or None, format=disk.format, source="manual", sizeGiB=disk.size_gib or None)


def status(plan: AdoptionPlan, failed: Iterable[str], adopted: int, now: str) -> AdoptionStatus:
    """The status of an adoption."""
    problems = (*plan.problems, *failed)
    more = f"; and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
    text = "; ".join(problems[:_MOST_NAMED]) + more
    return AdoptionStatus(
        lastDiscoveryTime=now,
        discoveredVMs=plan.adopted + len(plan.machines) + len(plan.problems),
        adoptedVMs=plan.adopted + adopted,
        failedAdoptions=len(problems),
        message=text[:_LONGEST_TEXT] or None,
    )


def _within(value: int, least: int | None, most: int | None) -> bool:
    if least is None and most is None:
        return True
    return value > 0 and (least or 0) <= value and (most is None or value <= most)
