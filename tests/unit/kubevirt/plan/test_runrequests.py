"""start, stop, restart and migrate: table 2.4 of docs/spec/kubevirt.md, every strategy in every situation."""

from typing import Any

import pytest

from paddock.kubernetes.meta import failure, patch
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import runrequests
from paddock.kubevirt.plan.machine.runstrategy import RunStrategy

STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted", "Once")
PHASES = ("none", "Running", "Succeeded", "Failed")


def machine(strategy: str | bool, status: dict[str, Any] | None = None) -> VirtualMachine:
    said = {"running": strategy} if isinstance(strategy, bool) else {"runStrategy": strategy}
    data = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {**said, "template": {"spec": {"domain": {"devices": {}}}}},
    }
    if status is not None:
        data["status"] = status
    return from_data(data, VirtualMachine)


def instance(phase: str, grace: int | None = 30) -> VirtualMachineInstance | None:
    if phase == "none":
        return None
    spec: dict[str, Any] = {"domain": {"devices": {}}}
    if grace is not None:
        spec["terminationGracePeriodSeconds"] = grace
    data = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web", "uid": "run-1"}, "spec": spec}
    return from_data({**data, "status": {"phase": phase}}, VirtualMachineInstance)


def came_to(machine: VirtualMachine, change: runrequests.RunPatches) -> str:
    """Return a change's effect on the machine, in short."""
    data = to_data(machine)
    if change.machine:
        spec = patch.apply_json_patch(data, list(change.machine))["spec"]
        return f"strategy {spec.get('runStrategy', spec.get('running'))}"
    if not change.status:
        return "instance only"
    status = patch.apply_json_patch(data, list(change.status))["status"]
    return "+".join(each["action"] for each in status["stateChangeRequests"])


def outcome(verb: str, strategy: str | bool, phase: str, **options: Any) -> str:
    asked = machine(strategy)
    try:
        return came_to(asked, getattr(runrequests, verb)(asked, instance(phase), **options))
    except failure.Failure as said:
        why = said.message.rpartition('web": ')[2]
        return f"{said.code} {why}"


NOT_MANUAL = "409 {} does not support manual start requests"
LIVE = "409 VM is already running"
DOWN = "409 VM is not running"
NO_RESTART = "409 RunStategy Halted does not support manual restart requests"
TABLE: dict[str, dict[str, tuple[str, str, str, str]]] = {
    # of PHASES in order
    "start": {
        "Always": (NOT_MANUAL.format("Always"), LIVE, NOT_MANUAL.format("Always"), NOT_MANUAL.format("Always")),
        "RerunOnFailure": ("Start", LIVE, "Stop+Start", "409 RerunOnFailure does not support starting VM from failed state"),
        "Manual": ("Start", LIVE, "Stop+Start", "Stop+Start"),
        "Halted": ("strategy Always", LIVE, "strategy Always", "strategy Always"),
        "Once": (NOT_MANUAL.format("Once"), LIVE, NOT_MANUAL.format("Once"), NOT_MANUAL.format("Once")),
    },
    "stop": {
        "Always": ("strategy Halted",) * 4,
        "RerunOnFailure": (DOWN, "Stop", DOWN, DOWN),
        "Manual": (DOWN, "Stop", DOWN, DOWN),
        "Halted": (DOWN, "409 Halted only supports manual stop requests with a shorter graceperiod", DOWN, DOWN),
        "Once": ("strategy Halted",) * 4,
    },
    "restart": {
        **dict.fromkeys(("Always", "RerunOnFailure", "Manual"), ("409 VM is not running: Halted", *("Stop+Start",) * 3)),
        **dict.fromkeys(("Halted", "Once"), (NO_RESTART,) * 4),
    },
}
ROWS = [(verb, strategy, index) for verb in TABLE for strategy in STRATEGIES for index in range(len(PHASES))]


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize(("verb", "strategy", "index"), ROWS)
def test_the_table(verb: str, strategy: str, index: int) -> None:
    assert outcome(verb, strategy, PHASES[index]) == TABLE[verb][strategy][index]


