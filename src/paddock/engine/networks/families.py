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
