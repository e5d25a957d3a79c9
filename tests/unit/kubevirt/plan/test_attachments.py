"""Definitions of networks: what becomes a bridge, and what is said of the rest."""

import json
from typing import Any

import pytest

from paddock.engine.networks.nics import NO_LIMIT, HostBridge, Range, TrafficLimit
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from paddock.kubevirt.plan.instance.traffic import traffic_of
from paddock.kubevirt.plan.network.attachments import bridge_of


def definition(config: Any) -> NetworkAttachmentDefinition:
    text = config if isinstance(config, str) else json.dumps(config)
    return NetworkAttachmentDefinition(spec=NetworkAttachmentDefinitionSpec(config=text))


def bridge(**more: Any) -> dict[str, Any]:
    return {"cniVersion": "0.3.1", "name": "lan", "type": "bridge", "bridge": "br1", **more}


STATIC = {
    "type": "static",
    "addresses": [{"address": "10.1.1.7/24", "gateway": "10.1.1.1"}],
    "routes": [{"dst": "10.2.0.0/16", "gw": "10.1.1.9"}],
}
LOCAL = {
    "type": "host-local",
    "ranges": [[{"subnet": "10.1.1.0/24", "rangeStart": "10.1.1.10", "rangeEnd": "10.1.1.20", "gateway": "10.1.1.1"}]],
}


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (bridge(), HostBridge("br1")),
        (bridge(bridge=None, type="cnv-bridge"), HostBridge("cni0")),
        (bridge(vlan=7), HostBridge("br1", vlan=7)),
        ({"cniVersion": "0.4.0", "plugins": [bridge(mtu=9000), {"type": "tuning"}]}, HostBridge("br1", mtu=9000)),
        (
            {"plugins": [bridge(), {"type": "bandwidth", "ingressRate": 8000, "ingressBurst": 16000, "egressRate": 4000}]},
            HostBridge("br1", traffic=TrafficLimit(1000, 2000, 500)),
        ),
        (bridge(isGateway=True, ipMasq=True), HostBridge("br1", is_gateway=True, masquerade=True)),
        (bridge(ipam=STATIC), HostBridge("br1", static=(("10.1.1.7/24", "10.1.1.1"),), routes=(("10.2.0.0/16", "10.1.1.9"),))),
        (bridge(ipam=LOCAL), HostBridge("br1", ranges=(Range("10.1.1.0/24", "10.1.1.10", "10.1.1.20", "10.1.1.1"),))),
        (bridge(ipam={"type": "host-local", "subnet": "10.1.1.0/24"}), HostBridge("br1", ranges=(Range("10.1.1.0/24"),))),
        (bridge(ipam={"type": "whereabouts", "range": "10.1.1.64/26"}), HostBridge("br1", ranges=(Range("10.1.1.64/26"),))),
        (
            bridge(ipam={"type": "whereabouts", "range": "10.1.1.0/24", "exclude": ["10.1.1.64/27", "10.1.1.200"]}),
            HostBridge("br1", ranges=(Range("10.1.1.0/24", excluded=("10.1.1.64/27", "10.1.1.200/32")),)),
        ),
        (bridge(ipam={"type": "dhcp"}), HostBridge("br1")),
        # Each network of this type has a bridge of its own, whatever other members say.
        (
            {"type": "ptp", "bridge": "br1", "ipMasq": True, "ipam": {"type": "host-local", "subnet": "10.1.1.0/24"}},
            HostBridge("ptp-ac99f32c", is_gateway=True, masquerade=True, ranges=(Range("10.1.1.0/24"),)),
        ),
        (
            bridge(ipam={**LOCAL, "ranges": [*LOCAL["ranges"], [{"subnet": "fd00:1::/64"}]]}, isGateway=True),
            HostBridge("br1", is_gateway=True, ranges=(Range("10.1.1.0/24", "10.1.1.10", "10.1.1.20", "10.1.1.1"), Range("fd00:1::/64"))),
        ),
        (
            bridge(
                ipam={"type": "whereabouts", "range": "10.1.1.0/24", "ipRanges": [{"range": "fd00:1::/64", "range_start": "fd00:1::9"}]}
            ),
            HostBridge("br1", ranges=(Range("fd00:1::/64", "fd00:1::9"), Range("10.1.1.0/24"))),
        ),
        # A router that is not this host has a link-local address, and leads to other networks.
        (
            bridge(ipam={"type": "static", "addresses": [{"address": "fd00:1::7/64", "gateway": "fe80::1"}], "routes": [{"dst": "::/0"}]}),
            HostBridge("br1", static=(("fd00:1::7/64", "fe80::1"),), routes=(("::/0", ""),)),
        ),
        (bridge(dns={"nameservers": ["10.1.1.53"], "search": ["example"]}), HostBridge("br1", dns=("10.1.1.53",), search=("example",))),
    ],
)
def test_what_becomes_a_bridge(config: Any, wanted: HostBridge) -> None:
    assert bridge_of("ns/lan", definition(config)) == wanted


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("{", "is not JSON"),
        ("[]", "not an object"),
        ({"plugins": []}, "list of plugins is empty"),
        ({"plugins": [bridge(), {"type": "bandwidth", "ingressRate": 7}]}, "ingressRate is 7: give 1000 to"),
        ({"plugins": [bridge(), {"type": "bandwidth", "egressRate": "x"}]}, "malformed"),
        ({"type": "sriov"}, "networks of type 'sriov' are not known here"),
        (bridge(vlan=4095), "4095 is no VLAN"),
        (bridge(vlan=-1), "-1 is no VLAN"),
        (bridge(vlan="x"), "malformed"),
        (bridge(vlanTrunk=[{"id": 7}]), "trunks are not supported"),
        (bridge(ipam={"type": "calico-ipam"}), "addresses of type 'calico-ipam' are not known here"),
        (bridge(ipam={"type": "static", "addresses": [{"address": "nonsense"}]}), "malformed"),
        (bridge(ipam={"type": "host-local"}), "malformed"),
        (bridge(ipam={"type": "host-local", "subnet": "10.1.1.0/24", "rangeStart": "10.2.0.1"}), "10.2.0.1 is not in 10.1.1.0/24"),
        (bridge(ipam=7), "malformed"),
        ("", "has no configuration"),
    ],
)
def test_what_is_said_of_the_rest(config: Any, why: str) -> None:
    said = bridge_of("ns/lan", definition(config))
    assert isinstance(said, str) and why in said and "ns/lan" in said


