"""What a network says of a card stands in the request for its machine."""

import json
from typing import Any

import pytest

from paddock.dialects.virtrigaud.plan import requests
from tests.unit.dialects.virtrigaud.plan import made

CARD = {"name": "lan", "networkRef": {"name": "lan"}}


def card(type: str, config: Any, defaults: Any = None, **spec: Any) -> dict[str, Any]:
    """The card of a machine on a network, as a Provider of a type gets it."""
    vm = made.machine(networks=[CARD])
    source = {"vsphere": {"templateName": "t"}, "proxmox": {"templateID": 9000}, "libvirt": {"path": "/images/a.qcow2"}}
    provider = made.provider(type, **({"defaults": defaults} if defaults is not None else {}))
    found = made.found(vm, provider, made.network(config, **spec), made.image({type: source[type]}))
    entries: list[dict[str, Any]] = json.loads(requests.create(vm, found, None).networks_json)
    return entries[0]


@pytest.mark.spec("virtrigaud", 152)
@pytest.mark.parametrize(
    ("type", "block", "expected"),
    [
        ("vsphere", {"portgroup": "PG", "adapterType": "e1000e"}, {"Portgroup": "PG", "NetworkName": "PG", "Model": "e1000e", "VLAN": 0}),
        ("vsphere", {"portgroup": "PG", "vlan": {"type": "vlan", "vlanID": 7}}, {"VLAN": 7}),
        ("libvirt", {"bridge": {"name": "br0"}, "model": "e1000"}, {"Bridge": "br0", "Model": "e1000", "NetworkName": ""}),
        ("libvirt", {"networkName": "lan"}, {"Bridge": "", "NetworkName": "lan", "Model": "virtio"}),
        ("proxmox", {"bridge": "vmbr1", "vlanTag": 9, "model": "rtl8139"}, {"Bridge": "vmbr1", "VLAN": 9, "Model": "rtl8139"}),
    ],
)
def test_where_a_card_is(type: str, block: Any, expected: dict[str, Any]) -> None:
    assert expected.items() <= card(type, {type: block}).items()


@pytest.mark.spec("virtrigaud", 151)
@pytest.mark.parametrize("type", ["vsphere", "libvirt", "proxmox"])
def test_a_card_without_a_block_is_on_the_default_network(type: str) -> None:
    other = "proxmox" if type != "proxmox" else "libvirt"
    assert card(type, {other: {}}, defaults={"network": "usual"})["NetworkName"] == "usual"


@pytest.mark.spec("virtrigaud", 149, 150)
def test_how_a_card_gets_its_address() -> None:
    static = {"address": "10.0.0.5/16", "gateway": "10.0.0.1", "routes": [{"destination": "10.9.0.0/16", "gateway": "10.0.0.2"}]}
    dns = {"servers": ["10.0.0.3", "10.0.0.4"], "searchDomains": ["shop.example"]}
    block = {"libvirt": {"networkName": "lan"}}
    found = card("libvirt", block, ipAllocation={"type": "Static", "staticConfig": static, "dnsConfig": dns})
    assert (found["IPPolicy"], found["StaticIP"], found["Prefix"], found["Gateway"]) == ("static", "10.0.0.5", 16, "10.0.0.1")
    assert (found["DNS"], found["SearchDomains"]) == ("10.0.0.3,10.0.0.4", ["shop.example"])
    assert found["Routes"] == [{"destination": "10.9.0.0/16", "gateway": "10.0.0.2"}]
    none = card("libvirt", block, ipAllocation={"type": "None"})
    assert (none["IPPolicy"], none["StaticIP"]) == ("none", "") and "Routes" not in none


@pytest.mark.spec("virtrigaud", 136, 137, 138)
@pytest.mark.parametrize(
    ("type", "block", "expected"),
    [
        ("proxmox", {"firewall": True, "rateLimit": 5, "mtu": 9000}, {"Firewall": True, "RateLimit": 5, "MTU": 9000}),
        ("libvirt", {"driver": {"queues": 2}}, {"Driver": {"queues": 2}}),
        ("libvirt", {"filterRef": {"filter": "f"}}, {"FilterRef": {"filter": "f"}}),
        ("vsphere", {"portgroup": "a", "vlan": {"type": "trunk", "trunkVlanIDs": [1]}}, {"VLANs": {"type": "trunk", "trunkVlanIDs": [1]}}),
    ],
)
def test_members_that_only_paddock_has_are_sent_when_they_are_said(type: str, block: Any, expected: dict[str, Any]) -> None:
    assert expected.items() <= card(type, {type: block}).items()
    plain = card(type, {type: {"portgroup": "a"} if type == "vsphere" else {}}, defaults={"network": "usual"})
    assert not set(expected) & set(plain)


def test_the_security_of_a_switch_is_for_its_own_type() -> None:
    config = {"vsphere": {"portgroup": "PG", "security": {}}, "libvirt": {"networkName": "lan"}}
    assert "Security" not in card("libvirt", config) and card("vsphere", config)["Security"]["ForbidPromiscuous"] is True