@pytest.mark.spec("kubevirt", 14)
def test_running_is_the_strategy_in_another_form() -> None:
    assert outcome("start", False, "none") == "strategy True"
    assert outcome("stop", True, "Running") == "strategy False"
    assert outcome("start", True, "none") == NOT_MANUAL.format("Always")


def test_a_halted_machine_is_started_paused_by_a_request() -> None:
    change = runrequests.start(machine("Halted"), None, paused=True)
    assert change.status[-1]["value"] == [{"action": "Start", "data": {"paused": "true"}}]
    assert not change.machine


def test_a_stop_names_the_instance_it_means() -> None:
    change = runrequests.stop(machine("Manual"), instance("Running"))
    assert change.status[-1]["value"] == [{"action": "Stop", "uid": "run-1"}]


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_a_second_request_while_one_waits(verb: str) -> None:
    waiting = machine("Manual", {"stateChangeRequests": [{"action": "Start"}]})
    with pytest.raises(failure.Failure) as said:
        getattr(runrequests, verb)(waiting, instance("Succeeded"))
    assert said.value.code == 500
    assert "unable to complete request: stop/start already underway" in said.value.message


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
@pytest.mark.parametrize(("phase", "queued"), [("Succeeded", "Stop+Start"), ("none", "Start")])
def test_a_start_goes_behind_the_stop_of_a_guest_that_is_down(strategy: str, phase: str, queued: str) -> None:
    """Nobody who has read Stopped is refused because the last write of the stop is not there yet."""
    waiting = machine(strategy, {"stateChangeRequests": [{"action": "Stop", "uid": "run-1"}]})
    assert came_to(waiting, runrequests.start(waiting, instance(phase))) == queued


def test_a_lone_stop_takes_the_place_of_what_waits() -> None:
    waiting = machine("Manual", {"stateChangeRequests": [{"action": "Stop", "uid": "run-1"}, {"action": "Start"}]})
    change = runrequests.stop(waiting, instance("Running"))
    assert change.status[0] == {
        "op": "test",
        "path": "/status/stateChangeRequests",
        "value": [{"action": "Stop", "uid": "run-1"}, {"action": "Start"}],
    }
    assert came_to(waiting, change) == "Stop"


@pytest.mark.parametrize(
    ("verb", "strategy", "phase"), [("start", "Halted", "none"), ("stop", "Always", "none"), ("start", "Manual", "none")]
)
@pytest.mark.spec("kubevirt", 21)
def test_requests_forget_failed_starts(verb: str, strategy: str, phase: str) -> None:
    failing = machine(strategy, {"startFailure": {"consecutiveFailCount": 3}})
    change = getattr(runrequests, verb)(failing, instance(phase))
    assert {"op": "remove", "path": "/status/startFailure"} in change.status


def test_a_shorter_grace() -> None:
    change = runrequests.stop(machine("Halted"), instance("Running"), grace_seconds=0)
    grace = "/spec/terminationGracePeriodSeconds"
    assert change == runrequests.RunPatches(
        instance=({"op": "test", "path": grace, "value": 30}, {"op": "replace", "path": grace, "value": 0})
    )
    assert outcome("stop", "Halted", "Running", grace_seconds=30).startswith("409 Halted only supports")
    assert outcome("stop", "Always", "Running", grace_seconds=-1).startswith("400")
    added = runrequests.stop(machine("Always"), instance("Running", None), grace_seconds=5)
    assert added.instance == ({"op": "add", "path": grace, "value": 5},)
    assert added.machine


def test_a_forced_restart_leaves_one_second() -> None:
    change = runrequests.restart(machine("Always"), instance("Running"), grace_seconds=0)
    assert change.instance[-1]["value"] == 1
    assert outcome("restart", "Always", "Running", grace_seconds=5) == "400 For force restart, only gracePeriod=0 is supported for now"
    assert outcome("restart", "Always", "Running", grace_seconds=-5).startswith("400")


