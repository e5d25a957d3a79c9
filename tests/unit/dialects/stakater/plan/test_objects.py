"""The objects of a machine: the bindings that their interfaces get, and the order in which they go, as a table."""

import itertools

import pytest

from paddock.dialects.stakater.plan.objects import ClearStep, RemainingKinds, bound, cleanup_stalls_at, cleanup_step
from tests.unit.dialects.stakater.plan.made import Data, front

POD, DATA = {"name": "default"}, {"name": "data", "multus": {"networkName": "vlan10"}}
ALL = {"services", "machines", "volumes", "secrets"}


@pytest.mark.parametrize(
    ("networks", "registered", "policy", "note", "bindings", "missing"),
    [
        (None, {"l2bridge"}, "masquerade", "", None, ()),
        (None, set(), "masquerade", "default=masquerade", ["masquerade"], ()),
        ([POD, DATA], {"other"}, "masquerade", "default=masquerade,data=bridge", ["masquerade", "bridge"], ()),
        ([{**POD, "bindingName": "bridge"}, DATA], set(), "masquerade", "data=bridge", ["bridge", "bridge"], ()),
        ([{**DATA, "bindingName": "sriov"}], set(), "fail", "", None, ()),
        ([POD, DATA], set(), "fail", "", None, (("default", "l2bridge"), ("data", "l2bridge"))),
        ([], set(), "fail", "", None, ()),
    ],
)
def test_bindings(
    networks: list[Data] | None, registered: set[str], policy: str, note: str, bindings: list[str] | None, missing: object
) -> None:
    vm = front(networks=networks) if networks is not None else front()
    found = bound(vm, frozenset(registered), policy)
    assert (found.note, found.missing) == (note, missing)
    if bindings is None:
        assert found.vm is vm
    else:
        assert [each.bindingName for each in found.vm.spec.parameters.networks or ()] == bindings
        assert vm.spec.parameters.networks is None or vm.spec.parameters.networks != found.vm.spec.parameters.networks


@pytest.mark.parametrize(
    ("left", "wanted"),
    [
        (RemainingKinds(services=("s",), machines=("m",), secrets=("k",), standing=frozenset(ALL)), ClearStep.DELETE_SERVICE),
        (RemainingKinds(services=("s",), machines=("m",), standing=frozenset({"machines"})), ClearStep.WAIT),
        (RemainingKinds(machines=("m",), instances=("m",), volumes=("d",), standing=frozenset(ALL)), ClearStep.DELETE_MACHINE),
        (RemainingKinds(machines=("m",), volumes=("d",), standing=frozenset({"volumes", "secrets"})), ClearStep.WAIT),
        (RemainingKinds(instances=("m",), secrets=("k",), standing=frozenset({"secrets"})), ClearStep.WAIT),
        (RemainingKinds(volumes=("d",), claims=("d",), secrets=("k",), standing=frozenset({"volumes", "secrets"})), ClearStep.DELETE_DISKS),
        (RemainingKinds(claims=("d",), secrets=("k",), standing=frozenset({"secrets"})), ClearStep.WAIT),
        (RemainingKinds(secrets=("k",), standing=frozenset({"secrets"})), ClearStep.DELETE_SECRETS),
        (RemainingKinds(secrets=("k",)), ClearStep.WAIT),
        (RemainingKinds(), ClearStep.LET_GO),
    ],
)
def test_the_next_step(left: RemainingKinds, wanted: ClearStep) -> None:
    assert cleanup_step(left) is wanted


def test_nothing_is_let_go_while_anything_is_left() -> None:
    members = ("services", "machines", "instances", "volumes", "claims", "secrets")
    for count in range(1, len(members) + 1):
        for some in itertools.combinations(members, count):
            left = RemainingKinds(**dict.fromkeys(some, ("x",)))  # type: ignore[arg-type]  # names
            assert cleanup_step(left) is ClearStep.WAIT
            assert left.named().count("x") == count


def test_a_deletion_stalls_two_minutes_after_its_grace() -> None:
    assert cleanup_stalls_at(1000.0, 180) == 1300.0
