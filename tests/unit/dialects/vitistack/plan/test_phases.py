"""The phases of a machine: every pair of them."""

import pytest

from paddock.dialects.vitistack.kinds.machinespec import PHASES
from paddock.dialects.vitistack.plan.phases import NEXT, step

# Where a machine is said to be next (down: where it is; across: Pending, Creating, Running, Stopped, Failed).
STEPS = {
    "": "Pending Pending Pending Pending Pending",
    "Pending": "Pending Creating Creating Creating Failed",
    "Creating": "Creating Creating Running Running Failed",
    "Running": "Running Running Running Stopped Failed",
    "Stopped": "Stopped Stopped Running Stopped Failed",
    "Failed": "Failed Failed Failed Failed Failed",
}


@pytest.mark.spec("vitistack", 62)
@pytest.mark.parametrize("before", STEPS)
def test_each_step_is_the_documents(before: str) -> None:
    found = [step(before, target) for target in PHASES]
    assert found == STEPS[before].split()
    assert all(after == before or after in NEXT[before] for after in found)


def test_the_table_has_every_phase() -> None:
    assert NEXT.keys() == {"", *PHASES}


@pytest.mark.parametrize("target", PHASES)
def test_a_failed_machine_begins_again_at_pending(target: str) -> None:
    assert step("Failed", target, restarts=True) == "Pending"
