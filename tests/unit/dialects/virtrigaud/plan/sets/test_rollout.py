"""The next steps of a set, as tables."""

from typing import Any

import pytest

from paddock.dialects.virtrigaud.kinds.vmset import SetTemplate, VMSet, VMSetSpec
from paddock.dialects.virtrigaud.plan.sets import rollout, templates
from paddock.dialects.virtrigaud.plan.sets.rollout import SetContext, SetMember, SetPlan
from paddock.dialects.virtrigaud.plan.sets.templates import TemplateChange
from paddock.kubernetes.meta.wire import from_data
from tests.unit.dialects.virtrigaud.plan.made import machine

NOW = 1000.0
Data = dict[str, Any]


def spec(replicas: int, type: str = "RollingUpdate", start: int = 0, ready: int = 0, **rolling: Any) -> VMSetSpec:
    given: Data = {"replicas": replicas, "ordinals": {"start": start}, "minReadySeconds": ready, "updateStrategy": {"type": type}}
    if rolling:
        given["updateStrategy"]["rollingUpdate"] = rolling
    return from_data(given, VMSetSpec)


def member(text: str) -> SetMember:
    """A machine: ordinal, revision (o: old, n: new, i: old and changed in place), then + ready, - not, ! failed, x going."""
    ordinal, revision, state = int(text[:-2]), text[-2], text[-1]
    changes = {"o": TemplateChange.REPLACE, "i": TemplateChange.IN_PLACE, "m": TemplateChange.METADATA, "n": TemplateChange.NONE}
    return SetMember(
        name=f"web-{ordinal}",
        ordinal=ordinal,
        revision="new" if revision == "n" else "old",
        change=changes[revision],
        ready=state == "+",
        since=NOW - 50,
        failed=state == "!",
        deleting=state == "x",
    )


def planned(given: VMSetSpec, members: str, taken: tuple[str, ...] = ()) -> SetPlan:
    return rollout.plan(given, [member(each) for each in members.split()], SetContext("web-", "new", "old", taken, NOW))


ORDERED = [
    # replicas, machines, ordinals to make, machines to delete
    (3, "", [0], []),
    (3, "0n-", [], []),
    (3, "0n+", [1], []),
    (3, "0n+ 2n+", [1], []),
    (3, "0n- 1n+", [], []),
    (3, "0nx 1n+", [], []),
    (1, "0n+ 1n+ 2n+", [], ["web-2"]),
    (1, "0n+ 1n+ 2nx", [], []),
    (1, "0n+ 1n- 2n-", [], ["web-2"]),
    (0, "0n+", [], ["web-0"]),
]


@pytest.mark.parametrize(("replicas", "members", "make", "delete"), ORDERED)
def test_in_order(replicas: int, members: str, make: list[int], delete: list[str]) -> None:
    found = planned(spec(replicas), members)
    assert (list(found.make), list(found.delete)) == (make, delete)


@pytest.mark.parametrize(
    ("replicas", "members", "make", "delete"),
    [(3, "", [0, 1, 2], []), (3, "1n-", [0, 2], []), (1, "0n+ 1n+ 2nx 3n-", [], ["web-3", "web-1"]), (2, "0nx 1nx", [], [])],
)
def test_in_parallel(replicas: int, members: str, make: list[int], delete: list[str]) -> None:
    found = planned(spec(replicas, podManagementPolicy="Parallel"), members)
    assert (list(found.make), list(found.delete)) == (make, delete)


