"""Addresses that no guest reaches: the host's neighbours alone have them, or a cloud hands out the host's credentials there. Pure."""

import ipaddress

from paddock.engine.networks.families import IP4, IP6, Family

LINK = "fe80::/10"
# The host's neighbours alone, and in a cloud the service that hands out the host's credentials: Alibaba's and Oracle's are not link-local.
_NOT_FOR_GUESTS = {
    IP4: ("100.100.100.200/32", "169.254.0.0/16", "192.0.0.192/32"),
    # The second leads to 169.254.0.0/16 where a router translates; the others are Oracle's, Amazon's and Google's.
    IP6: (LINK, "64:ff9b::a9fe:0/112", "fd00:c1::a9fe:a9fe/128", "fd00:ec2::254/128", "fd20:ce::254/128"),
}


def denied(family: Family, pod_network: str = "", *, but: str = "") -> str:
    """Return the addresses that no guest reaches, but one. An operator may have given one of them to the machines' own network."""
    own = ipaddress.ip_network(pod_network or family.nowhere)
    listed = (each for each in _NOT_FOR_GUESTS[family] if each != but and not own.overlaps(ipaddress.ip_network(each)))
    return f"{{ {', '.join(listed)} }}"
