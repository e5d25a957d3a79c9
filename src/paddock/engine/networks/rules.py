"""The packet filter of one Paddock as text for `nft -f`: one table, replaced as a whole in one transaction. Pure.

        guest --> guard (spoofing) -> exchange -> conntrack -> services -> routing -> forward | input
                                                                                       |
        guest <-- exchange <-- masquerade <----------------------------- postrouting <-+

Between the exchanges a card has its address in the pod network, so that everything in between speaks of that alone.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator

from msgspec import Struct

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


class BridgedNic(Struct, frozen=True):
    """A card whose tap is in a bridge."""

    device: str
    owner: str
    mac: str
    bridge: str
    # the one address it may use; "" where that is not ours to say
    address: str = ""
    traffic: TrafficLimit = NO_LIMIT


class ServiceForward(Struct, frozen=True):
    """One port of an address of a service, and the (address, port) pairs it leads to."""

    # "" for every address of the host
    address: str
    protocol: Protocol
    port: int
    targets: tuple[tuple[str, int], ...]
    sticky: bool = False


class RuleTable(Struct, frozen=True):
    """Everything the table says."""

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


# The host's neighbours alone, and in a cloud the service that hands out the host's credentials: Alibaba's and Oracle's are not link-local.
_NOT_FOR_GUESTS = ("100.100.100.200/32", "169.254.0.0/16", "192.0.0.192/32")


def _denied(pod_network: str = "") -> str:
    """Return the addresses that no guest reaches. An operator may have given one of them to the machines' own network."""
    own = ipaddress.ip_network(pod_network or "255.255.255.255/32")
    return f"{{ {', '.join(each for each in _NOT_FOR_GUESTS if not own.overlaps(ipaddress.ip_network(each)))} }}"


