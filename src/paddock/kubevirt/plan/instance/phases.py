"""The phases of a running machine: where it stands, and when each began (docs/spec/kubevirt.md 2.2).

Pending -> Scheduling -> Scheduled -> Running -> Succeeded | Failed
WaitingForSync -> Running: its guest comes from another server

Pending waits for volumes; Scheduling has them, and waits for room, images or Secrets; Scheduled is in the start queue, or QEMU is coming
up; Running has its command to run; so has one whose guest is suspended to disk. A phase that was passed between two looks has its time,
too.
"""

from collections.abc import Collection, Sequence

from paddock.engine.machine.observation import Observation, RunEnd
from paddock.kubernetes.meta import ages
from paddock.kubevirt.kinds.status import PhaseTransition

PENDING, SCHEDULING, SCHEDULED, RUNNING = "Pending", "Scheduling", "Scheduled", "Running"
SUCCEEDED, FAILED = "Succeeded", "Failed"
FINAL = (SUCCEEDED, FAILED)
# its guest comes from another server, and is not here yet
RECEIVING = "WaitingForSync"
WAITING = (PENDING, SCHEDULING, RECEIVING)
# How long a machine may be in a phase on its way before that is written.
PASSING_SECONDS = 0.05
# Timestamps are whole seconds, so this is between two and three.
_SEEN_SECONDS = 3.0
_WAY = (PENDING, SCHEDULING, SCHEDULED, RUNNING)
# What an engine's machine is called on its way to run.
COMING = ("queued", "starting")
# the furthest first
_MILESTONES = {"running": RUNNING, "started": SCHEDULED, "queued": SCHEDULED}
_OF_MACHINE = {**dict.fromkeys(COMING, SCHEDULED), "running": RUNNING, "stopping": RUNNING, "suspended": RUNNING}


def phase_of(before: str, observed: Observation | None, *, acpi: bool, prepared: bool, receives: bool = False) -> str:
    """Return the phase of a machine. A final phase stays, and no phase goes back. `receives`: it has no guest until one comes."""
    if before in FINAL:
        return before
    if receives and (observed is None or observed.phase != "running"):
        return RECEIVING
    if observed is not None and observed.phase == "ended" and observed.end is not None:
        return end_of(observed.end, acpi=acpi)
    found = SCHEDULING if prepared else PENDING
    if observed is not None:
        found = _OF_MACHINE.get(observed.phase, found)
    return max(before if before in _WAY else PENDING, found, key=_WAY.index)


def seen_seconds(before: Sequence[PhaseTransition] | None, now: float, *, asked: bool) -> float:
    """Return how long an instance that has ended still stays, so that who looks every second sees its last phase.

    `asked`: a user deleted it, and its guest had time to shut down. One that never ran has nothing to show.
    """
    known = {each.phase: each.phaseTransitionTimestamp for each in before or ()}
    ended = next((ages.seconds_of(known[phase] or "") for phase in FINAL if phase in known), None)
    if not asked or RUNNING not in known or ended is None:
        return 0.0
    return max(0.0, ended + _SEEN_SECONDS - now)


def is_passing(before: str, now: str) -> bool:
    """Return whether a machine is on its way to Running, and may be there in a moment."""
    return before in ("", *_WAY[:-1]) and now in _WAY[:-1]


def end_of(end: RunEnd, *, acpi: bool) -> str:
    """Return the phase after an end: success if the guest shut down, or had no way to hear that it should."""
    if end.reason in ("guest-shutdown", "guest-reboot", "saved", "discarded"):
        return SUCCEEDED
    return SUCCEEDED if end.reason == "killed" and not acpi else FAILED


def transitions(before: Sequence[PhaseTransition] | None, phase: str, now: str, milestones: Collection[str] = ()) -> list[PhaseTransition]:
    """The phases so far with the times they began; those that were passed since the last look began by now.

    `milestones` are what an engine's machine that has ended went through.
    """
    found = list(before or ())
    known = {each.phase for each in found}
    passed = _WAY[: _WAY.index(phase) + 1] if phase in _WAY else (phase,)
    if phase in FINAL and RUNNING not in known:
        # What it did not reach is not listed.
        reached = next((each for milestone, each in _MILESTONES.items() if milestone in milestones), PENDING)
        passed = (*_WAY[: _WAY.index(reached) + 1], phase)
    return [*found, *(PhaseTransition(phase=each, phaseTransitionTimestamp=now) for each in passed if each not in known)]
