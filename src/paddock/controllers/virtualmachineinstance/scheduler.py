"""Whether the host takes a machine: what its node says, who is there already, how much memory is left."""

from collections.abc import Iterator

import orjson

from paddock.client.target import Data, Key
from paddock.controllers.virtualmachineinstance import prerequisites
from paddock.controllers.virtualmachineinstance.kinds import INSTANCES, NAMESPACES, NODES, PRIORITIES
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.plan.instance.phases import RUNNING, SCHEDULED
from paddock.plan.machine import placement
from paddock.runtime.cache import CacheChange, CachedObject
from paddock.runtime.controller import Controller
from paddock.runtime.informers import Informers

_CREATED_BY = "kubevirt.io/created-by"
# In the JSON of a machine that does not want others beside it.
_WISH = b'"podAntiAffinity"'
# The index of those machines.
_PICKY = "wishes about others"


class Scheduler:
    """Asks the pure rules of placement with what is known of the host."""

    def __init__(self, informers: Informers, node: str) -> None:
        self._instances = informers.of(INSTANCES)
        self._instances.cache.index(_PICKY, lambda seen: ("",) if _WISH in seen.raw else ())
        self._nodes = informers.of(NODES)
        self._priorities = informers.of(PRIORITIES)
        self._namespaces = informers.of(NAMESPACES)
        self._node = node
        # those that could not be placed: whatever changes about the host, they are looked at again
        self._waiting: dict[Key, None] = {}

    def wake(self, controller: Controller) -> None:
        """Have the controller look again at machines that found no place when something about the host changes."""

        def keys(change: CacheChange) -> tuple[Key, ...]:
            return tuple(self._waiting)

        controller.watch(self._nodes, lambda change: keys(change) if _says_another_host(change) else ())
        controller.watch(self._priorities, keys)
        controller.watch(self._namespaces, keys)
        # A machine that goes may leave the place that another waits for.
        controller.watch(self._instances, lambda change: keys(change) if change.new is None else ())

    def check(self, instance: VirtualMachineInstance) -> None:
        """Raises `NotYet` for a machine that may not run here now."""
        key = Key(instance.metadata.namespace or "", instance.metadata.name)
        refusal = placement.placed(instance.spec, _neighbour(instance), self._surroundings(key, instance))
        if refusal is None:
            self._waiting.pop(key, None)
            return
        self._waiting[key] = None
        if refusal.reason == placement.UNSCHEDULABLE:
            raise prerequisites.unschedulable(refusal.message)
        raise prerequisites.failed(refusal.reason, refusal.message)

    def forget(self, key: Key) -> None:
        """The machine is gone."""
        self._waiting.pop(key, None)

    def _surroundings(self, asking: Key, instance: VirtualMachineInstance) -> placement.PlacementEnvironment:
        node = self._nodes.cache.get(Key("", self._node))
        neighbours = () if node is None else tuple(self._neighbours(asking, instance))
        return placement.PlacementEnvironment(
            host=_host(self._node, node),
            neighbours=neighbours,
            priorities=frozenset(seen.key.name for seen in self._priorities.cache),
            namespaces={seen.key.name: dict(seen.meta.labels or {}) for seen in self._namespaces.cache} if neighbours else {},
        )

    def _neighbours(self, asking: Key, instance: VirtualMachineInstance) -> Iterator[placement.Neighbour]:
        """Who is here. Most machines have no wishes about others: then only those matter that have wishes themselves."""
        picky = instance.spec.affinity is not None or bool(instance.spec.topologySpreadConstraints)
        for seen in self._instances.cache if picky else self._instances.cache.by(_PICKY, ""):
            if seen.key != asking:
                other = seen.read(INSTANCES)
                if other.status is not None and other.status.phase in (SCHEDULED, RUNNING):
                    yield _neighbour(other)


def _neighbour(instance: VirtualMachineInstance) -> placement.Neighbour:
    labels = instance.metadata.labels or {}
    pod = placement.pod_labels(instance.metadata.name, labels, labels.get(_CREATED_BY, ""))
    return placement.Neighbour(instance.metadata.namespace or "", pod, instance.spec.affinity)


def _host(name: str, node: CachedObject | None) -> placement.PlacementNode:
    if node is None:
        return placement.PlacementNode(name)
    spec = _spec(node)
    taints = (placement.NodeTaint(each.get("key", ""), each.get("value", ""), each.get("effect", "")) for each in spec.get("taints") or ())
    return placement.PlacementNode(name, dict(node.meta.labels or {}), tuple(taints), bool(spec.get("unschedulable")))


def _spec(node: CachedObject) -> Data:
    return orjson.loads(node.raw).get("spec") or {}


def _says_another_host(change: CacheChange) -> bool:
    """A heartbeat is no reason to look."""
    if change.old is None or change.new is None:
        return True
    return change.old.meta.labels != change.new.meta.labels or _spec(change.old) != _spec(change.new)
