"""Warm clones: machines that go on from the memory of a running one, or of a snapshot (docs/spec/kubevirt.md 7.3.1). Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from paddock.base import ownnames, reasons
from paddock.kubevirt.kinds.clone import VirtualMachineClone
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot
from paddock.kubevirt.plan.machine import runstrategy
from paddock.kubevirt.plan.snapshots.clones import FAILED, RESTORE, SUCCEEDED

WISH, CONTINUES = ownnames.WARM.name, ownnames.CONTINUES.name
NOTES: Mapping[str, str] = {ownnames.MEMORY.name: "true", WISH: "true"}
_SHARED = "the guest has no agent: the clone has the host name, machine id, SSH host keys and random numbers of its source"


def is_wished(made: VirtualMachineClone | VirtualMachineSnapshot | VirtualMachineRestore) -> bool:
    """Return whether a clone is to be warm, or a snapshot or a restore is for such a one."""
    return (made.metadata.annotations or {}).get(WISH) == "true"


def shared_identity(machine: Mapping[str, Any]) -> str:
    """Return what a fork of a source has in common with it, because the guest has no agent; empty: nothing. The source has its status."""
    return "" if "AgentConnected" in _true((machine.get("status") or {}).get("conditions") or ()) else _SHARED


def start(machine: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the change of its spec that starts a fork; None: it was started already."""
    spec = machine.get("spec") or {}
    if CONTINUES not in (machine["metadata"].get("annotations") or {}) or spec.get("runStrategy") != "Halted":
        return None
    strategy = runstrategy.named(source.get("spec") or {})
    # A fork of a machine with any other would be left off.
    return {"running": None, "runStrategy": strategy if strategy in runstrategy.STARTING else "RerunOnFailure"}


def progress(instance: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the phase of a clone whose target was started, and the reason if it failed."""
    status = (instance or {}).get("status") or {}
    phase = status.get("phase")
    if phase == "Running":
        return SUCCEEDED, ""
    found = {each["type"]: each for each in status.get("conditions") or ()}
    ready = found.get("Ready") or {}
    if ready.get("reason") == reasons.MEMORY_MISMATCH or phase in ("Failed", "Succeeded"):
        return FAILED, ready.get("message") or "the machine ended before its guest went on"
    return RESTORE, ""


def _true(conditions: Iterable[Mapping[str, Any]]) -> set[str]:
    return {each["type"] for each in conditions if each["status"] == "True"}
