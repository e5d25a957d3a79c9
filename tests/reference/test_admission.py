"""Admission, spoken to the embedded server and to a kube-apiserver: the same refusals, and the same words to clients.

The cases are those of the unit tests; here they are compared with what upstream says to them.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.reference.client import Answer, Api
from tests.reference.embedded import Embedded
from tests.unit.server.admission import test_mutations as mutations
from tests.unit.server.admission import test_policies as policies
from tests.unit.server.admission import test_webhook_configurations as configurations
from tests.unit.server.admission import test_webhooks as webhooks
from tests.unit.server.builtin import test_kept as kept

Body = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
# A kube-apiserver learns of a policy after a while.
EFFECTIVE_SECONDS = 30.0
# Where the words differ on purpose: upstream takes the name for the namespace there, prints a Go struct, lists what its parser expects.
OTHER_WORDS = ("clientConfig.service.", "minAvailable and maxUnavailable cannot be both set", "Syntax error")


@pytest.fixture(scope="module")
def pair(embedded: Embedded, api: Api) -> Iterator[tuple[Api, Api]]:
    """Both servers."""
    ours = Api(embedded.access)
    yield ours, api
    ours.close()


def refused() -> Iterator[tuple[str, Body]]:
    """Every body that makes no sense, with its path."""
    hook = {"clientConfig": {"url": "https://x/y"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [webhooks.CREATES]}
    for more, _, _ in configurations.REFUSED:
        for kind in ("mutating", "validating"):
            body = {"metadata": {"name": "c"}, "webhooks": [{"name": "a.example.com", **hook, **more}]}
            yield f"{webhooks.GROUP}/{kind}webhookconfigurations", body
    rules = {"matchConstraints": {"resourceRules": [policies.RULE]}, "validations": [{"expression": "true"}]}
    for spec, _, _ in policies.REFUSED:
        yield policies.POLICIES, {"metadata": {"name": "p"}, "spec": {**rules, **spec}}
    for spec, _, _ in policies.BAD_BINDINGS:
        yield policies.BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"], **spec}}
    for spec, _, _ in mutations.REFUSED:
        yield mutations.POLICIES, {"metadata": {"name": "p"}, "spec": spec}
    for spec, _ in mutations.BAD_BINDINGS:
        yield mutations.BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", **spec}}
    for path, body, _, _ in kept.REFUSED:
        yield path, {**body, "metadata": {"name": "q"}}


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    found = (answer.body.get("details") or {}).get("causes") or []
    return sorted((each.get("field", ""), each.get("reason", ""), each.get("message", "")) for each in found)


@pytest.mark.reference
@pytest.mark.parametrize(("path", "body"), list(refused()))
def test_what_makes_no_sense_is_refused_alike(pair: tuple[Api, Api], path: str, body: Body) -> None:
    ours, theirs = (each.request("POST", path, body) for each in pair)
    assert (ours.status, theirs.status) == (422, 422)
    mine, other = causes(ours), causes(theirs)
    if any(words in str(other) for words in OTHER_WORDS):
        assert len(mine) == len(other)
    else:
        assert mine == other


def bind(server: Api, spec: Body) -> None:
    """Put a policy into effect and wait until it is."""
    constraints = {"resourceRules": [{**policies.RULE, "resources": ["configmaps", "secrets"]}]}
    # The last validation shows on Secrets when the policy has come into effect.
    sign = {"expression": "object.kind != 'Secret'", "message": "in effect"}
    validations = [*spec["validations"], sign]
    conditions = {"matchConstraints": constraints, **spec, "validations": validations}
    for path, body in (
        (policies.POLICIES, {"metadata": {"name": "p"}, "spec": conditions}),
        (policies.BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}),
    ):
        made = server.request("POST", path, body)
        assert made.ok, made.message
    until(lambda: not server.request("POST", "/api/v1/namespaces/default/secrets?dryRun=All", {"metadata": {"name": "s"}}).ok)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + EFFECTIVE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it does not come into effect"
        time.sleep(0.05)


def unbind(server: Api) -> None:
    server.request("DELETE", f"{policies.BINDINGS}/b")
    server.request("DELETE", f"{policies.POLICIES}/p")
    until(lambda: server.request("POST", "/api/v1/namespaces/default/secrets?dryRun=All", {"metadata": {"name": "s"}}).ok)


SAID = [
    validation for validation, *_ in policies.SAID if "messageExpression" not in validation or "\n" not in validation["messageExpression"]
]


@pytest.mark.reference
@pytest.mark.parametrize("validation", SAID)
def test_a_denial_says_the_same(pair: tuple[Api, Api], validation: Body) -> None:
    said = []
    for server in pair:
        bind(server, {"validations": [validation]})
        body = {"metadata": {"name": "a", "labels": {"color": "red"}}, "data": {"k": "v"}}
        said.append(server.request("POST", f"{MAPS}?dryRun=All", body))
        unbind(server)
    ours, theirs = said
    assert (ours.status, ours.body.get("reason"), ours.message) == (theirs.status, theirs.body.get("reason"), theirs.message)
    assert ours.body.get("details") == theirs.body.get("details")


def mutated(server: Api, spec: Body, name: str) -> Answer:
    """Create a ConfigMap while a mutating policy of this name is in effect."""
    # A second policy shows that both are in effect: its name comes later.
    sign = mutations.editing(f"[JSONPatch{{op: 'add', path: '/metadata/annotations', value: {{'in': '{name}'}}}}]")
    probe = {**spec, "matchConditions": [], "variables": [], "mutations": [sign]}
    for each, said in ((name, spec), (f"{name}-sign", probe)):
        for path, body in ((mutations.POLICIES, said), (mutations.BINDINGS, {"policyName": each})):
            made = server.request("POST", path, {"metadata": {"name": each}, "spec": body})
            assert made.ok, made.message
    found: list[Answer] = []

    def effective() -> bool:
        found.append(server.request("POST", f"{MAPS}?dryRun=All", mutations.MAP))
        # An earlier policy may still be in effect.
        return f"'{name}'" in found[-1].message or (found[-1].ok and found[-1].body["metadata"].get("annotations") == {"in": name})

    try:
        until(effective)
    finally:
        for path in (mutations.BINDINGS, mutations.POLICIES):
            for each in (name, f"{name}-sign"):
                assert server.request("DELETE", f"{path}/{each}").ok
    return found[-1]


@pytest.mark.reference
@pytest.mark.parametrize(("number", "spec"), list(enumerate(spec for spec, *_ in (*mutations.CHANGED, *mutations.DENIED))))
def test_a_mutation_makes_the_same(pair: tuple[Api, Api], number: int, spec: Body) -> None:
    ours, theirs = (mutated(each, spec, f"p{number:02}") for each in pair)
    assert (ours.status, ours.body.get("message")) == (theirs.status, theirs.body.get("message"))
    assert ours.body.get("data") == theirs.body.get("data")
    assert ours.body["metadata"].get("labels") == theirs.body["metadata"].get("labels")
    assert causes(ours) == causes(theirs)
