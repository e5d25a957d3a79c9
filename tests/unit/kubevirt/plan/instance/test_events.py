"""The events that follow from a change of an instance's status."""

import pytest

from paddock.engine.machine.observation import Observation, RunEnd
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance.events import events_between

READY = Condition(type="Ready", status="True")
HANGS = Condition(type="Ready", status="False", reason="GuestNotResponding", message="It hangs.")


def status(phase: str = "Running", *conditions: Condition) -> VirtualMachineInstanceStatus:
    return VirtualMachineInstanceStatus(phase=phase, conditions=list(conditions))


def events(before: VirtualMachineInstanceStatus, after: VirtualMachineInstanceStatus, end: RunEnd | None = None) -> list[tuple[str, ...]]:
    observed = None if end is None else Observation(phase="ended", end=end)
    return [(each.kind, each.reason, each.note) for each in events_between(before, after, observed)]


def test_a_status_that_stays_has_no_events() -> None:
    failed = Condition(type="Synchronized", status="False", message="no")
    assert events(status("Running", HANGS, failed), status("Running", HANGS, failed)) == []


def test_a_start_has_two() -> None:
    assert [each[1] for each in events(status("Scheduled"), status())] == ["Created", "Started"]


@pytest.mark.parametrize(
    ("end", "event"),
    [
        (RunEnd("guest-shutdown"), ("Normal", "Stopped", "The VirtualMachineInstance was shut down.")),
        (RunEnd("killed", "stopped"), ("Normal", "Deleted", "Signaled Deletion")),
        (RunEnd("panicked"), ("Warning", "Stopped", "The VirtualMachineInstance crashed.")),
        (RunEnd("crashed", "signal 9"), ("Warning", "Stopped", "The VirtualMachineInstance crashed. crashed: signal 9")),
    ],
)
def test_an_end_has_one_with_its_cause(end: RunEnd, event: tuple[str, ...]) -> None:
    assert events(status(), status("Failed"), end) == [event]
    assert events(status("Failed"), status("Failed"), end) == []


def test_a_fault_has_one_and_its_end_another() -> None:
    assert events(status("Running", READY), status("Running", HANGS)) == [("Warning", "GuestNotResponding", "It hangs.")]
    assert events(status("Running", HANGS), status("Running", READY)) == [("Normal", "GuestResponding", "The guest can be used again.")]


def test_credentials_have_one_when_their_condition_changes() -> None:
    kept, failed = (Condition(type="AccessCredentialsSynchronized", status=word) for word in ("True", "False"))
    assert [each[:2] for each in events(status(), status("Running", kept))] == [("Normal", "AccessCredentialsSyncSuccess")]
    assert [each[:2] for each in events(status("Running", kept), status("Running", failed))] == [("Warning", "AccessCredentialsSyncFailed")]
