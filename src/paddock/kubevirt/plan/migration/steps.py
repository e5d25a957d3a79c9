"""The steps of a migration between nodes: each changes the migration, the instance or both. Pure.

Pending ─▶ Scheduling ─▶ Scheduled ─▶ PreparingTarget ─▶ TargetReady ─▶ Running ─▶ Succeeded
   └────────────┴────────────┴─── the instance ended, or cannot move ─────┴─▶ Failed
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.kubevirt.plan.instance.identity import launcher_of

FINAL = ("Succeeded", "Failed")
# label of an instance -> the node that it is moving to
TARGET_LABEL, NODE_LABEL = "kubevirt.io/migrationTargetNodeName", "kubevirt.io/nodeName"
_FOLLOWING = {
    "": "Pending",
    "Pending": "Scheduling",
    "Scheduling": "Scheduled",
    "Scheduled": "PreparingTarget",
    "PreparingTarget": "TargetReady",
    "TargetReady": "Running",
    "Running": "Succeeded",
}


class MigrationView(msgspec.Struct, frozen=True):
    """What a step is decided from: the migration, and its instance with its status. None: there is no such instance."""

    uid: str
    # of the migration
    status: dict[str, Any]
    instance: dict[str, Any] | None = None

    @property
    def phase(self) -> str:
        """The phase of the migration."""
        return str(self.status.get("phase") or "")

    @property
    def state(self) -> dict[str, Any]:
        """The state that the migration has noted."""
        return dict(self.status.get("migrationState") or {})

    @property
    def instance_state(self) -> dict[str, Any]:
        """The state of the last migration of the instance."""
        return dict(((self.instance or {}).get("status") or {}).get("migrationState") or {})


class InstanceChange(msgspec.Struct, frozen=True):
    """The change of an instance: its status as a whole, and labels. A label that is None goes."""

    status: dict[str, Any]
    labels: Mapping[str, str | None]


def obstacle(view: MigrationView) -> str:
    """Return the reason why the migration cannot go on; "" if it can."""
    status: dict[str, Any] = (view.instance or {}).get("status") or {}
    if view.instance is None:
        return "the instance does not exist"
    if view.instance["metadata"].get("deletionTimestamp") or status.get("phase") in FINAL:
        return "the instance has ended"
    found: dict[str, Any] = next((each for each in status.get("conditions") or () if each["type"] == "LiveMigratable"), {})
    if found.get("status") == "False":
        return f"the instance cannot move: {found.get('reason', '')}: {found.get('message', '')}"
    other = view.instance_state
    if other.get("migrationUid") not in (None, view.uid) and not other.get("completed"):
        return f"another migration of the instance ({other['migrationUid']}) is under way"
    return ""


def following(view: MigrationView, now: str, target: str = "") -> dict[str, Any]:
    """Return the status of the migration after its next step. `target`: the node that was chosen, for the step to Scheduled."""
    source = str(((view.instance or {}).get("status") or {}).get("nodeName") or "")
    state = view.state
    if view.phase == "Scheduling":
        state = {"migrationUid": view.uid, "sourceNode": source, "targetNode": target, "mode": "PreCopy"}
    elif view.phase == "TargetReady":
        state |= {"startTimestamp": now}
    elif view.phase == "Running":
        state |= {"endTimestamp": now, "completed": True}
    return entered(view, _FOLLOWING[view.phase], now, state)


def failed(view: MigrationView, why: str, now: str, *, aborted: bool = False) -> dict[str, Any]:
    """Return the status of a migration that failed."""
    state = {**view.state, "migrationUid": view.uid, "endTimestamp": now, "completed": True, "failed": True, "failureReason": why}
    if aborted:
        state |= {"abortRequested": True, "abortStatus": "Succeeded"}
    return entered(view, "Failed", now, state)


def entered(view: MigrationView, phase: str, now: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return the status of a migration that enters a phase."""
    before = [each for each in view.status.get("phaseTransitionTimestamps") or () if each["phase"] != phase]
    times = [*before, {"phase": phase, "phaseTransitionTimestamp": now}]
    return {**view.status, "phase": phase, "phaseTransitionTimestamps": times, **({"migrationState": state} if state else {})}


def instance_change(view: MigrationView, status: dict[str, Any]) -> InstanceChange | None:
    """Return the change of the instance that goes with a new status of its migration; None if it does not concern the instance."""
    phase, state = status["phase"], status.get("migrationState") or {}
    own = view.instance_state.get("migrationUid") == view.uid
    if view.instance is None or phase not in ("PreparingTarget", "Running", *FINAL) or (phase == "Failed" and not own):
        return None
    before: dict[str, Any] = view.instance.get("status") or {}
    changed = {**before, "migrationState": state}
    if phase != "Succeeded":
        return InstanceChange(changed, {TARGET_LABEL: state["targetNode"] if phase not in FINAL else None})
    node = state["targetNode"]
    # On the other node it has another Pod, and nothing drives it away from there.
    moved = {**changed, "nodeName": node, "activePods": {launcher_of(view.uid): node}}
    moved.pop("evacuationNodeName", None)
    return InstanceChange(moved, {TARGET_LABEL: None, NODE_LABEL: node})
