"""Events in both shapes, Leases, and field selectors of built-in kinds (docs/spec/kube-api.md sections 2.5, 2.8 and 7)."""

from typing import Any

import pytest

from paddock.server.housekeeping.eventexpiry import EventExpiry
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

OLD = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MAPS = "/api/v1/namespaces/default/configmaps"
NETWORKS = "/apis/vitistack.io/v1alpha1/namespaces/default/networkconfigurations"
STRATEGIC = "application/strategic-merge-patch+json"


def old_event(name: str = "e", **fields: Any) -> dict[str, Any]:
    about = {"kind": "VirtualMachine", "name": "vm", "namespace": "default", "uid": "u"}
    said = {"reason": "Started", "message": "it runs", "type": "Normal", "count": 1, "source": {"component": "paddock"}}
    times = {"firstTimestamp": "2027-01-15T07:59:00Z", "lastTimestamp": "2027-01-15T07:59:30Z"}
    return {"metadata": {"name": name}, "involvedObject": about, **said, **times, **fields}


def new_event(name: str = "n", **fields: Any) -> dict[str, Any]:
    about = {"kind": "VirtualMachine", "name": "other", "namespace": "default"}
    recorder = {"reportingController": "paddock.io/x", "reportingInstance": "x-0", "action": "Start", "reason": "Started"}
    said = {"eventTime": "2027-01-15T07:59:00.5Z", "note": "it runs", "type": "Normal"}
    return {"metadata": {"name": name}, "regarding": about, **recorder, **said, **fields}


def names(data: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in data["items"]]


@pytest.mark.spec("kube-api", 116)
@played
async def test_one_event_in_two_shapes_for_an_hour(api: Harness, /) -> None:
    life = EventExpiry(api.parts, api.clock.seconds)
    made = await api.post(OLD, old_event())
    shown = (await api.get(f"{NEW}/e")).data
    assert (shown["apiVersion"], shown["kind"]) == ("events.k8s.io/v1", "Event")
    assert shown["regarding"] == made.data["involvedObject"]
    assert (shown["note"], shown["deprecatedCount"], shown["deprecatedSource"]) == ("it runs", 1, {"component": "paddock"})
    assert shown["deprecatedLastTimestamp"] == made.data["lastTimestamp"]
    assert shown["metadata"]["resourceVersion"] == made.data["metadata"]["resourceVersion"]
    assert not {"involvedObject", "message", "count", "source", "lastTimestamp"} & set(shown)
    newer = await api.post(NEW, new_event())
    assert (newer.status, newer.data["eventTime"]) == (201, "2027-01-15T07:59:00.500000Z")
    stored = (await api.get(f"{OLD}/n")).data
    assert (stored["apiVersion"], stored["message"], stored["reportingComponent"]) == ("v1", "it runs", "paddock.io/x")
    assert stored["involvedObject"]["name"] == "other"
    assert names((await api.get(OLD)).data) == names((await api.get(NEW)).data) == ["e", "n"]
    api.clock.time += 3500
    assert await life.forget_old() == 0
    api.clock.time += 200
    assert await life.forget_old() == 2
    assert names((await api.get(OLD)).data) == names((await api.get(NEW)).data) == []


@played
async def test_watches_of_either_shape_see_every_event(api: Harness, /) -> None:
    async with api.watch(f"{OLD}?watch=true") as old, api.watch(f"{NEW}?watch=true&fieldSelector=regarding.name%3Dvm") as new:
        await api.post(OLD, old_event())
        await api.post(NEW, new_event())
        assert [event["object"]["apiVersion"] for event in await old.take(2)] == ["v1", "v1"]
        first = await new.next()
        assert (first["type"], first["object"]["apiVersion"]) == ("ADDED", "events.k8s.io/v1")
        assert first["object"]["regarding"]["name"] == "vm"
        assert await new.quiet()


@played
async def test_a_series_is_patched_and_a_missing_event_is_made(api: Harness, /) -> None:
    assert (await api.put(f"{OLD}/e", old_event())).status == 201
    counted = await api.call("PATCH", f"{OLD}/e", {"count": 2, "message": "still"}, content_type=STRATEGIC)
    assert (counted.data["count"], counted.data["message"], counted.data["reason"]) == (2, "still", "Started")
    await api.post(NEW, new_event())
    series = {"series": {"count": 2, "lastObservedTime": "2027-01-15T08:00:00Z"}}
    again = await api.call("PATCH", f"{NEW}/n", series, content_type=STRATEGIC)
    assert again.data["series"] == {"count": 2, "lastObservedTime": "2027-01-15T08:00:00.000000Z"}


