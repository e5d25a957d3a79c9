"""The packet filter of one Paddock as text for `nft -f`: one table, replaced as a whole in one transaction. Pure.

        guest --> guard (spoofing) -> exchange -> conntrack -> services -> routing -> forward | input
                                                                                       |
        guest <-- exchange <-- masquerade <----------------------------- postrouting <-+

Between the exchanges a card has its address in the pod network, so that everything in between speaks of that alone.
"""

import hashlib
import ipaddress
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine.networks import discovery
from paddock.engine.networks.families import IP4, IP6, LINK, Family, denied, family_of
from paddock.engine.networks.nics import LEAST_BURST, NO_LIMIT, NicPeer, NicPolicy, PolicyAllowance, Ports, Protocol, TrafficLimit


class TapNic(Struct, frozen=True):
    """A card on a tap of its own."""

    device: str
    owner: str
    mac: str
    address: str
    # what the guest believes to be its own and its gateway's address; "" where these are the true ones
    inner: str = ""
    inner_gateway: str = ""
    ports: tuple[Ports, ...] = ()
    traffic: TrafficLimit = NO_LIMIT
    # the same of IPv6; "" without it
    address6: str = ""
    inner6: str = ""
    inner_gateway6: str = ""

    def of(self, family: Family) -> "TapNic":
        """The card as one family sees it: its addresses of that family stand in the first places."""
        if family is IP4:
            return self
        return replace(self, address=self.address6, inner=self.inner6, inner_gateway=self.inner_gateway6)


class BridgedNic(Struct, frozen=True):
    """A card whose tap is in a bridge."""

    device: str
    owner: str
    mac: str
    bridge: str
    # the one address it may use; "" where that is not ours to say
    address: str = ""
    traffic: TrafficLimit = NO_LIMIT
    address6: str = ""
    # the link-local address of the host where it is the gateway
    router6: str = ""


class ServiceForward(Struct, frozen=True):
    """One port of an address of a service, and the (address, port) pairs it leads to."""

    # "" for every address of the host, "::" for every IPv6 address of it
    address: str
    protocol: Protocol
    port: int
    targets: tuple[tuple[str, int], ...]
    sticky: bool = False
    # networks of the clients that it leads; empty: all
    sources: tuple[str, ...] = ()


class RuleTable(Struct, frozen=True):
    name: str
    pod_network: str
    # the host's address in it
    host: str
    cards: tuple[TapNic, ...] = ()
    bridged: tuple[BridgedNic, ...] = ()
    services: tuple[ServiceForward, ...] = ()
    policies: tuple[NicPolicy, ...] = ()
    # (bridge, its network) that leave behind the host's address
    masqueraded: tuple[tuple[str, str], ...] = ()
    # bridges that we made
    made: tuple[str, ...] = ()
    # devices that forward for the machines' sake only
    opened: tuple[str, ...] = ()
    # the first and the last user that QEMU and its helpers run as; (0, 0): nobody's in particular
    users: tuple[int, int] = (0, 0)
    # the same of IPv6; "" without it
    pod_network6: str = ""
    host6: str = ""
    # devices that were there when this host began to forward IPv6, for the machines' sake only
    opened6: tuple[str, ...] = ()
    # those of them that accept router advertisements as they did before
    advertised: tuple[str, ...] = ()

    @property
    def families(self) -> tuple[Family, ...]:
        """The families that machines have."""
        return tuple(family for family in (IP4, IP6) if self.network(family))

    def network(self, family: Family) -> str:
        """The pod network of a family."""
        return self.pod_network if family is IP4 else self.pod_network6

    def own(self, family: Family) -> str:
        """The host's address in it."""
        return self.host if family is IP4 else self.host6


