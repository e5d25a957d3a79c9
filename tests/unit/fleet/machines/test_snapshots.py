"""`paddock snap`, `restore` and `clone` on a server, as far as that goes without guests."""

from typing import Any

import pytest

from paddock.cli import confirming
from paddock.fleet.kinds import VM
from paddock.fleet.machines import snapshots
from paddock.fleet.machines.finding import MachineView
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD
from tests.unit.cli.test_changing import CLASS
from tests.unit.cli.test_changing import VIRTRIGAUD as RIGAUD
from tests.unit.cli.test_changing import vm as whole_vm
from tests.unit.fleet.machines.examples import Data, stakater, virtrigaud, vm
from tests.unit.fleet.machines.fakeserver import FakeServer

SOURCE = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
DONE: Data = {"phase": "Succeeded", "readyToUse": True, "creationTime": "2026-01-01T00:00:00Z", "indications": ["Online", "NoGuestAgent"]}


def snapshot(name: str, status: Data = DONE, of: str = "web") -> Data:
    head = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot"}
    return {**head, "metadata": {"name": name}, "spec": {"source": {**SOURCE, "name": of}}, "status": status}


def test_names_sort_by_time() -> None:
    assert snapshots.default_name("web", 1795000000.0) == "web-20261118-110640"


def test_the_list_has_the_machines_own_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, whole_vm(), snapshot("one"), snapshot("other", of="db"))
    assert server.run("snap", "ls", "web", "-o", "name").out == "one\n"
    assert server.run("snap", "ls", "-o", "name").out == "one\nother\n"
    out = server.run("snap", "ls", "web").out
    assert "ready" in out
    assert "like a power cut" in out


def test_a_snapshot_of_another_machine_is_none_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, whole_vm(), snapshot("one"), snapshot("other", of="db"))
    assert 'did you mean "one"?' in server.run("snap", "rm", "web", "onne").err
    assert 'has no snapshot "other"' in server.run("restore", "web", "other", "--yes").err


def test_a_restore_asks_first_and_takes_only_what_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, whole_vm(), snapshot("one"), snapshot("half", {"phase": "InProgress"}))
    answer = server.run("restore", "web", "one")
    assert (answer.code, answer.out) == (1, "")
    assert "the disks become as they were at 2026-01-01T00:00:00Z; what was written since is lost." in answer.err
    assert "it is in progress" in server.run("restore", "web", "half", "--yes").err
    assert server.run("restore", "web", "one", "--dry-run").code == 0


def test_a_deletion_asks_and_takes_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, whole_vm(), snapshot("one"))
    asked: list[str] = []

    def no(_: object, question: str, *, yes: bool) -> bool:
        asked.append(question)
        return yes

    monkeypatch.setattr(confirming, "agreed", no)
    answer = server.run("snap", "rm", "web", "one")
    assert (answer.code, answer.out) == (1, "")
    assert asked == ["Delete one of vm/web? What only the snapshot has is lost."]
    assert server.run("snap", "rm", "web", "one", "--dry-run").out == "one would be deleted\n"


def test_a_deletion_ends_when_the_snapshot_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    held = snapshot("held")
    held["metadata"]["finalizers"] = ["example.com/data"]
    assert FakeServer(monkeypatch, whole_vm(), snapshot("one")).run("snap", "rm", "web", "one", "--yes").out == "one deleted\n"
    answer = FakeServer(monkeypatch, whole_vm(), held).run("snap", "rm", "web", "held", "--yes", "--timeout", "1s")
    assert (answer.code, answer.out) == (2, "")
    assert "the snapshot held of vm/web is not gone after 1 s" in answer.err
    answer = FakeServer(monkeypatch, whole_vm(), held).run("snap", "rm", "web", "held", "--yes", "--no-wait")
    assert (answer.code, answer.out) == (0, "held is being deleted\n")


def test_virtrigaud_has_kinds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = FakeServer(monkeypatch, RIGAUD, CLASS).run("snap", "web", "one", "--no-wait")
    assert "its provider has no machine for it yet" in answer.err and "`paddock why virtrigaud/web` says" in answer.err
    server = FakeServer(monkeypatch, {**RIGAUD, "status": {"id": "m-1"}}, CLASS)
    assert server.run("snap", "web", "one", "--no-wait").out == "one\n"
    machine = MachineView(kind=VIRTRIGAUD, data=virtrigaud())
    assert snapshots.wish(machine, "one")["spec"] == {"vmRef": {"name": "db"}}
    target, wanted = snapshots.clone_wish(machine, "twin", "twin-1", as_kubevirt=False, start=True)
    assert (target.kind, wanted["spec"]["target"], wanted["spec"]["options"]) == ("VMClone", {"name": "twin"}, {"powerOn": True})


def test_a_clone_of_a_front_leaves_its_marks_behind() -> None:
    machine = MachineView(kind=STAKATER, data=stakater(), vm=vm())
    target, wanted = snapshots.clone_wish(machine, "twin", "twin-1", as_kubevirt=True, start=False)
    assert target.kind == "VirtualMachineClone"
    assert wanted["spec"]["labelFilters"] == ["*", "!infrastructure.stakater.com/*"]
    _, plain = snapshots.clone_wish(MachineView(kind=VM, data=vm(), vm=vm()), "twin", "twin-1", as_kubevirt=False, start=False)
    assert "labelFilters" not in plain["spec"]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "pending"),
        ({"phase": "InProgress"}, "in progress"),
        ({"phase": "Succeeded", "readyToUse": True}, "ready"),
        ({"phase": "Failed"}, "failed"),
        ({"phase": "Ready"}, "ready"),
        ({"phase": "Expired"}, "failed"),
    ],
)
def test_states(status: dict[str, Any], state: str) -> None:
    assert snapshots.state_of({"status": status}) == state


def test_a_machine_of_virtrigaud_that_is_on_is_not_left_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    head = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VMSnapshot"}
    taken = {**head, "metadata": {"name": "one"}, "spec": {"vmRef": {"name": "web"}}, "status": {"phase": "Ready"}}
    server = FakeServer(monkeypatch, {**RIGAUD, "status": {"powerState": "On"}}, CLASS, taken)
    answer = server.run("restore", "web", "one", "--yes", "--no-start")
    assert answer.code == 2
    assert "cannot leave virtrigaud/web stopped after a restore" in answer.err
    assert "`paddock stop web`" in answer.err


def test_a_second_restore_to_a_snapshot_waits_until_the_first_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    head = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VMSnapshot"}
    taken = {**head, "metadata": {"name": "one"}, "spec": {"vmRef": {"name": "web"}}, "status": {"phase": "Ready"}}
    reverted = {**RIGAUD, "spec": {**RIGAUD["spec"], "snapshot": {"revertToRef": {"name": "one"}}}}
    server = FakeServer(monkeypatch, {**reverted, "status": {"powerState": "On"}}, CLASS, taken)
    answer = server.run("restore", "web", "one", "--yes", "--timeout", "1s")
    # Nobody takes up the first change here, so there is no second one.
    assert (answer.code, answer.out) == (2, "") and "no controller took up the change of virtrigaud/web" in answer.err
    assert "revertToRef" not in server.run("get", "virtualmachines.infra.virtrigaud.io", "web", "-o", "json").out
