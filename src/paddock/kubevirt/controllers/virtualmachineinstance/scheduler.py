"""The fit of a machine on a node: taints and labels, the machines that run there, free CPUs and memory.

A real engine has one node. The node of a machine is `status.nodeName` of its instance; until that is written, the one chosen here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import orjson
from msgspec import structs

from paddock.base import quantity, reasons
from paddock.base.jsondata import Data
from paddock.engine.engine import Engine
from paddock.engine.host import capacity
from paddock.engine.host.capacity import PinnedCpus, Room, Shortage
from paddock.engine.machine.config import MachineConfig
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Keys
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES, NAMESPACES, NODES, PRIORITIES, key_of
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import prerequisites
from paddock.kubevirt.plan.instance.phases import RUNNING, SCHEDULED
from paddock.kubevirt.plan.machine import placement
from paddock.kubevirt.plan.migration.steps import NODE_LABEL

_CREATED_BY = "kubevirt.io/created-by"
# The index of instances whose JSON names pods that they must not run beside.
_ANTI_AFFINITY = "instances with anti-affinity"
_IN_JSON = b'"podAntiAffinity"'
# The index of instances by UID.
_UID = "uid"
# Not every end of another machine, which frees memory, reaches an instance that waits.
_CAPACITY_SECONDS = 5.0


class PromisedMemory:
    """The memory that machines take. Every start asks for that of all, so only what has changed is counted again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # the memory that each machine takes with the config that it has
        self._needs: dict[str, tuple[MachineConfig, int]] = {}
        # that of each machine that lives, and their sum
        self._given: dict[str, int] = {}
        self._sum = 0
        # all have to be counted anew
        self._stale = True
        self._changed: set[str] = set()
        engine.machines.listen(self._changed.add)

    @property
    def given(self) -> int:
        """What the machines that live have."""
        self._count()
        return self._sum

    @property
    def by_machine(self) -> Mapping[str, int]:
        self._count()
        return self._given

    def needed(self, machine: str, config: MachineConfig) -> int:
        """What a machine takes with a config."""
        known = self._needs.get(machine)
        if known is None or known[0] is not config:
            known = self._needs[machine] = (config, capacity.needed(config, self._engine.facts.verdict(config).accelerator))
        return known[1]

    def release(self, machine: str) -> None:
        """Drop what is known of a machine that ended."""
        self._needs.pop(machine, None)

    def _count(self) -> None:
        machines = self._engine.machines
        # Of machines that are not managed nobody tells.
        unmanaged = bool(machines.leftovers())
        if self._stale or unmanaged:
            self._given = {machine: self.needed(machine, config) for machine, config in machines.living().items()}
            self._sum, self._stale = sum(self._given.values()), unmanaged
            self._changed.clear()
        for each in self._changed:
            self._sum -= self._given.pop(each, 0)
            if (machine := machines.get(each)) is not None and machine.observed.live:
                self._given[each] = self.needed(each, machine.config)
                self._sum += self._given[each]
        self._changed.clear()


