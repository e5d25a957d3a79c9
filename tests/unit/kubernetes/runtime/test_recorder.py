"""Events: what becomes one, what is dropped, and that nobody waits."""

import asyncio
import random
from typing import Any

import msgspec
import pytest

from paddock.base import names
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.retrying import Retries
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock.kubernetes.runtime.correlation import Correlator, EventRequest
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.recorder import Recorder
from paddock.kubernetes.runtime.reference import InvolvedObject
from tests import virtualtime
from tests.coroutines import played, run_by
from tests.unit.kubernetes.runtime.conftest import World

WEB = InvolvedObject("kubevirt.io/v1", "VirtualMachine", "default", "web", "uid-1", "7")
EVENTS = "/api/v1/namespaces/default/events"


async def events(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await world.api.get(EVENTS)).data["items"]
    return found


@played
async def test_the_like_of_an_event_counts_it_up(world: World, /) -> None:
    recorder = Recorder(world.client, "controller", "host", world.machinery)
    recorder.start()
    for revision in range(3):
        recorder.tell(
            InvolvedObject("kubevirt.io/v1", "VirtualMachine", "default", "web", "uid-1", str(revision)), "Normal", "Started", "up"
        )
        await asyncio.sleep(60)
    recorder.tell(WEB, "Warning", "Crashed", "down")
    await recorder.stop()
    first, second = await events(world)
    assert (first["reason"], first["count"], first["type"], first["message"]) == ("Started", 3, "Normal", "up")
    assert first["involvedObject"]["uid"] == "uid-1"
    assert (first["firstTimestamp"], first["lastTimestamp"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:02:00Z")
    assert (first["source"], first["reportingComponent"]) == ({"component": "controller", "host": "host"}, "controller")
    assert (second["reason"], second["count"]) == ("Crashed", 1)


@played
async def test_what_an_event_is_about_comes_first(world: World, /) -> None:
    recorder = Recorder(world.client, "controller", "host", world.machinery)
    recorder.start()
    await asyncio.sleep(1)
    recorder.tell(WEB, "Normal", "Started", "up")
    await asyncio.sleep(0.09)
    assert await events(world) == []
    await asyncio.sleep(0.02)
    assert len(await events(world)) == 1


@played
async def test_an_event_that_was_forgotten_begins_anew(world: World, /) -> None:
    recorder = Recorder(world.client, "controller", "host", world.machinery)
    recorder.start()
    recorder.tell(WEB, "Normal", "Started", "up")
    await asyncio.sleep(1)
    (event,) = await events(world)
    await world.api.delete(f"{EVENTS}/{event['metadata']['name']}")
    recorder.tell(WEB, "Normal", "Started", "up")
    await recorder.stop()
    (again,) = await events(world)
    assert again["count"] == 1


@played
async def test_objects_of_cluster_scope_and_namespaces_that_are_gone(world: World, /) -> None:
    recorder = Recorder(world.client, "controller", "host", world.machinery)
    recorder.start()
    recorder.tell(InvolvedObject("v1", "Node", "", "host-1", "u"), "Normal", "Ready", "up")
    recorder.tell(InvolvedObject("v1", "ConfigMap", "nowhere", "a", "u"), "Normal", "Ready", "up")
    await recorder.stop()
    (event,) = await events(world)
    assert event["involvedObject"]["kind"] == "Node"
    assert world.machinery.metrics.counter("paddock_events_total", "", ("outcome",)).value("refused") == 1


@run_by(virtualtime.run)
async def test_nobody_waits_for_a_server_that_is_gone() -> None:
    sent: list[bytes] = []
    there = False

    async def carry(ask: TransportRequest) -> TransportResponse:
        if not there:
            raise Unreachable("nobody", sent=False)
        sent.append(ask.body)
        return TransportResponse(201, {}, ask.body)

    machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(0))
    recorder = Recorder(Client(LocalTransport(carry), ClientSettings(retries=Retries(attempts=1))), "c", "h", machinery)
    recorder.start()
    for number in range(1500):
        recorder.tell(InvolvedObject("v1", "ConfigMap", "default", f"m{number}", "u"), "Normal", "Ready", "up")
    await asyncio.sleep(20)
    there = True
    await asyncio.sleep(60)
    outcomes = machinery.metrics.counter("paddock_events_total", "", ("outcome",))
    assert (outcomes.value("dropped"), outcomes.value("sent"), len(sent)) == (500, 1000, 1000)
    await recorder.stop()


def test_many_of_one_sort_become_one() -> None:
    correlator = Correlator("c", "h")
    decisions = [correlator.decide(EventRequest(WEB, "Warning", "Failed", f"attempt {number}"), 1000.0 + number) for number in range(15)]
    made = [each for each in decisions if each is not None and not each.counts_up]
    assert len(made) == 11
    last = decisions[-1]
    assert last is not None
    assert (last.event["message"], last.event["count"], last.counts_up) == ("(combined from similar events): attempt 14", 5, True)


def test_an_object_that_has_too_much_to_say_is_not_heard_for_a_while() -> None:
    correlator = Correlator("c", "h")
    told = [correlator.decide(EventRequest(WEB, "Warning", "Failed", "the same"), 1000.0) for _ in range(40)]
    assert sum(each is not None for each in told) == 25
    other = EventRequest(InvolvedObject("v1", "ConfigMap", "default", "a", "u"), "Warning", "Failed", "the same")
    assert correlator.decide(other, 1000.0) is not None
    assert correlator.decide(EventRequest(WEB, "Warning", "Failed", "the same"), 1000.0 + 299) is None
    assert correlator.decide(EventRequest(WEB, "Warning", "Failed", "the same"), 1000.0 + 301) is not None


def test_notes_and_names_have_an_end() -> None:
    decision = Correlator("c", "h").decide(
        EventRequest(InvolvedObject("v1", "ConfigMap", "default", "n" * 253, "u"), "Normal", "Long", "ü" * 2000), 5.0
    )
    assert decision is not None
    assert len(decision.event["message"].encode()) <= 1024
    assert len(decision.event["metadata"]["name"]) == 253


@pytest.mark.parametrize("count", range(225, 253))
@pytest.mark.parametrize("joint", [".", "-"])
def test_a_name_that_is_cut_is_a_name(count: int, joint: str) -> None:
    about = InvolvedObject("v1", "ConfigMap", "default", f"{'n' * count}{joint}".ljust(253, "b"), "u")
    decision = Correlator("c", "h").decide(EventRequest(about, "Normal", "Long", ""), 1.8e9)
    assert decision is not None and names.is_subdomain(decision.event["metadata"]["name"])


def test_a_part_of_a_program_speaks_under_its_own_name() -> None:
    told = EventRequest(WEB, "Normal", "Made", "it is made", "part")
    decision = Correlator("whole", "host").decide(told, 1000.0)
    assert decision is not None
    assert decision.event["source"] == {"component": "part", "host": "host"} and decision.event["reportingComponent"] == "part"
    plain = Correlator("whole", "host").decide(msgspec.structs.replace(told, component=""), 1000.0)
    assert plain is not None and plain.event["reportingComponent"] == "whole"
