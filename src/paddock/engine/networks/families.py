"""The two families of addresses, in the words of the packet filter. Pure."""

import ipaddress

from msgspec import Struct


class Family(Struct, frozen=True):
    """IPv4 or IPv6."""

    # before a field of its header
    word: str
    # of an address in a set
    kind: str
    # what the names of its sets end with
    mark: str
    loopback: str
    # a network that overlaps nobody's
    nowhere: str

    def has(self, text: str) -> bool:
        """Return whether an address or a network belongs to the family. "" is IPv4's."""
        return (":" in text) is (self.word == "ip6")

    def network(self, text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """Return a network of the family."""
        return ipaddress.IPv6Network(text, strict=False) if self.word == "ip6" else ipaddress.IPv4Network(text, strict=False)

    def network_of(self, listed: str) -> str:
        """Return the network of the family among those that commas separate; "" without one."""
        return next((each for each in map(str.strip, listed.split(",")) if self.has(each)), "")


IP4 = Family("ip", "ipv4_addr", "", "127.0.0.0/8", "255.255.255.255/32")
IP6 = Family("ip6", "ipv6_addr", "6", "::1", "ffff::/128")


def family_of(address: str) -> Family:
    """Return the family of an address or a network."""
    return IP6 if IP6.has(address) else IP4


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