def text(table: RuleTable) -> str:
    """Return the input of `nft -f -`."""
    owners = {family: _addresses_by_owner(family, table.cards) for family in table.families}
    lines = [f"table inet {table.name}", f"delete table inet {table.name}", f"table inet {table.name} {{"]
    for part in (
        _sets(table),
        _traffic(table.cards, -320, 310),
        _guard(table),
        _exchange(table),
        _policies(table, owners),
        _forward(table),
        _input(table),
        _services(table),
        _nat(table),
        _processes(table.users),
    ):
        lines += part
    lines += ["}", *_bridged(table), ""]
    return "\n".join(lines)


def guard_processes(name: str, users: tuple[int, int], mark: str = "") -> str:
    """The table of a Paddock whose machines are behind processes of their own, and on no tap. `mark`: a comment that says whose it is."""
    lines = [f"table inet {name}", f"delete table inet {name}", f"table inet {name} {{", *_processes(users, mark), "}", ""]
    return "\n".join(lines)


def _processes(users: tuple[int, int], mark: str = "") -> Iterator[str]:
    """Keep QEMU and passt from link-local addresses: packets of their guests leave this host as their own."""
    if users[0]:
        own, said = f"meta skuid {users[0]}-{users[1]}", f' comment "{mark}"' if mark else ""
        rules = [f"{own} {family.word} daddr {denied(family)} counter reject{said}" for family in (IP4, IP6)]
        yield from _chain("processes", rules, "filter hook output priority 0")


def removal(name: str) -> str:
    """Return the commands that remove the tables, whether they are there or not."""
    return "".join(f"table {family} {name}\ndelete table {family} {name}\n" for family in ("inet", "bridge"))


def _bridged(table: RuleTable) -> Iterator[str]:
    """In a bridge a card sends in its own name alone, and DHCP that we answer goes no further."""
    yield from (f"table bridge {table.name}", f"delete table bridge {table.name}", f"table bridge {table.name} {{")
    cards = table.bridged
    addressed = [nic for nic in cards if nic.address or nic.address6]
    yield from _set("set", "taps", "ifname", (f'"{nic.device}"' for nic in cards))
    yield from _set("set", "macs", "ifname . ether_addr", (f'"{nic.device}" . {nic.mac}' for nic in cards))
    yield from _set("set", "addressed", "ifname", (f'"{nic.device}"' for nic in addressed))
    yield from _set("set", "sources", "ifname . ipv4_addr", (f'"{nic.device}" . {nic.address}' for nic in addressed if nic.address))
    rules = [
        "iifname != @taps accept",
        "iifname . ether saddr != @macs counter drop",
        "ether type arp iifname . arp saddr ether != @macs counter drop",
        "iifname != @addressed accept",
        "udp dport 67 drop",
        "ether type arp arp saddr ip 0.0.0.0 accept",
        "ether type arp iifname . arp saddr ip != @sources counter drop",
        "ether type ip iifname . ip saddr != @sources counter drop",
        discovery.NO_ROUTER,
        "ether type ip6 udp sport 547 counter drop",
    ]
    yield from _traffic(cards, -310, 0)
    ours = [nic for nic in cards if nic.address6]
    if ours:
        yield from _set("set", "addressed6", "ifname", (f'"{nic.device}"' for nic in ours))
        yield from _set("set", "sources6", "ifname . ipv6_addr", (f'"{nic.device}" . {nic.address6}' for nic in ours))
        yield from discovery.neighbours((nic.device, nic.address6) for nic in ours)
        rules += discovery.bridged(sorted({nic.router6 for nic in ours if nic.router6}))
    yield from _chain("guard", rules, "filter hook prerouting priority -300")
    yield "}"


