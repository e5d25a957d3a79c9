"""Configurations of webhooks that make no sense."""

from typing import Any

import pytest

from tests.coroutines import played_by
from tests.kit.servers.apiharness import Harness
from tests.kit.servers.webhooks import Webhook
from tests.unit.server.admission.test_webhooks import CREATES, GROUP, allow, play

NAMED = {"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"]}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "short.name"}, "webhooks[0].name", "should be a domain with at least three segments separated by dots"),
    ({"sideEffects": "Some"}, "webhooks[0].sideEffects", 'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'),
    ({"sideEffects": None}, "webhooks[0].sideEffects", "Required value: must specify one of None, NoneOnDryRun"),
    ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds", "the timeout value must be between 1 and 30 seconds"),
    ({"admissionReviewVersions": []}, "webhooks[0].admissionReviewVersions", "must specify one of v1, v1beta1"),
    ({"admissionReviewVersions": ["v3"]}, "webhooks[0].admissionReviewVersions", "must include at least one of v1, v1beta1"),
    ({"clientConfig": {}}, "webhooks[0].clientConfig", "exactly one of url or service is required"),
    ({"clientConfig": {"url": "http://x"}}, "webhooks[0].clientConfig.url", "'https' is the only allowed URL scheme"),
    ({"clientConfig": {"url": "https://x?y"}}, "webhooks[0].clientConfig.url", "query parameters are not permitted in the URL"),
    ({"clientConfig": {"service": {"name": "x"}}}, "webhooks[0].clientConfig.service.namespace", "Required value"),
    ({"rules": [{**CREATES, "operations": ["*", "CREATE"]}]}, "webhooks[0].rules[0].operations", "if '*' is present"),
    ({"rules": [{**CREATES, "operations": ["PATCH"]}]}, "webhooks[0].rules[0].operations[0]", "Unsupported value"),
    ({"rules": [{**CREATES, "resources": ["*", "pods"]}]}, "webhooks[0].rules[0].resources", "without subresources"),
    ({"rules": [{**CREATES, "resources": ["pods/*", "pods/exec"]}]}, "webhooks[0].rules[0].resources[1]", "if 'pods/*' is present"),
    ({"failurePolicy": "Maybe"}, "webhooks[0].failurePolicy", "Unsupported value"),
    ({"matchPolicy": "Maybe"}, "webhooks[0].matchPolicy", "Unsupported value"),
    (
        {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "webhooks[0].objectSelector.matchExpressions[0].values",
        "must be specified",
    ),
    ({"matchConditions": [{"name": "a b", "expression": "true"}]}, "webhooks[0].matchConditions[0].name", "name part must consist of"),
    ({"matchConditions": [{"name": "a", "expression": "1"}]}, "webhooks[0].matchConditions[0].expression", "must evaluate to bool"),
    (
        {"matchConditions": [{"name": "a", "expression": "params.x"}]},
        "webhooks[0].matchConditions[0].expression",
        "undeclared reference to 'params'",
    ),
    (
        {"matchConditions": [{"name": "a", "expression": "1 +"}]},
        "webhooks[0].matchConditions[0].expression",
        "compilation failed: ERROR: <input>:1:",
    ),
]


@pytest.mark.parametrize(("more", "field", "why"), REFUSED)
@played_by(play, "tmp_path", allow)
async def test_configurations_that_make_no_sense_are_refused(
    api: Harness, hook: Webhook, /, more: dict[str, Any], field: str, why: str
) -> None:
    webhook = NAMED | {"clientConfig": hook.client_config}
    body = {"metadata": {"name": "c"}, "webhooks": [{**webhook, "rules": [CREATES], **more}]}
    for kind in ("mutating", "validating"):
        said = await api.post(f"{GROUP}/{kind}webhookconfigurations", body)
        assert (said.status, field in said.causes) == (422, True), said.data
        assert why in said.causes[field]


@played_by(play, "tmp_path", allow)
async def test_names_of_webhooks_are_unique(api: Harness, hook: Webhook, /) -> None:
    said = await api.post(
        f"{GROUP}/mutatingwebhookconfigurations",
        {"metadata": {"name": "c"}, "webhooks": [NAMED | {"clientConfig": hook.client_config}] * 2},
    )
    assert said.causes == {"webhooks[1].name": 'Duplicate value: "a.example.com"'}
