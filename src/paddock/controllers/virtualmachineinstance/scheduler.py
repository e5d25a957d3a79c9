"""The fit of a machine on the host: the taints and labels of its node, the machines that run there, free CPUs and memory."""

from collections.abc import Iterator

import orjson

from paddock.base import quantity, reasons
from paddock.client.target import Data, Key
from paddock.controllers.virtualmachineinstance.targets import INSTANCES, NAMESPACES, NODES, PRIORITIES, key_of
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.engine.engine import Engine
from paddock.engine.host import capacity
from paddock.engine.host.capacity import PinnedCpus, Shortage
from paddock.engine.machine.config import MachineConfig
from paddock.plan.instance import prerequisites
from paddock.plan.instance.phases import RUNNING, SCHEDULED
from paddock.plan.machine import placement
from paddock.runtime.cache import CacheChange, CachedObject
from paddock.runtime.controller import Keys
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers

_CREATED_BY = "kubevirt.io/created-by"
# The index of instances whose JSON names pods that they must not run beside.
_ANTI_AFFINITY = "instances with anti-affinity"
_IN_JSON = b'"podAntiAffinity"'
# Not every end of another machine, which frees memory, reaches an instance that waits.
_CAPACITY_SECONDS = 5.0


class Scheduler:
    """Asks the rules of placement and of capacity with the facts of the host."""

    def __init__(self, informers: Informers, engine: Engine, node: str) -> None:
        self._instances = informers.of(INSTANCES)
        self._instances.cache.index(_ANTI_AFFINITY, lambda seen: ("",) if _IN_JSON in seen.raw else ())
        self._nodes = informers.of(NODES)
        self._priorities = informers.of(PRIORITIES)
        self._namespaces = informers.of(NAMESPACES)
        self._engine = engine
        self._node = node
        # instances that found no place: a change of the host concerns all of them
        self._waiting: dict[Key, None] = {}
        # the memory that each machine takes with the config that it has
        self._needs: dict[str, tuple[MachineConfig, int]] = {}

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
        """Check that the instance may run on this node now. Raises `MissingPrerequisite`."""
        key = key_of(instance)
        refusal = placement.placed(instance.spec, _neighbour(instance), self._environment(key, instance))
        if refusal is None:
            self._waiting.pop(key, None)
            return
        self._waiting[key] = None
        if refusal.reason == placement.UNSCHEDULABLE:
            raise prerequisites.unschedulable(refusal.message)
        raise prerequisites.failed(refusal.reason, refusal.message, code=reasons.PRIORITY_CLASS_MISSING)

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
        given = {other: self._need(other, each) for other, each in self._engine.machines.living().items()}
        given.pop(machine, None)
        try:
            capacity.admit(self._need(machine, config), given, self._engine.room)
            if config.memory.hugepage:
                capacity.admit_hugepages(config, self._engine.facts.hugepages())
        except Shortage as error:
            page = config.memory.hugepage if error.resource == "hugepages" else None
            raise _shortage(error, f"hugepages-{quantity.binary(page)}" if page else "memory") from error

    def release(self, machine: str) -> None:
        """Drop what is known of a machine that ended."""
        self._needs.pop(machine, None)

    def forget(self, instance: Key) -> None:
        """Drop what is known of an instance that is gone."""
        self._waiting.pop(instance, None)

    def _need(self, machine: str, config: MachineConfig) -> int:
        """The memory of a machine, computed once for each config: every start asks for that of all machines."""
        known = self._needs.get(machine)
        if known is None or known[0] is not config:
            known = self._needs[machine] = (config, capacity.needed(config, self._engine.facts.verdict(config).accelerator))
        return known[1]

    def _environment(self, key: Key, instance: VirtualMachineInstance) -> placement.PlacementEnvironment:
        node = self._nodes.cache.get(Key("", self._node))
        neighbours = () if node is None else tuple(self._neighbours(key, instance))
        return placement.PlacementEnvironment(
            host=_host(self._node, node),
            neighbours=neighbours,
            priorities=frozenset(seen.key.name for seen in self._priorities.cache),
            namespaces={seen.key.name: dict(seen.meta.labels or {}) for seen in self._namespaces.cache} if neighbours else {},
        )

    def _neighbours(self, key: Key, instance: VirtualMachineInstance) -> Iterator[placement.Neighbour]:
        """The instances that run here. If this one has no rules about others, only those with anti-affinity matter."""
        has_rules = instance.spec.affinity is not None or bool(instance.spec.topologySpreadConstraints)
        for seen in self._instances.cache if has_rules else self._instances.cache.by(_ANTI_AFFINITY, ""):
            if seen.key != key:
                other = seen.read(INSTANCES)
                if other.status is not None and other.status.phase in (SCHEDULED, RUNNING):
                    yield _neighbour(other)


def _shortage(error: Shortage, resource: str) -> prerequisites.MissingPrerequisite:
    """Say it in the scheduler's words, and why in ours."""
    return prerequisites.unschedulable(
        f"0/1 nodes are available: 1 Insufficient {resource}: {error}.", again=_CAPACITY_SECONDS, code=error.reason_code
    )


def _neighbour(instance: VirtualMachineInstance) -> placement.Neighbour:
    labels = instance.metadata.labels or {}
    pod = placement.pod_labels(instance.metadata.name, labels, labels.get(_CREATED_BY, ""))
    return placement.Neighbour(instance.metadata.namespace or "", pod, instance.spec.affinity)


def _level(seen: CachedObject) -> placement.PriorityLevel:
    value = orjson.loads(seen.raw)
    return placement.PriorityLevel(int(value.get("value") or 0), is_default=bool(value.get("globalDefault")))


def _host(name: str, node: CachedObject | None) -> placement.PlacementNode:
    if node is None:
        return placement.PlacementNode(name)
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