ROLLING: list[tuple[Data, str, list[int], list[str], list[str]]] = [
    # rules, machines, make, delete, rewrite
    ({"maxUnavailable": 1, "maxSurge": 0}, "0o+ 1o+ 2o+", [], ["web-2"], []),
    ({"maxUnavailable": 2, "maxSurge": 0}, "0o+ 1o+ 2o+", [], ["web-2", "web-1"], []),
    ({"maxUnavailable": "50%", "maxSurge": 0}, "0o+ 1o+ 2o+", [], ["web-2"], []),
    ({"maxUnavailable": 1, "maxSurge": 0}, "0o+ 1o+ 2n-", [], [], []),
    ({"maxUnavailable": 1, "maxSurge": 0}, "0o+ 1o+ 2n+", [], ["web-1"], []),
    # What does not serve costs nothing.
    ({"maxUnavailable": 1, "maxSurge": 0}, "0o+ 1o- 2o-", [], ["web-2", "web-1"], []),
    ({"maxUnavailable": 1, "maxSurge": 0}, "0o+ 1o+ 2o!", [], ["web-2"], []),
    # A new machine that failed pauses the update; it does not keep missing machines from coming.
    ({"maxUnavailable": 2, "maxSurge": 0}, "0o+ 1o+ 2n!", [], [], []),
    ({"maxUnavailable": 2, "maxSurge": 0, "podManagementPolicy": "Parallel"}, "0o+ 2n!", [1], [], []),
    ({"maxUnavailable": 1, "maxSurge": 1, "podManagementPolicy": "Parallel"}, "0o+ 1o+ 2n!", [], [], []),
    # surge: one too many first, then one after another, and at last the extra one goes
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 2o+", [3], [], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 2o+ 3n-", [], [], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 2o+ 3n+", [], ["web-2"], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 3n+", [2], [], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 2n- 3n+", [], [], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 2n+ 3n+", [], ["web-1"], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0n- 1n+ 2n+ 3n+", [], [], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0n+ 1n+ 2n+ 3n+", [], ["web-3"], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0n- 1n+ 2n+", [], [], []),
    # An old machine in the place of an extra one goes first.
    ({"maxUnavailable": 0, "maxSurge": 1}, "0o+ 1o+ 2o+ 3o+", [], ["web-3"], []),
    # partition
    ({"maxUnavailable": 3, "maxSurge": 0, "partition": 2}, "0o+ 1o+ 2o+", [], ["web-2"], []),
    ({"maxUnavailable": 3, "maxSurge": 1, "partition": 2}, "0o+ 1o+ 2n+", [], [], []),
    ({"maxUnavailable": 3, "maxSurge": 0, "partition": 9}, "0o+ 1o+ 2o+", [], [], []),
    # in place: within what may be missing, without an extra machine if possible
    ({"maxUnavailable": 1, "maxSurge": 1}, "0i+ 1i+ 2i+", [], [], ["web-2"]),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0i+ 1i+ 2i+", [3], [], []),
    ({"maxUnavailable": 0, "maxSurge": 1}, "0m+ 1m+ 2m+", [], [], ["web-2", "web-1", "web-0"]),
    # Neither may be missing nor be too many by percentages that are nothing: one may be missing.
    ({"maxUnavailable": "25%", "maxSurge": "0%"}, "0o+ 1o+ 2o+", [], ["web-2"], []),
]


@pytest.mark.spec("virtrigaud", 94)
@pytest.mark.parametrize(("rules", "members", "make", "delete", "rewrite"), ROLLING)
def test_a_rolling_update(rules: Data, members: str, make: list[int], delete: list[str], rewrite: list[str]) -> None:
    found = planned(spec(3, **rules), members)
    assert (list(found.make), list(found.delete), list(found.rewrite)) == (make, delete, rewrite)


def test_below_the_partition_machines_come_back_with_the_old_revision() -> None:
    found = planned(spec(3, partition=1, podManagementPolicy="Parallel"), "")
    assert found.make == {0: "old", 1: "new", 2: "new"}


@pytest.mark.parametrize(
    ("members", "make", "delete"),
    [("0o+ 1o+", [], ["web-1", "web-0"]), ("0o+ 1n+", [], ["web-0"]), ("1ox", [], []), ("", [0], []), ("0n+ 1n+", [], [])],
)
def test_recreate(members: str, make: list[int], delete: list[str]) -> None:
    found = planned(spec(2, "Recreate"), members)
    assert (list(found.make), list(found.delete)) == (make, delete)


def test_on_delete_touches_nothing() -> None:
    assert planned(spec(2, "OnDelete"), "0o+ 1i+") == SetPlan()


