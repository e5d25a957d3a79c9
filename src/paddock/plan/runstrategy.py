"""What each run strategy does (docs/spec/kubevirt.md 2.4), as tables: the requests of users, and what a controller makes of what it sees.

Rows are strategies, columns are situations; a strategy that is missing in a table is a mistake that a test finds.
"""

from collections.abc import Mapping
from enum import StrEnum

from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.virtualmachine import VirtualMachineSpec


class Strategy(StrEnum):
    """When a machine runs."""

    ALWAYS = "Always"
    RERUN = "RerunOnFailure"
    MANUAL = "Manual"
    HALTED = "Halted"
    ONCE = "Once"
    RECEIVER = "WaitAsReceiver"


class Life(StrEnum):
    """What is there of a running machine."""

    # none at all
    NONE = "none"
    # it has not said yet that it is anything: made a moment ago, or lost sight of
    UNSET = "unset"
    LIVE = "live"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self in (Life.SUCCEEDED, Life.FAILED)


class Step(StrEnum):
    """What a controller does next about the run of a machine."""

    KEEP = "keep"
    # make a new instance
    START = "start"
    # delete the instance; a new one is made when it is gone, if the strategy says so
    STOP = "stop"
    # delete the instance, and remember that a new one has to follow
    REPLACE = "replace"


_PHASES = {"Succeeded": Life.SUCCEEDED, "Failed": Life.FAILED, "": Life.UNSET, "Unknown": Life.UNSET}


def strategy_of(spec: VirtualMachineSpec) -> Strategy:
    """The strategy of a machine, in whichever form it is written. A machine that says nothing does not run."""
    if spec.running is not None:
        return Strategy.ALWAYS if spec.running else Strategy.HALTED
    return Strategy(spec.runStrategy) if spec.runStrategy in tuple(Strategy) else Strategy.HALTED


def life_of(instance: VirtualMachineInstance | None) -> Life:
    """What an instance says of itself."""
    if instance is None:
        return Life.NONE
    phase = (instance.status.phase if instance.status is not None else None) or ""
    return _PHASES.get(phase, Life.LIVE)


def _steps(none: Step, live: Step, succeeded: Step, failed: Step) -> Mapping[Life, Step]:
    return {Life.NONE: none, Life.UNSET: live, Life.LIVE: live, Life.SUCCEEDED: succeeded, Life.FAILED: failed}


# What follows from the strategy and the instance alone, when nobody asked for anything. For RerunOnFailure, "none" is a machine that
# was processed under it before: one that is new to it is started (`next_step`).
STEPS: Mapping[Strategy, Mapping[Life, Step]] = {
    Strategy.ALWAYS: _steps(Step.START, Step.KEEP, Step.STOP, Step.STOP),
    Strategy.RERUN: _steps(Step.KEEP, Step.KEEP, Step.STOP, Step.REPLACE),
    Strategy.MANUAL: _steps(Step.KEEP, Step.KEEP, Step.KEEP, Step.KEEP),
    Strategy.HALTED: _steps(Step.KEEP, Step.STOP, Step.STOP, Step.STOP),
    Strategy.ONCE: _steps(Step.START, Step.KEEP, Step.KEEP, Step.KEEP),
    Strategy.RECEIVER: _steps(Step.KEEP, Step.KEEP, Step.KEEP, Step.KEEP),
}

# The strategies under which starts that fail are counted and put off.
BACKED_OFF = frozenset((Strategy.ALWAYS, Strategy.RERUN, Strategy.ONCE))


def next_step(strategy: Strategy, life: Life, *, before: str | None) -> Step:
    """What follows from the strategy and the instance. `before` is the strategy the machine was last processed under: by that a machine
    that was stopped is told from one that is to start for the first time."""
    if strategy is Strategy.RERUN and life is Life.NONE and before != strategy:
        return Step.START
    return STEPS[strategy][life]
