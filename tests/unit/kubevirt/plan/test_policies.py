"""NetworkPolicies against a second, slower reading of what they say: who may talk to whom at which port."""

import ipaddress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.engine.networks.nics import NicPeer, NicPolicy, PolicyAllowance, Ports
from paddock.kubevirt.plan.network.policies import ClusterView, PolicySubject, policies

SUBJECTS = (
    PolicySubject("web", "shop", {"app": "web"}, {("http", "TCP"): 8080}),
    PolicySubject("db", "shop", {"app": "db"}, {("http", "TCP"): 9090, ("dns", "UDP"): 53}),
    PolicySubject("spy", "other", {"app": "web"}),
)
WORLD = ClusterView(SUBJECTS, {"shop": {"team": "a"}, "other": {"team": "b"}})
ADDRESSES = {"web": "10.112.64.5", "db": "10.112.64.6", "spy": "10.112.64.7"}
Data = dict[str, Any]


def policy(name: str = "p", namespace: str = "shop", **spec: Any) -> Data:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def test_nothing_said_is_nothing_let_in() -> None:
    assert policies([policy(podSelector={})], WORLD) == [NicPolicy("shop/p", ("db", "web"), (), None)]


def test_a_policy_without_machines_says_nothing() -> None:
    assert policies([policy(podSelector={"matchLabels": {"app": "none"}})], WORLD) == []


def test_names_of_ports_are_numbers_at_each_machine() -> None:
    found = policies([policy(podSelector={}, ingress=[{"ports": [{"port": "http"}]}])], WORLD)
    assert {each.owners: each.ingress for each in found} == {
        ("web",): (PolicyAllowance(None, (Ports("tcp", 8080),)),),
        ("db",): (PolicyAllowance(None, (Ports("tcp", 9090),)),),
    }
    assert len({each.name for each in found}) == 2
    (out,) = policies(
        [policy(podSelector={"matchLabels": {"app": "web"}}, egress=[{"ports": [{"port": "http"}]}], policyTypes=["Egress"])], WORLD
    )
    assert out.ingress is None and out.egress == (
        PolicyAllowance((NicPeer(owners=("web",)),), (Ports("tcp", 8080),)),
        PolicyAllowance((NicPeer(owners=("db",)),), (Ports("tcp", 9090),)),
    )


SELECTORS = st.sampled_from(
    [
        {},
        {"matchLabels": {"app": "web"}},
        {"matchLabels": {"app": "db"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        {"matchLabels": {"team": "b"}},
    ]
)
PEERS = st.one_of(
    st.fixed_dictionaries({"podSelector": SELECTORS}),
    st.fixed_dictionaries({"namespaceSelector": SELECTORS}),
    st.fixed_dictionaries({"namespaceSelector": SELECTORS, "podSelector": SELECTORS}),
    st.sampled_from(
        [
            {"ipBlock": {"cidr": "10.112.64.0/29"}},
            {"ipBlock": {"cidr": "10.112.64.0/24", "except": ["10.112.64.6/32", "10.112.64.0/30"]}},
            {"ipBlock": {"cidr": "192.0.2.0/24"}},
        ]
    ),
)
PORTS = st.sampled_from(
    [{}, {"port": 80}, {"port": "http"}, {"port": 79, "endPort": 8080}, {"port": 53, "protocol": "UDP"}, {"protocol": "SCTP"}]
)


def rules(side: str) -> st.SearchStrategy[list[Data]]:
    rule = st.fixed_dictionaries({}, optional={side: st.lists(PEERS, max_size=2), "ports": st.lists(PORTS, max_size=2)})
    return st.lists(rule, max_size=2)


POLICIES = st.fixed_dictionaries(
    {"podSelector": SELECTORS, "ingress": rules("from"), "egress": rules("to")},
    optional={"policyTypes": st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]])},
)


def labels_hold(selector: Data, labels: Any) -> bool:
    said = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    for each in selector.get("matchExpressions", ()):
        said &= each["key"] in labels if each["operator"] == "Exists" else labels.get(each["key"]) not in each["values"]
    return bool(said)


def peer_holds(peer: Data, who: PolicySubject, home: str) -> bool:
    if "ipBlock" in peer:
        address = ipaddress.ip_address(ADDRESSES[who.owner])
        inside = address in ipaddress.ip_network(peer["ipBlock"]["cidr"])
        return inside and not any(address in ipaddress.ip_network(each) for each in peer["ipBlock"].get("except", ()))
    spaces = (
        {name for name, labels in WORLD.namespaces.items() if labels_hold(peer["namespaceSelector"], labels)}
        if "namespaceSelector" in peer
        else {home}
    )
    return who.namespace in spaces and labels_hold(peer.get("podSelector", {}), who.labels)


def port_holds(port: Data, protocol: str, number: int, target: PolicySubject) -> bool:
    if port.get("protocol", "TCP") != protocol:
        return False
    first: Any = port.get("port", 0)
    if isinstance(first, str):
        return target.named.get((first, protocol)) == number
    return bool(first <= number <= port.get("endPort", first or 65535))


def expected(given_policies: list[Data], source: PolicySubject, target: PolicySubject, protocol: str, number: int) -> bool:
    for direction, side, subject, other in (("Ingress", "from", target, source), ("Egress", "to", source, target)):
        speaking = [
            each
            for each in given_policies
            if each["metadata"]["namespace"] == subject.namespace
            and labels_hold(each["spec"]["podSelector"], subject.labels)
            and direction in each["spec"].get("policyTypes", ["Ingress", "Egress"])
        ]
        allowed = any(
            (not rule.get(side) or any(peer_holds(peer, other, subject.namespace) for peer in rule[side]))
            and (not rule.get("ports") or any(port_holds(port, protocol, number, target) for port in rule["ports"]))
            for each in speaking
            for rule in each["spec"][direction.lower()]
        )
        if speaking and not allowed:
            return False
    return True


def carried_out(found: list[NicPolicy], source: str, target: str, protocol: str, number: int) -> bool:
    """As the engine's chains would decide."""
    for direction, subject, other in (("ingress", target, source), ("egress", source, target)):
        speaking = [each for each in found if subject in each.owners and getattr(each, direction) is not None]
        allows = [allow for each in speaking for allow in getattr(each, direction)]
        if speaking and not any(passes(allow, other, protocol, number) for allow in allows):
            return False
    return True


def passes(allow: PolicyAllowance, other: str, protocol: str, number: int) -> bool:
    address = ipaddress.ip_address(ADDRESSES[other])
    peers = allow.peers is None or any(
        other in peer.owners
        or (
            peer.block
            and address in ipaddress.ip_network(peer.block)
            and not any(address in ipaddress.ip_network(each) for each in peer.without)
        )
        for peer in allow.peers
    )
    ports = allow.ports is None or any(each.protocol == protocol.lower() and each.first <= number <= each.end for each in allow.ports)
    return bool(peers and ports)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(["shop", "other"]), POLICIES), max_size=3))
def test_the_engine_is_asked_for_what_the_policies_say(drawn: list[tuple[str, Data]]) -> None:
    given_policies = [policy(f"p{number}", namespace, **spec) for number, (namespace, spec) in enumerate(drawn)]
    found = policies(given_policies, WORLD)
    for source in SUBJECTS:
        for target in SUBJECTS:
            for protocol, number in (("TCP", 80), ("TCP", 8080), ("TCP", 9090), ("UDP", 53)):
                wanted = expected(given_policies, source, target, protocol, number)
                assert carried_out(found, source.owner, target.owner, protocol, number) == wanted, (source, target, protocol, number)
