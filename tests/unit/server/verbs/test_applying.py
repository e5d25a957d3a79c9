"""Server-side apply over the API (docs/spec/kube-api.md section 4)."""

import json
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness, Reply

MAPS = "/api/v1/namespaces/default/configmaps"
POOLS = "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools"
VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
SERVICES = "/api/v1/namespaces/default/services"


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def owned(reply: Reply) -> dict[tuple[str, str, str], Any]:
    """Return the owned fields of each manager, by name, operation and subresource."""
    fields = reply.data["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"] for entry in fields}


@pytest.mark.spec("kube-api", 76)
@played
async def test_the_first_apply_creates_and_owns_what_was_sent(api: Harness, /) -> None:
    made = await api.apply(f"{MAPS}/a", config_map(x="1"))
    assert made.status == 201
    assert owned(made) == {("tester", "Apply", ""): {"f:data": {"f:x": {}}}}
    again = await api.apply(f"{MAPS}/a", config_map(x="1"))
    assert (again.status, again.data) == (200, made.data)


@pytest.mark.spec("kube-api", 85)
@played
async def test_what_an_apply_must_not_be(api: Harness, /) -> None:
    nobody = await api.call("PATCH", f"{MAPS}/a", config_map(), content_type="application/apply-patch+yaml")
    assert (nobody.status, list(nobody.causes)) == (422, ["fieldManager"])
    managed = config_map()
    managed["metadata"]["managedFields"] = [{"manager": "me", "operation": "Apply", "apiVersion": "v1"}]
    refused = await api.apply(f"{MAPS}/a", managed)
    assert (refused.status, "managedFields" in refused.data["message"]) == (400, True)
    forced = await api.merge(f"{MAPS}/a?force=true", config_map())
    assert (forced.status, list(forced.causes)) == (422, ["force"])


@pytest.mark.spec("kube-api", 88)
@played
async def test_defaults_belong_to_nobody_who_applies(api: Harness, /) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    made = await api.apply(f"{SERVICES}/web", service, "one")
    assert made.status == 201, made.data
    assert made.data["spec"]["sessionAffinity"] == "None"
    assert "f:sessionAffinity" not in str(owned(made)["one", "Apply", ""])
    second = await api.apply(f"{SERVICES}/web", {**service, "spec": {"sessionAffinity": "ClientIP"}}, "two")
    assert second.status == 200, second.data
    assert second.data["spec"]["sessionAffinity"] == "ClientIP"


@pytest.mark.spec("kube-api", 84)
@played
async def test_entries_name_their_subresource_and_own_nothing_that_the_server_keeps(api: Harness, /) -> None:
    volume = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "d", "labels": {"x": "y"}}}
    volume["spec"] = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    made = await api.post(f"{VOLUMES}?fieldManager=user", volume)
    assert made.status == 201, made.data
    changed = made.data | {"metadata": made.data["metadata"] | {"annotations": {"a": "b"}, "finalizers": ["example.com/x"]}}
    assert (await api.put(f"{VOLUMES}/d?fieldManager=other", changed)).status == 200
    await api.call(
        "PATCH",
        f"{VOLUMES}/d/status?fieldManager=controller",
        {"status": {"phase": "Pending"}},
        content_type="application/merge-patch+json",
    )
    # What is being deleted has two members more that the server sets.
    await api.delete(f"{VOLUMES}/d")
    found = owned(await api.merge(f"{VOLUMES}/d?fieldManager=last", {"metadata": {"annotations": {"c": "d"}}}))
    assert found["controller", "Update", "status"] == {"f:status": {".": {}, "f:phase": {}}}
    assert {subresource for _, _, subresource in found} == {"", "status"}
    for fields in found.values():
        assert set(fields) <= {"f:metadata", "f:spec", "f:status"}
        assert set(fields.get("f:metadata", {})) <= {"f:labels", "f:annotations", "f:finalizers"}


@pytest.mark.spec("kube-api", 89)
@played
async def test_status_and_spec_have_owners_of_their_own(api: Harness, /) -> None:
    status = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "d"}, "status": {"phase": "Pending"}}
    missing = await api.apply(f"{VOLUMES}/d/status", status, "controller")
    assert (missing.status, missing.reason) == (404, "NotFound")
    spec = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    made = await api.apply(f"{VOLUMES}/d", {**status, "spec": spec, "status": {"phase": "Failed"}}, "user")
    assert made.status == 201, made.data
    assert made.data.get("status", {}).get("phase") != "Failed"
    told = await api.apply(f"{VOLUMES}/d/status", {**status, "spec": {"source": {"upload": {}}}}, "controller")
    assert told.status == 200, told.raw
    assert (told.data["status"]["phase"], told.data["spec"]["source"]) == ("Pending", {"blank": {}})
    assert owned(told)["controller", "Apply", "status"] == {"f:status": {"f:phase": {}}}
    labelled = {**status, "metadata": {"name": "d", "labels": {"x": "y"}}, "spec": spec, "status": {}}
    again = await api.apply(f"{VOLUMES}/d", labelled, "user")
    assert (again.status, again.data["status"]["phase"]) == (200, "Pending")


