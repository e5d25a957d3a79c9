"""The next steps of a machine: tables, back-off, and machines that live through anything that may happen to them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta import failure, patch
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import StartFailure, VirtualMachine
from paddock.kubevirt.plan.machine import lifecycle, runrequests
from paddock.kubevirt.plan.machine.runstrategy import STEPS, InstanceState, RunStep, RunStrategy, next_step, strategy_of

NOW = 1_800_000_000.0


def machine(strategy: str, status: dict[str, Any] | None = None) -> VirtualMachine:
    data: dict[str, Any] = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "uid": "vm", "resourceVersion": "1"},
        "spec": {"runStrategy": strategy, "template": {"spec": {"domain": {"devices": {}}}}},
        "status": status or {},
    }
    return from_data(data, VirtualMachine)


def instance(phase: str, *, uid: str = "run", going: bool = False, ran: bool = True) -> VirtualMachineInstance:
    data: dict[str, Any] = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "web", "uid": uid, **({"deletionTimestamp": "now"} if going else {})},
        "spec": {"domain": {"devices": {}}},
        "status": {"phase": phase, "phaseTransitionTimestamps": [{"phase": "Running"}] if ran else []},
    }
    return from_data(data, VirtualMachineInstance)


def test_every_strategy_says_something_of_every_life() -> None:
    assert {(strategy, life) for strategy in STEPS for life in STEPS[strategy]} == {
        (s, life) for s in RunStrategy for life in InstanceState
    }
    for strategy in RunStrategy:
        for life in InstanceState:
            assert next_step(strategy, life, before=None) in RunStep


@pytest.mark.parametrize(("before", "step"), [(None, RunStep.START), ("Halted", RunStep.START), ("RerunOnFailure", RunStep.KEEP)])
def test_a_machine_that_is_new_to_rerun_starts(before: str | None, step: RunStep) -> None:
    assert lifecycle.decide(machine("RerunOnFailure", {"runStrategy": before} if before else {}), None).step is step


@pytest.mark.parametrize(
    ("requests", "found", "left"),
    [
        ([{"action": "Stop", "uid": "run"}], None, 0),
        ([{"action": "Stop", "uid": "other"}], instance("Running"), 0),
        ([{"action": "Stop", "uid": "run"}], instance("Running"), 1),
        ([{"action": "Start"}], instance("Running"), 0),
        ([{"action": "Start"}], instance("Running", going=True), 1),
        ([{"action": "Start"}], instance("Failed"), 1),
        ([{"action": "Start"}], None, 1),
        ([{"action": "Stop", "uid": "old"}, {"action": "Start"}], instance("Running", uid="new"), 0),
        ([{"action": "Stop", "uid": "run"}, {"action": "Start"}], instance("Running"), 2),
    ],
)
def test_requests_that_are_fulfilled_go(requests: list[dict[str, Any]], found: VirtualMachineInstance | None, left: int) -> None:
    assert len(lifecycle.decide(machine("Manual", {"stateChangeRequests": requests}), found).requests) == left


def test_the_request_for_a_rerun_is_written_before_anything_is_deleted() -> None:
    decision = lifecycle.decide(machine("RerunOnFailure", {"runStrategy": "RerunOnFailure"}), instance("Failed"))
    assert decision.step is RunStep.KEEP and [each.action for each in decision.requests] == ["Start"]
    asked = {"runStrategy": "RerunOnFailure", "stateChangeRequests": [{"action": "Start"}]}
    assert lifecycle.decide(machine("RerunOnFailure", asked), instance("Failed")).step is RunStep.STOP
    # Deleted by a user, then killed: nobody asked for another.
    gone = lifecycle.decide(machine("RerunOnFailure", {"runStrategy": "RerunOnFailure"}), instance("Failed", going=True))
    assert gone == lifecycle.LifecycleDecision(RunStep.KEEP)


def test_a_paused_start_of_a_halted_machine_changes_its_strategy_first() -> None:
    request = {"stateChangeRequests": [{"action": "Start", "data": {"paused": "true"}}]}
    assert lifecycle.decide(machine("Halted", request), None).becomes is RunStrategy.ALWAYS
    decision = lifecycle.decide(machine("Always", request), None)
    assert decision.step is RunStep.START and decision.paused


@given(st.integers(1, 1000), st.floats(0, 1))
def test_pauses_grow_and_end(failures: int, chance: float) -> None:
    pause = lifecycle.pause_seconds(failures, chance)
    plain = min(300.0, 10.0 * failures**2)
    assert plain <= pause <= min(300.0, plain * 1.5)


@pytest.mark.parametrize("strategy", RunStrategy)
def test_failed_starts_are_counted_where_they_count(strategy: RunStrategy) -> None:
    counted = strategy in (RunStrategy.ALWAYS, RunStrategy.RERUN, RunStrategy.ONCE)
    first = lifecycle.start_failure(machine(strategy), instance("Failed", ran=False), NOW, 0.0)
    assert (first is not None and first.consecutiveFailCount == 1) == counted
    if first is None:
        return
    assert lifecycle.held_seconds(first, NOW) == 10.0 and lifecycle.held_seconds(first, NOW + 11) == 0.0
    known = machine(strategy, {"startFailure": to_data(first)})
    assert lifecycle.start_failure(known, instance("Failed", ran=False), NOW, 0.0) == first
    again = lifecycle.start_failure(known, instance("Failed", uid="next", ran=False), NOW, 1.0)
    assert again is not None and again.consecutiveFailCount == 2 and lifecycle.held_seconds(again, NOW) == 60.0
    assert lifecycle.start_failure(known, None, NOW, 0.0) == first
    assert lifecycle.start_failure(known, instance("Scheduled", uid="next", ran=False), NOW, 0.0) == first
    assert lifecycle.start_failure(known, instance("Running", uid="next"), NOW, 0.0) is None
    assert lifecycle.start_failure(known, instance("Failed", uid="next"), NOW, 0.0) is None
    assert lifecycle.is_failing(known, first, None) and not lifecycle.is_failing(known, first, instance("Running"))


def test_no_failure_holds_nothing() -> None:
    assert lifecycle.held_seconds(None, NOW) == lifecycle.held_seconds(StartFailure(), NOW) == 0.0


EVENTS = ("start", "stop", "restart", "shutdown", "crash", "delete", *(f"become {each}" for each in list(RunStrategy)[:5]))


@given(st.sampled_from(list(RunStrategy)[:5]), st.lists(st.sampled_from(EVENTS), max_size=12))
def test_whatever_happens_a_machine_comes_to_rest(strategy: RunStrategy, events: list[str]) -> None:
    world = _World(strategy)
    world.settle()
    for event in events:
        world.happen(event)
        world.settle()
    runs, now = world.instance is not None and world.phase == "Running", strategy_of(world.machine().spec)
    assert not world.requests
    if now is RunStrategy.ALWAYS:
        assert runs
    if now is RunStrategy.HALTED:
        assert world.instance is None


class _World:
    """A machine, its instance and a controller that does what is decided, in a few lines."""

    def __init__(self, strategy: RunStrategy) -> None:
        self.strategy, self.before, self.requests = str(strategy), "", [{"action": "Stop", "uid": "none"}]
        self.instance: str | None = None
        self.phase, self.count = "", 0

    def machine(self) -> VirtualMachine:
        return machine(self.strategy, {"runStrategy": self.before or None, "stateChangeRequests": self.requests})

    def seen(self) -> VirtualMachineInstance | None:
        return None if self.instance is None else instance(self.phase, uid=self.instance)

    def settle(self) -> None:
        for _ in range(10):
            decision = lifecycle.decide(self.machine(), self.seen())
            was = (self.instance, self.strategy, self.requests)
            self.requests = [to_data(each) for each in decision.requests]
            if decision.becomes is not None:
                self.strategy = str(decision.becomes)
            elif decision.step is RunStep.STOP:
                self.instance = None
            elif decision.step is RunStep.START:
                self.count += 1
                self.instance, self.phase = f"run-{self.count}", "Running"
            self.before = self.strategy
            if was == (self.instance, self.strategy, self.requests):
                return
        raise AssertionError("it does not come to rest")

    def happen(self, event: str) -> None:
        if event in ("start", "stop", "restart"):
            try:
                change = getattr(runrequests, event)(self.machine(), self.seen())
            except failure.Failure:
                return
            data = to_data(self.machine())
            data.setdefault("status", {})
            made = patch.apply_json_patch(patch.apply_json_patch(data, list(change.machine)), list(change.status))
            self.strategy, self.requests = made["spec"]["runStrategy"], made["status"].get("stateChangeRequests") or []
        elif event.startswith("become"):
            self.strategy = event.partition(" ")[2]
        elif self.instance is not None and event == "delete":
            self.instance = None
        elif self.instance is not None:
            self.phase = {"shutdown": "Succeeded", "crash": "Failed"}[event]


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual", "Once", "Halted"])
@pytest.mark.parametrize("status", [None, {"stateChangeRequests": [{"action": "Start"}]}])
def test_a_fenced_machine_does_not_start(strategy: str, status: dict[str, Any] | None) -> None:
    fenced = machine(strategy, status)
    fenced = msgspec.structs.replace(
        fenced, metadata=msgspec.structs.replace(fenced.metadata, annotations={"paddock.dev/fence": "it moves"})
    )
    found = lifecycle.decide(fenced, None)
    assert (found.step, found.becomes, found.requests) == (RunStep.KEEP, None, ())
    with pytest.raises(failure.Failure, match="VM is fenced and cannot be started: it moves"):
        runrequests.start(fenced, None)
    # It is still stopped.
    assert lifecycle.decide(fenced, instance("Running")).step is (RunStep.STOP if strategy == "Halted" else RunStep.KEEP)