def local6(*subnets: str, **more: Any) -> dict[str, Any]:
    return {"type": "host-local", "ranges": [[{"subnet": each, **more}] for each in subnets]}


@pytest.mark.spec("kubevirt", 253)
@pytest.mark.spec("kubevirt", 273)
@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            bridge(ipam={"type": "host-local", "ranges": [[{"subnet": "10.1.1.0/24"}, {"subnet": "10.1.2.0/24"}]]}),
            "two IPv4 addresses (10.1.1.0/24, 10.1.2.0/24); a guest gets one of each family",
        ),
        (
            bridge(ipam={"type": "static", "addresses": [{"address": "10.1.1.7/24"}, {"address": "10.1.1.8/24"}]}),
            "two IPv4 addresses (10.1.1.7/24, 10.1.1.8/24)",
        ),
        (
            bridge(ipam={"type": "whereabouts", "range": "10.1.1.0/24", "exclude": ["fd00::/64"]}),
            "it excludes fd00::/64 from 10.1.1.0/24, which is of the other family",
        ),
        (
            bridge(ipam=local6("fd00:1::/64", "fd00:2::/64")),
            "two IPv6 addresses (fd00:1::/64, fd00:2::/64); a guest gets one of each family",
        ),
        (
            bridge(ipam={"type": "static", "addresses": [{"address": "fd00:1::7/64"}, {"address": "fd00:1::8/64"}]}),
            "two IPv6 addresses (fd00:1::7/64, fd00:1::8/64)",
        ),
        (bridge(ipam=local6("fd00:1::/64", gateway="fd00:1::1")), "the gateway fd00:1::1: set isGateway if it is this host, name its link"),
        (bridge(ipam=local6("fd00:1::/64", gateway="fd00:2::1"), isGateway=True), "fd00:2::1 is not in fd00:1::/64"),
        (bridge(ipam=local6("fd00:1::/64", gateway="fe80::1"), isGateway=True), "the gateway fe80::1 is not in fd00:1::/64"),
        (bridge(ipam=local6("fd00:1::/64"), mtu=1000), "its MTU 1000 is too small for IPv6, which needs 1280"),
        (bridge(ipam=local6("fd00:1::/48")), "the prefix of fd00:1::/48 is not 64 to 126 bits long"),
        (bridge(ipam=local6("fd00:1::/127")), "the prefix of fd00:1::/127 is not 64 to 126 bits long"),
        (bridge(ipam=local6("fe80::/64")), "the addresses of fe80::/64 are not for hosts"),
        (bridge(ipam=local6("ff05::/64")), "the addresses of ff05::/64 are not for hosts"),
        (bridge(ipam=local6("fd00:1::/64", rangeStart="fd00:2::1")), "fd00:2::1 is not in fd00:1::/64"),
        (bridge(ipam={**LOCAL, "routes": [{"dst": "2001:db8::/48"}]}), "a route to 2001:db8::/48, and gives no IPv6 address"),
        (bridge(ipam={**local6("fd00:1::/64"), "routes": [{"dst": "::/0"}]}), "cannot learn the route to ::/0"),
        (
            bridge(ipam={**local6("fd00:1::/64"), "routes": [{"dst": "2001:db8::/48", "gw": "fd00:1::5"}]}, isGateway=True),
            "cannot learn the route to 2001:db8::/48",
        ),
    ],
)
def test_what_guests_cannot_be_told_of_ipv6(config: Any, why: str) -> None:
    said = bridge_of("ns/lan", definition(config))
    assert isinstance(said, str) and why in said and "ns/lan" in said


def test_a_definition_that_is_not_there() -> None:
    assert bridge_of("ns/lan", None) == "the NetworkAttachmentDefinition ns/lan does not exist"


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        (None, NO_LIMIT),
        ({"other": "1"}, NO_LIMIT),
        ({"kubernetes.io/ingress-bandwidth": "8M"}, TrafficLimit(1_000_000, 1_000_000)),
        (
            {"kubernetes.io/egress-bandwidth": "4000000", "kubernetes.io/ingress-bandwidth": "1k"},
            TrafficLimit(125, 125, 500_000, 500_000),
        ),
    ],
)
def test_the_limits_of_the_pod_network(annotations: dict[str, str] | None, wanted: TrafficLimit) -> None:
    assert traffic_of(annotations) == wanted


@pytest.mark.parametrize("text", ["999", "fast", "-1M", "2P"])
def test_limits_that_make_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match="annotation kubernetes"):
        traffic_of({"kubernetes.io/ingress-bandwidth": text})
