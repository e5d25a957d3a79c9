"""The resolver of a guest: its machine's dnsPolicy and dnsConfig over its network's own."""

import pytest

from paddock.engine.networks import hostnetwork
from paddock.engine.networks.resolver import DnsPolicy, GuestResolver, ResolverConfig

NETWORK = ResolverConfig(("10.0.2.1",), ("shop.svc.cluster.local", "cluster.local"))
GIVEN = ResolverConfig(("1.1.1.1", "9.9.9.9"), ("corp.example",))
HOST = ("lab.example",)


@pytest.mark.parametrize(
    ("policy", "given", "told"),
    [
        ("ClusterFirst", ResolverConfig(), NETWORK),
        ("ClusterFirst", GIVEN, ResolverConfig(("10.0.2.1", "1.1.1.1", "9.9.9.9"), (*NETWORK.search, "corp.example"))),
        ("Default", ResolverConfig(), ResolverConfig(("10.0.2.1",), HOST)),
        ("Default", GIVEN, ResolverConfig(("10.0.2.1", "1.1.1.1", "9.9.9.9"), ("lab.example", "corp.example"))),
        ("None", GIVEN, GIVEN),
        ("ClusterFirst", ResolverConfig(("10.0.2.1",), ("cluster.local",)), NETWORK),
        (
            "ClusterFirst",
            ResolverConfig(("1.1.1.1", "2.2.2.2", "3.3.3.3")),
            ResolverConfig(("10.0.2.1", "1.1.1.1", "2.2.2.2"), NETWORK.search),
        ),
    ],
)
def test_a_policy_decides_what_comes_before_the_machines_own(policy: DnsPolicy, given: ResolverConfig, told: ResolverConfig) -> None:
    assert GuestResolver(policy, given).over(NETWORK, HOST) == told


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("nameserver 10.0.0.1\nsearch lab.example  b.example\n", ("lab.example", "b.example")),
        ("domain old.example\nsearch new.example\n", ("new.example",)),
        ("search\noptions ndots:2\n", ()),
    ],
)
def test_the_search_list_of_the_host(text: str, found: tuple[str, ...]) -> None:
    assert hostnetwork.search(text) == found
