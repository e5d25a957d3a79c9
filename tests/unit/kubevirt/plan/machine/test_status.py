"""The time that the status of a machine may wait for the next one."""

from typing import Any

import pytest

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.virtualmachine import StartFailure, StateChangeRequest, VirtualMachineStatus
from paddock.kubevirt.plan.machine.status import rest_seconds


def _status(word: str, **more: Any) -> VirtualMachineStatus:
    return VirtualMachineStatus(printableStatus=word, **more)


READY, FAILURE = Condition(type="Ready", status="False"), Condition(type="Failure", status="True")
STARTS = _status("Starting", created=True, runStrategy="Always", observedGeneration=1, conditions=[READY])


@pytest.mark.parametrize(
    ("before", "now", "seconds"),
    [
        pytest.param(None, STARTS, 0.05, id="the first status of one that starts"),
        pytest.param(_status("WaitingForVolumeBinding", runStrategy="Always"), STARTS, 0.05, id="a step on its way"),
        pytest.param(_status("Starting", created=True, runStrategy="Always", observedGeneration=1), STARTS, 1.0, id="its conditions alone"),
        pytest.param(STARTS, _status("Running"), 0.0, id="it runs"),
        pytest.param(None, _status("Provisioning"), 0.0, id="its disks take their time"),
        pytest.param(None, _status("ErrorUnschedulable"), 0.0, id="it has a problem"),
        pytest.param(_status("Stopped", runStrategy="Always"), STARTS, 0.0, id="somebody starts it"),
        pytest.param(None, _status("Starting", conditions=[FAILURE]), 0.0, id="a failure"),
        pytest.param(None, _status("Starting", startFailure=StartFailure(consecutiveFailCount=1)), 0.0, id="a start that failed"),
        pytest.param(
            _status("Starting", runStrategy="Always", stateChangeRequests=[StateChangeRequest(action="Start")]),
            _status("Starting", runStrategy="Always", created=True),
            0.0,
            id="a request that is done",
        ),
        pytest.param(_status("Starting", runStrategy="Manual"), STARTS, 0.0, id="another strategy"),
    ],
)
def test_what_a_machine_is_for_a_moment_may_wait(before: VirtualMachineStatus | None, now: VirtualMachineStatus, seconds: float) -> None:
    assert rest_seconds(before, now) == seconds
