"""The rights that verbs need, and how the API server is asked for them."""

import json

import pytest

from paddock.fleet.kinds import VM
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock.web import rights
from paddock.web.answers.machine import WebActionState
from paddock.web.api import kindrights
from paddock.web.rights import AccessCheck, RightsReview
from tests.coroutines import timeless
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD
from tests.unit.fleet.machines import examples
from tests.virtualtime import Clock

MACHINES = {
    "vm": MachineView(kind=VM, data=examples.vm(), vm=examples.vm()),
    "stakater": MachineView(kind=STAKATER, data=examples.stakater(), vm=examples.vm()),
    "virtrigaud": MachineView(kind=VIRTRIGAUD, data=examples.virtrigaud()),
}


class Judge:
    """An API server that allows some resources, and counts what it is asked."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[str] = []
        self.is_away = False

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if self.is_away:
            raise Unreachable("no answer", sent=False)
        attributes = json.loads(ask.body)["spec"]["resourceAttributes"]
        name = "/".join(filter(None, (attributes["resource"], attributes["subresource"])))
        self.asked.append(f"{attributes['verb']} {name} {attributes['namespace']}")
        return TransportResponse(201, {}, json.dumps({"status": {"allowed": name in self.allowed}}).encode())

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        raise AssertionError(ask)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("kind", "verb", "check"),
    [
        ("vm", "start", AccessCheck("update", "subresources.kubevirt.io", "virtualmachines", "start")),
        ("vm", "pause", AccessCheck("update", "subresources.kubevirt.io", "virtualmachineinstances", "pause")),
        ("vm", "delete", AccessCheck("delete", "kubevirt.io", "virtualmachines")),
        ("stakater", "create", AccessCheck("create", "infrastructure.stakater.com", "virtualmachines")),
        ("stakater", "start", AccessCheck("patch", "infrastructure.stakater.com", "virtualmachines")),
        ("stakater", "restart", AccessCheck("update", "subresources.kubevirt.io", "virtualmachines", "restart")),
        ("stakater", "snapshot", AccessCheck("create", "snapshot.kubevirt.io", "virtualmachinesnapshots")),
        ("virtrigaud", "restart", AccessCheck("patch", "infra.virtrigaud.io", "virtualmachines")),
        ("virtrigaud", "snapshot", AccessCheck("create", "infra.virtrigaud.io", "vmsnapshots")),
        ("virtrigaud", "restore", AccessCheck("patch", "infra.virtrigaud.io", "virtualmachines")),
    ],
)
def test_a_verb_needs_the_right_to_what_it_writes(kind: str, verb: str, check: AccessCheck) -> None:
    assert list(rights.needs(MACHINES[kind].kind, verb)) == [check]


@pytest.mark.parametrize("verb", kindrights.VERBS)
@pytest.mark.parametrize("kind", MACHINES)
def test_every_verb_needs_a_right(kind: str, verb: str) -> None:
    assert list(rights.needs(MACHINES[kind].kind, verb))


@timeless
async def test_actions_that_the_user_may_not_do_say_so() -> None:
    judge, machine = Judge("virtualmachines/start"), MACHINES["vm"]
    actions = [
        WebActionState(verb=verb, allowed=verb != "stop", reason="it does not run" if verb == "stop" else "")
        for verb in ("start", "stop", "delete")
    ]
    found = await rights.judged(RightsReview(Client(judge), Clock()), machine, actions)
    assert [(each.allowed, each.reason) for each in found] == [
        (True, ""),
        (False, "it does not run"),
        (False, 'the user may not delete virtualmachines of kubevirt.io in namespace "default"'),
    ]
    # What the state forbids is nothing to ask for.
    assert judge.asked == ["update virtualmachines/start default", "delete virtualmachines default"]


@timeless
async def test_answers_hold_for_a_minute() -> None:
    judge, clock = Judge(), Clock()
    review, check = RightsReview(Client(judge), clock), AccessCheck("delete", "kubevirt.io", "virtualmachines")
    assert [await review.may(check, "a"), await review.may(check, "a"), await review.may(check, "b")] == [False, False, False]
    assert len(judge.asked) == 2
    clock.skew += 60
    judge.allowed = ("virtualmachines",)
    assert await review.may(check, "a")


@timeless
async def test_a_server_that_does_not_say_decides_when_the_time_comes() -> None:
    judge = Judge()
    judge.is_away = True
    review = RightsReview(Client(judge), Clock())
    assert await review.may(AccessCheck("delete", "kubevirt.io", "virtualmachines"), "a")
    judge.is_away = False
    assert not await review.may(AccessCheck("delete", "kubevirt.io", "virtualmachines"), "a")
