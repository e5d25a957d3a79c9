"""Policies at the listeners of this process. Pure.

The packet filter judges what the kernel leads to machines by the client's address. Behind a listener it sees this host alone, so the
listener judges.
"""

import ipaddress
from collections.abc import Collection

from paddock.engine.networks.nics import ForwardTarget, NicPeer, NicPolicy, PolicyAllowance, Protocol


def admits(policies: Collection[NicPolicy], target: ForwardTarget, protocol: Protocol, client: str) -> bool:
    """Return whether a client that is no machine may connect to a port of a card."""
    client = client.partition("%")[0]
    concerned = [each.ingress for each in policies if target.owner in each.owners and each.ingress is not None]
    return not concerned or any(_allows(allowance, target.port, protocol, client) for ingress in concerned for allowance in ingress)


def _allows(allowance: PolicyAllowance, port: int, protocol: Protocol, client: str) -> bool:
    ports = allowance.ports
    if ports is not None and not any(each.protocol == protocol and each.first <= port <= each.end for each in ports):
        return False
    return allowance.peers is None or any(_is_peer(peer, client) for peer in allowance.peers)


def _is_peer(peer: NicPeer, client: str) -> bool:
    return bool(peer.block) and _is_in(client, peer.block) and not any(_is_in(client, each) for each in peer.without)


def _is_in(client: str, network: str) -> bool:
    return ipaddress.ip_address(client) in ipaddress.ip_network(network, strict=False)
