"""MutatingAdmissionPolicies and their bindings; `tests/reference/test_admission.py` asks a kube-apiserver the same."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness, Reply
from tests.kit.servers.webhooks import Webhook
from tests.unit.server.admission.test_webhooks import allow, configure

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/mutatingadmissionpolicies", f"{GROUP}/mutatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
MAP = {"metadata": {"name": "a", "labels": {"color": "red"}}, "data": {"k": "v"}}
BY = "policy 'p' with binding 'b' denied request: "
Spec = dict[str, Any]


def merging(text: str) -> Spec:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}


def editing(text: str) -> Spec:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}


def spec(*mutations: Spec, **more: Any) -> Spec:
    constraints = {"resourceRules": [RULE]}
    return {"matchConstraints": constraints, "reinvocationPolicy": "Never", "mutations": list(mutations), **more}


# A policy, and the labels and data that a ConfigMap has after it.
CHANGED: list[tuple[Spec, dict[str, str], dict[str, str]]] = [
    (spec(merging("Object{metadata: Object.metadata{labels: {'x': 'y'}}}")), {"x": "y"}, {}),
    (spec(merging("Object{metadata: Object.metadata{labels: Object.metadata.labels{x: 'y'}}}")), {"x": "y"}, {}),
    (spec(merging("Object{data: {'k2': object.data.k + '!'}}")), {}, {"k2": "v!"}),
    (spec(merging("Object{?data: optional.none(), metadata: Object.metadata{?labels: optional.of({'o': 'p'})}}")), {"o": "p"}, {}),
    (spec(merging("Object{apiVersion: 'v2', kind: 'Foo'}")), {}, {}),
    (
        spec(merging("Object{data: {'a': '1'}}"), editing("[JSONPatch{op: 'add', path: '/data/b', value: object.data.a}]")),
        {},
        {"a": "1", "b": "1"},
    ),
    (spec(editing("[JSONPatch{op: 'add', path: '/data/k3', value: 'v3'}]")), {}, {"k3": "v3"}),
    (
        spec(editing("[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('ex.com/a'), value: 'x'}]")),
        {"ex.com/a": "x"},
        {},
    ),
    (spec(editing("[JSONPatch{op: 'add', path: '/data', value: Object.data{k: 'x'}}]")), {}, {"k": "x"}),
    (spec(editing("[JSONPatch{op: 'test', path: '/data/k', value: 'no'}, JSONPatch{op: 'add', path: '/data/n', value: 'x'}]")), {}, {}),
    (
        spec(editing("[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, JSONPatch{op: 'add', path: '/data/n', value: 'x'}]")),
        {},
        {"n": "x"},
    ),
    (spec(editing("[JSONPatch{op: 'copy', from: '/data/k', path: '/data/z'}]")), {}, {"z": "v"}),
    (spec(editing("has(object.data.nope) ? [JSONPatch{op: 'add', path: '/data/z', value: '1'}] : []")), {}, {}),
    (spec(editing("[JSONPatch{op: 'add', path: '/data/b', value: JSONPatch{op: 'a', path: 'c'}.path}]")), {}, {"b": "c"}),
    (spec(merging("Object{data: {'a': object.data.nope}}"), failurePolicy="Ignore"), {}, {}),
    (
        spec(merging("Object{data: {'c': string(variables.n)}}"), variables=[{"name": "n", "expression": "size(object.data)"}]),
        {},
        {"c": "1"},
    ),
    (spec(merging("Object{data: {'c': 'x'}}"), matchConditions=[{"name": "no", "expression": "object.data.k == 'w'"}]), {}, {}),
]
_PLACE = "which matches field name path from root Object type"
_MISMATCH = f'type mismatch: unexpected type name "Object.spec", expected "Object.metadata", {_PLACE}'
# A policy, and the end of what it says of a ConfigMap that it cannot change.
DENIED = [
    (
        spec(merging("Object{metadata: Object.spec{labels: {'x': 'y'}}}")),
        _MISMATCH,
    ),
    (
        spec(merging("Object{foo: 'x'}")),
        "error applying patch: failed to convert patch object to typed object: .foo: field not declared in schema",
    ),
    (
        spec(merging("Object{data: {'a': object.data.nope}}")),
        "expression 'Object{data: {'a': object.data.nope}}' resulted in error: no such key: nope",
    ),
    (
        spec(
            merging(
                "Object{metadata: Object.metadata{ownerReferences: "
                "[Object.metadata.ownerReferences{apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u'}]}}"
            )
        ),
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .metadata.ownerReferences[0]",
    ),
]
_APPLY, _PATCH = "spec.mutations[0].applyConfiguration", "spec.mutations[0].jsonPatch"
# A policy that makes no sense, the field, and why.
REFUSED: list[tuple[Spec, str, str]] = [
    ({}, "spec.matchConstraints", "Required value"),
    (spec(), "spec.mutations", "Required value: mutations must contain at least one item"),
    (spec(merging("Object{}"), reinvocationPolicy=None), "spec.reinvocationPolicy", "Required value"),
    (spec(merging("Object{}"), reinvocationPolicy="x"), "spec.reinvocationPolicy", 'supported values: "IfNeeded", "Never"'),
    (spec(merging("'x'")), f"{_APPLY}.expression", "must evaluate to Object but got string"),
    (spec(merging(" ")), f"{_APPLY}.expression", "Required value"),
    (spec(merging("Foo{a: 1}")), f"{_APPLY}.expression", "undeclared reference to 'Foo' (in container '')"),
    (spec(merging("Object{data: params.x}")), f"{_APPLY}.expression", "undeclared reference to 'params' (in container '')"),
    (spec(editing("['x']")), f"{_PATCH}.expression", "must evaluate to list(JSONPatch) but got list(string)"),
    (spec(editing("JSONPatch{op: 'add'}")), f"{_PATCH}.expression", "must evaluate to list(JSONPatch) but got JSONPatch"),
    (spec(editing("[JSONPatch{op: 1}]")), f"{_PATCH}.expression", "expected type of field 'op' is 'string' but provided type is 'int'"),
    (spec(editing("[JSONPatch{pth: '/a'}]")), f"{_PATCH}.expression", "expected type of field 'pth' is '' but provided type is 'string'"),
    (spec({"patchType": "JSONPatch"}), _PATCH, "must be specified when patchType is JSONPatch"),
    (spec({**merging("Object{}"), "jsonPatch": {}}), _PATCH, "must not be specified when patchType is ApplyConfiguration"),
    (spec({"patchType": "x"}), "spec.mutations[0].patchType", 'supported values: "ApplyConfiguration", "JSONPatch"'),
    (spec({}), "spec.mutations[0].patchType", "Required value"),
    (
        spec(merging("Object{}"), matchConstraints={"resourceRules": [{**RULE, "operations": ["DELETE"]}]}),
        "spec.matchConstraints.resourceRules.operations",
        'supported values: "*", "CONNECT", "CREATE", "UPDATE"',
    ),
]
BAD_BINDINGS: list[tuple[Spec, str]] = [
    ({"policyName": ""}, "spec.policyName"),
    ({"paramRef": {"name": "a"}}, "spec.paramRef.parameterNotFoundAction"),
]


async def bind(api: Harness, said: Spec, name: str = "p", **binding: Any) -> None:
    made = await api.post(POLICIES, {"metadata": {"name": name}, "spec": said})
    assert made.status == 201, made.data
    bound = await api.post(BINDINGS, {"metadata": {"name": "b" if name == "p" else name}, "spec": {"policyName": name, **binding}})
    assert bound.status == 201, bound.data


async def write(api: Harness) -> Reply:
    return await api.post(f"{MAPS}?dryRun=All", MAP)


@pytest.mark.spec("kube-api", 149)
@pytest.mark.parametrize(("said", "labels", "data"), CHANGED)
@played
async def test_a_bound_policy_changes_what_is_written(api: Harness, /, said: Spec, labels: dict[str, str], data: dict[str, str]) -> None:
    await bind(api, said)
    made = (await write(api)).data
    assert made["metadata"]["labels"] == {"color": "red", **labels}
    assert made["data"] == {"k": "v", **data}
    # What a policy adds is nobody's.
    owned = made["metadata"]["managedFields"][0]["fieldsV1"]
    assert owned == {"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:labels": {".": {}, "f:color": {}}}}


@pytest.mark.spec("kube-api", 149)
@pytest.mark.parametrize(("said", "why"), DENIED)
@played
async def test_a_policy_that_cannot_change_an_object_denies_the_write(api: Harness, /, said: Spec, why: str) -> None:
    await bind(api, said)
    denied = await write(api)
    assert (denied.status, denied.reason, denied.data["message"]) == (403, "Invalid", f"{BY}{why}")
    assert denied.data["details"] == {"name": "a", "kind": "configmaps", "causes": [{"message": f"{BY}{why}"}]}
    await api.delete(f"{BINDINGS}/b")
    assert (await write(api)).status == 201


@pytest.mark.parametrize(("said", "field", "why"), REFUSED)
@played
async def test_mutating_policies_that_make_no_sense_are_refused(api: Harness, /, said: Spec, field: str, why: str) -> None:
    refused = await api.post(POLICIES, {"metadata": {"name": "p"}, "spec": said})
    assert refused.status == 422
    assert [why in each["message"] for each in refused.data["details"]["causes"] if each["field"] == field] == [True]


@pytest.mark.parametrize(("said", "field"), BAD_BINDINGS)
@played
async def test_mutating_bindings_that_make_no_sense_are_refused(api: Harness, /, said: Spec, field: str) -> None:
    refused = await api.post(BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", **said}})
    assert [each["field"] for each in refused.data["details"]["causes"]] == [field]


@played
async def test_parameters_are_those_that_the_binding_names(api: Harness, /) -> None:
    await api.post(MAPS, {"metadata": {"name": "settings"}, "data": {"x": "from elsewhere"}})
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "settings", "parameterNotFoundAction": "Deny"}
    await bind(api, spec(merging("Object{data: {'x': params.data.x}}"), paramKind=kind), paramRef=reference)
    assert (await write(api)).data["data"] == {"k": "v", "x": "from elsewhere"}
    await api.delete(f"{MAPS}/settings")
    why = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert (await write(api)).data["message"] == f"{BY}{why}"


@pytest.mark.spec("kube-api", 149)
@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
@run_by(asyncio.run)
async def test_a_policy_works_again_when_a_webhook_changed_the_object_after_it(tmp_path: Path, again: str) -> None:
    patch = base64.b64encode(orjson.dumps([{"op": "add", "path": "/data/hook", "value": "1"}])).decode()
    async with Harness() as api, Webhook(tmp_path, lambda asked: allow(asked, patch=patch, patchType="JSONPatch")) as hook:
        await bind(api, spec(merging("Object{data: {'seen': string(size(object.data))}}"), reinvocationPolicy=again))
        await configure(api, hook, "Mutating")
        made = (await write(api)).data
        # The policy comes first, and the webhook sees what it made.
        assert hook.asked[0]["request"]["object"]["data"] == {"k": "v", "seen": "1"}
        assert made["data"] == {"k": "v", "hook": "1", "seen": "3" if again == "IfNeeded" else "1"}
        await api.parts.gate.close()


@played
async def test_rules_of_definitions_make_no_messages(api: Harness, /) -> None:
    rule = {"x-kubernetes-validations": [{"rule": "Object{a: 1} == self"}]}
    schema = {"type": "object", "properties": {"spec": {"type": "object", **rule}}}
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    body = {
        "metadata": {"name": "foos.ex.com"},
        "spec": {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    refused = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    assert (refused.status, "undeclared reference to 'Object'" in refused.data["message"]) == (422, True)