@pytest.mark.parametrize(
    ("path", "event", "field"),
    [
        (OLD, old_event(involvedObject={"kind": "X", "namespace": "other"}), "involvedObject.namespace"),
        (OLD, old_event(eventTime="2027-01-15T07:59:00.000000Z"), "reportingInstance"),
        (NEW, new_event(eventTime=None), "eventTime"),
        (NEW, new_event(reportingController=""), "reportingController"),
        (NEW, new_event(action=""), "action"),
        (NEW, new_event(type="Bad"), "type"),
        (NEW, new_event(note="x" * 1025), "note"),
        (NEW, new_event(deprecatedCount=3), "deprecatedCount"),
        (NEW, new_event(regarding={"kind": "X", "namespace": "other"}), "regarding.namespace"),
    ],
)
@played
async def test_refused_events(api: Harness, /, path: str, event: dict[str, Any], field: str) -> None:
    refused = await api.post(path, event)
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert field in refused.causes


@pytest.mark.spec("kube-api", 39)
@pytest.mark.parametrize(
    ("path", "selector", "found"),
    [
        (OLD, "involvedObject.name=vm", ["e"]),
        (OLD, "involvedObject.name!=vm", ["n"]),
        (OLD, "involvedObject.uid=u,involvedObject.kind=VirtualMachine,involvedObject.namespace=default", ["e"]),
        (OLD, "regarding.name=other", ["n"]),
        (OLD, "source=paddock", ["e"]),
        (OLD, "type=Normal", ["e", "n"]),
        (OLD, "reason=Stopped", []),
        (NEW, "regarding.name=vm", ["e"]),
        (NEW, "involvedObject.name=vm", ["e"]),
        (NEW, "reportingController=paddock.io/x", ["n"]),
        ("/api/v1/secrets", "type=Opaque", ["s"]),
        ("/api/v1/secrets", "type!=Opaque", ["t"]),
        ("/api/v1/secrets", "metadata.name=t,metadata.namespace=default", ["t"]),
        ("/api/v1/secrets", "metadata.namespace=other", []),
        ("/api/v1/namespaces", "status.phase=Active", ["default"]),
        ("/api/v1/namespaces", "name=default", ["default"]),
        ("/api/v1/namespaces", "metadata.name!=default", []),
    ],
)
@played
async def test_field_selectors(api: Harness, /, path: str, selector: str, found: list[str]) -> None:
    await api.post(OLD, old_event())
    await api.post(NEW, new_event())
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "t"}, "type": "mine"})
    escaped = selector.replace("=", "%3D").replace(",", "%2C")
    assert names((await api.get(f"{path}?fieldSelector={escaped}")).data) == found
    refused = await api.get(f"{path}?fieldSelector=spec.nothing%3Dx")
    assert (refused.status, refused.data["message"]) == (400, "field label not supported: spec.nothing")


@pytest.mark.spec("kube-api", 23)
@played
async def test_put_of_what_is_not_there_or_somebody_else(api: Harness, /) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "renewTime": "2027-01-15T08:00:00Z"}}
    made = await api.put(f"{LEASES}/l", lease)
    assert (made.status, made.data["spec"]["renewTime"]) == (201, "2027-01-15T08:00:00.000000Z")
    blind = await api.put(f"{LEASES}/l", lease)
    assert (blind.status, "must be specified for an update" in blind.data["message"]) == (422, True)
    held = await api.put(f"{LEASES}/l", {**made.data, "spec": {"holderIdentity": "b"}})
    assert held.status == 200
    late = await api.put(f"{LEASES}/l", {**made.data, "spec": {"holderIdentity": "c"}})
    assert (late.status, late.reason) == (409, "Conflict")
    network = {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": "x"}, "spec": {}}
    assert (await api.put(f"{NETWORKS}/x", network)).status == 404
    await api.post(MAPS, {"metadata": {"name": "m"}})
    other = await api.put(f"{MAPS}/m", {"metadata": {"name": "m", "uid": "another"}})
    assert (other.status, other.reason) == (409, "Conflict")
    assert (await api.put(f"{MAPS}/m", {"metadata": {"name": "n"}})).status == 400


@pytest.mark.parametrize(
    ("spec", "field"), [({"leaseDurationSeconds": 0}, "leaseDurationSeconds"), ({"leaseTransitions": -1}, "leaseTransitions")]
)
@played
async def test_refused_leases(api: Harness, /, spec: dict[str, Any], field: str) -> None:
    refused = await api.post(LEASES, {"metadata": {"name": "l"}, "spec": spec})
    assert (refused.status, f"spec.{field}" in refused.causes) == (422, True)