class Scheduler:
    """Asks the rules of placement and of capacity with the facts of the host."""

    def __init__(self, informers: Informers, engine: Engine, nodes: Sequence[str]) -> None:
        self._instances = informers.of(INSTANCES)
        self._instances.cache.index(_ANTI_AFFINITY, lambda seen: ("",) if _IN_JSON in seen.raw else ())
        self._nodes = informers.of(NODES)
        self._priorities = informers.of(PRIORITIES)
        self._namespaces = informers.of(NAMESPACES)
        self._engine = engine
        self._names = tuple(nodes)
        # the nodes that were chosen for machines whose instances do not name them yet
        self._chosen: dict[str, str] = {}
        # each Node as it was read
        self._read: dict[str, tuple[CachedObject, placement.PlacementNode]] = {}
        # instances that found no place: a change of the host concerns all of them
        self._waiting: dict[Key, None] = {}
        self._memory = PromisedMemory(engine)

    @property
    def count(self) -> int:
        return len(self._names)

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The kinds to watch, and the instances that a change concerns: those that found no place."""

        def waiting(change: CacheChange) -> tuple[Key, ...]:
            return tuple(self._waiting)

        yield self._nodes, lambda change: waiting(change) if _is_another_host(change) else ()
        yield self._priorities, waiting
        yield self._namespaces, waiting
        # A machine that goes may leave the place that another waits for.
        yield self._instances, lambda change: waiting(change) if change.new is None else ()

    def place(self, instance: VirtualMachineInstance) -> None:
        """Choose the node that the instance may run on now. Raises `MissingPrerequisite`."""
        key, named = key_of(instance), _node_name(instance)
        names = (named,) if named in self._names else self._names
        who, environments = _neighbour(instance), self._environments(key, instance, names)
        found, refusal = placement.fitting(instance.spec, who, environments)
        if refusal is None:
            self._waiting.pop(key, None)
            if len(self._names) > 1:
                self._chosen[instance.metadata.uid or ""] = self._emptiest(_preferred(instance, who, environments, found))
            return
        self._waiting[key] = None
        if refusal.reason == placement.UNSCHEDULABLE:
            raise prerequisites.unschedulable(refusal.message)
        raise prerequisites.failed(refusal.reason, refusal.message, code=reasons.PRIORITY_CLASS_MISSING)

    def target(self, instance: VirtualMachineInstance, selector: Mapping[str, str]) -> str:
        """Return the node that a running machine can move to, with these labels. Raises `MissingPrerequisite`."""
        uid, source = instance.metadata.uid or "", self.node_of(instance)
        wanted = structs.replace(instance.spec, nodeSelector={**(instance.spec.nodeSelector or {}), **selector})
        names = tuple(each for each in self._names if each != source)
        who, environments = _neighbour(instance), self._environments(key_of(instance), instance, names)
        found, refusal = placement.fitting(wanted, who, environments)
        if refusal is not None:
            raise prerequisites.unschedulable(refusal.message)
        node, config = self._emptiest(_preferred(instance, who, environments, found)), self._engine.machines.living().get(uid)
        if config is not None:
            self._admit_on(node, uid, config)
        return node

    def node_of(self, instance: VirtualMachineInstance) -> str:
        """Return the node of a machine: that of its instance, or the one chosen for it."""
        named = _node_name(instance)
        return named if named in self._names else self._chosen.get(instance.metadata.uid or "", self._names[0])

    def priority(self, instance: VirtualMachineInstance) -> int:
        """Return the priority among the machines that wait for their start: that of its class."""
        return placement.priority_of(instance.spec.priorityClassName, {seen.key.name: _level(seen) for seen in self._priorities.cache})

    def cpus(self, instance: VirtualMachineInstance) -> PinnedCpus:
        """CPUs for this machine alone, if it wants any: those it has, or some that no machine has. Raises `MissingPrerequisite`."""
        cpu = instance.spec.domain.cpu
        if cpu is None or not cpu.dedicatedCpuPlacement:
            return PinnedCpus(())
        living = self._engine.machines.living()
        taken = {other: PinnedCpus(config.cpu.pinned, config.cpu.emulator_pinned) for other, config in living.items()}
        own = taken.pop(instance.metadata.uid or "", None)
        if own is not None and own.vcpus:
            return own
        count = (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1)
        try:
            return capacity.dedicate(self._engine.facts.cpus, taken, count, isolate=bool(cpu.isolateEmulatorThread))
        except Shortage as error:
            raise _shortage(error, "cpu") from error

    def admit(self, machine: str, config: MachineConfig) -> None:
        """Check that the memory of a machine is free as a whole. Raises `MissingPrerequisite`."""
        self._admit_on(self._node(machine), machine, config)

    def _admit_on(self, node: str, machine: str, config: MachineConfig) -> None:
        given = self._memory.given if len(self._names) == 1 else self._given_on(node)
        if self._node(machine) == node:
            given -= self._memory.by_machine.get(machine, 0)
        try:
            capacity.admit(self._memory.needed(machine, config), given, self._room)
            if config.memory.hugepage:
                capacity.admit_hugepages(config, self._engine.facts.hugepages())
        except Shortage as error:
            page = config.memory.hugepage if error.resource == "hugepages" else None
            resource = f"hugepages-{quantity.binary(page)}" if page else "memory"
            raise _shortage(error, resource, len(self._names)) from error

    @property
    def _room(self) -> Room:
        """The room of each node."""
        return Room(self._engine.room.memory // len(self._names))

    def _node(self, machine: str) -> str:
        """Return the node of a machine by its id."""
        seen = next(iter(self._instances.cache.by(_UID, machine)), None)
        # Its label, which follows the status: reading every instance would take too long.
        named = (seen.meta.labels or {}).get(NODE_LABEL, "") if seen is not None else ""
        return named if named in self._names else self._chosen.get(machine, self._names[0])

    def _emptiest(self, names: Sequence[str]) -> str:
        """Return the node with the least memory promised; of several, the one that the fewest machines wait for."""
        if len(names) == 1:
            return names[0]
        promised, coming = Counter[str](), Counter(self._chosen.values())
        for machine, size in self._memory.by_machine.items():
            promised[self._node(machine)] += size
        return min(names, key=lambda name: (promised[name], coming[name]))

    def _given_on(self, node: str) -> int:
        """Return the memory that the machines on a node have."""
        return sum(size for machine, size in self._memory.by_machine.items() if self._node(machine) == node)

    def release(self, machine: str) -> None:
        """Drop what is known of a machine that ended."""
        self._memory.release(machine)
        self._chosen.pop(machine, None)

    def forget(self, instance: Key) -> None:
        """Drop what is known of an instance that is gone."""
        self._waiting.pop(instance, None)

    def _environments(self, key: Key, instance: VirtualMachineInstance, names: Sequence[str]) -> list[placement.PlacementEnvironment]:
        """Return the surroundings of an instance on each of these nodes."""
        hosts = {name: self._host(name) for name in self._names}
        neighbours = tuple(self._neighbours(key, instance, hosts)) if any(each.labels for each in hosts.values()) else ()
        priorities = frozenset(seen.key.name for seen in self._priorities.cache)
        namespaces = {seen.key.name: dict(seen.meta.labels or {}) for seen in self._namespaces.cache} if neighbours else {}
        places = tuple(each.labels for each in hosts.values()) if len(hosts) > 1 else ()
        return [placement.PlacementEnvironment(hosts[name], neighbours, priorities, namespaces, places) for name in names]

    def _host(self, name: str) -> placement.PlacementNode:
        seen = self._nodes.cache.get(Key("", name))
        if seen is None:
            return placement.PlacementNode(name)
        known = self._read.get(name)
        if known is None or known[0] is not seen:
            known = self._read[name] = (seen, _host(name, seen))
        return known[1]

    def _neighbours(
        self, key: Key, instance: VirtualMachineInstance, hosts: Mapping[str, placement.PlacementNode]
    ) -> Iterator[placement.Neighbour]:
        """The instances that run. If this one has no rules about others, only those with anti-affinity matter."""
        has_rules = instance.spec.affinity is not None or bool(instance.spec.topologySpreadConstraints)
        for seen in self._instances.cache if has_rules else self._instances.cache.by(_ANTI_AFFINITY, ""):
            if seen.key != key:
                other = seen.read(INSTANCES)
                if other.status is not None and other.status.phase in (SCHEDULED, RUNNING):
                    yield _neighbour(other, hosts[self.node_of(other)].labels if len(hosts) > 1 else None)


def _shortage(error: Shortage, resource: str, nodes: int = 1) -> prerequisites.MissingPrerequisite:
    """Say it in the scheduler's words, and why in ours. Of several nodes it is the emptiest that has no room."""
    return prerequisites.unschedulable(
        f"0/{nodes} nodes are available: {nodes} Insufficient {resource}: {error}.", again=_CAPACITY_SECONDS, code=error.reason_code
    )


