"""The cards of a machine, as the engine is asked for them."""

from collections.abc import Mapping

import msgspec
import pytest

from paddock.engine.machine.config import Tap
from paddock.engine.networks.nics import AttachedNic, DhcpOptions, HostBridge, NicSpec, Ports, TrafficLimit
from paddock.engine.networks.resolver import GuestResolver, ResolverConfig
from paddock.kubernetes.meta.pods import DNSConfig
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.networks import Interface
from paddock.kubevirt.plan.instance import nics


def instance(interface: Mapping[str, object], network: Mapping[str, object], **more: object) -> VirtualMachineInstance:
    devices = {"interfaces": [{"name": "default", **interface}], **more}
    spec = {"domain": {"devices": devices, "cpu": {"cores": 2, "sockets": 2}}, "networks": [{"name": "default", **network}]}
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "vm-uid", "controller": True}
    meta = {"name": "web.example", "namespace": "team", "uid": "u1", "ownerReferences": [owner]}
    return msgspec.convert({"metadata": meta, "spec": spec}, VirtualMachineInstance)


def only(found: VirtualMachineInstance, bridges: dict[str, HostBridge | str] | None = None) -> NicSpec | nics.NicRefusal:
    (card,) = nics.cards_of(found, bridges or {}, "cluster.local")
    return card


POD: Mapping[str, object] = {"pod": {}}


@pytest.mark.parametrize(
    ("interface", "network", "expected"),
    [
        ({"masquerade": {}}, POD, {"binding": "masquerade", "network": "10.0.2.0/24"}),
        ({"masquerade": {}}, {"pod": {"vmNetworkCIDR": "10.9.0.0/24"}}, {"network": "10.9.0.0/24"}),
        ({"masquerade": {}}, POD, {"network6": "fd10:0:2::/120"}),
        ({"masquerade": {}}, {"pod": {"vmIPv6NetworkCIDR": "fd20::/112"}}, {"network": "10.0.2.0/24", "network6": "fd20::/112"}),
        ({"bridge": {}}, {"pod": {"vmIPv6NetworkCIDR": "fd20::/112"}}, {"network6": ""}),
        ({"masquerade": {}}, {"pod": {"vmNetworkCIDR": "010.10.010.0/24"}}, {"network": "10.10.10.0/24"}),
        ({"bridge": {}}, POD, {"binding": "bridge", "network": ""}),
        ({"passtBinding": {}}, POD, {"binding": "passt"}),
        ({"binding": {"name": "l2bridge"}}, POD, {"binding": "bridge"}),
        ({"masquerade": {}, "macAddress": "02-00-00-00-00-AA"}, POD, {"mac": "02:00:00:00:00:aa"}),
        (
            {"masquerade": {}, "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]},
            POD,
            {"ports": (Ports("tcp", 80), Ports("udp", 53))},
        ),
        ({"masquerade": {}, "portRanges": [{"protocol": "TCP", "start": 1, "end": 9}]}, POD, {"ports": (Ports("tcp", 1, 9),)}),
        ({"masquerade": {}, "dhcpOptions": {"ntpServers": ["010.0.0.9"]}}, POD, {"dhcp": DhcpOptions(ntp=("10.0.0.9",))}),
        ({"masquerade": {}}, POD, {"owner": "vm-uid", "hostname": "web", "group": "team"}),
        ({"bridge": {}}, {"multus": {"networkName": "lan"}}, {"binding": "host-bridge", "bridge": HostBridge("br1")}),
    ],
)
def test_a_card(interface: dict[str, object], network: dict[str, object], expected: dict[str, object]) -> None:
    found = only(instance(interface, network), {"default": HostBridge("br1")})
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("interface", "network", "said"),
    [
        ({"sriov": {}}, POD, "SR-IOV"),
        ({"binding": {"name": "magic"}}, POD, "magic"),
        ({"bridge": {}}, {"multus": {"networkName": "lan"}}, "there is no definition lan"),
    ],
)
def test_a_card_that_cannot_be_had(interface: dict[str, object], network: dict[str, object], said: str) -> None:
    found = only(instance(interface, network), {"default": "there is no definition lan"})
    assert isinstance(found, nics.NicRefusal)
    assert said in found.message


