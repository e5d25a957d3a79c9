"""The rights that an operator needs by its settings, and the rules that grant them."""

import msgspec
import pytest

from paddock.app.operator import neededrights
from paddock.app.operator.settings import LeaderElectionSettings, MetricsSecurity, OperatorSettings
from paddock.dialects.fronts import DIALECTS, FrontSettings
from paddock.kubernetes.client.errors import RefusedRight
from paddock.kubernetes.client.ownrights import GrantedRule

BARE = OperatorSettings(fronts=FrontSettings(wanted=frozenset(), embedded=False), lease=LeaderElectionSettings(wanted=False))


def users(settings: OperatorSettings) -> set[str]:
    return {each for found in neededrights.of(settings).values() for each in found.split(", ")}


def test_rights_come_with_what_needs_them() -> None:
    assert neededrights.of(BARE) == {}
    assert users(msgspec.structs.replace(BARE, security=MetricsSecurity())) == {"--metrics-secure"}
    assert users(msgspec.structs.replace(BARE, fronts=FrontSettings(wanted=frozenset(), manage_clone_rbac=True))) == {"--manage-clone-rbac"}
    elected = msgspec.structs.replace(BARE, lease=LeaderElectionSettings(), namespace="here")
    assert {(each.resource, each.namespace) for each in neededrights.of(elected)} == {("leases", "here")}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_rights_of_its_own(dialect: str) -> None:
    fronts = FrontSettings(wanted=frozenset({dialect}), embedded=False)
    found = neededrights.of(msgspec.structs.replace(BARE, fronts=fronts))
    assert len(found) > 15 and set(found.values()) == {dialect}


def test_a_right_that_two_dialects_need_names_both() -> None:
    fronts = FrontSettings(wanted=frozenset({"stakater", "vitistack"}), embedded=False)
    found = neededrights.of(msgspec.structs.replace(BARE, fronts=fronts))
    assert found[RefusedRight("the operator", "create", "kubevirt.io", "virtualmachines")] == "stakater, vitistack"
    assert found[RefusedRight("the operator", "patch", "vitistack.io", "machines", "status")] == "vitistack"


RIGHT = RefusedRight("", "get", "g", "things", "", "", "one")
STATUS = RefusedRight("", "patch", "g", "things", "status")


@pytest.mark.parametrize(
    ("rule", "right", "granted"),
    [
        (GrantedRule(("get",), ("g",), ("things",)), RIGHT, True),
        (GrantedRule(("*",), ("*",), ("*",)), RIGHT, True),
        (GrantedRule(("list",), ("g",), ("things",)), RIGHT, False),
        (GrantedRule(("get",), ("other",), ("things",)), RIGHT, False),
        (GrantedRule(("get",), ("g",), ("things",), ("one",)), RIGHT, True),
        (GrantedRule(("get",), ("g",), ("things",), ("two",)), RIGHT, False),
        (GrantedRule(("get",), ("g",), ("things/status",)), RIGHT, False),
        (GrantedRule(("patch",), ("g",), ("things",)), STATUS, False),
        (GrantedRule(("patch",), ("g",), ("things/status",)), STATUS, True),
        (GrantedRule(("patch",), ("g",), ("*/status",)), STATUS, True),
        (GrantedRule(("get",), None, None), RIGHT, False),
    ],
)
def test_what_a_rule_grants(rule: GrantedRule, right: RefusedRight, granted: bool) -> None:
    assert rule.grants(right) == granted
