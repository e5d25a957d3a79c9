"""What a network card gets whose binding the backend lacks."""

import pytest

from paddock.plan.stakater.bindings import bound
from tests.unit.plan.stakater.made import Data, front

POD, DATA = {"name": "default"}, {"name": "data", "multus": {"networkName": "vlan10"}}


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
