"""The status of a VMSet: counters, conditions, the progress of an update, and each machine."""

from collections.abc import Iterable, Sequence

import msgspec

from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmset import FailedMachine, MachineInSet, UpdateStatus, VMSet, VMSetStatus
from paddock.dialects.virtrigaud.plan import conditions, marks, reasons
from paddock.dialects.virtrigaud.plan.conditions import AspectValue, false, find, true
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.sets import rollout, templates
from paddock.dialects.virtrigaud.plan.sets.rollout import SetContext, SetMember, SetPlan, SetRules
from paddock.dialects.virtrigaud.plan.sets.templates import TemplateChange
from paddock.kubernetes.meta import ages, selectors

PROGRESSING, REPLICA_FAILURE, UPDATE_IN_PROGRESS, SCALING = "Progressing", "ReplicaFailure", "UpdateInProgress", "Scaling"
ALL_READY, CREATING, DELETING_REPLICAS = "AllReplicasReady", "CreatingReplicas", "DeletingReplicas"
UPDATING, SCALING_UP, SCALING_DOWN = "UpdatingReplicas", "ScalingUp", "ScalingDown"
NAME_CONFLICT, REPLICA_FAILED, PAUSED = "NameConflict", "ReplicaFailed", "RolloutPaused"
_NAMED = 5


class SetPass(msgspec.Struct, frozen=True):
    """One pass over a set, as its report needs it."""

    vmset: VMSet
    members: Sequence[tuple[SetMember, VirtrigaudVirtualMachine]]
    plan: SetPlan
    context: SetContext
    # what the API or the Provider answered to the step that failed
    problem: str = ""


def member(vmset: VMSet, vm: VirtrigaudVirtualMachine, *, deleting: bool) -> SetMember | None:
    """A machine as the plan sees it, without its change; None for a name that the set does not give."""
    ordinal = templates.ordinal_of(vmset, vm.metadata.name)
    if ordinal is None:
        return None
    status = vm.status
    ready = find(status.conditions, conditions.READY) if status is not None else None
    current = ready is not None and ready.observedGeneration == vm.metadata.generation
    return SetMember(
        name=vm.metadata.name,
        ordinal=ordinal,
        revision=(vm.metadata.labels or {}).get(marks.SET_REVISION, ""),
        ready=current and ready is not None and ready.status == "True" and not deleting,
        since=(ages.seconds_of(ready.lastTransitionTime) if ready is not None else None) or 0.0,
        failed=current and status is not None and status.phase == "Failed",
        deleting=deleting,
    )


def current_revision(vmset: VMSet, members: Sequence[SetMember], update: str, known: Iterable[str]) -> str:
    """The revision from which the set is updated: that of the last completed update. It is the present one once all machines have that."""
    before = vmset.status.currentRevision if vmset.status is not None else None
    in_use = {each.revision for each in members}
    if before and (before in in_use or update in in_use) and before in set(known):
        return before
    counts: dict[str, int] = {}
    for each in members:
        if each.revision in set(known):
            counts[each.revision] = counts.get(each.revision, 0) + 1
    return max(sorted(counts), key=lambda each: counts[each], default=update)


def refused(vmset: VMSet, refusal: Refusal, now: str) -> VMSetStatus:
    """The status of a set that cannot be carried out: the counters stay."""
    before = vmset.status or VMSetStatus()
    values = (false(conditions.READY, refusal.reason, str(refusal)), false(PROGRESSING, refusal.reason, str(refusal)))
    generation = vmset.metadata.generation
    return msgspec.structs.replace(
        before,
        observedGeneration=generation,
        selector=selectors.text(vmset.spec.selector),
        conditions=conditions.settled(before.conditions, values, now, generation),
    )


def status(seen: SetPass, now: str) -> VMSetStatus:
    """The status of a set."""
    vmset, found = seen.vmset, rollout.rules(seen.vmset.spec)
    before = vmset.status or VMSetStatus()
    members = [each for each, _ in seen.members]
    available = sum(found.is_available(each, seen.context.now) for each in members)
    is_complete = _is_complete(seen, found)
    current = seen.context.update if is_complete else seen.context.current
    values = _conditions(seen, found, complete=is_complete)
    kept = conditions.without(before.conditions, *(() if templates.ineffective(vmset) else (conditions.UNSUPPORTED,)))
    return VMSetStatus(
        observedGeneration=vmset.metadata.generation,
        replicas=len(members),
        readyReplicas=sum(each.ready for each in members),
        availableReplicas=available,
        updatedReplicas=sum(each.revision == seen.context.update for each in members),
        currentReplicas=sum(each.revision == current for each in members),
        selector=selectors.text(vmset.spec.selector),
        currentRevision=current,
        updateRevision=seen.context.update,
        collisionCount=len(seen.plan.collisions) or None,
        conditions=conditions.settled(kept, values, now, vmset.metadata.generation),
        updateStatus=_update(seen, found, now, complete=is_complete),
        vmStatus=_machines(seen, before, now) or None,
    )


