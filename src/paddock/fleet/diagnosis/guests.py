"""Causes that lie with a machine and its guest: what ended it, what holds it, what failed inside."""

from collections.abc import Iterator, Mapping

from paddock.base import reasons
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.scene import at, conditions, holds, texts
from paddock.kubernetes.meta import ages
from paddock.kubevirt.plan.changes.references import INSTANCE, MACHINE
from paddock.kubevirt.plan.instance import ends

_RECENT_SECONDS = 600.0
# What ended a run, by its code, and what to do about it where it was not the guest.
_ENDS: Mapping[str, tuple[str, str]] = {
    reasons.GUEST_PANICKED: ("its guest's kernel panicked", ""),
    reasons.QEMU_KILLED: ("QEMU was killed from outside", "See who did it: dmesg tells of the kernel's out-of-memory killer."),
}


def _again_and_again(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A machine that runs now, and has crashed a moment ago, or several times."""
    for saying in view.sayings:
        node = saying.node
        if node.ref.id != INSTANCE or saying.kind != "event" or saying.reason != "Stopped" or saying.since is None:
            continue
        ago = view.scene.now - saying.since
        if verdict.of(node.ref, node.data or {}).state == "good" and (
            ago < _RECENT_SECONDS / 5 or (saying.count > 1 and ago < _RECENT_SECONDS)
        ):
            times = f"{saying.count} times, last " if saying.count > 1 else ""
            why, fix = _ENDS.get(ends.code(saying.message), ("it crashed", ""))
            cause = f"It runs again, but {why} ({times}{ages.since(saying.since, view.scene.now)} ago)."
            yield rule.found(node, cause, fix=fix, rank=CauseDepth.TOLD, seen=Evidence(saying.field, saying.message, saying.since))


def _crash_loop(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id == MACHINE and texts(node.data, "status", "printableStatus") == "CrashLoopBackOff":
            count = at(node.data, "status", "startFailure", "consecutiveFailCount") or 0
            later = texts(node.data, "status", "startFailure", "retryAfterTimestamp")
            cause = f"The machine could not be started {count} times in a row; the next attempt is at {later}."
            yield rule.found(node, cause, rank=CauseDepth.VAGUE, seen=Evidence("status.startFailure", f"{count} failed starts"))


def _stopping(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id != INSTANCE or not texts(node.data, "metadata", "deletionTimestamp"):
            continue
        if texts(node.data, "status", "phase") in ("Succeeded", "Failed"):
            continue
        grace = at(node.data, "metadata", "deletionGracePeriodSeconds") or at(node.data, "spec", "terminationGracePeriodSeconds")
        began = ages.seconds_of(texts(node.data, "metadata", "deletionTimestamp"))
        cause = f"The guest was asked to shut down, and has not yet{f' (it has {grace} s)' if grace else ''}."
        fix = f"Wait, or end it with force: paddock stop {node.ref.name} -n {node.ref.namespace} --force"
        yield rule.found(node, cause, fix=fix, rank=CauseDepth.SAID, seen=Evidence("metadata.deletionTimestamp", "", began))


def _starting(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id == INSTANCE and texts(node.data, "status", "phase") in ("Scheduling", "Scheduled") and not _refused(node.data):
            ready = conditions(node.data).get("Ready")
            since = ages.seconds_of(texts(ready, "lastTransitionTime"))
            phase = texts(node.data, "status", "phase")
            yield rule.found(node, rank=CauseDepth.VAGUE, seen=Evidence("status.phase", phase, since))


def _unasked(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A guest that nothing was heard of: that it runs is all that is known."""
    for node in view.nodes:
        if node.ref.id != INSTANCE or texts(node.data, "status", "phase") != "Running" or "AgentConnected" in conditions(node.data):
            continue
        if not (at(node.data, "spec", "readinessProbe") or at(node.data, "spec", "livenessProbe")):
            yield rule.found(node, rank=CauseDepth.SAID, seen=Evidence("status.conditions"))


def _refused(data: object) -> bool:
    return any(holds(data, each, "False") for each in ("Synchronized", "PodScheduled", "DataVolumesReady"))


LOOKS: Mapping[str, Look] = {
    "crashed-lately": _again_and_again,
    "crash-loop": _crash_loop,
    "guest-not-asked": _unasked,
    "guest-shutting-down": _stopping,
    "starting": _starting,
}
