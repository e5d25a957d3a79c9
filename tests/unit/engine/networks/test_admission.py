"""Policies at listeners: clients that are no machines."""

import pytest

from paddock.engine.networks.admission import admits
from paddock.engine.networks.nics import ForwardTarget, NicPeer, NicPolicy, PolicyAllowance, Ports

TARGET = ForwardTarget("db", "default", 5432)
BLOCK = PolicyAllowance((NicPeer("198.51.100.0/24", ("198.51.100.9/32",)),))


def policy(*ingress: PolicyAllowance, owner: str = "db") -> NicPolicy:
    """A policy that allows this to come in."""
    return NicPolicy("p", (owner,), ingress)


@pytest.mark.parametrize(
    ("policies", "client", "allowed"),
    [
        ((), "203.0.113.1", True),
        ((policy(owner="web"),), "203.0.113.1", True),
        # a policy of what goes out says nothing of what comes in
        ((NicPolicy("p", ("db",), None, ()),), "203.0.113.1", True),
        ((policy(),), "203.0.113.1", False),
        ((policy(BLOCK),), "198.51.100.1", True),
        ((policy(BLOCK),), "198.51.100.9", False),
        ((policy(BLOCK),), "203.0.113.1", False),
        ((policy(BLOCK),), "2001:db8::1", False),
        ((policy(PolicyAllowance((NicPeer("2001:db8::/32"),))),), "2001:db8::1", True),
        # whoever is no machine is none of these
        ((policy(PolicyAllowance((NicPeer(owners=("web",)),))),), "203.0.113.1", False),
        # policies add up
        ((policy(), policy(PolicyAllowance())), "203.0.113.1", True),
        ((policy(PolicyAllowance(ports=(Ports("tcp", 5000, 6000),))),), "203.0.113.1", True),
        ((policy(PolicyAllowance(ports=(Ports("udp", 5432), Ports("tcp", 80)))),), "203.0.113.1", False),
    ],
)
def test_a_client_is_judged_by_its_address(policies: tuple[NicPolicy, ...], client: str, allowed: bool) -> None:
    assert admits(policies, TARGET, "tcp", client) is allowed
