"""Keeps the machines of VMSets: as many as they are to be, each made from a revision of the template.

A pass reads, decides, acts and reports. It begins only when the caches show every write of the pass before, so that nothing is done twice;
and a machine's name says which one it is, so that nothing is made twice after the process has ended anywhere.
"""

from collections.abc import Iterable

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.sets.revisions import SetRevisionKeeper, SetRevisions
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmset import VMSet, VMSetStatus
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.sets import report, rollout, templates
from paddock.dialects.virtrigaud.plan.sets.rollout import SetContext, SetMember, SetPlan
from paddock.dialects.virtrigaud.plan.sets.templates import TemplateChange
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, again, owners
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.kindreconciler import ReportingReconciler
from paddock.kubernetes.runtime.reference import is_owned, reference
from paddock.kubernetes.runtime.statuses import StatusWriter

# The caches show a write after a moment, and then the watch brings the set here; this is the net below it.
_BEHIND_SECONDS = 1.0
Members = list[tuple[SetMember, VirtrigaudVirtualMachine]]


class SetCaches:
    """The informers that the controller reads."""

    def __init__(self, informers: Informers, machines: Informer) -> None:
        self.sets = informers.of(targets.SETS)
        self.revisions = informers.of(targets.REVISIONS)
        self.machines = machines

    def watch(self, controller: Controller) -> None:
        """Have the controller look at a set when a machine or a revision of it changes, and when a name becomes free."""
        controller.watch(self.machines, owners(targets.SETS.group, targets.SETS.kind))
        controller.watch(self.machines, self._named_like)
        controller.watch(self.revisions, owners(targets.SETS.group, targets.SETS.kind))

    def _named_like(self, change: CacheChange) -> Iterable[Key]:
        """A machine that comes or goes concerns the set that gives such names."""
        if change.old is not None and change.new is not None:
            return ()
        key = Key(change.seen.key.namespace, change.seen.key.name.rpartition("-")[0])
        return (key,) if self.sets.cache.get(key) is not None else ()


class SetReconcilePass(msgspec.Struct, frozen=True):
    """A set with its machines, and the plan for them."""

    seen: CachedObject
    vmset: VMSet
    revisions: SetRevisions
    members: Members
    context: SetContext
    plan: SetPlan


