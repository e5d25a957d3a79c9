"""NetworkPolicies say what they mean, or are refused."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

PLACE = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@played
async def test_a_policy_is_completed_and_shown(api: Harness, /) -> None:
    spec = {"podSelector": {"matchLabels": {"app": "db"}}, "egress": [{"ports": [{"port": 53}]}]}
    made = await api.post(PLACE, {"metadata": {"name": "p"}, "spec": spec})
    assert made.status == 201 and made.data["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made.data["spec"]["egress"][0]["ports"] == [{"port": 53, "protocol": "TCP"}]
    block = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}
    made = await api.post(PLACE, {"metadata": {"name": "q"}, "spec": {"ingress": [{"from": [block]}]}})
    assert made.status == 201 and made.data["spec"]["ingress"] == [{"from": [block]}] and made.data["spec"]["policyTypes"] == ["Ingress"]
    table = (await api.get(PLACE, accept=TABLE)).data
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Pod-Selector", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["p", "app=db"], ["q", "<none>"]]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"from": [{}]}, "from[0]"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}, "from[0]"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.1"}}]}, "from[0].ipBlock.cidr"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8"]}}]}, "from[0].ipBlock.except[0]"),
        ({"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["x"]}}]}, "from[0].ipBlock.except[0]"),
        ({"ports": [{"port": 0}]}, "ports[0].port"),
        ({"ports": [{"endPort": 90}]}, "ports[0].port"),
        ({"ports": [{"port": "http", "endPort": 90}]}, "ports[0].endPort"),
        ({"ports": [{"port": 100, "endPort": 90}]}, "ports[0].endPort"),
        ({"ports": [{"port": 100, "protocol": "ICMP"}]}, "ports[0].protocol"),
    ],
)
@played
async def test_what_means_nothing_is_refused(api: Harness, /, rule: dict[str, Any], field: str) -> None:
    refused = await api.post(PLACE, {"metadata": {"name": "p"}, "spec": {"podSelector": {}, "ingress": [rule]}})
    assert (refused.status, list(refused.causes)) == (422, [f"spec.ingress[0].{field}"]), refused.data
