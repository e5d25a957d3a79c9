"""`paddock fork` on a server, as far as that goes without guests."""

from collections.abc import Sequence
from unittest.mock import AsyncMock

import pytest

from paddock.fleet.kinds import VM
from paddock.fleet.machines import finding, forks
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from tests.unit.cli.test_changing import vm
from tests.unit.fleet.machines.examples import Data
from tests.unit.fleet.machines.fakeserver import FakeServer

AGENT = {"type": "AgentConnected", "status": "True"}


def running(monkeypatch: pytest.MonkeyPatch, instance: Data) -> FakeServer:
    """A server where the machine has this instance, whose status a client cannot write."""

    async def find(*_: object) -> MachineView:
        return MachineView(kind=VM, data=machine, vm=machine, vmi=instance)

    machine = vm()
    machine["metadata"]["namespace"] = "default"
    monkeypatch.setattr(finding, "find", find)
    return FakeServer(monkeypatch, vm())


def instance(*conditions: Data, phase: str = "Running") -> Data:
    status = {"phase": phase, "conditions": list(conditions)}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "status": status}


@pytest.mark.parametrize(
    ("machine", "taken", "count", "names"),
    [
        ("web", [], 1, ["web-fork-1"]),
        ("web", ["web-fork-1", "web-fork-3"], 3, ["web-fork-2", "web-fork-4", "web-fork-5"]),
        ("w" * 63, [], 1, [f"{'w' * 56}-fork-1"]),
        (f"{'w' * 55}-{'w' * 7}", [], 1, [f"{'w' * 55}-fork-1"]),
    ],
)
def test_names(machine: str, taken: Sequence[str], count: int, names: list[str]) -> None:
    assert forks.free_names(machine, taken, count) == names


def test_a_rehearsal_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = running(monkeypatch, instance(AGENT)).run("fork", "web", "--count", "2", "--dry-run")
    said = "paddock: the server would fork vm/web as web-fork-1, web-fork-2; nothing was changed (--dry-run)\n"
    assert (answer.code, answer.out, answer.err) == (0, "", said)


def test_a_guest_without_agent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = running(monkeypatch, instance()).run("fork", "web", "--dry-run")
    assert answer.code == 0 and "keeps its host name, machine id, SSH host keys and random numbers" in answer.err


def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    halted = FakeServer(monkeypatch, vm()).run("fork", "web")
    assert halted.code == 2 and "it does not run" in halted.err and "paddock clone web NEW" in halted.err
    monkeypatch.setattr(Client, "is_paddock", AsyncMock(return_value=False))
    cluster = running(monkeypatch, instance(AGENT)).run("fork", "web")
    assert cluster.code == 2 and "the server is a cluster" in cluster.err


@pytest.mark.parametrize("words", [("--count", "0"), ("--rm", "--dry-run"), ("--rm", "--no-wait"), ("--count", "2", "--no-wait")])
def test_wrong_usage(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    assert running(monkeypatch, instance(AGENT)).run("fork", "web", *words).code == 2