class VirtrigaudSetReconciler(ReportingReconciler[SetReconcilePass]):
    def __init__(self, parts: VirtrigaudParts, caches: SetCaches) -> None:
        super().__init__(caches.sets)
        self._parts = parts
        self._caches = caches
        self._revisions = SetRevisionKeeper(parts.client, caches.revisions)
        self._statuses = StatusWriter(parts.client, targets.SETS, caches.sets.expectations)

    async def begin(self, seen: CachedObject) -> SetReconcilePass | Outcome:
        """Return a set with its machines and the plan for them, once the cache of machines shows every write."""
        if self._is_behind(seen):
            return again(_BEHIND_SECONDS)
        vmset = seen.read(targets.SETS)
        refusal = templates.refusal(vmset)
        if refusal is not None:
            await self._statuses.write(seen, report.refused(vmset, refusal, self._parts.timestamp()))
            return DONE
        revisions = await self._revisions.current(vmset, seen)
        members = self._members(seen, vmset, revisions)
        context = self._context(seen, vmset, revisions, members)
        plan = rollout.plan(vmset.spec, [each for each, _ in members], context)
        return SetReconcilePass(seen, vmset, revisions, members, context, plan)

    async def report(self, set_pass: SetReconcilePass, error: PaddockError | None) -> None:
        """Write how far the machines are, and what stands in the way."""
        found = report.SetPass(set_pass.vmset, set_pass.members, set_pass.plan, set_pass.context, str(error or ""))
        wanted = report.status(found, self._parts.timestamp())
        self._tell_pause(set_pass.seen, set_pass.vmset, wanted)
        await self._statuses.write(set_pass.seen, wanted)

    async def conclude(self, set_pass: SetReconcilePass) -> None:
        """Forget revisions that no machine has."""
        used = {set_pass.context.current, *(each.revision for each, _ in set_pass.members)}
        await self._revisions.prune(set_pass.seen, set_pass.vmset, set_pass.revisions, used)

    # --- reading ----------------------------------------------------------------------------------------------------------

    def _is_behind(self, seen: CachedObject) -> bool:
        """Return whether the cache of machines does not show every write yet."""
        expectations = self._caches.machines.expectations
        if expectations.created_for(seen.meta.uid):
            return True
        return any(expectations.is_stale(each.key) for each in self._caches.machines.cache.by("owner", seen.meta.uid))

    def _members(self, seen: CachedObject, vmset: VMSet, revisions: SetRevisions) -> Members:
        found: Members = []
        changes = {name: templates.change(template, vmset.spec.template) for name, template in revisions.known.items()}
        for each in self._caches.machines.cache.by("owner", seen.meta.uid):
            vm = each.read(targets.MACHINES)
            deleting = each.meta.deleting or self._caches.machines.expectations.is_leaving(each.meta.uid)
            member = report.member(vmset, vm, deleting=deleting)
            if member is None:
                continue
            change = TemplateChange.NONE
            if member.revision != revisions.update:
                change = changes.get(member.revision) or templates.change(templates.template_of(vm), vmset.spec.template)
            found.append((msgspec.structs.replace(member, change=change), vm))
        return sorted(found, key=lambda pair: pair[0].ordinal)

    def _context(self, seen: CachedObject, vmset: VMSet, revisions: SetRevisions, members: Members) -> SetContext:
        taken = {
            each.meta.name
            for each in self._caches.machines.cache.by("namespace", seen.key.namespace)
            if not is_owned(each.meta, seen.meta.uid)
        }
        current = report.current_revision(vmset, [each for each, _ in members], revisions.update, revisions.known)
        return SetContext(f"{vmset.metadata.name}-", revisions.update, current, taken, self._parts.now())

    # --- acting -----------------------------------------------------------------------------------------------------------

    async def act(self, set_pass: SetReconcilePass) -> Outcome:
        """Take the steps of the plan."""
        for ordinal, revision in set_pass.plan.make.items():
            await self._make(set_pass.seen, set_pass.vmset, ordinal, revision, set_pass.revisions)
        for name in set_pass.plan.delete:
            await self._delete(set_pass.seen, name)
        for name in set_pass.plan.rewrite:
            await self._rewrite(set_pass.seen, name, set_pass.revisions)
        return DONE if set_pass.plan.wait is None else again(set_pass.plan.wait)

    async def _make(self, seen: CachedObject, vmset: VMSet, ordinal: int, revision: str, revisions: SetRevisions) -> None:
        template = revisions.known.get(revision) or vmset.spec.template
        wanted = templates.machine(vmset, ordinal, revision if revision in revisions.known else revisions.update, template)
        place = f"{seen.key.namespace}/{wanted.metadata.name}"
        try:
            made = await self._parts.client.create(targets.MACHINE_DATA, to_data(wanted))
        except AlreadyExists:
            # Made a moment ago, or by somebody else: the next pass knows.
            return
        except PaddockError as error:
            self._tell(seen, "FailedCreate", f"could not create VirtualMachine {place}: {error}", warning=True)
            raise
        self._caches.machines.expectations.wrote(CachedObject.from_data(made))
        self._tell(seen, "SuccessfulCreate", f"created VirtualMachine {place}")

    async def _delete(self, seen: CachedObject, name: str) -> None:
        found = self._caches.machines.cache.get(Key(seen.key.namespace, name))
        if found is None:
            return
        await delete_seen(self._parts.client, targets.MACHINES, found)
        self._caches.machines.expectations.deleted(found)
        self._tell(seen, "SuccessfulDelete", f"deleted VirtualMachine {found.key}")

    async def _rewrite(self, seen: CachedObject, name: str, revisions: SetRevisions) -> None:
        """Bring a machine to the present template in place."""
        found = self._caches.machines.cache.get(Key(seen.key.namespace, name))
        if found is None:
            return
        data = orjson.loads(found.raw)
        label = (found.meta.labels or {}).get(marks.SET_REVISION, "")
        old = revisions.known.get(label) or templates.template_of(found.read(targets.MACHINES))
        change = templates.rewrite(data, old, revisions.known[revisions.update], revisions.update)
        change["metadata"] |= {"uid": found.meta.uid, "resourceVersion": found.meta.resourceVersion}
        try:
            written = await self._parts.client.patch_raw(targets.MACHINES, found.key, merge_patch(change))
        except NotFound:
            return
        self._caches.machines.expectations.wrote(CachedObject.of(written))
        self._tell(seen, "SuccessfulUpdate", f"updated VirtualMachine {found.key} to the revision {revisions.update}")

    # --- telling ----------------------------------------------------------------------------------------------------------

    def _tell(self, seen: CachedObject, reason: str, note: str, *, warning: bool = False) -> None:
        self._parts.recorder.tell(reference(targets.SETS, seen.meta), "Warning" if warning else "Normal", reason, note)

    def _tell_pause(self, seen: CachedObject, vmset: VMSet, status: VMSetStatus) -> None:
        before = vmset.status.updateStatus if vmset.status is not None else None
        after = status.updateStatus
        if after is not None and after.phase == "Paused" and (before is None or before.phase != "Paused"):
            self._tell(seen, report.PAUSED, after.message or "", warning=True)
