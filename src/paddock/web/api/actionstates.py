"""The verbs for a machine: which are possible now, and why the others are not. Pure."""

from collections.abc import Callable, Iterator, Mapping

from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.kinds import VMI
from paddock.fleet.machines import facts, removal, waiting, writing
from paddock.fleet.machines.finding import MachineView
from paddock.web.answers.machine import WebActionState, WebSnapshotPart
from paddock.web.api.serverparts import NO_SUSPENSION

_NO_VM = "the machine has no VirtualMachine on this server"
_BARE = "it is an instance without a VirtualMachine"
Reason = Callable[[MachineView], str]


def states(machine: MachineView, snapshots: list[WebSnapshotPart], *, can_suspend: bool) -> list[WebActionState]:
    """Return all verbs in the order of a menu."""
    found = dict(_reasons(machine, snapshots))
    if not can_suspend:
        found["suspend"] = found["suspend"] or NO_SUSPENSION
    return [WebActionState(verb=verb, allowed=not why, reason=why) for verb, why in found.items()]


def _reasons(machine: MachineView, snapshots: list[WebSnapshotPart]) -> Iterator[tuple[str, str]]:
    deletion = "the machine is being deleted" if texts(machine.data, "metadata", "deletionTimestamp") else ""
    suspended = "it is suspended to disk; resume it first" if waiting.is_suspended(machine) else ""
    for verb, reason in REASONS.items():
        yield verb, deletion or ("" if verb in _WHILE_SUSPENDED else suspended) or reason(machine)
    yield "restore", deletion or suspended or _restore(machine, snapshots)


def _start(machine: MachineView) -> str:
    if machine.kind is VMI:
        return _BARE
    return "it runs already" if waiting.is_live(machine) else ""


def _stop(machine: MachineView) -> str:
    if machine.kind is VMI:
        return _BARE
    # One that fails again and again, or waits for its disks, is stopped as well.
    return "" if waiting.is_live(machine) or writing.wants_to_run(machine) else "it does not run"


def _restart(machine: MachineView) -> str:
    if machine.kind is VMI:
        return _BARE
    if not waiting.is_live(machine):
        return "it does not run"
    return "" if machine.kind.adapter.restarts_by_power or machine.vm is not None else _NO_VM


def _of_guest(machine: MachineView) -> str:
    if machine.vmi is None:
        return "it does not run" if machine.vm is not None else _NO_VM
    return "" if waiting.is_live(machine) else "it does not run"


def _pause(machine: MachineView) -> str:
    return _of_guest(machine) or ("it is paused already" if waiting.is_paused(machine) else "")


def _unpause(machine: MachineView) -> str:
    return _of_guest(machine) or ("" if waiting.is_paused(machine) else "it is not paused")


def _snapshot(machine: MachineView) -> str:
    if machine.kind is VMI:
        return _BARE
    return "" if machine.kind.adapter.snapshot_kind is not None or machine.vm is not None else _NO_VM


def _restore(machine: MachineView, snapshots: list[WebSnapshotPart]) -> str:
    if why := _snapshot(machine):
        return why
    return "" if any(each.state == "ready" for each in snapshots) else "it has no snapshot that is ready"


def _protect(machine: MachineView) -> str:
    return "it is protected already" if facts.is_protected(machine.data) else ""


def _unprotect(machine: MachineView) -> str:
    return "" if facts.is_protected(machine.data) else "it is not protected"


def _delete(machine: MachineView) -> str:
    try:
        removal.plan(machine, (), purge=True)
    except removal.ProtectedMachine:
        return "it is protected from deletion"
    return ""


def _suspend(machine: MachineView) -> str:
    if machine.kind is VMI:
        return _BARE
    return _of_guest(machine) if machine.vm is not None else _NO_VM


def _resume(machine: MachineView) -> str:
    return "" if waiting.is_suspended(machine) else "it is not suspended"


_WHILE_SUSPENDED = frozenset(("resume", "protect", "unprotect", "delete"))
REASONS: Mapping[str, Reason] = {
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "pause": _pause,
    "unpause": _unpause,
    "reset": _of_guest,
    "suspend": _suspend,
    "resume": _resume,
    "snapshot": _snapshot,
    "clone": _snapshot,
    "protect": _protect,
    "unprotect": _unprotect,
    "delete": _delete,
}
