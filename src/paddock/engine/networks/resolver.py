"""The resolver of a guest: the wishes of its machine (dnsPolicy, dnsConfig) over those of its network. Pure.

The rules are a kubelet's for a Pod, whose resolv.conf KubeVirt hands to the guest by DHCP. One thing is wider: under `Default` the name
server of the network stays, because it asks the host's resolvers, which a guest often cannot reach (loopback, the host's own addresses).
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine.networks.families import Family

DnsPolicy = Literal["ClusterFirst", "Default", "None"]
_MOST_SERVERS = 3


class ResolverConfig(Struct, frozen=True):
    """Addresses of name servers, and domains that short names are looked for in."""

    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


class GuestResolver(Struct, frozen=True):
    """The resolver that a machine asks for."""

    policy: DnsPolicy = "ClusterFirst"
    # of dnsConfig
    given: ResolverConfig = ResolverConfig()

    def of(self, family: Family) -> "GuestResolver":
        """Return the resolver with the name servers of one family, which its own protocol carries."""
        servers = tuple(each for each in self.given.servers if family.has(each))
        return replace(self, given=replace(self.given, servers=servers))

    def over(self, network: ResolverConfig, host_search: tuple[str, ...] = ()) -> ResolverConfig:
        """Return what the guest gets: the network's resolver, the host's search list or nothing, then what the machine names."""
        below = {"ClusterFirst": network, "Default": ResolverConfig(network.servers, host_search), "None": ResolverConfig()}[self.policy]
        servers = dict.fromkeys((*below.servers, *self.given.servers))
        return ResolverConfig(tuple(servers)[:_MOST_SERVERS], tuple(dict.fromkeys((*below.search, *self.given.search))))
