"""Machines that wait for a guest of another server."""

from typing import Any

import pytest
from msgspec.structs import replace

from paddock.base import ownnames
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import MigrationState, VirtualMachineInstanceStatus
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine, VirtualMachineSpec
from paddock.kubevirt.plan.machine import instances, lifecycle
from paddock.kubevirt.plan.machine.receivers import RESTORED, TARGET
from paddock.kubevirt.plan.machine.runstrategy import RunStep, RunStrategy

WAITS = VirtualMachine(
    metadata=ObjectMeta(name="web", annotations={RESTORED: "Manual"}), spec=VirtualMachineSpec(runStrategy="WaitAsReceiver")
)
DONE = MigrationState(completed=True)


def instance(state: MigrationState | None, *, receives: bool = False, phase: str = "Running") -> VirtualMachineInstance:
    notes = {TARGET: "true"} if receives else {}
    status = VirtualMachineInstanceStatus(phase=phase, migrationState=state)
    return VirtualMachineInstance(metadata=ObjectMeta(name="web", annotations=notes), status=status)


@pytest.mark.spec("kubevirt", 279)
@pytest.mark.parametrize(
    ("there", "becomes"),
    [
        (instance(DONE), RunStrategy.MANUAL),
        (instance(DONE, receives=True), None),
        (instance(replace(DONE, failed=True)), None),
        (instance(MigrationState()), None),
        (instance(None), None),
    ],
)
def test_the_strategy_comes_back_with_the_guest(there: VirtualMachineInstance, becomes: RunStrategy | None) -> None:
    assert lifecycle.decide(WAITS, there).becomes == becomes


@pytest.mark.parametrize("wanted", ["", "WaitAsReceiver", "Sometimes"])
def test_a_strategy_that_there_is_not_is_not_restored(wanted: str) -> None:
    machine = replace(WAITS, metadata=replace(WAITS.metadata, annotations={RESTORED: wanted}))
    assert lifecycle.decide(machine, instance(DONE)).becomes is None


@pytest.mark.spec("kubevirt", 278)
def test_a_receiver_is_made_and_made_again_and_a_fence_does_not_matter() -> None:
    fenced = replace(WAITS, metadata=replace(WAITS.metadata, annotations={ownnames.FENCE.name: "its guest is elsewhere"}))
    for machine in (WAITS, fenced):
        assert lifecycle.decide(machine, None).step is RunStep.START
        assert lifecycle.decide(machine, instance(None, receives=True, phase="WaitingForSync")).step is RunStep.KEEP
    always = replace(fenced, spec=VirtualMachineSpec(runStrategy="Always"))
    assert lifecycle.decide(always, None).step is RunStep.KEEP


@pytest.mark.spec("kubevirt", 278)
@pytest.mark.parametrize(("strategy", "receives"), [("WaitAsReceiver", True), ("Always", False)])
def test_an_instance_says_that_it_receives(strategy: str, *, receives: bool) -> None:
    template: dict[str, Any] = {"spec": {"domain": {}}}
    machine = {"metadata": {"name": "web", "namespace": "a", "uid": "u"}, "spec": {"runStrategy": strategy, "template": template}}
    assert (instances.instance_of(machine, [])["metadata"]["annotations"].get(TARGET) == "true") == receives
