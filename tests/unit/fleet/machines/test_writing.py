"""Wishes in the words of each dialect."""

from typing import Any

import pytest

from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines import writing
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.writing import CannotWrite
from paddock.kubevirt.plan.changes.adapters import Power
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD, VITISTACK
from tests.unit.fleet.machines.examples import Data, stakater, virtrigaud, vitistack, vm, vmi

VERB = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/web/"
POWER = "vitistack.io/power-state"


def of_vm(**spec: Any) -> MachineView:
    return MachineView(kind=VM, data=vm(**spec), vm=vm(**spec))


def of_stakater(strategy: str = "") -> MachineView:
    return MachineView(kind=STAKATER, data=stakater(**({"runStrategy": strategy} if strategy else {})), vm=vm())


@pytest.mark.parametrize(
    ("machine", "wish", "force", "path", "document", "text"),
    [
        (of_vm(runStrategy="Halted"), "start", False, "start", {}, "spec.runStrategy: Halted -> Always"),
        (of_vm(), "stop", False, "stop", {}, "spec.runStrategy: Always -> Halted"),
        (of_vm(), "stop", True, "stop", {"gracePeriod": 0}, "spec.runStrategy: Always -> Halted"),
        (of_vm(running=False), "start", False, "start", {}, "spec.running: false -> true"),
        (of_vm(runStrategy="Manual"), "stop", False, "stop", {}, "status.stateChangeRequests: a request to stop"),
        (of_stakater("Manual"), "start", False, "start", {}, "a request to start; runStrategy Manual stays"),
        (of_stakater("Manual"), "stop", True, "stop", {"gracePeriod": 0}, "a request to stop; runStrategy Manual stays"),
        (of_stakater("RerunOnFailure"), "start", False, "start", {}, "a request to start; runStrategy RerunOnFailure stays"),
    ],
)
def test_subresources(machine: MachineView, wish: Power, force: bool, path: str, document: Data, text: str) -> None:
    found = writing.power(machine, wish, force=force)
    assert (found.path, found.document, found.text, found.target) == (VERB + path, document, text, None)


@pytest.mark.parametrize(
    ("machine", "wish", "force", "document"),
    [
        (of_stakater(), "stop", False, {"spec": {"parameters": {"runStrategy": "Halted"}}}),
        (of_stakater("Halted"), "start", False, {"spec": {"parameters": {"runStrategy": "RerunOnFailure"}}}),
        (MachineView(kind=VIRTRIGAUD, data=virtrigaud()), "stop", False, {"spec": {"powerState": "OffGraceful"}}),
        (MachineView(kind=VIRTRIGAUD, data=virtrigaud()), "stop", True, {"spec": {"powerState": "Off"}}),
        (MachineView(kind=VIRTRIGAUD, data=virtrigaud(power="Off")), "start", False, {"spec": {"powerState": "On"}}),
        (MachineView(kind=VITISTACK, data=vitistack()), "stop", False, {"metadata": {"annotations": {POWER: "stopped"}}}),
        (MachineView(kind=VITISTACK, data=vitistack()), "start", False, {"metadata": {"annotations": {POWER: "running"}}}),
    ],
)
def test_members(machine: MachineView, wish: Power, force: bool, document: Data) -> None:
    found = writing.power(machine, wish, force=force)
    assert (found.document, found.key) == (document, machine.key)
    assert found.target is not None and found.target.group == machine.kind.group


def test_the_text_says_what_changes() -> None:
    found = writing.power(MachineView(kind=VITISTACK, data=vitistack(**{POWER: "running"})), "stop")
    assert found.text == "metadata.annotations[vitistack.io/power-state]: running -> stopped"
    assert writing.power(MachineView(kind=VIRTRIGAUD, data=virtrigaud()), "stop").text == "spec.powerState: (not set) -> OffGraceful"


@pytest.mark.parametrize(
    ("machine", "paused", "text"),
    [
        (MachineView(kind=VMI, data=vmi(), vmi=vmi()), False, "runs as long as it exists"),
        (of_stakater("Halted"), True, "stakater has no word for it"),
    ],
)
def test_what_a_dialect_cannot_say_is_refused(machine: MachineView, paused: bool, text: str) -> None:
    with pytest.raises(CannotWrite, match=text):
        writing.power(machine, "start", paused=paused)


@pytest.mark.parametrize(
    ("machine", "wants"),
    [
        (of_vm(), True),
        (of_vm(runStrategy="Halted"), False),
        (of_vm(running=False), False),
        (of_stakater(), True),
        (of_stakater("Halted"), False),
        (MachineView(kind=VIRTRIGAUD, data=virtrigaud()), True),
        (MachineView(kind=VIRTRIGAUD, data=virtrigaud(power="OffGraceful")), False),
        (MachineView(kind=VITISTACK, data=vitistack(**{POWER: "stopped"})), False),
        (MachineView(kind=VITISTACK, data=vitistack(), vm=vm(runStrategy="Halted")), False),
    ],
)
def test_the_wish_of_the_user(machine: MachineView, wants: bool) -> None:
    assert writing.wants_to_run(machine) is wants