def test_the_names_of_a_guest_are_told_with_its_card() -> None:
    found = instance({"masquerade": {}}, POD)
    named = msgspec.structs.replace(found.spec, subdomain="shop", dnsConfig=DNSConfig(searches=["a.example", "b.example"]))
    card = only(msgspec.structs.replace(found, spec=named))
    assert isinstance(card, NicSpec)
    assert (card.domain, card.resolver.given.search) == ("shop.team.svc.cluster.local", ("a.example", "b.example"))


@pytest.mark.spec("kubevirt", 188)
@pytest.mark.parametrize(
    ("spec", "resolver"),
    [
        ({}, GuestResolver()),
        ({"dnsPolicy": "ClusterFirst"}, GuestResolver()),
        ({"dnsPolicy": "ClusterFirstWithHostNet"}, GuestResolver()),
        ({"dnsPolicy": "Default"}, GuestResolver("Default")),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["01.1.1.1", "fd00::53"]}},
            GuestResolver("None", ResolverConfig(("1.1.1.1", "fd00::53"))),
        ),
        (
            {"dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.example"]}},
            GuestResolver(given=ResolverConfig(("1.1.1.1",), ("a.example",))),
        ),
    ],
)
def test_the_resolver_of_a_guest_is_told_with_its_card(spec: Mapping[str, object], resolver: GuestResolver) -> None:
    found = instance({"masquerade": {}}, POD)
    data = {**msgspec.to_builtins(found.spec), **spec}
    card = only(msgspec.structs.replace(found, spec=msgspec.convert(data, type(found.spec))))
    assert isinstance(card, NicSpec) and card.resolver == resolver


@pytest.mark.spec("kubevirt", 202)
@pytest.mark.parametrize("addresses", [["10.112.64.5", "fd00:1::5"], ["10.112.64.5"], ["fd00:1::5"], []])
def test_a_card_in_the_status_has_the_addresses_of_both_families(addresses: list[str]) -> None:
    own, own6 = (next((each for each in addresses if (":" in each) is is_six), "") for is_six in (False, True))
    plug = AttachedNic("02:00:00:00:00:05", own, "10.0.2.2/24", Tap("pk1", 1), address6=own6)
    said = nics.status_of(Interface(name="default"), plug, linked=True, queues=1)
    assert said.ipAddresses == (addresses or None) and said.ipAddress == (addresses[0] if addresses else None)


def test_an_absent_card_is_not_asked_for() -> None:
    assert list(nics.cards_of(instance({"bridge": {}, "state": "absent"}, POD), {}, "cluster.local")) == []


def test_queues_follow_the_processors_where_asked_for() -> None:
    many = only(instance({"masquerade": {}}, POD, networkInterfaceMultiqueue=True))
    old = only(instance({"masquerade": {}, "model": "e1000"}, POD, networkInterfaceMultiqueue=True))
    assert isinstance(many, NicSpec) and isinstance(old, NicSpec)
    assert (many.queues, old.queues) == (4, 1)


def test_annotations_limit_the_pod_networks_traffic() -> None:
    found = instance({"masquerade": {}}, POD)
    found = msgspec.structs.replace(
        found, metadata=msgspec.structs.replace(found.metadata, annotations={"kubernetes.io/egress-bandwidth": "8M"})
    )
    card = only(found)
    assert isinstance(card, NicSpec) and card.traffic == TrafficLimit(from_guest=1_000_000, from_guest_burst=1_000_000)
    wrong = msgspec.structs.replace(
        found, metadata=msgspec.structs.replace(found.metadata, annotations={"kubernetes.io/egress-bandwidth": "much"})
    )
    refused = only(wrong)
    assert isinstance(refused, nics.NicRefusal) and "egress-bandwidth" in refused.message


def test_a_definition_limits_the_traffic_of_its_cards() -> None:
    limit = TrafficLimit(to_guest=1000)
    card = only(instance({"bridge": {}}, {"multus": {"networkName": "lan"}}), {"default": HostBridge("br1", traffic=limit)})
    assert isinstance(card, NicSpec) and card.traffic == limit
