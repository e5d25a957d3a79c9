"""The values of a NetworkConfiguration, and their spellings."""

from collections.abc import Iterator
from typing import Any

import pytest

from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.kubernetes.admission import AdmissionResult, admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

NET: dict[str, Any] = {"ipam": {"subnet": "10.0.0.0/24"}}


def admitted(spec: dict[str, Any] | None, name: str = "lan") -> AdmissionResult:
    raw: dict[str, Any] = {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": name}}
    return admit(raw if spec is None else raw | {"spec": spec}, AdmissionSettings())


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


def rule(**fields: Any) -> dict[str, Any]:
    return {"security": {"firewallRules": [fields]}}


def reservation(**fields: Any) -> dict[str, Any]:
    return NET | {"dhcp": {"reservations": [{"macAddress": "52:54:00:00:00:01", "ipAddress": "10.0.0.7", **fields}]}}


def refused() -> Iterator[Any]:
    between = "must be between 0 and 4094"
    for vlan in (5000, 4095, -1):
        yield pytest.param({"vlan": vlan}, "vlan", between, id=f"vlan {vlan}", marks=pytest.mark.spec("vitistack", 34))
    yield {"VLAN": 5000}, "VLAN", between
    for bridge in ("", "br/0", "br 0", "br\t0", "br0\n"):
        yield {"bridge": bridge}, "bridge", "must be the name of a Linux interface"
    yield {"Bridge": "a b"}, "Bridge", "must be the name of a Linux interface"
    yield {"bridge": "a" * 16}, "bridge", "must be no more than 15"
    for mtu in (575, 65536):
        yield {"mtu": mtu}, "mtu", "must be between 576 and 65535"
    yield {"ipam": {"type": "auto"}}, "ipam.type", 'Unsupported value: "auto": supported values: "static", "dhcp", "kea"'
    yield {"ipam": {"subnet": "10.0.0.0"}}, "ipam.subnet", "must be a network such as"
    yield {"ipam": {"gateway": "x"}}, "ipam.gateway", "must be an IP address"
    yield {"ipam": {"subnet": "10.0.0.0/24", "gateway": "10.0.1.1"}}, "ipam.gateway", "must be inside the subnet 10.0.0.0/24"
    yield {"ipam": {"dns": {"servers": ["a"]}}}, "ipam.dns.servers[0]", "must be an IP address"
    yield {"ipam": {"dns": {"searchDomains": ["a b"]}}}, "ipam.dns.searchDomains[0]", "must be a DNS-1123 subdomain"
    for key in ("poolStart", "poolEnd"):
        yield {"dhcp": {key: "x"}}, f"dhcp.{key}", "must be an IP address"
        yield NET | {"dhcp": {key: "10.9.0.1"}}, f"dhcp.{key}", "must be inside the subnet"
    backwards = {"poolStart": "10.0.0.9", "poolEnd": "10.0.0.8"}
    yield {"dhcp": backwards}, "dhcp.poolEnd", "must not be before poolStart 10.0.0.9"
    yield {"dhcp": {"poolStart": "10.0.0.9", "poolEnd": "fd00::1"}}, "dhcp.poolEnd", "must not be before poolStart"
    yield {"dhcp": {"leaseTime": "soon"}}, "dhcp.leaseTime", "must be a duration"
    yield reservation(ipAddress="10.0.1.7"), "dhcp.reservations[0].ipAddress", "must be inside the subnet"
    yield reservation(macAddress="x"), "dhcp.reservations[0].macAddress", "must be a MAC address"
    yield rule(direction="in"), "security.firewallRules[0].direction", 'supported values: "ingress", "egress"'
    yield rule(protocol="sctp"), "security.firewallRules[0].protocol", 'supported values: "tcp", "udp", "icmp"'
    yield rule(action="drop"), "security.firewallRules[0].action", 'supported values: "allow", "deny"'


@pytest.mark.parametrize(("spec", "field", "words"), list(refused()))
def test_refused_at_its_place(spec: dict[str, Any], field: str, words: str) -> None:
    found = errors(admitted(spec))
    assert [place for place, _ in found] == [f"spec.{field}"]
    assert words in found[0][1]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"vlan": 0},
        {"vlan": 4094, "bridge": "br-storage.100", "mtu": 9000},
        NET | {"dhcp": {"enabled": True, "poolStart": "10.0.0.1", "poolEnd": "10.0.0.1", "leaseTime": "12h"}},
        {"ipam": {"subnet": "fd00::/64", "gateway": "fd00::1", "type": "static"}},
        {"ipam": {"gateway": "10.0.0.1"}, "dhcp": {"poolStart": "10.0.0.5"}},
        reservation(hostname="web"),
        rule(direction="egress", protocol="icmp", port="", source="10.0.0.0/8", destination="0.0.0.0/0", action="deny"),
    ],
)
def test_accepted(spec: dict[str, Any] | None) -> None:
    assert errors(admitted(spec)) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, ("br0", None)),
        ({"vlan": 100, "bridge": "br1"}, ("br1", 100)),
        ({"VLAN": 100, "Bridge": "br1"}, ("br1", 100)),
    ],
)
def test_both_spellings_and_the_default(spec: dict[str, Any] | None, expected: tuple[str, int | None]) -> None:
    admission = admitted(spec)
    assert isinstance(admission.value, NetworkConfiguration)
    assert (admission.value.spec.bridge, admission.value.spec.vlan) == expected
    assert not {"VLAN", "Bridge"} & admission.data["spec"].keys()


def test_the_name_becomes_a_label_value() -> None:
    assert errors(admitted({}, "x" * 63)) == []
    assert errors(admitted({}, "x" * 64))[0][0] == "metadata.name"
