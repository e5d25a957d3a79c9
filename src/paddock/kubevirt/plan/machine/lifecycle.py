"""The next step of a machine: requests that wait, then the run strategy, then the back-off (docs/spec/kubevirt.md 2.4 and 2.5).

    requests --prune--> the first one decides; none: STEPS of the strategy --START--> held by disks or by the back-off?

Pure: the caller carries one decision out and reconciles again.
"""

from collections.abc import Sequence

import msgspec

from paddock.kubernetes.meta import ages
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import StartFailure, StateChangeRequest, VirtualMachine, VirtualMachineStatus
from paddock.kubevirt.plan.instance.suspension import is_suspended
from paddock.kubevirt.plan.machine import fencing, receivers
from paddock.kubevirt.plan.machine.runrequests import PAUSED, START, STOP
from paddock.kubevirt.plan.machine.runstrategy import BACKED_OFF, InstanceState, RunStep, RunStrategy, life_of, next_step, strategy_of

_FIRST_SECONDS, _LONGEST_SECONDS = 10.0, 300.0


class LifecycleDecision(msgspec.Struct, frozen=True):
    """The next step about the run of a machine.

    `requests` are those that still wait. `becomes` is a strategy that the spec has to be changed to first; then nothing else is done.
    """

    step: RunStep
    requests: tuple[StateChangeRequest, ...] = ()
    paused: bool = False
    becomes: RunStrategy | None = None


def decide(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> LifecycleDecision:
    """The next step, whatever may still hold it. A fenced machine never starts, and forgets requests to start.

    One that waits for a guest of another server runs nothing of its own, so a fence does not keep it from waiting.
    """
    decision = _decide(machine, instance)
    if not fencing.reason(machine.metadata.annotations) or strategy_of(machine.spec) is RunStrategy.RECEIVER:
        return decision
    requests = tuple(each for each in decision.requests if each.action != START)
    if decision.step in (RunStep.START, RunStep.REPLACE) or decision.becomes is not None:
        return LifecycleDecision(RunStep.KEEP, requests)
    return msgspec.structs.replace(decision, requests=requests)


def _decide(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> LifecycleDecision:
    strategy, life = strategy_of(machine.spec), life_of(instance)
    status = machine.status or VirtualMachineStatus()
    requests = waiting(status.stateChangeRequests or (), instance)
    deleting = instance is not None and instance.metadata.deletionTimestamp is not None
    if is_suspended(instance):
        # A guest on disk does not run, which is what a stop is about, and only a discard throws it away.
        return LifecycleDecision(RunStep.KEEP, requests)
    if not requests:
        if strategy is RunStrategy.RECEIVER and (restored := receivers.restored(machine, instance)) is not None:
            return LifecycleDecision(RunStep.KEEP, becomes=RunStrategy(restored))
        step = next_step(strategy, life, before=status.runStrategy)
        if step is RunStep.REPLACE:
            # The request is written before anything is deleted: an instance that goes without one was deleted by a user.
            return LifecycleDecision(RunStep.KEEP, () if deleting else (StateChangeRequest(action=START),))
        return LifecycleDecision(RunStep.KEEP if deleting and step is RunStep.STOP else step)
    first = requests[0]
    if first.action == STOP or instance is not None:
        # A start waits for the old instance to be gone.
        return LifecycleDecision(RunStep.KEEP if deleting else RunStep.STOP, requests)
    if strategy is RunStrategy.HALTED:
        return LifecycleDecision(RunStep.KEEP, requests, becomes=RunStrategy.ALWAYS)
    return LifecycleDecision(RunStep.START, requests, paused=(first.data or {}).get("paused") == PAUSED["paused"])


def waiting(requests: Sequence[StateChangeRequest], instance: VirtualMachineInstance | None) -> tuple[StateChangeRequest, ...]:
    """The requests that are not fulfilled: a stop of an instance that is gone is, and so is a start while one lives."""
    rest = list(requests)
    while rest and _is_fulfilled(rest[0], instance):
        rest.pop(0)
    return tuple(rest)


def _is_fulfilled(request: StateChangeRequest, instance: VirtualMachineInstance | None) -> bool:
    if request.action == STOP:
        return instance is None or request.uid not in (None, "", instance.metadata.uid)
    return instance is not None and instance.metadata.deletionTimestamp is None and not life_of(instance).final


# --- back-off -------------------------------------------------------------------------------------------------------------


def pause_seconds(failures: int, chance: float) -> float:
    """Return the back-off of the start after so many failures. `chance` from 0 to 1 adds up to half."""
    plain = _FIRST_SECONDS * failures**2
    return min(_LONGEST_SECONDS, plain + plain / 2 * chance)


def start_failure(machine: VirtualMachine, instance: VirtualMachineInstance | None, now: float, chance: float) -> StartFailure | None:
    """The failed starts in a row after a look at the instance; None: there are none, or nobody counts them."""
    known = machine.status.startFailure if machine.status is not None else None
    if strategy_of(machine.spec) not in BACKED_OFF:
        return None
    if instance is None:
        return known
    if has_run(instance):
        return None
    uid = instance.metadata.uid
    if not life_of(instance).final or (known is not None and known.lastFailedVMIUID == uid):
        return known
    count = ((known.consecutiveFailCount if known is not None else None) or 0) + 1
    later = ages.timestamp(now + pause_seconds(count, chance))
    return StartFailure(consecutiveFailCount=count, lastFailedVMIUID=uid, retryAfterTimestamp=later)


def has_run(instance: VirtualMachineInstance) -> bool:
    """Return whether an instance was ever Running."""
    status = instance.status
    if status is None:
        return False
    return status.phase == "Running" or any(each.phase == "Running" for each in status.phaseTransitionTimestamps or ())


def held_seconds(failure: StartFailure | None, now: float) -> float:
    """Return the seconds until the next start is allowed."""
    if failure is None or not failure.consecutiveFailCount or not failure.retryAfterTimestamp:
        return 0.0
    until = ages.seconds_of(failure.retryAfterTimestamp)
    return max(0.0, until - now) if until is not None else 0.0


def is_failing(machine: VirtualMachine, failure: StartFailure | None, instance: VirtualMachineInstance | None) -> bool:
    """Return whether a machine is between two starts of which the first failed."""
    alive = life_of(instance) in (InstanceState.LIVE, InstanceState.UNSET)
    return not alive and failure is not None and bool(failure.consecutiveFailCount) and strategy_of(machine.spec) in BACKED_OFF
