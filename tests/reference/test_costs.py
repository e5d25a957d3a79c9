"""A real kube-apiserver's estimates of rules are still those recorded beside the tests of Paddock's own estimate.

With PADDOCK_RECORD=1 in the environment the recording is written anew.
"""

import json
import os
from pathlib import Path

import pytest

from tests.reference import crds
from tests.reference.client import Api
from tests.unit.kubernetes.schema.structural import costing

pytestmark = pytest.mark.reference
RECORDED = Path(costing.__file__).with_name("costs.json")


def test_the_recorded_estimates_are_those_of_a_real_server(api: Api) -> None:
    found = {rule: _estimate(api, rule) for rule in costing.RULES}
    if os.environ.get("PADDOCK_RECORD"):
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(RECORDED.read_text())


def _estimate(api: Api, rule: str) -> dict[str, str]:
    schema = {"openAPIV3Schema": costing.schema_of(rule)}
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "costs.tests.example.com"},
        "spec": {
            "group": "tests.example.com",
            "scope": "Cluster",
            "names": {"plural": "costs", "kind": "Cost"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    said = api.request("POST", crds.PATH, document, query={"dryRun": "All"})
    causes = [(each["field"], each["message"]) for each in (said.body.get("details") or {}).get("causes") or ()]
    strange = [message for _, message in causes if "cost" not in message and "oldSelf" not in message]
    assert not strange, (rule, strange)
    return costing.factors(causes)
