"""One look at a replica set: instances that are missing are made, those too many are deleted, and one that has ended is replaced."""

import asyncio

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data, copied
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions, merge_patch
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.meta import ages, selectors
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, EventRecorder, Outcome, again, owners
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import ReportingReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import owner_reference, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.kinds import instance, replicaset
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.replicaset import ReplicaSetStatus, VirtualMachineInstanceReplicaSet
from paddock.kubevirt.plan.machine.runstrategy import life_of

SETS: Target[VirtualMachineInstanceReplicaSet] = declared(replicaset.KINDS[0], VirtualMachineInstanceReplicaSet)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
INSTANCE_DATA: Target[Data] = declared(instance.KINDS[0], dict)
# So many instances are made or deleted in one round, as upstream; what the user changes meanwhile is seen before the next.
BURST = 250
_NEXT_ROUND_SECONDS = 0.1
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
# The source of events, as upstream names it.
COMPONENT = "virtualmachinereplicaset-controller"


class ReplicaSetPass(msgspec.Struct, frozen=True):
    """A replica set and its instances."""

    seen: CachedObject
    wanted: VirtualMachineInstanceReplicaSet
    mine: list[CachedObject]


class ReplicaSetReconciler(ReportingReconciler[ReplicaSetPass]):
    """The controller of replica sets."""

    def __init__(self, client: Client, sets: Informer, instances: Informer, machinery: Machinery, recorder: EventRecorder) -> None:
        super().__init__(sets)
        self._client = client
        self._sets = sets
        self._instances = instances
        self._clock = machinery.clock
        self._chance = machinery.chance
        self._recorder = recorder
        self._expectations = instances.expectations
        self._statuses = StatusWriter(client, SETS, sets.expectations)

    async def begin(self, seen: CachedObject) -> ReplicaSetPass:
        """Return a set with the instances that belong to it."""
        wanted = seen.read(SETS)
        mine = [each for each in self._instances.cache.by("owner", seen.meta.uid) if await self._stays(each, wanted, seen)]
        return ReplicaSetPass(seen, wanted, mine)

    async def act(self, set_pass: ReplicaSetPass) -> Outcome:
        """Bring one replica set a step on."""
        if set_pass.wanted.spec.paused or not await self._balance(set_pass.seen, set_pass.wanted, set_pass.mine):
            return DONE
        return again(_NEXT_ROUND_SECONDS)

    async def _stays(self, each: CachedObject, replica_set: VirtualMachineInstanceReplicaSet, seen: CachedObject) -> bool:
        """Return whether an instance still belongs to the set; release one that no longer matches the selector."""
        if each.meta.deleting or selectors.matches(replica_set.spec.selector, each.meta.labels or {}):
            return True
        rest = [owner for owner in orjson.loads(each.raw)["metadata"].get("ownerReferences") or () if owner.get("uid") != seen.meta.uid]
        metadata = {"ownerReferences": rest or None, "resourceVersion": each.meta.resourceVersion}
        await self._client.patch(INSTANCE_DATA, each.key, merge_patch({"metadata": metadata}))
        return False

    async def _balance(self, seen: CachedObject, replica_set: VirtualMachineInstanceReplicaSet, mine: list[CachedObject]) -> int:
        """Make what is missing and delete what is too much, as far as one round goes; returns how many remain for the next."""
        alive = [each for each in mine if not each.meta.deleting and not self._expectations.is_leaving(each.meta.uid)]
        for number, each in enumerate(alive):
            if number and number % BURST == 0:
                # Reading thousands of instances must not keep everybody else waiting.
                await asyncio.sleep(0)
            if life_of(each.read(INSTANCES)).final:
                await self._delete(seen, each)
        alive = [each for each in alive if not self._expectations.is_leaving(each.meta.uid)]
        difference = replica_set.spec.replicas - len(alive) - len(self._expectations.created_for(seen.meta.uid))
        for _ in range(min(difference, BURST)):
            await self._make(seen, replica_set)
        if difference < 0:
            for each in sorted(alive, key=_is_ready)[: min(-difference, BURST)]:
                await self._delete(seen, each)
        return max(0, abs(difference) - BURST)

    async def _make(self, seen: CachedObject, replica_set: VirtualMachineInstanceReplicaSet) -> None:
        template = orjson.loads(seen.raw)["spec"]["template"]
        around = template.get("metadata") or {}
        suffix = "".join(self._chance.choice(_ALPHABET) for _ in range(5))
        metadata = {
            "name": f"{replica_set.metadata.name}{suffix}",
            "namespace": seen.key.namespace,
            "labels": around.get("labels") or {},
            "annotations": around.get("annotations") or {},
            "ownerReferences": [owner_reference(reference(SETS, seen.meta))],
        }
        data = {
            "apiVersion": INSTANCES.api_version,
            "kind": INSTANCES.kind,
            "metadata": metadata,
            "spec": copied(template.get("spec") or {}),
        }
        try:
            made = await self._client.create(INSTANCE_DATA, data)
        except PaddockError as error:
            self._tell(seen, "Warning", "FailedCreate", f"Error creating virtual machine instance: {error}")
            raise
        self._expectations.wrote(CachedObject.from_data(made))
        self._tell(seen, "Normal", "SuccessfulCreate", f"Created virtual machine instance {made['metadata']['name']}")

    async def _delete(self, seen: CachedObject, each: CachedObject) -> None:
        try:
            await self._client.delete(INSTANCE_DATA, each.key, DeletionOptions(uid=each.meta.uid, revision=each.meta.resourceVersion))
        except NotFound:
            return
        self._expectations.deleted(each)
        self._tell(seen, "Normal", "SuccessfulDelete", f"Deleted virtual machine instance {each.meta.uid}")

    def _tell(self, seen: CachedObject, kind: str, reason: str, note: str) -> None:
        self._recorder.tell(reference(SETS, seen.meta), kind, reason, note)

    async def report(self, set_pass: ReplicaSetPass, error: PaddockError | None) -> None:
        """Write how many instances there are, and what stands in the way."""
        wanted, alive = set_pass.wanted, [each for each in set_pass.mine if not each.meta.deleting]
        conditions = []
        if error is not None:
            conditions.append(Condition(type="ReplicaFailure", status="True", reason="FailedCreate", message=str(error)))
        if wanted.spec.paused:
            conditions.append(Condition(type="ReplicaPaused", status="True", reason="Paused", message="Controller got paused"))
        known = {each.type: each.lastTransitionTime for each in (wanted.status.conditions if wanted.status is not None else None) or ()}
        now = ages.timestamp(self._clock.seconds())
        status = ReplicaSetStatus(
            replicas=len(alive),
            readyReplicas=sum(map(_is_ready, alive)),
            labelSelector=selectors.text(wanted.spec.selector),
            conditions=[msgspec.structs.replace(each, lastTransitionTime=known.get(each.type) or now) for each in conditions] or None,
        )
        await self._statuses.write(set_pass.seen, status)


class _Status(msgspec.Struct):
    conditions: list[Condition] | None = None


class _Readiness(msgspec.Struct):
    """As much of an instance as tells whether it is ready: all instances of a set are read for each report."""

    status: _Status | None = None


_READINESS = msgspec.json.Decoder(_Readiness)


def _is_ready(seen: CachedObject) -> bool:
    status = _READINESS.decode(seen.raw).status
    return status is not None and holds(status.conditions, "Ready")


def wire(program: ControllerManager) -> Controller:
    """The controller, wired to a program."""
    sets, instances = program.informers.of(SETS), program.informers.of(INSTANCES)
    made = ReplicaSetReconciler(program.client, sets, instances, program.machinery, program.recorder.voice(COMPONENT))
    controller = Controller("replicaset", sets, made.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.watch(instances, owners(SETS.group, SETS.kind))
    program.add(controller)
    return controller