def test_names_of_others() -> None:
    found = planned(spec(3), "0n+", ("web-1",))
    assert (found.make, found.collisions) == ({}, ("web-1",))
    found = planned(spec(3, podManagementPolicy="Parallel"), "0n+", ("web-1",))
    assert (list(found.make), found.collisions) == ([2], ("web-1",))


def test_a_machine_is_available_after_a_while() -> None:
    assert planned(spec(2, ready=60), "0n+") == SetPlan(wait=10.0)
    assert list(planned(spec(2, ready=50), "0n+").make) == [1]


def test_many_machines_come_in_rounds() -> None:
    found = planned(spec(250, podManagementPolicy="Parallel"), "")
    assert len(found.make) == rollout.BURST and found.wait is not None


CHANGES = [
    ({}, {}, TemplateChange.METADATA),
    ({"resources": {"cpu": 2}}, {"resources": {"cpu": 4}}, TemplateChange.IN_PLACE),
    ({}, {"resources": {"memoryMiB": 4096}}, TemplateChange.IN_PLACE),
    ({}, {"resources": {"gpu": {"count": 1}}}, TemplateChange.REPLACE),
    ({"powerState": "On"}, {"powerState": "Off"}, TemplateChange.IN_PLACE),
    ({"disks": [{"name": "a", "sizeGiB": 5}]}, {"disks": [{"name": "a", "sizeGiB": 6}]}, TemplateChange.IN_PLACE),
    ({"disks": [{"name": "a", "sizeGiB": 5}]}, {"disks": [{"name": "a", "sizeGiB": 4}]}, TemplateChange.REPLACE),
    ({"disks": [{"name": "a", "sizeGiB": 5}]}, {"disks": [{"name": "b", "sizeGiB": 5}]}, TemplateChange.REPLACE),
    ({"disks": [{"name": "a", "sizeGiB": 5}]}, {"disks": [{"name": "a", "sizeGiB": 5, "type": "thick"}]}, TemplateChange.REPLACE),
    ({}, {"disks": [{"name": "a", "sizeGiB": 5}]}, TemplateChange.IN_PLACE),
    ({}, {"imageRef": {"name": "debian"}}, TemplateChange.REPLACE),
    ({}, {"classRef": {"name": "large"}}, TemplateChange.REPLACE),
    ({}, {"networks": [{"name": "lan", "networkRef": {"name": "lan"}}]}, TemplateChange.REPLACE),
    ({}, {"userData": {"cloudInit": {"inline": "x"}}}, TemplateChange.REPLACE),
]


@pytest.mark.spec("virtrigaud", 94)
@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_what_a_change_means(old: Data, new: Data, expected: TemplateChange) -> None:
    first, second = (SetTemplate(spec=machine(**each).spec) for each in (old, new))
    assert templates.change(first, second) is expected
    assert (templates.revision_of(first) == templates.revision_of(second)) is (old == new)


def test_a_disk_that_was_grown_by_hand_stays_as_large() -> None:
    old = SetTemplate(spec=machine(disks=[{"name": "a", "sizeGiB": 5}]).spec)
    new = SetTemplate(spec=machine(disks=[{"name": "a", "sizeGiB": 6}]).spec)
    vm = {"spec": {"disks": [{"name": "a", "sizeGiB": 9}, {"name": "own", "sizeGiB": 1}]}}
    found = templates.rewrite(vm, old, new, "new")["spec"]["disks"]
    assert [(each["name"], each["sizeGiB"]) for each in found] == [("a", 9), ("own", 1)]


@pytest.mark.parametrize(
    ("name", "ordinal"), [("web-0", 0), ("web-12", 12), ("web-01", None), ("web", None), ("web-x", None), ("api-1", None)]
)
def test_ordinals(name: str, ordinal: int | None) -> None:
    vmset = from_data({"metadata": {"name": "web"}, "spec": {}}, VMSet)
    assert templates.ordinal_of(vmset, name) == ordinal
