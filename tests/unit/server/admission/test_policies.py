"""ValidatingAdmissionPolicies and their bindings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.server.housekeeping.policies import PolicyStatusController
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import GuardedHarness, Harness, Reply

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
BY = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request:"


async def policy(api: Harness, *validations: Any, rule: dict[str, Any] | None = None, name: str = "p", **spec: Any) -> Reply:
    said = [each if isinstance(each, dict) else {"expression": each} for each in validations]
    constraints = {"resourceRules": [rule or RULE]}
    body = {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, "validations": said, **spec}}
    return await api.post(POLICIES, body)


async def binding(api: Harness, *actions: str, **spec: Any) -> Reply:
    body = {"policyName": "p", "validationActions": list(actions or ("Deny",)), **spec}
    return await api.post(BINDINGS, {"metadata": {"name": "b"}, "spec": body})


async def write(api: Harness, name: str = "a", **more: Any) -> Reply:
    return await api.post(MAPS, {"metadata": {"name": name, "labels": {"color": "red"}}, "data": {"k": "v"}, **more})


@played
async def test_a_bound_policy_denies_in_upstreams_words(api: Harness, /) -> None:
    made = await policy(api, "object.data.k == 'w'")
    assert made.status == 201, made.data
    spec = made.data["spec"]
    assert (spec["failurePolicy"], spec["matchConstraints"]["matchPolicy"]) == ("Fail", "Equivalent")
    assert (await write(api, "free")).status == 201
    assert (await binding(api)).status == 201
    said = await write(api)
    text = f"{BY} failed expression: object.data.k == 'w'"
    assert (said.status, said.reason) == (422, "Invalid")
    assert said.data["message"] == f'configmaps "a" is forbidden: {text}'
    assert said.data["details"] == {"name": "a", "kind": "configmaps", "causes": [{"message": text}]}
    assert (await write(api, data={"k": "w"})).status == 201
    assert (await api.merge(f"{MAPS}/a", {"data": {"k": "x"}})).status == 422
    assert (await api.delete(f"{MAPS}/a")).status == 200
    await api.delete(f"{BINDINGS}/b")
    assert (await write(api)).status == 201


SAID: list[tuple[dict[str, Any], int, str, str]] = [
    ({"expression": "false", "message": " no "}, 422, "Invalid", "no"),
    ({"expression": "false", "reason": "Forbidden"}, 403, "Forbidden", "failed expression: false"),
    ({"expression": "false", "reason": "RequestEntityTooLarge"}, 413, "RequestEntityTooLarge", "failed expression: false"),
    ({"expression": "false", "message": "plain", "messageExpression": "'got ' + object.data.k"}, 422, "Invalid", "got v"),
    ({"expression": "false", "message": "plain", "messageExpression": "string(object.data.absent)"}, 422, "Invalid", "plain"),
    ({"expression": "false", "message": "plain", "messageExpression": "'a\\nb'"}, 422, "Invalid", "plain"),
    ({"expression": "object.absent > 1"}, 422, "Invalid", "expression 'object.absent > 1' resulted in error: no such key: absent"),
]


@pytest.mark.parametrize(("validation", "code", "reason", "text"), SAID)
@played
async def test_what_is_said_and_how(api: Harness, /, validation: dict[str, Any], code: int, reason: str, text: str) -> None:
    await policy(api, validation)
    await binding(api)
    said = await write(api)
    assert (said.status, said.reason) == (code, reason)
    assert said.data["message"].endswith(f"{BY} {text}")


HOLDS: list[tuple[str, bool]] = [
    ("object.metadata.name == 'a' && object.metadata.namespace == 'default'", True),
    ("oldObject == null", True),
    ("request.operation == 'CREATE' && request.resource.resource == 'configmaps' && request.name == 'a'", True),
    ("request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups", True),
    ("request.dryRun == false && request.kind.kind == 'ConfigMap'", True),
    ("namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'", True),
    ("variables.two == 2 && variables.four == 4", True),
    ("has(object.spec) ? variables.wrong > 1 : true", True),
    ("variables.wrong > 1", False),
    ("authorizer.group('').resource('secrets').namespace('x').check('get').allowed()", True),
    ("authorizer.requestResource.check('delete').allowed()", True),
    ("authorizer.path('/healthz').check('get').allowed()", True),
    ("authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()", False),
    ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", True),
]


@pytest.mark.parametrize(("expression", "holds"), HOLDS)
@played
async def test_what_expressions_see(api: Harness, /, expression: str, holds: bool) -> None:
    variables = [("two", "1 + 1"), ("wrong", "object.spec.x"), ("four", "variables.two * 2")]
    said = [{"name": name, "expression": text} for name, text in variables]
    made = await policy(api, expression, variables=said)
    assert made.status == 201, made.data
    await binding(api)
    assert ((await write(api)).status == 201) is holds


@played
async def test_a_variable_that_fails_says_so(api: Harness, /) -> None:
    await policy(api, "variables.x == 1", variables=[{"name": "x", "expression": "object.nothing"}])
    await binding(api)
    text = "expression 'variables.x == 1' resulted in error: composited variable \"x\" fails to evaluate: no such key: nothing"
    assert (await write(api)).data["message"].endswith(text)


@run_by(asyncio.run)
async def test_rights_are_those_of_whoever_asks(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
        subjects = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ada"}]
        may = [f"authorizer.requestResource.check('{verb}').allowed()" for verb in ("create", "delete")]
        constraints = {"resourceRules": [RULE]}
        spec = {"matchConstraints": constraints, "validations": [{"expression": each} for each in may]}
        for path, body in (
            (f"{rbac}/clusterroles", {"metadata": {"name": "r"}, "rules": rules}),
            (f"{rbac}/clusterrolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": subjects}),
            (POLICIES, {"metadata": {"name": "p"}, "spec": spec}),
            (BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}),
        ):
            made = await api.post(path, body, authorization="Bearer root")
            assert made.status == 201, made.data
        said = await api.post(MAPS, {"metadata": {"name": "a"}}, authorization="Bearer ada")
        assert said.data["message"].endswith(f"failed expression: {may[1]}")
        assert (await api.post(MAPS, {"metadata": {"name": "a"}}, authorization="Bearer root")).status == 201


@played
async def test_actions_other_than_denial(api: Harness, /) -> None:
    await policy(api, {"expression": "false", "message": "hm"})
    await binding(api, "Warn", "Audit")
    made = await write(api)
    assert made.status == 201
    assert made.warnings == ["299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm\""]


@played
async def test_failures_may_be_ignored(api: Harness, /) -> None:
    await policy(api, "object.absent > 1", failurePolicy="Ignore")
    await binding(api)
    assert (await write(api)).status == 201
    assert (await api.merge(f"{POLICIES}/p", {"spec": {"validations": [{"expression": "false"}]}})).status == 200
    assert (await write(api, "b")).status == 422


MATCHING: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({"matchConditions": [{"name": "c", "expression": "object.data.k == 'x'"}]}, {}, False),
    ({"matchConditions": [{"name": "c", "expression": "object.data.k == 'v'"}]}, {}, True),
    ({}, {"matchResources": {"objectSelector": {"matchLabels": {"color": "blue"}}}}, False),
    ({}, {"matchResources": {"objectSelector": {"matchLabels": {"color": "red"}}}}, True),
    ({}, {"matchResources": {"namespaceSelector": {"matchLabels": {"no": "where"}}}}, False),
    ({}, {"matchResources": {"resourceRules": [{**RULE, "resources": ["secrets"]}]}}, False),
    ({}, {"matchResources": {"resourceRules": [{**RULE, "resourceNames": ["a"]}]}}, True),
    ({}, {"matchResources": {"resourceRules": [{**RULE, "resourceNames": ["z"]}]}}, False),
    ({}, {"matchResources": {"excludeResourceRules": [{**RULE, "resourceNames": ["a"]}]}}, False),
    ({"matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": [RULE]}}, {}, False),
    ({"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["z"]}, {**RULE, "resourceNames": ["a"]}]}}, {}, True),
    ({"matchConstraints": {"resourceRules": [{**RULE, "apiVersions": ["v2"]}]}}, {}, False),
]


@pytest.mark.parametrize(("spec", "bound", "asked"), MATCHING)
@played
async def test_only_what_it_is_about_is_judged(api: Harness, /, spec: dict[str, Any], bound: dict[str, Any], asked: bool) -> None:
    assert (await policy(api, "false", **spec)).status == 201
    assert (await binding(api, **bound)).status == 201
    assert (await write(api)).status == (422 if asked else 201)


@played
async def test_parameters_by_name_and_by_label(api: Harness, /) -> None:
    await api.namespace("params")
    maps = "/api/v1/namespaces/params/configmaps"
    for name, most in (("one", "1"), ("five", "5")):
        await api.post(maps, {"metadata": {"name": name, "labels": {"limits": "yes"}}, "data": {"most": most}})
    text = "params == null || size(object.data) <= int(params.data.most)"
    await policy(api, text, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    two = {"a": "1", "b": "2"}

    async def verdict(**reference: Any) -> tuple[int, str]:
        await api.delete(f"{BINDINGS}/b")
        made = await binding(api, **({"paramRef": {"parameterNotFoundAction": "Deny", **reference}} if reference else {}))
        assert made.status == 201, made.data
        said = await write(api, data=two)
        await api.delete(f"{MAPS}/a")
        return said.status, said.data.get("message", "")

    assert (await verdict())[0] == 201
    assert (await verdict(name="one", namespace="params"))[0] == 422
    assert (await verdict(name="five", namespace="params"))[0] == 201
    # Every object that is selected has to be satisfied.
    assert (await verdict(selector={"matchLabels": {"limits": "yes"}}, namespace="params"))[0] == 422
    missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    code, text = await verdict(name="one")
    assert (code, text.endswith(missing)) == (422, True)
    assert (await verdict(name="one", parameterNotFoundAction="Allow"))[0] == 201


@played
async def test_parameters_of_a_kind_that_nobody_serves(api: Harness, /) -> None:
    await policy(api, "params.x == 1", paramKind={"apiVersion": "example.com/v1", "kind": "Limit"})
    await binding(api, paramRef={"name": "x", "parameterNotFoundAction": "Deny"})
    text = "failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'"
    said = await write(api)
    assert said.data["message"].endswith(f"ValidatingAdmissionPolicy 'p' denied request: {text}")


@played
async def test_a_policy_is_no_endless_loop(api: Harness, /) -> None:
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    loops = "".join(f"{numbers}.all(x{each}, " for each in range(7))
    await policy(api, f"{loops}true{')' * 7}")
    await binding(api)
    said = await write(api)
    assert "cost" in said.data["message"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"validations": []}, "spec.validations", "validations or auditAnnotations must contain at least one item"),
    ({"matchConstraints": None}, "spec.matchConstraints", "Required value"),
    ({"matchConstraints": {}}, "spec.matchConstraints.resourceRules", "Required value"),
    ({"validations": [{"expression": "1 + 1"}]}, "spec.validations[0].expression", "must evaluate to bool"),
    ({"validations": [{"expression": "object.spec.flag"}]}, "spec.validations[0].expression", "must evaluate to bool but got dyn"),
    ({"validations": [{"expression": "request.uid == 'x'"}]}, "spec.validations[0].expression", "undefined field 'uid'"),
    ({"validations": [{"expression": "params.x"}]}, "spec.validations[0].expression", "undeclared reference to 'params'"),
    ({"validations": [{"expression": "variables.x"}]}, "spec.validations[0].expression", "undeclared reference to 'variables'"),
    (
        {"validations": [{"expression": "variables.x"}], "variables": [{"name": "a", "expression": "1"}]},
        "spec.validations[0].expression",
        "undefined field 'x'",
    ),
    ({"validations": [{"expression": "true", "reason": "Odd"}]}, "spec.validations[0].reason", "Unsupported value"),
    ({"validations": [{"expression": "true", "message": "a\nb"}]}, "spec.validations[0].message", "must not contain line breaks"),
    (
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        "spec.validations[0].messageExpression",
        "must evaluate to string",
    ),
    (
        {"validations": [{"expression": "true", "messageExpression": "authorizer.path('/x').check('get').reason()"}]},
        "spec.validations[0].messageExpression",
        "undeclared reference to 'authorizer'",
    ),
    ({"variables": [{"name": "in", "expression": "1"}]}, "spec.variables[0].name", "must be a valid CEL identifier"),
    ({"variables": [{"name": "a", "expression": "variables.b"}]}, "spec.variables[0].expression", "undefined field 'b'"),
    ({"paramKind": {"kind": "X"}}, "spec.paramKind.apiVersion", "Required value"),
    ({"auditAnnotations": [{"key": "a b", "valueExpression": "'x'"}]}, "spec.auditAnnotations[0].key", "name part must consist of"),
    (
        {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
        "spec.auditAnnotations[0].valueExpression",
        "must evaluate to one of [string null_type] but got int",
    ),
    ({"failurePolicy": "Maybe"}, "spec.failurePolicy", "Unsupported value"),
]


@pytest.mark.parametrize(("spec", "field", "why"), REFUSED)
@played
async def test_policies_that_make_no_sense_are_refused(api: Harness, /, spec: dict[str, Any], field: str, why: str) -> None:
    said = await policy(api, "true", **spec)
    assert (said.status, field in said.causes) == (422, True), said.data
    assert why in said.causes[field]


BAD_BINDINGS: list[tuple[dict[str, Any], str, str]] = [
    ({"policyName": ""}, "spec.policyName", "Required value"),
    ({"validationActions": []}, "spec.validationActions", "at least one validation action is required"),
    ({"validationActions": ["Deny", "Warn"]}, "spec.validationActions", "must not contain both Deny and Warn"),
    ({"validationActions": ["Deny", "Deny"]}, "spec.validationActions[1]", "Duplicate value"),
    ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "spec.paramRef", "one of name or selector must be specified"),
    ({"paramRef": {"name": "x", "selector": {}, "parameterNotFoundAction": "Deny"}}, "spec.paramRef.name", "mutually exclusive"),
    ({"paramRef": {"name": "x"}}, "spec.paramRef.parameterNotFoundAction", "Required value"),
]


@pytest.mark.parametrize(("spec", "field", "why"), BAD_BINDINGS)
@played
async def test_bindings_that_make_no_sense_are_refused(api: Harness, /, spec: dict[str, Any], field: str, why: str) -> None:
    said = await binding(api, **spec)
    assert (said.status, field in said.causes) == (422, True), said.data
    assert why in said.causes[field]


@played
async def test_the_status_shows_what_is_odd(api: Harness, /) -> None:
    chore = PolicyStatusController(api.parts)
    chore.start()
    await policy(api, "object.data.size() < 3", "object.dta.size() < 3", "object.metadata.labels.x == 'y'")
    await chore.chores.settled()
    status = (await api.get(f"{POLICIES}/p")).data["status"]
    assert status["observedGeneration"] == 1
    (odd,) = status["typeChecking"]["expressionWarnings"]
    assert odd["fieldRef"] == "spec.validations[1].expression"
    assert odd["warning"].startswith("v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'dta'")
    await api.merge(f"{POLICIES}/p", {"spec": {"validations": [{"expression": "true"}]}})
    await chore.chores.settled()
    status = (await api.get(f"{POLICIES}/p")).data["status"]
    assert status == {"observedGeneration": 2, "typeChecking": {}}
    await chore.chores.stop()


@played
async def test_nothing_is_odd_about_what_takes_any_members(api: Harness, /) -> None:
    chore = PolicyStatusController(api.parts)
    chore.start()
    rule = {**RULE, "apiGroups": ["apps"], "resources": ["deployments"]}
    await policy(api, "object.spec.replicas > 1 && object.spec.template.spec.containers.size() > 0", "object.sepc.x == 1", rule=rule)
    await chore.chores.settled()
    (odd,) = (await api.get(f"{POLICIES}/p")).data["status"]["typeChecking"]["expressionWarnings"]
    assert odd["fieldRef"] == "spec.validations[1].expression"
    await chore.chores.stop()


@played
async def test_annotations_that_fail_refuse(api: Harness, /) -> None:
    await policy(api, auditAnnotations=[{"key": "k", "valueExpression": "'owner ' + object.data.k"}])
    await binding(api)
    assert (await write(api)).status == 201
    await api.merge(f"{POLICIES}/p", {"spec": {"auditAnnotations": [{"key": "k", "valueExpression": "string(object.data.none)"}]}})
    assert (await write(api, "b")).status == 422


@played
async def test_nobody_is_kept_from_configuring_policies(api: Harness, /) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    await policy(api, "false", rule=everything)
    await binding(api)
    assert (await write(api)).status == 422
    assert (await api.delete(f"{BINDINGS}/b")).status == 200


@played
async def test_many_writes_at_once_are_all_judged(api: Harness, /) -> None:
    await policy(api, "!object.metadata.name.endsWith('3')")
    await binding(api)
    said = await asyncio.gather(*(write(api, f"m{each}") for each in range(10)))
    assert [each.status for each in said] == [201, 201, 201, 422, 201, 201, 201, 201, 201, 201]
