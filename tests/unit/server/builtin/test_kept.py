"""Kinds that are kept because clients insist on them: defaults, rules, tables, and bodies in protobuf."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CORE, STORAGE = "/api/v1/namespaces/default", "/apis/storage.k8s.io/v1"
RUNTIMES, INGRESSES = "/apis/node.k8s.io/v1/runtimeclasses", "/apis/networking.k8s.io/v1/ingressclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "y"}]}}
DEVICES, NETWORKING = "/apis/resource.k8s.io/v1", "/apis/networking.k8s.io/v1"
REQUEST = {"name": "x", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
CLAIM = {"devices": {"requests": [REQUEST]}}
CLAIMS = f"{DEVICES}/namespaces/default/resourceclaims"
TEMPLATES = f"{DEVICES}/namespaces/default/resourceclaimtemplates"
OWNER = {"resource": "services", "namespace": "default", "name": "web"}
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
SLICE = {"driver": "a.b", "pool": POOL, "nodeName": "n"}
POLICIES = f"{NETWORKING}/namespaces/default/networkpolicies"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SOURCE = {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}

# where, what, the cells of its row behind the name (without the age)
KEPT: list[tuple[str, dict[str, Any], list[Any]]] = [
    (f"{CORE}/replicationcontrollers", {"spec": {"template": TEMPLATE}}, [1, 0, 0, "x", "y", "a=b"]),
    (f"{CORE}/podtemplates", {"template": TEMPLATE}, ["x", "y", "a=b"]),
    (f"{CORE}/resourcequotas", {"spec": {"hard": {"pods": 5}}}, ["", ""]),
    (f"{CORE}/limitranges", {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}]}}, []),
    (BUDGETS, {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}, ["1", "N/A", 0]),
    (f"{STORAGE}/csidrivers", {"spec": {}}, [True, False, False, "<unset>", False, "Persistent"]),
    (f"{STORAGE}/csinodes", {"spec": {"drivers": []}}, [0]),
    (f"{STORAGE}/volumeattachments", {"spec": SOURCE}, ["a.b", "pv", "n", False]),
    (f"{STORAGE}/namespaces/default/csistoragecapacities", {"storageClassName": "a", "capacity": "1Gi"}, []),
    (f"{STORAGE}/volumeattributesclasses", {"driverName": "d", "parameters": {"a": "1"}}, ["d"]),
    (RUNTIMES, {"handler": "h"}, ["h"]),
    (INGRESSES, {"spec": {"controller": "a.b/c", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}}, ["a.b/c", "K.g/n"]),
    (f"{DEVICES}/deviceclasses", {"spec": {"selectors": [{"cel": {"expression": "false"}}]}}, []),
    (f"{DEVICES}/namespaces/default/resourceclaims", {"spec": CLAIM}, ["pending"]),
    (f"{DEVICES}/namespaces/default/resourceclaimtemplates", {"spec": {"spec": CLAIM}}, []),
    (f"{DEVICES}/resourceslices", {"spec": {**SLICE, "devices": [{"name": "d", "attributes": {"a": {"int": 1}}}]}}, ["n", "a.b", "p"]),
    (f"{NETWORKING}/servicecidrs", {"spec": {"cidrs": ["10.0.0.0/16", "fd00::/64"]}}, ["10.0.0.0/16,fd00::/64"]),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 7}, [7, False, "PreemptLowerPriority"]),
]


@pytest.mark.parametrize(("path", "body", "cells"), KEPT, ids=[path.rpartition("/")[2] for path, _, _ in KEPT])
@played
async def test_it_is_stored_and_shown(api: Harness, /, path: str, body: dict[str, Any], cells: list[Any]) -> None:
    made = await api.post(path, {**body, "metadata": {"name": "q"}})
    assert made.status == 201, made.data
    table = (await api.get(path, accept=TABLE)).data
    names = [column["name"] for column in table["columnDefinitions"]]
    shown = [cell for name, cell in zip(names, table["rows"][0]["cells"], strict=True) if name not in ("Name", "Age", "Created At")]
    assert shown == cells
    assert (await api.put(f"{path}/q", made.data)).data["metadata"]["resourceVersion"] == made.data["metadata"]["resourceVersion"]


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    (f"{CORE}/resourcequotas", {"spec": {"hard": {"bogus": 1}}}, "spec.hard[bogus]", "must be a standard resource for quota"),
    (f"{CORE}/resourcequotas", {"spec": {"hard": {"storage": 1}}}, "spec.hard[storage]", "must be a standard resource for quota"),
    (f"{CORE}/resourcequotas", {"spec": {"hard": {"pods": "1.5"}}}, "spec.hard[pods]", "must be an integer"),
    (f"{CORE}/resourcequotas", {"spec": {"hard": {"pods": -1}}}, "spec.hard[pods]", "must be greater than or equal to 0"),
    (f"{CORE}/resourcequotas", {"spec": {"scopes": ["Odd"]}}, "spec.scopes", "unsupported scope"),
    (f"{CORE}/resourcequotas", {"spec": {"scopes": ["BestEffort", "NotBestEffort"]}}, "spec.scopes", "conflicting scopes"),
    (
        f"{CORE}/resourcequotas",
        {"spec": {"hard": {"services": 1}, "scopes": ["BestEffort"]}},
        "spec.scopes",
        "unsupported scope applied to resource",
    ),
    (
        f"{CORE}/resourcequotas",
        {"spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}}},
        "spec.scopeSelector.matchExpressions.values",
        "must be at least one value",
    ),
    (
        f"{CORE}/limitranges",
        {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": 1}, "min": {"storage": 2}}]}},
        "spec.limits[0].min[storage]",
        "min value 2 is greater than max value 1",
    ),
    (
        f"{CORE}/limitranges",
        {"spec": {"limits": [{"type": "PersistentVolumeClaim"}]}},
        "spec.limits[0].limits",
        "either minimum or maximum",
    ),
    (f"{CORE}/limitranges", {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}}, "spec.limits[1].type", "Duplicate value"),
    (f"{CORE}/replicationcontrollers", {"spec": {"selector": {"a": "c"}, "template": TEMPLATE}}, "spec.template.metadata.labels", "match"),
    (BUDGETS, {"spec": {"minAvailable": "120%"}}, "spec.minAvailable", "must not be greater than 100%"),
    (BUDGETS, {"spec": {"minAvailable": 1, "maxUnavailable": 1}}, "spec", "cannot be both set"),
    (f"{STORAGE}/volumeattachments", {"spec": {**SOURCE, "source": {}}}, "spec.source", "must specify exactly one of"),
    (f"{STORAGE}/volumeattributesclasses", {"driverName": "d"}, "parameters", "must contain at least one"),
    (INGRESSES, {"spec": {"controller": "plain"}}, "spec.controller", "domain-prefixed path"),
    (CLAIMS, {"spec": {"devices": {"requests": [{"name": "x"}]}}}, "spec.devices.requests[0]", "exactly one of"),
    (TEMPLATES, {"spec": {"spec": {"devices": {"requests": [{"name": "x"}]}}}}, "spec.spec.devices.requests[0]", "exactly one of"),
    (CLAIMS, {"spec": {"devices": {"requests": [REQUEST, REQUEST]}}}, "spec.devices.requests[1]", "Duplicate value"),
    (
        CLAIMS,
        {"spec": {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "c", "allocationMode": "All", "count": 2}}]}}},
        "spec.devices.requests[0].exactly.count",
        "must not be specified",
    ),
    (f"{DEVICES}/resourceslices", {"spec": {**SLICE, "allNodes": True}}, "spec", "multiple fields are set"),
    (f"{DEVICES}/resourceslices", {"spec": {**SLICE, "nodeName": None}}, "spec", "is required"),
    (f"{NETWORKING}/servicecidrs", {"spec": {}}, "spec.cidrs", "at least one CIDR required"),
    (f"{NETWORKING}/servicecidrs", {"spec": {"cidrs": ["10.0.0.1/16"]}}, "spec.cidrs[0]", "must not have bits set beyond the prefix"),
    (f"{NETWORKING}/servicecidrs", {"spec": {"cidrs": ["10.0.0.0/16", "10.1.0.0/16"]}}, "spec.cidrs", "no more than one"),
    (f"{NETWORKING}/ipaddresses", {"spec": {"parentRef": OWNER}}, "metadata.name", "must be a valid IP address"),
    (
        CLAIMS,
        {"spec": {"devices": {"requests": [{**REQUEST, "name": f"x{n}"} for n in range(33)]}}},
        "spec.devices.requests",
        "Too many: 33",
    ),
    (f"{DEVICES}/resourceslices", {"spec": {**SLICE, "pool": {**POOL, "generation": -1}}}, "spec.pool.generation", "equal to zero"),
    (
        POLICIES,
        {"spec": {"egress": [{"ports": [{"port": 1, "endPort": 70000}]}]}},
        "spec.egress[0].ports[0].endPort",
        "between 1 and 65535",
    ),
    (HOOKS, {"webhooks": [{"name": "a.b.c", "sideEffects": "Some"}]}, "webhooks[0].sideEffects", '"None", "NoneOnDryRun"'),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1_000_000_001}, "value", "maximum allowed value"),
]
# A kube-apiserver refuses these in other words.
REWORDED: list[tuple[str, dict[str, Any], str, str]] = [
    (CLAIMS, {"spec": {"devices": {"requests": [{**REQUEST, "name": "X"}]}}}, "spec.devices.requests[0].name", "must be a DNS-1123 label"),
    (CLAIMS, {"spec": {"devices": {"requests": [{**REQUEST, "name": "x" * 64}]}}}, "spec.devices.requests[0].name", "no more than 63"),
    (POLICIES, {"spec": {"podSelector": {"matchLabels": {"a b": "c"}}}}, "spec.podSelector.matchLabels.a b", "a label key"),
    (POLICIES, {"spec": {"podSelector": {"matchLabels": {"a": "c d"}}}}, "spec.podSelector.matchLabels.a", "label value"),
    (
        POLICIES,
        {"spec": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}}},
        "spec.podSelector.matchExpressions[0].operator",
        'supported values: "In"',
    ),
]


@pytest.mark.spec("kube-api", 140, "rules")
@pytest.mark.parametrize(
    ("path", "body", "field", "why"), [*REFUSED, *REWORDED], ids=[f"{case[2]}-{case[3][:12]}" for case in (*REFUSED, *REWORDED)]
)
@played
async def test_what_makes_no_sense_is_refused(api: Harness, /, path: str, body: dict[str, Any], field: str, why: str) -> None:
    said = await api.post(path, {**body, "metadata": {"name": "q"}})
    assert (said.status, field in said.causes) == (422, True), said.data
    assert why in said.causes[field]


@played
async def test_what_the_schema_and_the_rules_miss_is_told_once(api: Harness, /) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    said = await api.post(path, {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]})
    told = [(each["field"], each["message"]) for each in said.data["details"]["causes"]]
    assert told == [("rules[0].verbs", "Required value: verbs must contain at least one value")]


@played
async def test_the_status_of_a_claim_has_bounds(api: Harness, /) -> None:
    assert (await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": CLAIM})).status == 201
    users = [{"resource": "pods", "name": "p", "uid": str(number)} for number in range(257)]
    said = await api.merge(f"{CLAIMS}/c/status", {"status": {"reservedFor": users}})
    assert (said.status, said.causes) == (422, {"status.reservedFor": "Too many: 257: must have at most 256 items"})


CHANGED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (RUNTIMES, {"handler": "a"}, {"handler": "b"}, "handler"),
    (INGRESSES, {"spec": {"controller": "a.b/c"}}, {"spec": {"controller": "a.b/d"}}, "spec.controller"),
    (f"{STORAGE}/csidrivers", {"spec": {}}, {"spec": {"attachRequired": False}}, "spec.attachRequired"),
    (CLAIMS, {"spec": CLAIM}, {"spec": {"devices": {"requests": None}}}, "spec"),
    (f"{DEVICES}/resourceslices", {"spec": SLICE}, {"spec": {"nodeName": "m"}}, "spec.nodeName"),
    (f"{DEVICES}/resourceslices", {"spec": SLICE}, {"spec": {"driver": "other"}}, "spec.driver"),
    (f"{DEVICES}/resourceslices", {"spec": SLICE}, {"spec": {"pool": {"name": "other"}}}, "spec.pool.name"),
    (f"{NETWORKING}/servicecidrs", {"spec": {"cidrs": ["10.0.0.0/16"]}}, {"spec": {"cidrs": ["10.1.0.0/16"]}}, "spec.cidrs"),
    (f"{STORAGE}/volumeattachments", {"spec": SOURCE}, {"spec": {**SOURCE, "nodeName": "other"}}, "spec"),
    (f"{CORE}/resourcequotas", {"spec": {"scopes": ["BestEffort"]}}, {"spec": {"scopes": ["NotBestEffort"]}}, "spec.scopes"),
]


@pytest.mark.spec("kube-api", 140, "immutable specs")
@pytest.mark.parametrize(("path", "body", "change", "field"), CHANGED, ids=[case[3] for case in CHANGED])
@played
async def test_what_must_stay_stays(api: Harness, /, path: str, body: dict[str, Any], change: dict[str, Any], field: str) -> None:
    assert (await api.post(path, {**body, "metadata": {"name": "q"}})).status == 201
    said = await api.merge(f"{path}/q", change)
    assert (said.status, list(said.causes)) == (422, [field]), said.data
    assert "field is immutable" in said.causes[field]


@pytest.mark.spec("kube-api", 139)
@played
async def test_an_address_is_named_by_itself_and_keeps_its_owner(api: Harness, /) -> None:
    path = f"{NETWORKING}/ipaddresses"
    assert (await api.post(path, {"metadata": {"name": "fe80::1"}, "spec": {"parentRef": OWNER}})).status == 201
    table = (await api.get(path, accept=TABLE)).data
    assert table["rows"][0]["cells"][:2] == ["fe80::1", "services/default/web"]
    said = await api.merge(f"{path}/fe80::1", {"spec": {"parentRef": {"name": "other"}}})
    assert list(said.causes) == ["spec.parentRef"]
    odd = await api.post(path, {"metadata": {"name": "fe80:0::1"}, "spec": {"parentRef": OWNER}})
    assert 'canonical form ("fe80::1")' in odd.causes["metadata.name"]


@pytest.mark.spec("kube-api", 140, "ResourceClaim (with status)", "defaults")
@played
async def test_a_claim_of_devices_is_told_what_it_got(api: Harness, /) -> None:
    made = (await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": BARE})).data
    assert made["spec"] == CLAIM
    given = (await api.merge(f"{CLAIMS}/c/status", {"status": {"allocation": {}}})).data
    assert given["status"]["allocation"] == {"devices": {}}
    assert (await api.get(CLAIMS, accept=TABLE)).data["rows"][0]["cells"][1] == "allocated"


@played
async def test_amounts_have_one_spelling_and_limits_fill_in_requests(api: Harness, /) -> None:
    hard = {"requests.storage": "1024Mi", "limits.cpu": "0.5", "count/configmaps": 2000, "requests.memory": "1.5Gi"}
    made = (await api.post(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})).data
    expected = {"requests.storage": "1Gi", "limits.cpu": "500m", "count/configmaps": "2k", "requests.memory": "1536Mi"}
    assert made["spec"]["hard"] == expected
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}
    made = (await api.post(f"{CORE}/limitranges", {"metadata": {"name": "q"}, "spec": {"limits": [item]}})).data
    (limit,) = made["spec"]["limits"]
    assert (limit["default"], limit["defaultRequest"]) == ({"cpu": "2"}, {"cpu": "2", "memory": "1Gi"})


@played
async def test_a_budget_knows_that_there_are_no_pods(api: Harness, /) -> None:
    made = (await api.post(BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 2}})).data
    counts = {"disruptionsAllowed": 0, "currentHealthy": 0, "expectedPods": 0, "desiredHealthy": 2}
    assert {name: made["status"][name] for name in counts} == counts
    assert (made["status"]["conditions"][0]["status"], made["status"]["observedGeneration"]) == ("False", 1)
    changed = (await api.merge(f"{BUDGETS}/b", {"spec": {"minAvailable": 1}})).data
    assert (changed["metadata"]["generation"], changed["status"]["observedGeneration"]) == (2, 2)


DEVICE_CLASS = {"spec": {"selectors": [{"cel": {"expression": "false"}}]}}
KINDS = [
    pytest.param("deviceclasses", DEVICE_CLASS, marks=pytest.mark.spec("kube-api", 140, "DeviceClass")),
    pytest.param("resourceslices", {"spec": SLICE}, marks=pytest.mark.spec("kube-api", 140, "ResourceSlice")),
    pytest.param(
        "namespaces/default/resourceclaimtemplates",
        {"spec": {"metadata": {}, "spec": CLAIM}},
        marks=pytest.mark.spec("kube-api", 140, "ResourceClaimTemplate"),
    ),
]


@pytest.mark.parametrize(("plural", "body"), KINDS)
@played
async def test_a_kind_of_devices_is_stored_and_deleted(api: Harness, /, plural: str, body: dict[str, Any]) -> None:
    path = f"{DEVICES}/{plural}"
    made = await api.post(path, {**body, "metadata": {"name": "q"}})
    assert (made.status, made.data["spec"]) == (201, body["spec"]), made.data
    assert [each["spec"] for each in (await api.get(path)).data["items"]] == [body["spec"]]
    gone = await api.delete(f"{path}/q")
    assert (gone.status, gone.data["metadata"]["name"]) == (200, "q")
    assert (await api.get(f"{path}/q")).status == 404


@pytest.mark.parametrize(("plural", "body"), KINDS[:2])
@played
async def test_the_generation_of_a_class_and_a_slice_counts_their_changes(api: Harness, /, plural: str, body: dict[str, Any]) -> None:
    path = f"{DEVICES}/{plural}"
    assert (await api.post(path, {**body, "metadata": {"name": "q"}})).data["metadata"]["generation"] == 1
    change = {"devices": [{"name": "d"}]} if plural == "resourceslices" else {"selectors": None}
    changed = await api.merge(f"{path}/q", {"spec": change})
    assert (changed.status, changed.data["metadata"]["generation"]) == (200, 2), changed.data
    assert (await api.merge(f"{path}/q", {"metadata": {"labels": {"a": "b"}}})).data["metadata"]["generation"] == 2


BARE = {"devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "c"}}]}}


@pytest.mark.spec("kube-api", 140, "defaults")
@played
async def test_each_alternative_of_a_request_asks_for_one_device(api: Harness, /) -> None:
    alternatives = [{"name": "a", "deviceClassName": "c"}, {"name": "b", "deviceClassName": "d", "allocationMode": "All"}]
    spec = {"devices": {"requests": [{"name": "x", "firstAvailable": alternatives}]}}
    made = (await api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})).data
    first, second = made["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert first == {**alternatives[0], "allocationMode": "ExactCount", "count": 1}
    assert second == alternatives[1]


@pytest.mark.spec("kube-api", 140, "defaults", "immutable specs")
@played
async def test_a_template_of_claims_is_filled_in_and_stays(api: Harness, /) -> None:
    made = await api.post(TEMPLATES, {"metadata": {"name": "q"}, "spec": {"spec": BARE}})
    assert made.data["spec"]["spec"] == CLAIM
    other = {"devices": {"requests": [{**REQUEST, "name": "other"}]}}
    said = await api.merge(f"{TEMPLATES}/q", {"spec": {"spec": other}})
    assert (said.status, list(said.causes)) == (422, ["spec"])


def message(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    assert len(content) < 128
    return bytes((number << 3 | 2, len(content))) + content


@played
async def test_typed_clients_may_send_a_template_in_protobuf(api: Harness, /) -> None:
    container = message(1, b"x") + message(2, b"y") + message(10, message(1, message(1, message(1, b"true"))))
    template = message(1, message(11, message(1, b"a") + message(2, b"b"))) + message(2, message(2, container))
    body = message(1, message(1, b"pt")) + message(2, template)
    frame = b"k8s\0" + message(1, message(1, b"v1") + message(2, b"PodTemplate")) + message(2, body)
    made = await api.post(f"{CORE}/podtemplates", frame, content_type="application/vnd.kubernetes.protobuf")
    assert made.status == 201, made.data
    assert made.data["template"]["metadata"]["labels"] == {"a": "b"}
    (found,) = made.data["template"]["spec"]["containers"]
    assert (found["name"], found["image"], found["livenessProbe"]["exec"]) == ("x", "y", {"command": ["true"]})


@played
async def test_a_node_may_have_no_driver_yet(api: Harness, /) -> None:
    path = f"{STORAGE}/csinodes"
    frame = b"k8s\0" + message(1, message(1, b"storage.k8s.io/v1") + message(2, b"CSINode"))
    frame += message(2, message(1, message(1, b"n")) + message(2, b""))
    made = await api.post(path, frame, content_type="application/vnd.kubernetes.protobuf")
    assert made.status == 201, made.data
    named = {"name": "d", "nodeID": "i", "topologyKeys": None}
    assert (await api.merge(f"{path}/n", {"spec": {"drivers": [named]}})).status == 200
    said = await api.merge(f"{path}/n", {"spec": {"drivers": [{**named, "nodeID": "other"}]}})
    assert (said.status, list(said.causes)) == (422, ["spec.drivers"])