def _node_name(instance: VirtualMachineInstance) -> str:
    return (instance.status.nodeName if instance.status is not None else None) or ""


def _neighbour(instance: VirtualMachineInstance, node_labels: Mapping[str, str] | None = None) -> placement.Neighbour:
    labels = instance.metadata.labels or {}
    pod = placement.pod_labels(instance.metadata.name, labels, labels.get(_CREATED_BY, ""))
    return placement.Neighbour(instance.metadata.namespace or "", pod, instance.spec.affinity, node_labels)


def _preferred(
    instance: VirtualMachineInstance,
    who: placement.Neighbour,
    environments: Sequence[placement.PlacementEnvironment],
    found: Sequence[str],
) -> tuple[str, ...]:
    return placement.preferred(instance.spec, who, [each for each in environments if each.host.name in found])


def _level(seen: CachedObject) -> placement.PriorityLevel:
    value = orjson.loads(seen.raw)
    return placement.PriorityLevel(int(value.get("value") or 0), is_default=bool(value.get("globalDefault")))


def _host(name: str, node: CachedObject) -> placement.PlacementNode:
    spec = _spec(node)
    taints = (placement.NodeTaint(each.get("key", ""), each.get("value", ""), each.get("effect", "")) for each in spec.get("taints") or ())
    return placement.PlacementNode(name, dict(node.meta.labels or {}), tuple(taints), bool(spec.get("unschedulable")))


def _spec(node: CachedObject) -> Data:
    return orjson.loads(node.raw).get("spec") or {}


def _is_another_host(change: CacheChange) -> bool:
    """Return true if more than the heartbeat of the node changed."""
    if change.old is None or change.new is None:
        return True
    return change.old.meta.labels != change.new.meta.labels or _spec(change.old) != _spec(change.new)
