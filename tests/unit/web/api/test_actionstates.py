"""Which verbs a machine has, and why it has not the others."""

import pytest

from paddock.base.jsondata import Data
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines.finding import MachineView
from paddock.web.api import actionstates
from paddock.web.live import verbs
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD, VITISTACK
from tests.unit.fleet.machines.examples import stakater, virtrigaud, vitistack, vm, vmi

RUNNING = vmi(phase="Running", conditions=[{"type": "Ready", "status": "True"}])
PAUSED = vmi(phase="Running", conditions=[{"type": "Paused", "status": "True"}])
SUSPENDED = vmi(phase="Running", conditions=[{"type": "Suspended", "status": "True"}])
OFF = {**vm(), "spec": {"runStrategy": "Halted"}}
PROTECTED = {**OFF, "metadata": {**OFF["metadata"], "labels": {"kubevirt.io/vm-delete-protection": "True"}}}
GOING = {**vm(), "metadata": {**vm()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def view(kind: object, data: Data, made: Data | None = None, instance: Data | None = None) -> MachineView:
    return MachineView(kind=kind, data=data, vm=made, vmi=instance)  # type: ignore[arg-type]


MACHINES = {
    "running": (view(VM, vm(), vm(), RUNNING), {"stop", "restart", "pause", "suspend", "reset", "snapshot", "clone", "protect", "delete"}),
    "paused": (view(VM, vm(), vm(), PAUSED), {"stop", "restart", "unpause", "suspend", "reset", "snapshot", "clone", "protect", "delete"}),
    "suspended": (view(VM, vm(), vm(), SUSPENDED), {"resume", "protect", "delete"}),
    "off": (view(VM, OFF, OFF), {"start", "snapshot", "clone", "protect", "delete"}),
    # It fails again and again: only a stop ends that.
    "crashing": (view(VM, vm(), vm()), {"start", "stop", "snapshot", "clone", "protect", "delete"}),
    "protected": (view(VM, PROTECTED, PROTECTED), {"start", "snapshot", "clone", "unprotect"}),
    "going": (view(VM, GOING, GOING, RUNNING), set()),
    "bare": (view(VMI, RUNNING, None, RUNNING), {"pause", "reset", "protect", "delete"}),
    "stakater without a machine": (view(STAKATER, stakater(runStrategy="Halted")), {"start", "protect", "delete"}),
    "vitistack": (
        view(VITISTACK, vitistack(), vm(), RUNNING),
        {"stop", "restart", "pause", "suspend", "reset", "snapshot", "clone", "protect", "delete"},
    ),
    "elsewhere": (
        view(VIRTRIGAUD, {**virtrigaud(power="On", id="7"), "status": {"id": "7", "powerState": "On"}}),
        {"stop", "restart", "snapshot", "clone", "protect", "delete"},
    ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_verbs(name: str) -> None:
    machine, expected = MACHINES[name]
    found = actionstates.states(machine, [], can_suspend=True)
    assert {each.verb for each in found if each.allowed} == expected
    assert all(each.allowed is (each.reason == "") for each in found)
    assert {each.verb for each in found} == {*actionstates.REASONS, "restore"}


@pytest.mark.parametrize("name", [each for each in MACHINES if each != "crashing"])
def test_the_row_of_the_list_offers_nothing_else(name: str) -> None:
    machine, expected = MACHINES[name]
    # A row knows no snapshots, so that it offers restores to try.
    assert set(verbs.of(machine)) - {"restore", "snapshot", "clone"} <= expected
