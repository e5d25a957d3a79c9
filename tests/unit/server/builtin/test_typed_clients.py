"""Requests and expectations of Go's typed clients besides the schemas."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

SERVICES = "/api/v1/namespaces/default/services"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE_EVENTS = "/api/v1/namespaces/default/events"
MERGE = "application/merge-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize("nothing", [0, ""])
@played
async def test_a_target_port_of_nothing_is_the_port(api: Harness, /, nothing: Any) -> None:
    made = await api.post(SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80, "targetPort": nothing}]}})
    assert (made.status, made.data["spec"]["ports"][0]["targetPort"]) == (201, 80)


@pytest.mark.parametrize("spec", [{"drivers": None}, {}])
@played
async def test_an_empty_list_is_sent_as_null_or_not_at_all(api: Harness, /, spec: Any) -> None:
    made = await api.post("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "node"}, "spec": spec})
    assert (made.status, made.data["spec"]["drivers"]) == (201, None)


@played
async def test_who_writes_the_status_of_a_built_in_kind_may_label(api: Harness, /) -> None:
    await api.post(SERVICES, {"metadata": {"name": "web", "labels": {"a": "1"}}, "spec": {"ports": [{"port": 80}]}})
    change = {"metadata": {"annotations": {"seen": "yes"}}, "spec": {"type": "NodePort"}, "status": {"loadBalancer": {}}}
    changed = await api.call("PATCH", f"{SERVICES}/web/status", change, content_type=MERGE)
    assert changed.status == 200, changed.data
    assert changed.data["metadata"]["annotations"] == {"seen": "yes"}
    assert changed.data["metadata"]["labels"] == {"a": "1"}
    assert changed.data["spec"]["type"] == "ClusterIP"


@played
async def test_the_source_of_an_event_is_its_reporter_where_it_names_none(api: Harness, /) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    told = {"eventTime": "2027-01-15T08:00:00.000000Z", "action": "Do", "reason": "Test", "type": "Normal", "regarding": about}
    told |= {"metadata": {"name": "told"}, "reportingController": "tester", "reportingInstance": "tester-0"}
    assert (await api.post(EVENTS, told)).status == 201
    old = {"metadata": {"name": "old"}, "involvedObject": about, "source": {"component": "other"}, "reportingComponent": "tester"}
    assert (await api.post(CORE_EVENTS, old)).status == 201
    for selector, names in (("source=tester", ["told"]), ("source=other", ["old"]), ("source!=other", ["told"])):
        found = await api.get(f"{CORE_EVENTS}?fieldSelector={selector}")
        assert [each["metadata"]["name"] for each in found.data["items"]] == names, selector


def definition(**schema: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", **schema}}}
    names = {"kind": "Crate", "plural": "crates"}
    return {
        "metadata": {"name": "crates.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


@played
async def test_conditions_that_others_write_into_a_definition_are_not_judged(api: Harness, /) -> None:
    await api.post(DEFINITIONS, definition())
    told = {"status": {"conditions": [{"message": "patched"}]}}
    changed = await api.call("PATCH", f"{DEFINITIONS}/crates.example.com/status", told, content_type=MERGE)
    assert changed.status == 200, changed.data
    assert changed.data["status"]["conditions"][0]["message"] == "patched"


@played
async def test_a_kind_that_takes_any_member_lists_none_in_the_second_openapi(api: Harness, /) -> None:
    await api.post(DEFINITIONS, definition(**{"x-kubernetes-preserve-unknown-fields": True}))
    known = (await api.get("/openapi/v2")).data["definitions"]["com.example.v1.Crate"]
    assert known == {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Crate"}]}


@played
async def test_a_key_that_stands_twice_in_an_applied_configuration_is_told_with_its_line(api: Harness, /) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  b: one\n  b: two\n"
    path = "/api/v1/namespaces/default/configmaps/a?fieldManager=me&fieldValidation=Strict"
    refused = await api.call("PATCH", path, body, content_type="application/apply-patch+yaml")
    assert (refused.status, 'line 7: key "b" already set in map' in refused.data["message"]) == (400, True)


@played
async def test_lists_have_the_kind_that_the_definition_says(api: Harness, /) -> None:
    wanted = definition()
    wanted["spec"]["names"]["listKind"] = "HeapOfCrates"
    await api.post(DEFINITIONS, wanted)
    assert (await api.get("/apis/example.com/v1/namespaces/default/crates")).data["kind"] == "HeapOfCrates"
