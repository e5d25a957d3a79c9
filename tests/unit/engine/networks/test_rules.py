"""The packet filter as text: a golden file for everything at once, and what must hold whatever is asked for."""

import pytest
from msgspec.structs import replace

from paddock.engine.networks import rules, serviceforwards
from paddock.engine.networks.listeners import ListenEndpoint
from paddock.engine.networks.nics import (
    ForwardTarget,
    NicPeer,
    NicPolicy,
    PolicyAllowance,
    Ports,
    PublishedPort,
    PublishedService,
    TrafficLimit,
)
from paddock.engine.networks.rules import BridgedNic, RuleTable, ServiceForward, TapNic
from tests.golden import Golden

PORTS = (Ports("tcp", 80), Ports("tcp", 8000, 8010), Ports("tcp", 8005, 8020), Ports("udp", 53))
EMPTY = RuleTable("paddock_0a0a", "10.112.64.0/18", "10.112.64.1")
FULL = replace(
    EMPTY,
    cards=(
        TapNic("pk0a0a00000001", "web", "02:00:00:00:00:01", "10.112.64.5", "10.0.2.2", "10.0.2.1", PORTS),
        TapNic("pk0a0a00000002", "db", "02:00:00:00:00:02", "10.112.64.6"),
    ),
    bridged=(
        BridgedNic(
            "pk0a0a00000003", "db", "02:00:00:00:00:03", "br1", "172.20.0.7", address6="fd00:20::7", router6="fe80::1:a9ff:fe8f:ae42"
        ),
        BridgedNic("pk0a0a00000004", "x", "02:00:00:00:00:04", "br1"),
    ),
    services=(
        ServiceForward("10.97.0.5", "tcp", 80, (("10.112.64.5", 8080), ("10.112.64.6", 8081))),
        ServiceForward("10.97.0.5", "udp", 53, (("10.112.64.5", 53),), sticky=True),
        ServiceForward("10.97.0.6", "tcp", 80, ()),
        ServiceForward("", "tcp", 30080, (("10.112.64.5", 8080),)),
    ),
    policies=(
        NicPolicy("ns/b", ("web",), ingress=()),
        NicPolicy(
            "ns/a",
            ("web", "db"),
            (PolicyAllowance((NicPeer("10.0.0.0/8", ("10.1.0.0/16", "10.1.2.0/24")), NicPeer(owners=("db", "gone"))), PORTS),),
            (PolicyAllowance(),),
        ),
        NicPolicy("ns/c", ("gone",), ingress=()),
    ),
    masqueraded=(("br1", "172.20.0.0/24"),),
    made=("br1",),
    opened=("eth0",),
)


LIMITED = replace(
    EMPTY,
    cards=(TapNic("pk1", "a", "02:00:00:00:00:01", "10.112.64.5", traffic=TrafficLimit(125_000, 1_000_000, 250_000)),),
    bridged=(
        BridgedNic("pk2", "b", "02:00:00:00:00:02", "br1", traffic=TrafficLimit(from_guest=500_000, from_guest_burst=500_000)),
        BridgedNic("pk3", "c", "02:00:00:00:00:03", "br1"),
    ),
)


DUAL = replace(
    FULL,
    pod_network6="fd00:1::/64",
    host6="fd00:1::1",
    cards=(
        replace(FULL.cards[0], address6="fd00:1::5", inner6="fd10:0:2::2", inner_gateway6="fd10:0:2::1"),
        replace(FULL.cards[1], address6="fd00:1::6"),
        TapNic("pk0a0a00000005", "old", "02:00:00:00:00:05", "10.112.64.7"),
    ),
    services=(
        *FULL.services,
        ServiceForward("fd00:10:96::5", "tcp", 80, (("fd00:1::5", 8080), ("fd00:1::6", 8081))),
        ServiceForward("::", "tcp", 30080, (("fd00:1::5", 8080),)),
    ),
    policies=(*FULL.policies, NicPolicy("ns/d", ("web",), (PolicyAllowance((NicPeer("fd00::/8", ("fd01::/16",)),)),))),
    opened6=("eth0", "eth1"),
    users=(2000000000, 2000000099),
)
SIX = replace(
    DUAL,
    pod_network="",
    host="",
    cards=tuple(replace(card, address="", inner="", inner_gateway="") for card in DUAL.cards[:2]),
    services=DUAL.services[-2:],
)