def _is_complete(seen: SetPass, set_rules: SetRules) -> bool:
    """Return whether every wanted machine is there, available and of the present revision, and no other one is."""
    members = {each.ordinal: each for each, _ in seen.members}
    return set(members) == set(set_rules.wanted) and all(
        each.revision == seen.context.update and set_rules.is_available(each, seen.context.now) for each in members.values()
    )


def _outdated(seen: SetPass) -> list[str]:
    update = seen.context.update
    return [each.name for each, _ in sorted(seen.members, key=lambda pair: pair[0].ordinal) if each.revision != update]


# --- conditions -----------------------------------------------------------------------------------------------------------


def _conditions(seen: SetPass, set_rules: SetRules, *, complete: bool) -> list[AspectValue]:
    values = [_readiness(seen, set_rules, complete=complete), _failure(seen), _updating(seen), _scaling(seen, set_rules)]
    ready = values[0]
    if complete or (ready.status == "True"):
        values.append(false(PROGRESSING, ALL_READY, ready.message))
    elif seen.plan.failed and _outdated(seen):
        values.append(false(PROGRESSING, PAUSED, _paused(seen)))
    else:
        values.append(true(PROGRESSING, ready.reason, ready.message))
    unused = templates.ineffective(seen.vmset)
    if unused:
        text = f"{', '.join(unused)} have no effect on the machines of a Provider: remove them"
        values.append(true(conditions.UNSUPPORTED, reasons.UNSUPPORTED, text))
    return values


def _readiness(seen: SetPass, set_rules: SetRules, *, complete: bool) -> AspectValue:
    if complete:
        return true(conditions.READY, ALL_READY, f"all {set_rules.replicas} machines are ready")
    members = {each.ordinal: each for each, _ in seen.members}
    missing = [templates.name_of(seen.vmset, each) for each in set_rules.wanted if each not in members]
    extra = [each.name for each, _ in seen.members if each.ordinal not in set_rules.wanted]
    waiting = [
        each.name for each, _ in seen.members if each.ordinal in set_rules.wanted and not set_rules.is_available(each, seen.context.now)
    ]
    outdated = _outdated(seen)
    if seen.problem:
        return false(conditions.READY, reasons.PROVIDER_ERROR, seen.problem)
    if seen.plan.collisions:
        return false(conditions.READY, NAME_CONFLICT, _collision(seen))
    if outdated and set_rules.strategy != rollout.ON_DELETE and not _is_partitioned(seen, set_rules):
        return false(conditions.READY, UPDATING, f"updating {_some(outdated)}")
    if missing:
        return false(conditions.READY, CREATING, f"waiting for {_some(missing)} to exist")
    if extra:
        return false(conditions.READY, DELETING_REPLICAS, f"waiting for {_some(extra)} to be gone")
    if waiting:
        return false(conditions.READY, CREATING, f"waiting for {_some(waiting)} to be ready{_why(seen, waiting[0])}")
    return true(conditions.READY, ALL_READY, f"all {set_rules.replicas} machines are ready; {_some(outdated)} have an older revision")


def _is_partitioned(seen: SetPass, set_rules: SetRules) -> bool:
    """Return whether the update concerns no machine that is still to be updated."""
    return (
        not any(
            each.revision != seen.context.update and each.ordinal >= set_rules.partition and set_rules.strategy == rollout.ROLLING
            for each, _ in seen.members
        )
        and set_rules.strategy == rollout.ROLLING
    )


def _why(seen: SetPass, name: str) -> str:
    for each, vm in seen.members:
        text = vm.status.message if vm.status is not None else None
        if each.name == name and text and not each.ready:
            return f": {text}"
    return ""


def _failure(seen: SetPass) -> AspectValue:
    if seen.problem:
        return true(REPLICA_FAILURE, reasons.PROVIDER_ERROR, seen.problem)
    if seen.plan.collisions:
        return true(REPLICA_FAILURE, NAME_CONFLICT, _collision(seen))
    failed = [each.name for each, _ in seen.members if each.failed]
    if failed:
        return true(REPLICA_FAILURE, REPLICA_FAILED, f"{_some(failed)} failed{_why(seen, failed[0])}")
    return false(REPLICA_FAILURE, reasons.SUCCESS, "no machine has failed")


