"""The steps of a migration between nodes."""

from typing import Any

import pytest

from paddock.kubevirt.plan.instance.identity import launcher_of
from paddock.kubevirt.plan.migration import steps
from paddock.kubevirt.plan.migration.steps import MigrationView

NOW = "2026-01-01T00:00:00Z"
RUNS = {"phase": "Running", "nodeName": "one", "activePods": {"pod": "one"}}


def _instance(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "status": {**RUNS, **status}}


def _view(phase: str = "", instance: dict[str, Any] | None = None, **state: Any) -> MigrationView:
    return MigrationView("uid", {"phase": phase, "migrationState": state} if phase else {}, instance)


@pytest.mark.spec("kubevirt", 224)
def test_a_migration_goes_through_its_phases_and_the_instance_with_it() -> None:
    instance, status, nodes = _instance(evacuationNodeName="one"), {}, []  # type: ignore[var-annotated]  # plain data
    for _ in range(7):
        view = MigrationView("uid", status, instance)
        status = steps.following(view, NOW, "two")
        if change := steps.instance_change(view, status):
            instance = {**instance, "status": change.status}
            nodes.append((status["phase"], change.status["nodeName"], dict(change.labels)))
    assert [each["phase"] for each in status["phaseTransitionTimestamps"]][-1] == "Succeeded"
    assert nodes == [
        ("PreparingTarget", "one", {steps.TARGET_LABEL: "two"}),
        ("Running", "one", {steps.TARGET_LABEL: "two"}),
        ("Succeeded", "two", {steps.TARGET_LABEL: None, steps.NODE_LABEL: "two"}),
    ]
    assert instance["status"]["migrationState"] == {
        "migrationUid": "uid",
        "sourceNode": "one",
        "targetNode": "two",
        "mode": "PreCopy",
        "startTimestamp": NOW,
        "endTimestamp": NOW,
        "completed": True,
    }
    assert "evacuationNodeName" not in instance["status"]
    assert instance["status"]["activePods"] == {launcher_of("uid"): "two"}


@pytest.mark.spec("kubevirt", 224)
def test_one_that_fails_leaves_the_guest_where_it_is() -> None:
    view = _view("Running", _instance(migrationState={"migrationUid": "uid"}), targetNode="two")
    change = steps.instance_change(view, steps.failed(view, "no luck", NOW, aborted=True))
    assert change is not None and change.status["nodeName"] == "one" and change.labels == {steps.TARGET_LABEL: None}
    state = change.status["migrationState"]
    assert (state["failureReason"], state["abortStatus"], state["failed"]) == ("no luck", "Succeeded", True)
    other = _view("Pending", _instance(migrationState={"migrationUid": "another"}))
    assert steps.instance_change(other, steps.failed(other, "no luck", NOW)) is None


@pytest.mark.parametrize(
    ("instance", "why"),
    [
        (None, "does not exist"),
        (_instance(phase="Failed"), "has ended"),
        ({"metadata": {"deletionTimestamp": NOW}, "status": RUNS}, "has ended"),
        (_instance(conditions=[{"type": "LiveMigratable", "status": "False", "reason": "X", "message": "y"}]), "cannot move: X: y"),
        (_instance(migrationState={"migrationUid": "other"}), "is under way"),
        (_instance(migrationState={"migrationUid": "other", "completed": True}), ""),
        (_instance(migrationState={"migrationUid": "uid"}), ""),
        (_instance(), ""),
    ],
)
def test_what_is_in_the_way(instance: dict[str, Any] | None, why: str) -> None:
    said = steps.obstacle(_view("Scheduling", instance))
    assert why in said and bool(why) == bool(said)