@pytest.mark.parametrize(("name", "table"), [("empty", EMPTY), ("full", FULL), ("limited", LIMITED), ("dual", DUAL), ("six", SIX)])
def test_the_text(golden: Golden, name: str, table: RuleTable) -> None:
    golden(f"rules_{name}.nft", rules.text(table))


def test_the_order_of_what_is_asked_for_does_not_matter() -> None:
    turned = replace(FULL, cards=FULL.cards[::-1], bridged=FULL.bridged[::-1], services=FULL.services[::-1], policies=FULL.policies[::-1])
    assert rules.text(turned) == rules.text(FULL)


def test_policies_of_the_same_name_set_share_a_chain() -> None:
    policies = (NicPolicy("p", ("web", "db"), ingress=()),)
    assert rules.text(replace(FULL, policies=policies)).count("chain ingress_") == 1


def test_a_policy_that_allows_nobody_lets_nothing_in() -> None:
    nobody = NicPolicy("p", ("web",), ingress=(PolicyAllowance((NicPeer(owners=("gone",)),)),))
    text = rules.text(replace(FULL, policies=(nobody,)))
    chain = text[text.index("chain ingress_") :]
    assert chain[: chain.index("}")].split("\n")[1:-1] == ["    counter drop"]


def test_ranges_that_touch_are_one() -> None:
    assert [(each.protocol, each.first, each.end) for each in rules._merged(PORTS)] == [
        ("tcp", 80, 80),
        ("tcp", 8000, 8020),
        ("udp", 53, 53),
    ]


def test_the_kernel_leads_where_somebody_listens_and_to_whom_has_an_address() -> None:
    targets = (ForwardTarget("web", "default", 80), ForwardTarget("behind-passt", "default", 80))
    services = (
        PublishedService("ns/a", (PublishedPort("tcp", 80, targets, 30080),), ("10.97.0.5", "fd00::1"), ("192.0.2.1",)),
        PublishedService("ns/b", (PublishedPort("tcp", 81, targets, 30081),), ("10.97.0.6",), sources=("192.0.2.0/24",)),
        PublishedService("ns/d", (PublishedPort("tcp", 83, targets, 30080),), sources=("2001:db8::/32",)),
        PublishedService("ns/c", (PublishedPort("tcp", 82, targets, 30082),), ("10.97.0.5",)),
    )
    listened = (
        ListenEndpoint("tcp", "0.0.0.0", 30080),
        ListenEndpoint("tcp", "0.0.0.0", 30081),
        ListenEndpoint("udp", "0.0.0.0", 30082),
        ListenEndpoint("tcp", "192.0.2.1", 80),
    )
    found = serviceforwards.services(services, listened, lambda target: ("10.112.64.5",) if target.owner == "web" else ())
    assert [(each.address, each.port) for each in found] == [
        ("10.97.0.5", 80),
        ("fd00::1", 80),
        ("192.0.2.1", 80),
        ("", 30080),
        ("10.97.0.6", 81),
        ("", 30081),
        ("10.97.0.5", 82),
    ]
    assert [each.sources for each in found if each.sources] == [("192.0.2.0/24",)]
    assert all(each.targets == (() if ":" in each.address else (("10.112.64.5", 80),)) for each in found)


def test_a_service_leads_only_clients_of_its_networks() -> None:
    service = ServiceForward("", "tcp", 30080, (("10.112.64.5", 80),), sources=("192.0.2.0/24", "192.0.2.0/25", "198.51.100.7/32"))
    text = rules.text(replace(FULL, services=(service,)))
    assert "    ip saddr { 192.0.2.0/24, 198.51.100.7/32 } meta l4proto tcp dnat ip" in text
