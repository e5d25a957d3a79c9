"""The objects that KubeVirt objects become, with the amounts that each takes of a quota, before anybody makes them. Pure.

A machine that is to run becomes an instance, its disk templates become DataVolumes and claims; a pool and a replica set become machines and
instances.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.quotas import measuring
from paddock.kubernetes.quotas.measuring import INSTANCES, ObjectUsage
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.plan.machine import instancetypes, runstrategy
from paddock.kubevirt.plan.machine.instancetypes import Find, MissingInstancetype
from paddock.kubevirt.plan.machine.runstrategy import RunStrategy
from paddock.kubevirt.plan.pool import machines
from paddock.kubevirt.plan.storage.contents import UnclearContent
from paddock.kubevirt.plan.storage.datavolumeclaims import ClaimContext, claim_of

MACHINES = "virtualmachines.kubevirt.io"
POOLS = "virtualmachinepools.pool.kubevirt.io"
# Kubermatic's name of the same kind.
_POOLS = (POOLS, "virtualmachinepools.kubevirt.io")
_REPLICA_SETS = "virtualmachineinstancereplicasets.kubevirt.io"
_DATA_VOLUMES = "datavolumes.cdi.kubevirt.io"


class ObjectKey(NamedTuple):
    """The place of an object: its collection as the store names it, namespace and name."""

    collection: str
    namespace: str
    name: str


class PlannedObject(msgspec.Struct, frozen=True):
    """An object that is to be, and what it takes. `title` is that of the manifest's object; `parent` makes it, if nobody wrote it.

    `unclear` says why its amounts are not known.
    """

    key: ObjectKey
    title: str
    usage: ObjectUsage
    parent: ObjectKey | None = None
    unclear: str = ""


class PresentObjects(msgspec.Struct, frozen=True):
    """The objects that are there: what each takes, the machines of each pool, and how instancetypes are found."""

    find: Find
    usage: Mapping[ObjectKey, ObjectUsage] = {}
    replicas: Mapping[ObjectKey, frozenset[str]] = {}

    def runs(self, key: ObjectKey) -> bool:
        """Return whether a machine has an instance."""
        return ObjectKey(INSTANCES, key.namespace, key.name) in self.usage


class _Origin(NamedTuple):
    """The manifest's object that an object comes from, and the one that makes it."""

    title: str
    parent: ObjectKey | None


def become(key: ObjectKey, data: Data, title: str, present: PresentObjects, parent: ObjectKey | None = None) -> Iterator[PlannedObject]:
    """Yield an object, and all that it becomes."""
    origin = _Origin(title, parent)
    below = _Origin(title, key)
    if key.collection == INSTANCES:
        yield _instance(key, data, origin)
        return
    yield PlannedObject(key, title, measuring.measured(key.collection, data), parent)
    match key.collection:
        case collection if collection == MACHINES:
            yield from _of_machine(key, data, below, present)
        case collection if collection in _POOLS:
            yield from _of_pool(key, data, below, present)
        case collection if collection == _REPLICA_SETS:
            yield from _of_replica_set(key, data, below)
        case collection if collection == _DATA_VOLUMES:
            yield _claim(key, data, below)


def _instance(key: ObjectKey, data: Data, origin: _Origin) -> PlannedObject:
    scheduling = {**data, "status": {"phase": "Scheduling"}}
    return PlannedObject(key, origin.title, measuring.measured(INSTANCES, scheduling), origin.parent)


def _of_machine(key: ObjectKey, data: Data, origin: _Origin, present: PresentObjects) -> Iterator[PlannedObject]:
    spec = data.get("spec") or {}
    for template in spec.get("dataVolumeTemplates") or ():
        metadata = {**(template.get("metadata") or {}), "namespace": key.namespace}
        name = ObjectKey(_DATA_VOLUMES, key.namespace, str(metadata.get("name") or ""))
        yield from become(name, {"metadata": metadata, "spec": template.get("spec") or {}}, origin.title, present, key)
    strategy = runstrategy.named(spec)
    if strategy not in runstrategy.STARTING and not (strategy == RunStrategy.MANUAL and present.runs(key)):
        return
    made = ObjectKey(INSTANCES, key.namespace, key.name)
    try:
        found = [instancetypes.find(each, spec, key.namespace, present.find, data.get("status")) for each in instancetypes.KINDS]
    except MissingInstancetype as missing:
        yield PlannedObject(made, origin.title, ObjectUsage(measuring.counted(INSTANCES)), origin.parent, missing.why)
        return
    sizes = {each.member: each.spec for each in found if each is not None}
    template = (spec.get("template") or {}).get("spec") or {}
    expanded = instancetypes.expanded(template, sizes.get(instancetypes.INSTANCETYPE), sizes.get(instancetypes.PREFERENCE))
    yield _instance(made, {"metadata": {}, "spec": expanded}, origin)


def _of_pool(key: ObjectKey, data: Data, origin: _Origin, present: PresentObjects) -> Iterator[PlannedObject]:
    """Yield the machines of a pool: those that it has, and new ones with the lowest names that are free."""
    pool = from_data({**data, "metadata": {**data["metadata"], "namespace": key.namespace}, "status": None}, VirtualMachinePool)
    own = present.replicas.get(key, frozenset())
    taken = {each.name for each in present.usage if each.collection == MACHINES and each.namespace == key.namespace}
    numbers = sorted(int(name.rpartition("-")[2]) for name in own)[: pool.spec.replicas]
    numbers += machines.free_indices(pool, taken, max(0, pool.spec.replicas - len(own)))
    for index in numbers:
        machine = to_data(machines.replica(pool, index))
        yield from become(ObjectKey(MACHINES, key.namespace, machine["metadata"]["name"]), machine, origin.title, present, key)


def _of_replica_set(key: ObjectKey, data: Data, origin: _Origin) -> Iterator[PlannedObject]:
    """Yield the instances that a replica set lacks. Their names are known when it makes them."""
    spec, status = data.get("spec") or {}, data.get("status") or {}
    replicas = spec.get("replicas")
    for index in range(status.get("replicas") or 0, 1 if replicas is None else replicas):
        made = ObjectKey(INSTANCES, key.namespace, f"{key.name}#{index}")
        yield _instance(made, {"metadata": {}, "spec": (spec.get("template") or {}).get("spec") or {}}, origin)


def _claim(key: ObjectKey, data: Data, origin: _Origin) -> PlannedObject:
    made = ObjectKey(measuring.CLAIMS, key.namespace, key.name)
    whole: dict[str, Any] = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", **data, "status": None}
    claim = claim_of(from_data(whole, DataVolume), None, ClaimContext())
    if isinstance(claim, UnclearContent):
        why = "its size is known when its content is"
        return PlannedObject(made, origin.title, ObjectUsage(measuring.counted(measuring.CLAIMS)), origin.parent, why)
    return PlannedObject(made, origin.title, measuring.measured(measuring.CLAIMS, claim), origin.parent)


def is_waiting(planned: PlannedObject, broken: list[str]) -> bool:
    """Return whether an object without room waits for it, instead of being refused to its user: a launcher, and what controllers make."""
    return planned.parent is not None or (planned.key.collection == INSTANCES and f"count/{INSTANCES}" not in broken)