def _traffic(cards: Iterable[TapNic | BridgedNic], before: int, after: int) -> Iterator[str]:
    """Drop what is above the limits of a card. What a guest sends is counted before anything else, what it receives after."""
    limited = sorted((nic for nic in cards if nic.traffic != NO_LIMIT), key=lambda nic: nic.device)
    sent = [_above("iifname", nic, nic.traffic.from_guest, nic.traffic.from_guest_burst) for nic in limited if nic.traffic.from_guest]
    received = [_above("oifname", nic, nic.traffic.to_guest, nic.traffic.to_guest_burst) for nic in limited if nic.traffic.to_guest]
    if sent:
        yield from _chain("traffic_sent", sent, f"filter hook prerouting priority {before}")
    if received:
        yield from _chain("traffic_received", received, f"filter hook postrouting priority {after}")


def _above(side: str, nic: TapNic | BridgedNic, rate: int, burst: int) -> str:
    # The kernel lets pass the burst and what a second allows at once.
    once = max(burst - rate, LEAST_BURST)
    return f'{side} "{nic.device}" limit rate over {rate} bytes/second burst {once} bytes counter drop'


def _addresses_by_owner(family: Family, cards: Iterable[TapNic]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for nic in _of(family, cards):
        found.setdefault(nic.owner, []).append(nic.address)
    return found


def _of(family: Family, cards: Iterable[TapNic]) -> list[TapNic]:
    """The cards that have an address of a family, as it sees them."""
    return [own for nic in cards if (own := nic.of(family)).address]


def _set(kind: str, name: str, what: str, elements: Iterable[str], flags: str = "") -> Iterator[str]:
    listed = sorted(set(elements))
    yield f"  {kind} {name} {{"
    yield f"    type {what}"
    if flags:
        yield f"    flags {flags}"
    if listed:
        yield f"    elements = {{ {', '.join(listed)} }}"
    yield "  }"


def _chain(name: str, rules: Iterable[str], hook: str = "") -> Iterator[str]:
    yield f"  chain {name} {{"
    if hook:
        yield f"    type {hook}; policy accept;"
    for rule in rules:
        yield f"    {rule}"
    yield "  }"


def _sets(table: RuleTable) -> Iterator[str]:
    yield from _set("set", "taps", "ifname", (f'"{nic.device}"' for nic in table.cards))
    yield from _set("set", "macs", "ifname . ether_addr", (f'"{nic.device}" . {nic.mac}' for nic in table.cards))
    for family in table.families:
        yield from _sets_of(family, table)


def _sets_of(family: Family, table: RuleTable) -> Iterator[str]:
    cards, kind, mark = _of(family, table.cards), family.kind, family.mark
    sources = (f'"{nic.device}" . {nic.mac} . {nic.inner or nic.address}' for nic in cards)
    yield from _set("set", f"sources{mark}", f"ifname . ether_addr . {kind}", sources)
    inner = [nic for nic in cards if nic.inner]
    yield from _set("map", f"outer_of{mark}", f"ifname : {kind}", (f'"{nic.device}" : {nic.address}' for nic in inner))
    yield from _set("map", f"inner_of{mark}", f"ifname : {kind}", (f'"{nic.device}" : {nic.inner}' for nic in inner))
    yield from _set("map", f"gateway_of{mark}", f"ifname : {kind}", (f'"{nic.device}" : {nic.inner_gateway}' for nic in inner))
    yield from _set("set", f"own_gateway{mark}", f"ifname . {kind}", (f'"{nic.device}" . {nic.inner_gateway}' for nic in inner))
    yield from _set("set", f"selves{mark}", f"{kind} . {kind}", (f"{nic.address} . {nic.address}" for nic in cards))
    limited = [nic for nic in cards if nic.ports]
    yield from _set("set", f"limited{mark}", kind, (nic.address for nic in limited))
    opened = (f"{nic.address} . {each.protocol} . {_range(each)}" for nic in limited for each in _merged(nic.ports))
    yield from _set("set", f"opened{mark}", f"{kind} . inet_proto . inet_service", opened, "interval")
    yield from _set("set", f"service_addresses{mark}", kind, sorted(_service_addresses(family, table.services)))
    if family is IP6:
        yield from discovery.neighbours((nic.device, nic.inner or nic.address) for nic in cards)


def _service_addresses(family: Family, services: Iterable[ServiceForward]) -> set[str]:
    return {service.address for service in services if service.address not in ("", "::") and family.has(service.address)}


def _range(ports: Ports) -> str:
    return f"{ports.first}-{ports.end}" if ports.end > ports.first else str(ports.first)


def _merged(ports: Iterable[Ports]) -> Iterator[Ports]:
    """Without overlaps, which a set refuses."""
    last: Ports | None = None
    for each in sorted(ports, key=lambda ports: (ports.protocol, ports.first)):
        if last is not None and last.protocol == each.protocol and each.first <= last.end + 1:
            last = Ports(last.protocol, last.first, max(last.end, each.end))
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _guard(table: RuleTable) -> Iterator[str]:
    rules = ["iifname != @taps accept", "iifname . ether saddr != @macs counter drop"]
    if IP4 in table.families:
        rules += ["ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept", "iifname . ether saddr . ip saddr @sources accept"]
    if IP6 in table.families:
        rules += discovery.routed()
    yield from _chain("guard", (*rules, "counter drop"), "filter hook prerouting priority -310")


def _exchange(table: RuleTable) -> Iterator[str]:
    before: list[str] = []
    after: list[str] = []
    for family in table.families:
        word, mark, host = family.word, family.mark, table.own(family)
        # On the link itself IPv6 has addresses that are nobody's beyond it.
        source, target = ("ip6 saddr != { ::, fe80::/10 } ", "ip6 daddr != { fe80::/10, ff00::/8 } ") if family is IP6 else ("", "")
        before.append(f"iifname . {word} daddr @own_gateway{mark} {word} daddr set {host}")
        before.append(f"{source}{word} saddr set iifname map @outer_of{mark}")
        after.append(f"{word} saddr {host} {word} saddr set oifname map @gateway_of{mark}")
        after.append(f"{target}{word} daddr set oifname map @inner_of{mark}")
    yield from _chain("exchange_in", before, "filter hook prerouting priority -305")
    yield from _chain("exchange_out", after, "filter hook postrouting priority 300")


def _forward(table: RuleTable) -> Iterator[str]:
    families = table.families
    # What stays within a bridge comes here, too, where the host filters that (br_netfilter): neighbours talk by link-local addresses.
    sources = {"@taps": "", **{f'"{bridge}"': LINK for bridge in sorted({nic.bridge for nic in table.bridged})}}
    denying = [family for family in (IP4, IP6) if family in families or family is IP4 or _has6(table)]
    services = [rule for family in families for rule in _without_target(family)]
    rules = [
        *(
            f"iifname {each} {family.word} daddr {denied(family, table.network(family), but=but)} counter reject"
            for family in denying
            for each, but in sources.items()
        ),
        "ct state established,related accept",
        *(f"iifname @taps {family.word} saddr vmap @egress_of{family.mark}" for family in families),
        *(f"oifname @taps {family.word} daddr vmap @ingress_of{family.mark}" for family in families),
        "oifname @taps jump limits",
        *services,
        # Behind masquerade a guest does not recognize what an ICMP error tells about its packets: a smaller MTU has to be met ahead.
        "iifname @taps tcp flags syn / syn,rst tcp option maxseg size set rt mtu",
        "oifname @taps tcp flags syn / syn,rst tcp option maxseg size set rt mtu",
        # From elsewhere only what a service leads here.
        "iifname != @taps oifname @taps ct status dnat accept",
        "iifname != @taps oifname @taps drop",
        *_no_router(table),
    ]
    yield from _chain("forward", rules, "filter hook forward priority 0")
    limits = [
        f"{family.word} daddr @limited{family.mark} meta l4proto {protocol} "
        f"{family.word} daddr . meta l4proto . th dport != @opened{family.mark} {reject}"
        for family in families
        for protocol, reject in (("tcp", "reject with tcp reset"), ("udp", "reject"))
    ]
    yield from _chain("limits", limits)
    outgoing = ("ct state established,related accept", "oifname @taps jump limits", *services)
    yield from _chain("outgoing", outgoing, "filter hook output priority 0")


def _has6(table: RuleTable) -> bool:
    return any(IP6.has(network) for _, network in table.masqueraded) or any(nic.address6 for nic in table.bridged)


def _without_target(family: Family) -> tuple[str, str]:
    """Refuse what arrives for a service's own address and has no target."""
    own = f"{family.word} daddr @service_addresses{family.mark}"
    return f"{own} meta l4proto tcp reject with tcp reset", f"{own} reject"


def _no_router(table: RuleTable) -> Iterator[str]:
    """This host is nobody else's router because of us."""
    if table.opened:
        devices = ", ".join(f'"{device}"' for device in sorted(table.opened))
        yield f"meta nfproto ipv4 iifname {{ {devices} }} drop"
    if table.opened6:
        devices = ", ".join(f'"{device}"' for device in sorted(table.opened6))
        # Bridges of machines are no way to them from outside.
        targets = ", ".join(f'"{device}"' for device in sorted({*table.opened6, *(nic.bridge for nic in table.bridged)}))
        yield f"meta nfproto ipv6 iifname {{ {devices} }} oifname {{ {targets} }} drop"


def _input(table: RuleTable) -> Iterator[str]:
    rules = ["ct state established,related accept"]
    if IP4 in table.families:
        rules += [
            "udp sport 68 udp dport 67 accept",
            f"ip daddr {table.host} meta l4proto {{ tcp, udp }} th dport 53 accept",
            f"ip daddr {table.host} icmp type echo-request accept",
        ]
    if IP6 in table.families:
        rules += discovery.to_host(table.host6)
    yield from _chain("from_machines", (*rules, "counter drop"))
    # A bridge that somebody else has made may have link-local addresses of its own. Those of IPv6 belong to each link.
    bridges = [
        f'iifname "{bridge}" {family.word} daddr {denied(family, table.network(family), but=LINK)} counter drop'
        for bridge in table.made
        for family in (IP4, IP6)
    ]
    yield from _chain("incoming", ("iifname @taps jump from_machines", *bridges), "filter hook input priority 0")


def _services(table: RuleTable) -> Iterator[str]:
    """A chain for each port, then what leads there: a service's own addresses, and those of the host."""
    inside: list[str] = []
    outside: list[str] = []
    for family in table.families:
        mark = family.mark
        lead = f"{family.word} daddr . meta l4proto . th dport vmap @services{mark}"
        local = f"fib daddr type local {family.word} daddr != {family.loopback}"
        # Others than machines have no route to a service's own addresses, only to those of the host.
        inside += [f"iifname @taps {lead}", f"{local} {lead}", f"{local} meta l4proto . th dport vmap @node_ports{mark}"]
        outside.append(lead)
        yield from _service_maps(family, [service for service in table.services if family.has(service.address) and service.targets])
    yield from _chain("services_in", inside, "nat hook prerouting priority -100")
    yield from _chain("services_out", outside, "nat hook output priority -100")


def _service_maps(family: Family, services: Collection[ServiceForward]) -> Iterator[str]:
    inside: list[str] = []
    everywhere: list[str] = []
    for service in sorted(services, key=lambda each: (each.address, each.protocol, each.port)):
        place = f"{service.protocol} . {service.port}"
        name = f"service_{_short(service.address, place)}"
        if service.address not in ("", "::"):
            inside.append(f"{service.address} . {place} : goto {name}")
        else:
            everywhere.append(f"{place} : goto {name}")
        chosen = f"jhash {family.word} saddr" if service.sticky else "numgen inc"
        listed = ", ".join(f"{number} : {address} . {port}" for number, (address, port) in enumerate(service.targets))
        leading = f"dnat {family.word} addr . port to {chosen} mod {len(service.targets)} map {{ {listed} }}"
        clients = f"{family.word} saddr {{ {_collapsed(family, service.sources)} }} " if service.sources else ""
        yield from _chain(name, (f"{clients}meta l4proto {service.protocol} {leading}",))
    yield from _set("map", f"services{family.mark}", f"{family.kind} . inet_proto . inet_service : verdict", inside)
    yield from _set("map", f"node_ports{family.mark}", "inet_proto . inet_service : verdict", everywhere)


def _nat(table: RuleTable) -> Iterator[str]:
    rules: list[str] = []
    for family in table.families:
        word, network = family.word, table.network(family)
        rules.append(f"{word} saddr . {word} daddr @selves{family.mark} snat {word} to {table.own(family)}")
        rules.append(f"{word} saddr {network} {word} daddr != {network} oifname != @taps masquerade")
    for network in sorted({network for _, network in table.masqueraded}):
        word = family_of(network).word
        rules.append(f"{word} saddr {network} {word} daddr != {network} masquerade")
    yield from _chain("leaving", rules, "nat hook postrouting priority 100")


_Owners = dict[Family, dict[str, list[str]]]


def _policies(table: RuleTable, owners: _Owners) -> Iterator[str]:
    """A chain for each distinct set of policies and direction; a card whose direction nobody speaks of goes through none."""
    for direction in ("ingress", "egress"):
        bearing: dict[str, list[NicPolicy]] = {}
        for policy in sorted(table.policies, key=lambda each: each.name):
            if getattr(policy, direction) is not None:
                for owner in sorted(set(policy.owners)):
                    bearing.setdefault(owner, []).append(policy)
        led: dict[Family, list[str]] = {family: [] for family in owners}
        written: set[str] = set()
        for owner, policies in sorted(bearing.items()):
            name = f"{direction}_{_short(*(policy.name for policy in policies))}"
            for family, known in owners.items():
                led[family] += [f"{address} : jump {name}" for address in known.get(owner, ())]
            if name not in written:
                written.add(name)
                allowed = [allow for policy in policies for allow in getattr(policy, direction)]
                rules = [rule for allow in allowed for rule in _allow(allow, direction, owners)]
                yield from _chain(name, [*dict.fromkeys(rules), "counter drop"])
        for family, listed in led.items():
            yield from _set("map", f"{direction}_of{family.mark}", f"{family.kind} : verdict", listed)


def _allow(allow: PolicyAllowance, direction: str, owners: _Owners) -> Iterator[str]:
    ports = [""] if allow.ports is None else [_matching(each) for each in _merged(allow.ports)]
    peers = [""] if allow.peers is None else [match for peer in allow.peers for match in _peer(peer, direction, owners)]
    for peer in peers:
        for port in ports:
            yield f"{peer}{port}return"


def _matching(ports: Ports) -> str:
    return f"{ports.protocol} dport {_range(ports)} "


def _peer(peer: NicPeer, direction: str, owners: _Owners) -> Iterator[str]:
    for family, known in owners.items():
        side = f"{family.word} {'saddr' if direction == 'ingress' else 'daddr'}"
        if peer.block:
            if family.has(peer.block):
                without = _collapsed(family, filter(family.has, peer.without))
                yield f"{side} {peer.block} " + (f"{side} != {{ {without} }} " if without else "")
            continue
        addresses = sorted({address for owner in peer.owners for address in known.get(owner, ())})
        if addresses:
            yield f"{side} {{ {', '.join(addresses)} }} "


def _collapsed(family: Family, networks: Iterable[str]) -> str:
    """Return the elements of a set, which refuses networks that overlap."""
    return ", ".join(map(str, ipaddress.collapse_addresses(map(family.network, networks))))  # type: ignore[type-var]  # of one family


def _short(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
