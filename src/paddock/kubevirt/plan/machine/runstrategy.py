"""The run strategies as tables (docs/spec/kubevirt.md 2.4): the requests of users, and the controller's reaction to each situation.

Rows are strategies, columns are situations; a strategy that is missing in a table is a mistake that a test finds.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachineSpec


class RunStrategy(StrEnum):
    """The times at which a machine runs."""

    ALWAYS = "Always"
    RERUN = "RerunOnFailure"
    MANUAL = "Manual"
    HALTED = "Halted"
    ONCE = "Once"
    RECEIVER = "WaitAsReceiver"


class InstanceState(StrEnum):
    """The state of a running machine."""

    # none at all
    NONE = "none"
    # it has not said yet that it is anything: made a moment ago, or lost sight of
    UNSET = "unset"
    LIVE = "live"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """True if it has ended."""
        return self in (InstanceState.SUCCEEDED, InstanceState.FAILED)


class RunStep(StrEnum):
    """The next step of a controller about the run of a machine."""

    KEEP = "keep"
    # make a new instance
    START = "start"
    # delete the instance; a new one is made when it is gone, if the strategy says so
    STOP = "stop"
    # delete the instance, and remember that a new one has to follow
    REPLACE = "replace"


# Those under which a machine runs that nobody stops.
STARTING = (RunStrategy.ALWAYS, RunStrategy.RERUN, RunStrategy.ONCE)
_PHASES = {"Succeeded": InstanceState.SUCCEEDED, "Failed": InstanceState.FAILED, "": InstanceState.UNSET, "Unknown": InstanceState.UNSET}


def strategy_of(spec: VirtualMachineSpec) -> RunStrategy:
    """The strategy of a machine, in whichever form it is written. A machine that says nothing does not run."""
    if spec.running is not None:
        return RunStrategy.ALWAYS if spec.running else RunStrategy.HALTED
    return RunStrategy(spec.runStrategy) if spec.runStrategy in tuple(RunStrategy) else RunStrategy.HALTED


def named(spec: Mapping[str, Any]) -> str:
    """Return the strategy that the spec of a machine names as data, in whichever form; empty: none."""
    if (running := spec.get("running")) is not None:
        return RunStrategy.ALWAYS if running else RunStrategy.HALTED
    return str(spec.get("runStrategy") or "")


def life_of(instance: VirtualMachineInstance | None) -> InstanceState:
    """Return the state that an instance reports."""
    if instance is None:
        return InstanceState.NONE
    phase = (instance.status.phase if instance.status is not None else None) or ""
    return _PHASES.get(phase, InstanceState.LIVE)


def _steps(none: RunStep, live: RunStep, succeeded: RunStep, failed: RunStep) -> Mapping[InstanceState, RunStep]:
    return {
        InstanceState.NONE: none,
        InstanceState.UNSET: live,
        InstanceState.LIVE: live,
        InstanceState.SUCCEEDED: succeeded,
        InstanceState.FAILED: failed,
    }


# What follows from the strategy and the instance alone, when nobody asked for anything. For RerunOnFailure, "none" is a machine that
# was processed under it before: one that is new to it is started (`next_step`).
STEPS: Mapping[RunStrategy, Mapping[InstanceState, RunStep]] = {
    RunStrategy.ALWAYS: _steps(RunStep.START, RunStep.KEEP, RunStep.STOP, RunStep.STOP),
    RunStrategy.RERUN: _steps(RunStep.KEEP, RunStep.KEEP, RunStep.STOP, RunStep.REPLACE),
    RunStrategy.MANUAL: _steps(RunStep.KEEP, RunStep.KEEP, RunStep.KEEP, RunStep.KEEP),
    RunStrategy.HALTED: _steps(RunStep.KEEP, RunStep.STOP, RunStep.STOP, RunStep.STOP),
    RunStrategy.ONCE: _steps(RunStep.START, RunStep.KEEP, RunStep.KEEP, RunStep.KEEP),
    RunStrategy.RECEIVER: _steps(RunStep.START, RunStep.KEEP, RunStep.KEEP, RunStep.KEEP),
}

# The strategies under which starts that fail are counted and put off.
BACKED_OFF = frozenset((RunStrategy.ALWAYS, RunStrategy.RERUN, RunStrategy.ONCE))


def next_step(strategy: RunStrategy, life: InstanceState, *, before: str | None) -> RunStep:
    """Return the next step from the strategy and the instance. `before` is the strategy the machine was last processed under: it separates
    a machine that was stopped from one that is to start for the first time."""
    if strategy is RunStrategy.RERUN and life is InstanceState.NONE and before != strategy:
        return RunStep.START
    return STEPS[strategy][life]
