"""Services and where they lead (docs/spec/kube-api.md section 7)."""

import ipaddress
from typing import Any
from unittest.mock import patch

import pytest

from paddock.server.builtin.services import NETWORK, NODE_PORTS
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness, Reply
from tests.unit.server.conftest import Play

SERVICES = "/api/v1/namespaces/default/services"
STRATEGIC = "application/strategic-merge-patch+json"


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def make(api: Harness, name: str = "web", **spec: Any) -> dict[str, Any]:
    made = await api.post(SERVICES, service(name, **spec))
    assert made.status == 201, made.data
    found: dict[str, Any] = made.data["spec"]
    return found


def strategic(api: Harness, name: str, patch: Any) -> Any:
    return api.call("PATCH", f"{SERVICES}/{name}", patch, content_type=STRATEGIC)


@played
async def test_everything_left_out_is_filled_in(api: Harness, /) -> None:
    spec = await make(api)
    address = spec["clusterIP"]
    assert ipaddress.ip_address(address) in NETWORK
    assert spec == {
        "type": "ClusterIP",
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }
    headless = await make(api, "headless", clusterIP="None", selector={"a": "b"})
    assert (headless["clusterIP"], headless["clusterIPs"]) == ("None", ["None"])
    alias = await make(api, "alias", type="ExternalName", externalName="example.org", ports=None)
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & set(alias)


# All names have the same first choice, so that every Service meets the one before.
@patch("paddock.server.builtin.services._seed", lambda new: 0)
@played
async def test_addresses_and_node_ports_are_given_once(api: Harness, /) -> None:
    made = [
        await make(api, f"s{number}", type="NodePort", ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]) for number in range(4)
    ]
    assert [spec["clusterIP"] for spec in made] == ["10.96.0.2", "10.96.0.3", "10.96.0.4", "10.96.0.5"]
    assert [port["nodePort"] for spec in made for port in spec["ports"]] == list(range(30000, 30008))
    await api.delete(f"{SERVICES}/s1")
    assert (await make(api, "again"))["clusterIP"] == "10.96.0.3"


def test_the_choice_can_be_repeated(play: Play) -> None:
    chosen: list[dict[str, Any]] = []

    async def script(api: Harness) -> None:
        chosen.append(await make(api, type="NodePort"))
        assert chosen[-1]["ports"][0]["nodePort"] in NODE_PORTS

    play(script)
    play(script)
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"clusterIP": "10.96.0.9"}, "spec.clusterIPs", "provided IP is already allocated"),
        ({"clusterIP": "10.96.0.1"}, "spec.clusterIPs", "provided IP is already allocated"),
        ({"clusterIP": "192.168.0.1"}, "spec.clusterIPs", "not in the valid range"),
        ({"clusterIP": "x"}, "spec.clusterIPs[0]", "must be a valid IP address"),
        ({"type": "NodePort", "ports": [{"port": 1, "nodePort": 30009}]}, "spec.ports[0].nodePort", "already allocated"),
        ({"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]}, "spec.ports[0].nodePort", "30000-32767"),
        ({"type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]", "may not be set to 'None'"),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name", "Required value"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, "spec.ports[1].name", "Duplicate value"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}, "spec.ports[1]", "Duplicate value"),
        ({"ports": None}, "spec.ports", "Required value"),
        ({"type": "ExternalName"}, "spec.externalName", "Required value"),
    ],
)
@played
async def test_refused_services(api: Harness, /, spec: dict[str, Any], field: str, words: str) -> None:
    await make(api, "first", type="NodePort", clusterIP="10.96.0.9", ports=[{"port": 1, "nodePort": 30009}])
    refused: Reply = await api.post(SERVICES, service(**spec))
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert words in refused.causes[field]


@played
async def test_names_are_host_names(api: Harness, /) -> None:
    for name in ("1web", "we.b", "w" * 64):
        refused = await api.post(SERVICES, service(name))
        assert (refused.status, "DNS-1035" in refused.causes["metadata.name"]) == (422, True)


@played
async def test_what_was_given_stays_and_goes_with_the_type(api: Harness, /) -> None:
    made = await make(api, type="NodePort")
    put = await api.put(f"{SERVICES}/web", service(type="NodePort", selector={"a": "b"}))
    assert (put.data["spec"]["clusterIP"], put.data["spec"]["ports"]) == (made["clusterIP"], made["ports"])
    moved = await api.merge(f"{SERVICES}/web", {"spec": {"clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"]}})
    assert "may not change once set" in moved.causes["spec.clusterIPs[0]"]
    inside = await api.merge(f"{SERVICES}/web", {"spec": {"type": "ClusterIP"}})
    assert ("nodePort" in inside.data["spec"]["ports"][0], "externalTrafficPolicy" in inside.data["spec"]) == (False, False)
    alias = await api.merge(f"{SERVICES}/web", {"spec": {"type": "ExternalName", "externalName": "example.org"}})
    assert (alias.status, "clusterIP" in alias.data["spec"]) == (200, False)


@played
async def test_ports_are_patched_by_number(api: Harness, /) -> None:
    await make(api, ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "b"}])
    made = (await strategic(api, "web", {"spec": {"ports": [{"port": 2, "targetPort": 9}]}})).data["spec"]["ports"]
    assert [(port["port"], port["targetPort"], port["name"]) for port in made] == [(1, 1, "a"), (2, 9, "b")]
    made = (await strategic(api, "web", {"spec": {"ports": [{"port": 1, "$patch": "delete"}]}})).data["spec"]["ports"]
    assert [port["port"] for port in made] == [2]


@played
async def test_ports_are_applied_by_number_and_protocol(api: Harness, /) -> None:
    def config(*ports: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": list(ports)}}

    await api.apply(f"{SERVICES}/web", config({"port": 1, "name": "a"}), "one")
    both = await api.apply(f"{SERVICES}/web", config({"port": 1, "name": "u", "protocol": "UDP"}), "two")
    assert [(port["protocol"], port["name"]) for port in both.data["spec"]["ports"]] == [("TCP", "a"), ("UDP", "u")]


@played
async def test_what_goes_can_be_given_again(api: Harness, /) -> None:
    """Allocations of others are noted once for each of their forms: a change and a deletion are new forms."""
    wanted = {"type": "NodePort", "clusterIP": str(NETWORK[77]), "ports": [{"port": 1, "nodePort": 30077}]}
    await make(api, "first", **wanted)
    assert (await api.post(SERVICES, service("second", **wanted))).status == 422
    assert (await api.merge(f"{SERVICES}/first", {"spec": {"ports": [{"port": 1, "nodePort": 30078}]}})).status == 200
    assert set((await api.post(SERVICES, service("second", **wanted))).causes) == {"spec.clusterIPs"}
    assert (await api.delete(f"{SERVICES}/first")).status == 200
    assert (await make(api, "second", **wanted))["ports"][0]["nodePort"] == 30077
