"""One look at a machine, a pool or a DataVolume of a user: what of it goes to the cluster, and its status.

gone: forget -> going: the cluster's goes first -> finalizer -> sources known? -> certificate authorities, then the object -> status

It is written whole when the user has changed it, which the version in an annotation tells; when only its labels and annotations were
changed, only those. Otherwise what is ours is put back (the source of a disk, the marks): everything else that differs is the cluster's,
such as the strategy that `virtctl stop` writes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.dialects.kubermatic.controllers import authorities, targets
from paddock.dialects.kubermatic.controllers.actions import ClusterDoor, is_ours, owned, owns
from paddock.dialects.kubermatic.controllers.reader import templates_of
from paddock.dialects.kubermatic.plan import writing
from paddock.dialects.kubermatic.plan.status import FAILURE, ConditionText, mirrored
from paddock.dialects.kubermatic.translate.forward import mark_machine, mark_pool, to_kubevirt
from paddock.dialects.kubermatic.translate.refusals import REFUSALS
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta import ages, selectors
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.desired import ForeignObject
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter, status_of
from paddock.kubernetes.runtime.unreadfields import UnreadFieldEvents
from paddock.kubevirt.kinds import missinggates
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import RESOLVED, references
from paddock.kubevirt.kinds.missinggates import MissingGates
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine
from paddock.kubevirt.plan.machine.instances import VM_FINALIZER
from paddock.kubevirt.plan.machine.runstrategy import STARTING, strategy_of
from paddock.kubevirt.plan.pool.machines import FINALIZER
from paddock.kubevirt.plan.storage import sourcerefs
from paddock.kubevirt.plan.storage.sourcerefs import SourceBlocker

_POOL_TEMPLATES = ("spec", "virtualMachineTemplate", "spec", "dataVolumeTemplates")


class _Made(msgspec.Struct, frozen=True):
    """The result of a pass: objects in the order to write them, or why there are none yet."""

    objects: tuple[Resource, ...] = ()
    hold: ConditionText | None = None
    losses: tuple[Loss, ...] = ()


class ClusterMirror(KindReconciler):
    """Looks after the objects of one kind."""

    def __init__(self, target: Target[Any], door: ClusterDoor) -> None:
        super().__init__(door.views.front(target), ObjectFinalizer(door.front, targets.FINALIZER))
        self._target = target
        self._views = door.views
        self._writer = door.writer
        self._front = door.front
        self._statuses = StatusWriter(door.front, target, door.views.front(target).expectations)
        self._rendering = door.rendering
        self._clock = door.clock
        self._recorder = door.recorder
        self._unread = UnreadFieldEvents(door.recorder)
        # UIDs of those that were deleted without what they have made
        self._alone: set[str] = set()
        self._views.front(target).handle(self._note)

    def _note(self, change: CacheChange) -> None:
        """That something is to stay can be seen for a moment only: the server's collector takes it off at once."""
        seen = change.seen
        if change.new is None:
            self._alone.discard(seen.meta.uid)
            self._unread.forget(seen.meta.uid)
        elif finalizers.leaves_dependents(seen.meta):
            self._alone.add(seen.meta.uid)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring what a user wrote a step on."""
        resource: Resource = seen.read(self._target)
        words: list[ConditionText] = []
        trouble: PaddockError | None = None
        try:
            there = self._writer.check(self._target, seen.key)
            made = self._make(resource, there)
            self._unread.tell(reference(self._target, seen.meta), made.losses)
            if next(references(templates_of(resource)), None) is not None:
                words.append(made.hold or ConditionText(RESOLVED, "True", "Resolved"))
            if made.hold is None and await self._write(seen, there, made):
                return DONE
        except ForeignObject as error:
            words.append(ConditionText(FAILURE, "True", "NameConflict", str(error)))
            self._tell(seen, "NameConflict", str(error))
        except MissingGates as error:
            words.append(ConditionText(FAILURE, "True", "FeatureGateMissing", str(error)))
            self._tell(seen, "FeatureGateMissing", str(error))
        except Conflict:
            raise
        except PaddockError as error:
            words.append(ConditionText(FAILURE, "True", "FailedApply", str(error)))
            trouble = error
        await self._report(seen, resource, words)
        if trouble is not None:
            raise trouble
        return DONE

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Delete what was made of it, and let it go when that is gone."""
        there = self._writer.seen(self._target, seen.key)
        if there is not None and is_ours(there):
            await self._writer.delete(self._target, there, "Orphan" if seen.meta.uid in self._alone else "Background")
            await self._report(seen, seen.read(self._target), [])
            return DONE
        await authorities.clear(self._views, self._writer, seen.key.namespace)
        # No controller of KubeVirt's looks after what is here, so nobody else takes its finalizers off.
        for each in (VM_FINALIZER, FINALIZER):
            if await finalizers.take_off(self._front, self._target, seen.meta, each):
                return DONE
        await finalizers.take_off(self._front, self._target, seen.meta, targets.FINALIZER)
        return DONE

    # --- deciding ---------------------------------------------------------------------------------------------------------

    def _make(self, resource: Resource, there: CachedObject | None) -> _Made:
        """The objects for the cluster, with the sources that are fixed already."""
        object_set = self._views.objects_of(resource)
        settled = self._settled(resource, there)
        namespace = resource.metadata.namespace or ""
        for each in references(templates_of(settled)):
            found = sourcerefs.resolve(each, namespace, self._views.find) if each.kind == "DataSource" else None
            if isinstance(found, SourceBlocker):
                # Why it cannot be resolved is best said by whoever resolves it.
                return self._refused(settled, object_set) or _Made(hold=ConditionText(RESOLVED, "False", found.reason, found.message))
        refused = self._refused(settled, object_set)
        if refused is not None:
            return refused
        translated = to_kubevirt(settled, object_set, self._rendering)
        *beside, main = translated.value
        if settled is not resource:
            main = self._marked(main)
            if self._refused(resource, object_set) is None:
                # Authorities to trust may change though the address stays.
                beside = list(to_kubevirt(resource, object_set, self._rendering).value[:-1])
        return _Made((*beside, main), losses=translated.losses)

    def _refused(self, resource: Resource, object_set: ObjectSet) -> _Made | None:
        try:
            to_kubevirt(resource, object_set, self._rendering)
        except REFUSALS as error:
            return _Made(hold=ConditionText(RESOLVED, "False", error.error_type, str(error)))
        return None

    def _settled(self, resource: Resource, there: CachedObject | None) -> Resource:
        """Return the user's object, with the sources of disks that are fixed in place of references."""
        if there is None or isinstance(resource, DataVolume):
            return resource
        before: Resource = there.read(self._target)
        existing: Sequence[str] | None = None
        if isinstance(resource, VirtualMachine):
            volumes = self._views.back[targets.VOLUMES.plural].cache
            existing = [each.meta.name for each in volumes.by("owner", there.meta.uid)]
        elif not owns(there, *_POOL_TEMPLATES):
            # Somebody has changed them, so they are not what was written once.
            return resource
        given = templates_of(resource)
        templates = writing.fixed(given, templates_of(before), resource.metadata.namespace or "", existing)
        return resource if templates == given else _with_templates(resource, templates)

    def _marked(self, main: Resource) -> Resource:
        if isinstance(main, VirtualMachine):
            return mark_machine(main, self._rendering)
        return mark_pool(main, self._rendering) if isinstance(main, VirtualMachinePool) else main

    # --- acting -----------------------------------------------------------------------------------------------------------

    async def _write(self, seen: CachedObject, there: CachedObject | None, made: _Made) -> bool:
        """Bring the cluster to it; whether the user's object was written, too, and the watch brings us here again."""
        *beside, main = made.objects
        self._check_gates(main)
        for each in beside:
            data = writing.outgoing(to_data(each))
            data["metadata"].setdefault("namespace", seen.key.namespace)
            await self._writer.apply(targets.CONFIG_MAPS, data)
        data = writing.outgoing(to_data(main), (targets.WRITTEN,))
        user = orjson.loads(seen.raw)
        version = writing.version_of(user, targets.WRITTEN)
        before = str((user["metadata"].get("annotations") or {}).get(targets.WRITTEN, ""))
        # What fills a disk cannot be changed.
        is_same = there is not None and (self._target is targets.VOLUMES or writing.is_same(before, version))
        if there is not None:
            await self._mend(there, data, is_same=is_same, is_called=before == version)
        if not is_same:
            await self._writer.apply(self._target, data)
        if before == version:
            return False
        note = {"annotations": {targets.WRITTEN: version}, "resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid}
        await self._front.patch(self._target, seen.key, merge_patch({"metadata": note}))
        return True

    def _check_gates(self, main: Resource) -> None:
        """Raise `MissingGates` before anything is written of what KubeVirt would refuse."""
        gates = self._views.gates()
        if gates is not None and isinstance(main, VirtualMachine | VirtualMachinePool):
            missinggates.check(main, gates)

    async def _mend(self, there: CachedObject, data: Data, *, is_same: bool, is_called: bool) -> None:
        """Put back what is ours in what nobody has changed in the front, and call it what it is called there."""
        found = orjson.loads(there.raw)
        change = writing.mending(data, found) if is_same and self._target is not targets.VOLUMES else {}
        if not is_called and (names := writing.called(data, found, partial(owned, there))):
            change["metadata"] = names
        if change:
            await self._writer.mend(self._target, there, change)

    def _tell(self, seen: CachedObject, reason: str, note: str) -> None:
        self._recorder.tell(reference(self._target, seen.meta), "Warning", reason, note)

    # --- reporting --------------------------------------------------------------------------------------------------------

    async def _report(self, seen: CachedObject, resource: Resource, words: Sequence[ConditionText]) -> None:
        there = self._writer.seen(self._target, seen.key)
        said: Data | None = None
        if there is not None and is_ours(there):
            said = status_of(there)
        said, now = said if said is not None else _nothing_yet(resource), ages.timestamp(self._clock.seconds())
        wanted = mirrored(status_of(seen), said, tuple(words), now)
        await self._statuses.write(seen, wanted)


def _with_templates(resource: Resource, templates: list[DataVolumeTemplate]) -> Resource:
    if isinstance(resource, VirtualMachine):
        return msgspec.structs.replace(resource, spec=msgspec.structs.replace(resource.spec, dataVolumeTemplates=templates))
    assert isinstance(resource, VirtualMachinePool)
    given = resource.spec.virtualMachineTemplate
    machine = msgspec.structs.replace(given.spec, dataVolumeTemplates=templates)
    template = msgspec.structs.replace(given, spec=machine)
    return msgspec.structs.replace(resource, spec=msgspec.structs.replace(resource.spec, virtualMachineTemplate=template))


def _nothing_yet(resource: Resource) -> Data:
    """The status as long as the cluster has nothing of it."""
    if isinstance(resource, VirtualMachine):
        waits = strategy_of(resource.spec) in STARTING
        return {"printableStatus": "Provisioning" if waits else "Stopped"}
    if isinstance(resource, VirtualMachinePool):
        return {"replicas": 0, "readyReplicas": 0, "labelSelector": selectors.text(resource.spec.selector)}
    return {"phase": "Pending", "progress": "N/A"}