@pytest.mark.spec("kube-api", 28)
@played
async def test_owner_references_are_merged_or_refused(api: Harness, /) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    twice = config_map()
    twice["metadata"]["ownerReferences"] = [owner, owner]
    made = await api.post(MAPS, twice)
    assert (made.status, made.data["metadata"]["ownerReferences"]) == (201, [owner])
    assert any("ownerReferences" in warning for warning in made.warnings)
    two = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    two["metadata"]["ownerReferences"] = [{**owner, "uid": uid, "controller": True} for uid in "12"]  # type: ignore[index]
    refused = await api.post(MAPS, two)
    assert (refused.status, "metadata.ownerReferences" in refused.causes) == (422, True)


@pytest.mark.spec("kube-api", 30)
@played
async def test_all_that_is_wrong_is_told_at_once(api: Harness, /) -> None:
    service = {"metadata": {"name": "web"}, "spec": {"type": "Sometimes", "ports": [{"port": 0}, {"port": 70000}]}}
    said = await api.post(SERVICES, service)
    assert said.status == 422, said.data
    causes = said.data["details"]["causes"]
    fields = {cause["field"] for cause in causes}
    assert {"spec.type", "spec.ports[0].port", "spec.ports[1].port"} <= fields
    reasons = {cause["field"]: cause["reason"] for cause in causes}
    assert (reasons["spec.type"], reasons["spec.ports[0].port"]) == ("FieldValueNotSupported", "FieldValueInvalid")
    assert all(cause["message"] for cause in causes)
    assert all(field in said.data["message"] for field in fields)
    assert ": [" in said.data["message"]


@pytest.mark.spec("kube-api", 30)
@pytest.mark.parametrize(
    ("metadata", "field", "reason"),
    [
        ({}, "metadata.name", "FieldValueRequired"),
        ({"name": "a", "annotations": {"a": "x" * (256 * 1024)}}, "metadata.annotations", "FieldValueTooLong"),
        ({"name": "A_b"}, "metadata.name", "FieldValueInvalid"),
    ],
)
@played
async def test_each_cause_has_the_reason_of_its_kind(api: Harness, /, metadata: dict[str, Any], field: str, reason: str) -> None:
    said = await api.post(MAPS, {"metadata": metadata})
    assert [(cause["field"], cause["reason"]) for cause in said.data["details"]["causes"]] == [(field, reason)], said.data


LAST = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize(
    ("manager", "said", "now", "status"),
    [
        ("kubectl", {"data": {"a": "1", "b": "1"}}, {"a": "2"}, 200),
        ("other", {"data": {"a": "1", "b": "1"}}, {"a": "2"}, 409),
        # changed since by somebody else, or never applied
        ("kubectl", {"data": {"a": "0", "b": "1"}}, {"a": "2"}, 409),
        ("kubectl", {"data": {"b": "1"}}, {"a": "2"}, 409),
        ("kubectl", {"data": {"b": "1"}}, {"b": "2"}, 200),
        # an annotation that says nothing
        ("kubectl", {"data": ["a"]}, {"a": "2"}, 409),
        ("kubectl", None, {"a": "2"}, 409),
    ],
)
@played
async def test_kubectl_takes_over_what_it_applied_by_itself(
    api: Harness, /, manager: str, said: Any, now: dict[str, str], status: int
) -> None:
    applied = "{" if said is None else json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **said})
    first = config_map(a="1", b="1")
    first["metadata"]["annotations"] = {LAST: applied}
    assert (await api.post(f"{MAPS}?fieldManager=kubectl-client-side-apply", first)).status == 201
    reply = await api.apply(f"{MAPS}/a", config_map(**now), manager)
    assert reply.status == status, reply.data
    if status == 409:
        assert [cause["field"] for cause in reply.data["details"]["causes"]] == [f".data.{name}" for name in now]
    else:
        assert owned(reply)[manager, "Apply", ""]["f:data"] == {f"f:{name}": {} for name in now}