def _updating(seen: SetPass) -> AspectValue:
    outdated = _outdated(seen)
    if not outdated:
        return false(UPDATE_IN_PROGRESS, reasons.SUCCESS, f"all machines have the revision {seen.context.update}")
    if seen.plan.failed:
        return false(UPDATE_IN_PROGRESS, PAUSED, _paused(seen))
    if rollout.rules(seen.vmset.spec).strategy == rollout.ON_DELETE:
        return false(UPDATE_IN_PROGRESS, rollout.ON_DELETE, f"{_some(outdated)} get the new template when you delete them")
    if _is_partitioned(seen, rollout.rules(seen.vmset.spec)):
        return false(UPDATE_IN_PROGRESS, "Partitioned", f"the partition keeps {_some(outdated)} at an older revision")
    return true(UPDATE_IN_PROGRESS, UPDATING, f"{_some(outdated)} still to be updated to the revision {seen.context.update}")


def _scaling(seen: SetPass, set_rules: SetRules) -> AspectValue:
    ordinals = {each.ordinal for each, _ in seen.members}
    if seen.plan.delete and not set(ordinals) <= set(set_rules.wanted) and not _outdated(seen):
        return true(SCALING, SCALING_DOWN, f"from {len(ordinals)} to {set_rules.replicas} machines")
    if len(ordinals & set(set_rules.wanted)) < set_rules.replicas:
        return true(SCALING, SCALING_UP, f"from {len(ordinals & set(set_rules.wanted))} to {set_rules.replicas} machines")
    if len(ordinals) > set_rules.replicas and not _outdated(seen):
        return true(SCALING, SCALING_DOWN, f"from {len(ordinals)} to {set_rules.replicas} machines")
    return false(SCALING, reasons.SUCCESS, f"the set has {set_rules.replicas} machines")


def _collision(seen: SetPass) -> str:
    return f"other objects have the names {_some(seen.plan.collisions)}: rename or delete those machines"


def _paused(seen: SetPass) -> str:
    failed = seen.plan.failed
    return f"the update is paused because {_some(failed)} failed{_why(seen, failed[0])}; correct spec.template"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# --- the update, and the machines -------------------------------------------------------------------------------------------


def _update(seen: SetPass, set_rules: SetRules, now: str, *, complete: bool) -> UpdateStatus | None:
    """The progress of the last update; a set that was never updated has none."""
    status = seen.vmset.status or VMSetStatus()
    before, outdated = status.updateStatus, _outdated(seen)
    is_new = status.updateRevision not in (None, seen.context.update)
    if before is None and not is_new and not outdated:
        return None
    began = now if before is None or is_new else before.startTime or now
    phase, message = "InProgress", f"{len(outdated)} of {len(seen.members)} machines still to be updated"
    if complete:
        phase, message = "Completed", f"all machines have the revision {seen.context.update}"
    elif seen.plan.failed and outdated:
        phase, message = "Paused", _paused(seen)
    elif outdated and (set_rules.strategy == rollout.ON_DELETE or _is_partitioned(seen, set_rules)):
        phase, message = "Pending", _updating(seen).message
    ended = (before.completionTime if before is not None and not is_new else None) or now
    return UpdateStatus(
        phase=phase,
        message=message,
        startTime=began,
        completionTime=ended if complete else None,
        updatedVMs=[each.name for each, _ in seen.members if each.revision == seen.context.update][:1000] or None,
        pendingVMs=outdated[:1000] or None,
        failedVMs=_failures(seen, before, now) or None,
    )


def _failures(seen: SetPass, before: UpdateStatus | None, now: str) -> list[FailedMachine]:
    known = {each.name: each for each in (before.failedVMs if before is not None else None) or ()}
    found = []
    for each, vm in seen.members:
        if not each.failed:
            continue
        ready = find(vm.status.conditions if vm.status is not None else None, conditions.READY)
        old = known.get(each.name)
        since = ready.lastTransitionTime if ready is not None else now
        again = old is not None and old.lastAttempt != since
        found.append(
            FailedMachine(
                name=each.name,
                reason=ready.reason if ready is not None else None,
                message=ready.message if ready is not None else None,
                lastAttempt=since,
                retryCount=(old.retryCount or 0) + int(again) if old is not None else 0,
            )
        )
    return found


def _machines(seen: SetPass, before: VMSetStatus, now: str) -> list[MachineInSet]:
    known = {each.name: each for each in before.vmStatus or ()}
    found = []
    for each, vm in sorted(seen.members, key=lambda pair: pair[0].ordinal)[:1000]:
        old = known.get(each.name)
        made = vm.metadata.creationTimestamp
        same = old is not None and old.creationTime == made
        changed = same and old is not None and old.revision != each.revision
        since = now if changed else old.lastUpdateTime if same and old is not None else made
        text = vm.status.message if vm.status is not None else None
        found.append(
            MachineInSet(
                name=each.name,
                phase=vm.status.phase if vm.status is not None else None,
                ready=each.ready,
                revision=each.revision or None,
                creationTime=made,
                lastUpdateTime=since,
                message=None if each.ready and each.change is TemplateChange.NONE else text,
            )
        )
    return found
