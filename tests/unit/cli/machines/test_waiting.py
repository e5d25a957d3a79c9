"""The states of machines that commands wait for."""

import pytest

from paddock.cli.machines import waiting
from paddock.cli.machines.finding import MachineView
from paddock.cli.machines.kinds import VM
from tests.unit.cli.machines.examples import vm, vmi


@pytest.mark.parametrize(
    ("phase", "deleted", "stopped"),
    [
        ("Running", False, False),
        ("Running", True, False),
        ("Succeeded", False, True),
        # A restore that came now would find an instance.
        ("Succeeded", True, False),
        ("Failed", True, False),
    ],
)
def test_a_machine_has_stopped_when_its_instance_is_not_on_its_way_out(phase: str, deleted: bool, stopped: bool) -> None:
    machine, run = vm(), vmi(phase=phase)
    if deleted:
        run["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert waiting.is_stopped(MachineView(kind=VM, data=machine, vm=machine, vmi=run)) is stopped


def test_without_an_instance_it_has_stopped() -> None:
    machine = vm()
    assert waiting.is_stopped(MachineView(kind=VM, data=machine, vm=machine))
    assert waiting.is_stopped(None)