def text(table: RuleTable) -> str:
    """Return the input of `nft -f -`."""
    owners = _addresses_by_owner(table.cards)
    lines = [f"table inet {table.name}", f"delete table inet {table.name}", f"table inet {table.name} {{"]
    for part in (
        _sets(table),
        _traffic(table.cards, -320, 310),
        _guard(),
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


def guard_processes(name: str, users: tuple[int, int]) -> str:
    """The table of a Paddock whose machines are behind processes of their own, and on no tap."""
    lines = [f"table inet {name}", f"delete table inet {name}", f"table inet {name} {{", *_processes(users), "}", ""]
    return "\n".join(lines)


def _processes(users: tuple[int, int]) -> Iterator[str]:
    """Keep QEMU and passt from link-local addresses: packets of their guests leave this host as their own."""
    if users[0]:
        rule = f"meta skuid {users[0]}-{users[1]} ip daddr {_denied()} counter reject"
        yield from _chain("processes", (rule,), "filter hook output priority 0")


def removal(name: str) -> str:
    """Return the commands that remove the tables, whether they are there or not."""
    return "".join(f"table {family} {name}\ndelete table {family} {name}\n" for family in ("inet", "bridge"))


def _bridged(table: RuleTable) -> Iterator[str]:
    """In a bridge a card sends in its own name alone, and DHCP that we answer goes no further."""
    yield from (f"table bridge {table.name}", f"delete table bridge {table.name}", f"table bridge {table.name} {{")
    cards = table.bridged
    addressed = [card for card in cards if card.address]
    yield from _set("set", "taps", "ifname", (f'"{card.device}"' for card in cards))
    yield from _set("set", "macs", "ifname . ether_addr", (f'"{card.device}" . {card.mac}' for card in cards))
    yield from _set("set", "addressed", "ifname", (f'"{card.device}"' for card in addressed))
    yield from _set("set", "sources", "ifname . ipv4_addr", (f'"{card.device}" . {card.address}' for card in addressed))
    rules = (
        "iifname != @taps accept",
        "iifname . ether saddr != @macs counter drop",
        "ether type arp iifname . arp saddr ether != @macs counter drop",
        "iifname != @addressed accept",
        "udp dport 67 drop",
        "ether type arp arp saddr ip 0.0.0.0 accept",
        "ether type arp iifname . arp saddr ip != @sources counter drop",
        "ether type ip iifname . ip saddr != @sources counter drop",
    )
    yield from _traffic(cards, -310, 0)
    yield from _chain("guard", rules, "filter hook prerouting priority -300")
    yield "}"


def _traffic(cards: Iterable[TapNic | BridgedNic], before: int, after: int) -> Iterator[str]:
    """Drop what is above the limits of a card. What a guest sends is counted before anything else, what it receives after."""
    limited = sorted((card for card in cards if card.traffic != NO_LIMIT), key=lambda card: card.device)
    sent = [_above("iifname", card, card.traffic.from_guest, card.traffic.from_guest_burst) for card in limited if card.traffic.from_guest]
    received = [_above("oifname", card, card.traffic.to_guest, card.traffic.to_guest_burst) for card in limited if card.traffic.to_guest]
    if sent:
        yield from _chain("traffic_sent", sent, f"filter hook prerouting priority {before}")
    if received:
        yield from _chain("traffic_received", received, f"filter hook postrouting priority {after}")


def _above(side: str, card: TapNic | BridgedNic, rate: int, burst: int) -> str:
    # The kernel lets pass the burst and what a second allows at once.
    once = max(burst - rate, LEAST_BURST)
    return f'{side} "{card.device}" limit rate over {rate} bytes/second burst {once} bytes counter drop'


def _addresses_by_owner(cards: Iterable[TapNic]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for card in cards:
        found.setdefault(card.owner, []).append(card.address)
    return found


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
    cards = table.cards
    yield from _set("set", "taps", "ifname", (f'"{card.device}"' for card in cards))
    yield from _set("set", "macs", "ifname . ether_addr", (f'"{card.device}" . {card.mac}' for card in cards))
    sources = (f'"{card.device}" . {card.mac} . {card.inner or card.address}' for card in cards)
    yield from _set("set", "sources", "ifname . ether_addr . ipv4_addr", sources)
    inner = [card for card in cards if card.inner]
    yield from _set("map", "outer_of", "ifname : ipv4_addr", (f'"{card.device}" : {card.address}' for card in inner))
    yield from _set("map", "inner_of", "ifname : ipv4_addr", (f'"{card.device}" : {card.inner}' for card in inner))
    yield from _set("map", "gateway_of", "ifname : ipv4_addr", (f'"{card.device}" : {card.inner_gateway}' for card in inner))
    yield from _set("set", "own_gateway", "ifname . ipv4_addr", (f'"{card.device}" . {card.inner_gateway}' for card in inner))
    yield from _set("set", "selves", "ipv4_addr . ipv4_addr", (f"{card.address} . {card.address}" for card in cards))
    limited = [card for card in cards if card.ports]
    yield from _set("set", "limited", "ipv4_addr", (card.address for card in limited))
    opened = (f"{card.address} . {each.protocol} . {_range(each)}" for card in limited for each in _merged(card.ports))
    yield from _set("set", "opened", "ipv4_addr . inet_proto . inet_service", opened, "interval")
    yield from _set("set", "service_addresses", "ipv4_addr", (service.address for service in table.services if service.address))


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


def _guard() -> Iterator[str]:
    rules = (
        "iifname != @taps accept",
        "iifname . ether saddr != @macs counter drop",
        "ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept",
        "iifname . ether saddr . ip saddr @sources accept",
        "counter drop",
    )
    yield from _chain("guard", rules, "filter hook prerouting priority -310")


def _exchange(table: RuleTable) -> Iterator[str]:
    before = (
        f"iifname . ip daddr @own_gateway ip daddr set {table.host}",
        "ip saddr set iifname map @outer_of",
    )
    after = (
        f"ip saddr {table.host} ip saddr set oifname map @gateway_of",
        "ip daddr set oifname map @inner_of",
    )
    yield from _chain("exchange_in", before, "filter hook prerouting priority -305")
    yield from _chain("exchange_out", after, "filter hook postrouting priority 300")


def _forward(table: RuleTable) -> Iterator[str]:
    devices = ", ".join(f'"{device}"' for device in sorted(table.opened))
    sources = ["@taps", *(f'"{bridge}"' for bridge in sorted({card.bridge for card in table.bridged}))]
    rules = [
        *(f"iifname {each} ip daddr {_denied(table.pod_network)} counter reject" for each in sources),
        "ct state established,related accept",
        "iifname @taps ip saddr vmap @egress_of",
        "oifname @taps ip daddr vmap @ingress_of",
        "oifname @taps jump limits",
        # What is left for a service's own address has no target.
        "ip daddr @service_addresses meta l4proto tcp reject with tcp reset",
        "ip daddr @service_addresses reject",
        # Behind masquerade a guest does not recognize what an ICMP error tells about its packets: a smaller MTU has to be met ahead.
        "iifname @taps tcp flags syn / syn,rst tcp option maxseg size set rt mtu",
        "oifname @taps tcp flags syn / syn,rst tcp option maxseg size set rt mtu",
        # From elsewhere only what a service leads here.
        "iifname != @taps oifname @taps ct status dnat accept",
        "iifname != @taps oifname @taps drop",
    ]
    if devices:
        # This host is nobody else's router because of us.
        rules.append(f"iifname {{ {devices} }} drop")
    yield from _chain("forward", rules, "filter hook forward priority 0")
    limits = (
        "ip daddr @limited meta l4proto tcp ip daddr . meta l4proto . th dport != @opened reject with tcp reset",
        "ip daddr @limited meta l4proto udp ip daddr . meta l4proto . th dport != @opened reject",
    )
    yield from _chain("limits", limits)
    yield from _chain(
        "outgoing",
        (
            "ct state established,related accept",
            "oifname @taps jump limits",
            "ip daddr @service_addresses meta l4proto tcp reject with tcp reset",
            "ip daddr @service_addresses reject",
        ),
        "filter hook output priority 0",
    )


def _input(table: RuleTable) -> Iterator[str]:
    rules = (
        "ct state established,related accept",
        "udp sport 68 udp dport 67 accept",
        f"ip daddr {table.host} meta l4proto {{ tcp, udp }} th dport 53 accept",
        f"ip daddr {table.host} icmp type echo-request accept",
        "counter drop",
    )
    yield from _chain("from_machines", rules)
    # A bridge that somebody else has made may have link-local addresses of its own.
    bridges = [f'iifname "{bridge}" ip daddr {_denied(table.pod_network)} counter drop' for bridge in table.made]
    yield from _chain("incoming", ("iifname @taps jump from_machines", *bridges), "filter hook input priority 0")


def _services(table: RuleTable) -> Iterator[str]:
    inside: list[str] = []
    everywhere: list[str] = []
    for service in sorted(table.services, key=lambda each: (each.address, each.protocol, each.port)):
        if not service.targets:
            continue
        place = f"{service.protocol} . {service.port}"
        name = f"service_{_short(service.address, place)}"
        if service.address:
            inside.append(f"{service.address} . {place} : goto {name}")
        else:
            everywhere.append(f"{place} : goto {name}")
        chosen = "jhash ip saddr" if service.sticky else "numgen inc"
        listed = ", ".join(f"{number} : {address} . {port}" for number, (address, port) in enumerate(service.targets))
        rule = f"meta l4proto {service.protocol} dnat ip addr . port to {chosen} mod {len(service.targets)} map {{ {listed} }}"
        yield from _chain(name, (rule,))
    yield from _set("map", "services", "ipv4_addr . inet_proto . inet_service : verdict", inside)
    yield from _set("map", "node_ports", "inet_proto . inet_service : verdict", everywhere)
    lead = "ip daddr . meta l4proto . th dport vmap @services"
    to_host = "fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @node_ports"
    yield from _chain("services_in", (f"iifname @taps {lead}", to_host), "nat hook prerouting priority -100")
    yield from _chain("services_out", (lead,), "nat hook output priority -100")


def _nat(table: RuleTable) -> Iterator[str]:
    rules = [
        f"ip saddr . ip daddr @selves snat ip to {table.host}",
        f"ip saddr {table.pod_network} ip daddr != {table.pod_network} oifname != @taps masquerade",
    ]
    networks = sorted({network for _, network in table.masqueraded})
    rules += [f"ip saddr {network} ip daddr != {network} masquerade" for network in networks]
    yield from _chain("leaving", rules, "nat hook postrouting priority 100")


def _policies(table: RuleTable, owners: dict[str, list[str]]) -> Iterator[str]:
    """A chain for each distinct set of policies and direction; a card whose direction nobody speaks of goes through none."""
    for direction in ("ingress", "egress"):
        bearing: dict[str, list[NicPolicy]] = {}
        for policy in sorted(table.policies, key=lambda each: each.name):
            if getattr(policy, direction) is not None:
                for owner in sorted(set(policy.owners)):
                    bearing.setdefault(owner, []).append(policy)
        led: list[str] = []
        written: set[str] = set()
        for owner, policies in sorted(bearing.items()):
            name = f"{direction}_{_short(*(policy.name for policy in policies))}"
            led += [f"{address} : jump {name}" for address in owners.get(owner, ())]
            if name not in written:
                written.add(name)
                allowed = [allow for policy in policies for allow in getattr(policy, direction)]
                rules = [rule for allow in allowed for rule in _allow(allow, direction, owners)]
                yield from _chain(name, [*dict.fromkeys(rules), "counter drop"])
        yield from _set("map", f"{direction}_of", "ipv4_addr : verdict", led)


def _allow(allow: PolicyAllowance, direction: str, owners: dict[str, list[str]]) -> Iterator[str]:
    ports = [""] if allow.ports is None else [_matching(each) for each in _merged(allow.ports)]
    peers = [""] if allow.peers is None else [match for peer in allow.peers for match in _peer(peer, direction, owners)]
    for peer in peers:
        for port in ports:
            yield f"{peer}{port}return"


def _matching(ports: Ports) -> str:
    return f"{ports.protocol} dport {_range(ports)} "


def _peer(peer: NicPeer, direction: str, owners: dict[str, list[str]]) -> Iterator[str]:
    side = "ip saddr" if direction == "ingress" else "ip daddr"
    if peer.block:
        if ":" not in peer.block:
            # A set refuses networks that overlap.
            gaps = ipaddress.collapse_addresses(ipaddress.IPv4Network(each) for each in peer.without if ":" not in each)
            without = ", ".join(map(str, gaps))
            yield f"{side} {peer.block} " + (f"{side} != {{ {without} }} " if without else "")
        return
    addresses = sorted({address for owner in peer.owners for address in owners.get(owner, ())})
    if addresses:
        yield f"{side} {{ {', '.join(addresses)} }} "


def _short(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
