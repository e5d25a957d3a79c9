"""The progress of a clone, the retries of a failed one, and its status (docs/spec/virtrigaud.md 1.7 and 2.6).

Pending --> Cloning --> Customizing --> Powering-On --> Ready
               |             |               |
               +------ failed: what was made is removed --> Pending (again, as retryPolicy says) or Failed
"""

from collections.abc import Iterable

import msgspec

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds.vmclone import CloneProgress, CustomizationStatus, VMClone, VMCloneStatus
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.clones import firstboot, judging, origin
from paddock.dialects.virtrigaud.plan.conditions import READY, AspectValue, find, holds, settled, without
from paddock.kubernetes.meta import ages

PENDING, PREPARING, CLONING, CUSTOMIZING = "Pending", "Preparing", "Cloning", "Customizing"
POWERING_ON, PHASE_READY, FAILED = "Powering-On", "Ready", "Failed"
# Types of conditions. BEGUN is True while the outcome of a request for a clone may not be known.
BEGUN, CUSTOMIZED, FAILURE, CLEANUP, UNSENT = "Cloning", "Customizing", "Failed", "CleaningUp", "Unsupported"
# Failures that another attempt may not have.
_PASSING = (reasons.PROVIDER_ERROR, reasons.INSUFFICIENT_RESOURCES, reasons.CUSTOMIZATION_FAILED)
_DONE = {PENDING: 0, PREPARING: 0, CLONING: 0, CUSTOMIZING: 1, POWERING_ON: 2}


def of(clone: VMClone) -> VMCloneStatus:
    """The status of a clone; an empty one if it has none, or if it failed for another spec than the present one."""
    found = clone.status
    if found is None or (found.phase == FAILED and found.observedGeneration != clone.metadata.generation):
        # What the conditions of attempts say is over, too.
        kept = without(found.conditions, BEGUN, CUSTOMIZED, FAILURE, CLEANUP, UNSENT, origin.ORIGIN) if found is not None else None
        return VMCloneStatus(conditions=kept)
    return found


def is_settled(clone: VMClone) -> bool:
    """Return whether nothing is left to do for a clone."""
    return of(clone).phase in (PHASE_READY, FAILED)


def is_unfinished(clone: VMClone) -> bool:
    """Return whether the provider may have a machine of this clone that no VirtualMachine has yet."""
    status = of(clone)
    return status.targetRef is None and (bool(status.targetVMID) or holds(status.conditions, BEGUN))


def deadline(clone: VMClone, status: VMCloneStatus) -> float | None:
    """The time by which the clone has to be ready; None before it has begun."""
    begun = ages.seconds_of(status.startTime or "")
    return None if begun is None else begun + duration.parse(judging.options(clone).timeout) / duration.SECOND


def may_retry(clone: VMClone, status: VMCloneStatus, reason: str) -> bool:
    """Return whether a failed attempt is followed by another one."""
    policy = judging.options(clone).retryPolicy
    return policy is not None and reason in _PASSING and (status.retryCount or 0) < policy.maxRetries


def retry_at(clone: VMClone, status: VMCloneStatus) -> float | None:
    """The time of the next attempt after a failed one; None when no attempt has failed since the last began."""
    policy, failure = judging.options(clone).retryPolicy, find(status.conditions, FAILURE)
    if policy is None or failure is None or failure.status != "True" or status.phase == FAILED:
        return None
    delay: float = duration.parse(policy.retryDelay) / duration.SECOND * policy.backoffMultiplier ** (status.retryCount or 0)
    return (ages.seconds_of(failure.lastTransitionTime) or 0.0) + delay


def percentage(clone: VMClone, phase: str | None) -> int:
    """The part of the steps that is done: the contract does not report how much of the disks is copied."""
    steps = 3 if judging.options(clone).powerOn else 2
    return 100 if phase == PHASE_READY else 100 * _DONE.get(phase or PENDING, 0) // steps


def copied_disks(status: VMCloneStatus, total: int) -> VMCloneStatus:
    """The status with the count of disks, none of which is copied yet."""
    return msgspec.structs.replace(status, progress=CloneProgress(totalDisks=total, completedDisks=0, overallPercentage=0))


def customized(clone: VMClone, status: VMCloneStatus, *, done: bool, problem: str = "") -> VMCloneStatus:
    """The status with how far the customization is; a clone without one has none."""
    steps = list(firstboot.steps(judging.customization(clone)))
    if not steps:
        return status
    found = CustomizationStatus(
        started=True,
        completed=done,
        completedSteps=steps if done else None,
        failedSteps=steps if problem else None,
        currentStep=None if done or problem else steps[0],
        message=problem or ("the guest gets it at its first boot" if done else None),
    )
    return msgspec.structs.replace(status, customizationStatus=found)


def settle(clone: VMClone, status: VMCloneStatus, values: Iterable[AspectValue], now: str) -> VMCloneStatus:
    """The status with these conditions, and the message and progress that follow."""
    conditions = settled(status.conditions, values, now, clone.metadata.generation)
    ready = find(conditions, READY)
    before, part = status.progress or CloneProgress(), percentage(clone, status.phase)
    copied = before.totalDisks if status.phase in (CUSTOMIZING, POWERING_ON, PHASE_READY) else before.completedDisks
    if status.phase == FAILED:
        part, copied = before.overallPercentage or 0, before.completedDisks
    return msgspec.structs.replace(
        status,
        phase=status.phase or PENDING,
        message=(ready.message if ready is not None else "") or None,
        conditions=conditions,
        observedGeneration=clone.metadata.generation,
        progress=msgspec.structs.replace(before, overallPercentage=part, completedDisks=copied),
    )