def test_a_lost_race_fails_the_patch() -> None:
    change = runrequests.start(machine("Halted"), None)
    with pytest.raises(patch.BadPatch):
        patch.apply_json_patch(to_data(machine("Manual")), list(change.machine))
    queued = runrequests.start(machine("Manual"), None)
    later = to_data(machine("Manual"))
    later["metadata"]["resourceVersion"] = "8"
    with pytest.raises(patch.BadPatch):
        patch.apply_json_patch(later, list(queued.status))
    assert runrequests.failed_test(machine("Manual")).code == 409


def test_a_migration_carries_the_label_by_which_it_is_cancelled() -> None:
    made = runrequests.migrate(machine("Always"), instance("Running"), {"zone": "b"})
    assert made["metadata"]["labels"] == {"kubevirt.io/vmi-name": "web"}
    assert made["spec"] == {"vmiName": "web", "addedNodeSelector": {"zone": "b"}}
    with pytest.raises(failure.Failure, match="VM is not running"):
        runrequests.migrate(machine("Always"), None)


def test_every_strategy_is_decided() -> None:
    for strategy in RunStrategy:
        for verb in ("start", "stop", "restart"):
            for phase in PHASES:
                assert outcome(verb, strategy, phase)


# --- suspension -----------------------------------------------------------------------------------------------------------


def _suspended(phase: str = "Running", *, wished: bool = True, on_disk: bool = True) -> VirtualMachineInstance:
    found = instance(phase)
    assert found is not None
    data = to_data(found)
    data["metadata"] = {**data["metadata"], "resourceVersion": "9", "annotations": {"kept": "1"}}
    if wished:
        data["metadata"]["annotations"]["paddock.dev/suspended"] = "true"
    data["status"]["conditions"] = [{"type": "Suspended", "status": "True" if on_disk else "False"}]
    return from_data(data, VirtualMachineInstance)


def _annotations(found: VirtualMachineInstance, change: runrequests.RunPatches) -> dict[str, str]:
    annotations: dict[str, str] = patch.apply_json_patch(to_data(found), list(change.instance))["metadata"]["annotations"]
    return annotations


def test_a_suspension_is_a_wish_of_the_instance() -> None:
    awake = _suspended(wished=False, on_disk=False)
    assert _annotations(awake, runrequests.suspend(machine("Always"), awake)) == {"kept": "1", "paddock.dev/suspended": "true"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("wished", "on_disk"), [(True, True), (True, False), (False, True)])
def test_a_start_and_a_resume_take_it_back(strategy: str, wished: bool, on_disk: bool) -> None:
    asleep = _suspended(wished=wished, on_disk=on_disk)
    for verb in (runrequests.start, runrequests.resume):
        change = verb(machine(strategy), asleep)
        assert _annotations(asleep, change) == {"kept": "1"}
        assert bool(change.machine) is (strategy == "Halted" and verb is runrequests.start) and not change.status


@pytest.mark.parametrize(
    ("verb", "asleep", "why"),
    [
        ("suspend", None, "VM is not running"),
        ("suspend", instance("Scheduled"), "VM is not running"),
        ("resume", None, "VM is not suspended"),
        ("resume", instance("Running"), "VM is not suspended"),
        ("resume", _suspended("Failed"), "VM is not suspended"),
        ("stop", _suspended(), "VM cannot be stopped: VM is suspended to disk"),
        ("stop", _suspended(on_disk=False), "VM cannot be stopped: VM is suspended to disk"),
        ("restart", _suspended(wished=False), "VM cannot be restarted: VM is suspended to disk"),
    ],
)
def test_what_a_suspended_machine_refuses(verb: str, asleep: VirtualMachineInstance | None, why: str) -> None:
    with pytest.raises(failure.Failure) as caught:
        getattr(runrequests, verb)(machine("Always"), asleep)
    assert caught.value.code == 409 and why in caught.value.message


def test_no_suspension_in_the_middle_of_a_snapshot() -> None:
    with pytest.raises(failure.Failure, match="until snapshot s is taken"):
        runrequests.suspend(machine("Always", {"snapshotInProgress": "s"}), _suspended(wished=False, on_disk=False))
