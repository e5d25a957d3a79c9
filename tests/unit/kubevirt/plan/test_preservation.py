"""The disks of a pool's machines that outlive them, and the machines that may have them."""

from typing import Any

import msgspec
import pytest

from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.pool import machines, preservation, scale
from paddock.kubevirt.plan.pool.preservation import STATE_PRESERVATION
from paddock.kubevirt.plan.pool.scale import PoolMember, ScaleContext, ScalePlan

MARKED = {STATE_PRESERVATION: "Offline"}


def pool(replicas: int = 2, scale_in: dict[str, Any] | None = None) -> VirtualMachinePool:
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "virtualMachineTemplate": {"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {}}}}},
    }
    if scale_in is not None:
        spec["scaleInStrategy"] = scale_in
    return from_data({"metadata": {"name": "web", "namespace": "default"}, "spec": spec}, VirtualMachinePool)


@pytest.mark.parametrize(
    ("scale_in", "scaled_in", "deleted"),
    [
        (None, False, False),
        ({"unmanaged": {}}, False, False),
        ({"proactive": {}}, False, False),
        ({"proactive": {"statePreservation": "Disabled"}}, False, False),
        ({"proactive": {"statePreservation": "Offline"}}, True, False),
        ({"proactive": {"statePreservation": "Online"}}, True, False),
        ({"opportunistic": {}}, False, False),
        ({"opportunistic": {"statePreservation": "Disabled"}}, False, False),
        ({"opportunistic": {"statePreservation": "Offline"}}, True, True),
    ],
)
def test_whose_disks_are_kept(scale_in: dict[str, Any] | None, scaled_in: bool, deleted: bool) -> None:
    assert preservation.keeps_scaled_in(pool(scale_in=scale_in)) is scaled_in
    assert preservation.keeps_deleted(pool(scale_in=scale_in)) is deleted


@pytest.mark.parametrize(
    ("machine", "own", "adopt"),
    [
        ({"metadata": {}}, True, True),
        ({"metadata": {"annotations": {"other": ""}}, "status": {}}, True, True),
        ({"metadata": {"annotations": MARKED}}, False, False),
        ({"metadata": {}, "status": {"restoreInProgress": "back"}}, True, False),
    ],
)
def test_who_may_have_disks(machine: dict[str, Any], own: bool, adopt: bool) -> None:
    assert preservation.may_own(machine) is own
    assert preservation.may_adopt(machine) is adopt


def test_names_of_disks() -> None:
    volumes = [
        {"name": "a", "dataVolume": {"name": "one"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "two"}},
        {"name": "c", "emptyDisk": {"capacity": "1Gi"}},
    ]
    templates = [{"metadata": {"name": "one"}, "spec": {}}, {"metadata": {"name": "three"}, "spec": {}}]
    spec = {"dataVolumeTemplates": templates, "template": {"spec": {"domain": {}, "volumes": volumes}}}
    machine = from_data({"metadata": {"name": "web"}, "spec": spec}, VirtualMachine)
    assert set(preservation.disk_names(machine)) == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("replicas", "scale_in", "deleted"),
    [
        # The choice that was made stands, whatever the order says.
        (2, {"proactive": {"selectionPolicy": {"sortPolicy": "AscendingOrder"}}}, ("web-1",)),
        (1, {"proactive": {"selectionPolicy": {"sortPolicy": "AscendingOrder"}}}, ("web-1", "web-0")),
        (3, {"proactive": {"selectionPolicy": {"sortPolicy": "AscendingOrder"}}}, ()),
        (2, {"opportunistic": {}}, ()),
    ],
)
def test_who_goes_on_after_an_interruption(replicas: int, scale_in: dict[str, Any], deleted: tuple[str, ...]) -> None:
    wanted = pool(replicas, scale_in)
    members = [PoolMember(_machine(wanted, number, marked=number == 1)) for number in range(3)]
    around = ScaleContext({each.name for each in members}, "web-1", {"web-1"}, {"web-1"}, 0.0, lambda: 0.5)
    assert scale.plan(wanted, members, around) == ScalePlan(delete=deleted)


def _machine(wanted: VirtualMachinePool, number: int, *, marked: bool) -> VirtualMachine:
    machine = machines.replica(wanted, number, "web-1")
    metadata = msgspec.structs.replace(machine.metadata, annotations=MARKED if marked else None)
    return msgspec.structs.replace(machine, metadata=metadata)
