"""The condition Suspended, and what else a suspension does to a status."""

import pytest
from msgspec.structs import replace

from paddock.engine.machine.observation import Observation, RunEnd, SuspendedState
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.observed import ObservedInstance
from paddock.kubevirt.plan.instance.report import status_of
from paddock.kubevirt.plan.instance.suspension import condition, is_suspended, is_wished

ON_DISK = Observation("suspended", end=RunEnd("saved"), suspended=SuspendedState(1_800_000_000.0, 38 << 20))
FAILED = replace(ON_DISK, end=RunEnd("never-started", "its disk /d was written since"))


@pytest.mark.parametrize(
    ("observed", "refusal", "wished", "ran", "expected"),
    [
        (None, "", True, True, None),
        (Observation("running"), "", False, True, None),
        (Observation("starting"), "", False, False, None),
        (Observation("running"), "", True, True, ("False", "Suspending")),
        (Observation("running"), "it has a LUN", False, True, ("False", "SuspendFailed")),
        (Observation("running"), "it has a LUN", True, True, ("False", "Suspending")),
        (ON_DISK, "", True, True, ("True", "SavedToDisk")),
        (ON_DISK, "", False, True, ("True", "SavedToDisk")),
        (FAILED, "", True, True, ("True", "SavedToDisk")),
        (FAILED, "", False, True, ("True", "ResumeFailed")),
        (Observation("queued"), "", False, True, ("True", "Resuming")),
        (Observation("starting"), "", False, True, ("True", "Resuming")),
        (Observation("stopping"), "", False, True, None),
        (Observation("ended"), "", True, True, None),
    ],
)
def test_the_condition(observed: Observation | None, refusal: str, wished: bool, ran: bool, expected: tuple[str, str] | None) -> None:
    found = condition(observed, refusal, wished=wished, ran=ran)
    assert (None if found is None else (found.status, found.reason)) == expected


def test_its_message_has_the_time_the_size_and_the_reason() -> None:
    found = condition(FAILED, "", wished=False, ran=True)
    assert found is not None
    said = "the memory of the guest is on disk since 2027-01-15T08:00:00Z (38 MiB); it cannot be resumed: its disk /d was written since"
    assert found.message == said


@pytest.mark.parametrize(("annotations", "expected"), [(None, False), ({}, False), ({"paddock.dev/suspended": "true"}, True)])
def test_the_wish(annotations: dict[str, str] | None, expected: bool) -> None:
    assert is_wished(annotations) is expected


def _instance() -> VirtualMachineInstance:
    data = {"metadata": {"name": "web", "uid": "u"}, "spec": {"domain": {"devices": {}}}, "status": {"phase": "Running"}}
    return from_data({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", **data}, VirtualMachineInstance)


@pytest.mark.parametrize(("observed", "ready"), [(ON_DISK, "False"), (Observation("starting"), "False"), (Observation("running"), "True")])
def test_a_suspended_machine_is_not_ready_and_its_phase_stays(observed: Observation, ready: str) -> None:
    told = condition(observed, "", wished=False, ran=True)
    status = status_of(_instance(), ObservedInstance(now="2027-01-15T08:00:00Z", node="host", observed=observed, suspension=told))
    by_type = {each.type: each for each in status.conditions or ()}
    assert status.phase == "Running" and by_type["Ready"].status == ready
    assert is_suspended(from_data({**_data(), "status": {"conditions": []}}, VirtualMachineInstance)) is False


def _data() -> dict[str, object]:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "w"},
        "spec": {"domain": {"devices": {}}},
    }


def test_while_it_is_written_nobody_has_paused_it() -> None:
    observed = Observation("running", still=True)
    for wished, ready in ((True, "False"), (False, "True")):
        told = condition(observed, "", wished=wished, ran=True)
        status = status_of(_instance(), ObservedInstance(now="2027-01-15T08:00:00Z", node="host", observed=observed, suspension=told))
        by_type = {each.type: each.status for each in status.conditions or ()}
        assert "Paused" not in by_type and by_type["Ready"] == ready
