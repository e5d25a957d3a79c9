"""Neighbour discovery of guests as the packet filter lets it pass: a guest speaks for its own addresses, and is nobody's router. Pure."""

import ipaddress
from collections.abc import Collection, Iterable, Iterator

# The host's side of each tap, which is the guest's router.
ROUTER = "fe80::1"
_LINK = "fe80::/10"
# In a neighbour advertisement: the address that it is about, and the half that says that it holds on this link only. Versions of nft before
# 1.0.8 have no word for it.
_TARGET, _TARGET_SCOPE, _LINK_SCOPE = "@th,64,128", "@th,64,64", "0xfe80000000000000"
NO_ROUTER = "icmpv6 type { nd-router-advert, nd-redirect } counter drop"
_LISTENING = "mld-listener-report, mld-listener-done, mld2-listener-report"


def _number(address: str) -> str:
    return f"{int(ipaddress.IPv6Address(address)):#034x}"


def neighbours(listed: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The set of what a guest at a device may advertise besides link-local addresses."""
    yield "  set neighbours {"
    yield f"    typeof iifname . {_TARGET}"
    elements = sorted(f'"{device}" . {_number(address)}' for device, address in listed)
    if elements:
        yield f"    elements = {{ {', '.join(elements)} }}"
    yield "  }"


def routed() -> tuple[str, ...]:
    """Rules for taps that the host routes to."""
    return (
        NO_ROUTER,
        "meta nfproto ipv6 udp sport 547 counter drop",
        f"icmpv6 type nd-neighbor-advert {_TARGET} {_number(ROUTER)} counter drop",
        f"icmpv6 type nd-neighbor-advert {_TARGET_SCOPE} != {_LINK_SCOPE} iifname . {_TARGET} != @neighbours counter drop",
        f"ip6 saddr {ROUTER} counter drop",
        f"ip6 saddr {_LINK} ip6 daddr {{ {_LINK}, ff02::/16 }} accept",
        f"ip6 saddr {_LINK} icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert }} accept",
        f"ip6 saddr :: icmpv6 type {{ nd-neighbor-solicit, nd-router-solicit, {_LISTENING} }} accept",
        "iifname . ether saddr . ip6 saddr @sources6 accept",
    )


def bridged(routers: Collection[str]) -> tuple[str, ...]:
    """Rules for cards in bridges whose IPv6 address is ours to say. `routers`: the host's link-local addresses at these bridges."""
    return (
        "iifname != @addressed6 accept",
        *(f"icmpv6 type nd-neighbor-advert {_TARGET} {_number(router)} counter drop" for router in routers),
        *(f"ip6 saddr {router} counter drop" for router in routers),
        f"icmpv6 type nd-neighbor-advert {_TARGET_SCOPE} != {_LINK_SCOPE} iifname . {_TARGET} != @neighbours counter drop",
        "udp dport 547 drop",
        f"ether type ip6 ip6 saddr {{ ::, {_LINK} }} accept",
        "ether type ip6 iifname . ip6 saddr != @sources6 counter drop",
    )


def to_host(host: str) -> tuple[str, ...]:
    """Return the rules that let a guest reach the host: neighbour discovery, the name server, and echo requests."""
    return (
        "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept",
        f"icmpv6 type {{ {_LISTENING} }} drop",
        "udp sport 546 udp dport 547 drop",
        f"ip6 daddr {host} meta l4proto {{ tcp, udp }} th dport 53 accept",
        f"ip6 daddr {{ {host}, {ROUTER} }} icmpv6 type echo-request accept",
    )
