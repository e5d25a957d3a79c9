"""Cards as root: a tap for each that the host routes to, and one table of the packet filter that says who may do what.

What the host has is left as it is when Paddock ends, so that guests go on talking. What the table said last is kept in `table.json`: the
next Paddock begins with that, and nothing is open in between.
"""

import asyncio
import socket
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from paddock.base import reasons
from paddock.engine import namespace
from paddock.engine.machine.config import Tap
from paddock.engine.networks import bridges, guestaddresses, guestnames, hostnetwork, hostobjects, nft, rules, taps
from paddock.engine.networks.addresses import AddressEntry, AddressTable, Key
from paddock.engine.networks.addressstore import write_record
from paddock.engine.networks.bridgeaddresses import BridgeAddresses
from paddock.engine.networks.bridges import NOTHING, BridgeOptions, BridgeRouter
from paddock.engine.networks.discovery import ROUTER
from paddock.engine.networks.errors import GuestUnreachable, NetworkUnusable
from paddock.engine.networks.families import IP4, IP6, Family, family_of
from paddock.engine.networks.guestaddresses import LARGEST_MTU, USUAL_MTU, GuestAddress
from paddock.engine.networks.netlink import UNREACHABLE, Netlink, index
from paddock.engine.networks.nics import INNER_NETWORK, AttachedNic, HostBridge, NicPolicy, NicSpec
from paddock.engine.networks.respondercontrol import ResponderControl
from paddock.engine.networks.responderstate import GuestPort, NamedNic
from paddock.engine.networks.rules import BridgedNic, RuleTable, ServiceForward, TapNic

# The packet filter's last table; there as long as cards are.
TABLE = "table.json"
_LOOPBACK = 1
_SMALLEST_MTU = 1280


class PodNetworkSettings(Struct, frozen=True):
    """The settings of the pod network."""

    directory: Path
    service_network: str
    zone: str


class _Plugged(Struct, frozen=True):
    nic: NicSpec
    entry: AddressEntry
    plug: AttachedNic
    rule: TapNic | BridgedNic
    # the device as it was made; another number means that somebody removed it
    number: int


class RoutedPodNetwork:
    """The pod network of one Paddock, and cards in bridges."""

    def __init__(self, surroundings: PodNetworkSettings) -> None:
        self._surroundings = surroundings
        self._book = AddressTable("")
        self._netlink = Netlink()
        # Those of an earlier version, as long as its bridge is there.
        self.names = hostobjects.names_of(self._netlink, surroundings.directory)
        self.responder = ResponderControl(surroundings.directory)
        self._cards: dict[Key, _Plugged] = {}
        self._bridged = BridgeAddresses(surroundings.directory)
        self._table = self._fresh = RuleTable(self.names.filters, "", "")
        self._wanted = self._written = 0
        self._writing = asyncio.Lock()

    @property
    def _path(self) -> Path:
        return self._surroundings.directory / TABLE

    def was_used(self) -> bool:
        """Return whether there were cards before."""
        return self._path.exists()

    def is_open(self) -> bool:
        """Return True if the host has the pod network of this Paddock, perhaps from a former run."""
        return bool(index(self.names.bridge))

    @property
    def policies(self) -> tuple[NicPolicy, ...]:
        """The policies that cards are held to, those of a former run at first."""
        return self._table.policies

    @property
    def is_idle(self) -> bool:
        """Return True if no card needs anything of the host."""
        table = self._table
        return not (self._cards or table.cards or table.bridged or table.made)

    def open(self, book: AddressTable, users: tuple[int, int] = (0, 0)) -> None:
        """The host's side: an address for itself, routes that let nothing of machines out by mistake. What a former run left is kept."""
        self._book = book
        fresh = replace(self._fresh, pod_network=book.network, host=book.host, users=users)
        self._fresh = replace(fresh, pod_network6=book.network6, host6=book.host6)
        if book.network and taps.read_setting("ipv4/conf/all/rp_filter") == "1":
            raise NetworkUnusable(
                "cannot make the pod network",
                why="the host checks sources strictly (net.ipv4.conf.all.rp_filter is 1), and machines could not ask for their gateway",
                fix="set net.ipv4.conf.all.rp_filter to 2, or choose user mode",
            )
        if other := hostobjects.other_owner(self._netlink, self.names, self._surroundings.directory):
            raise NetworkUnusable(
                "cannot make the pod network",
                why=f"its bridge would be {self.names.bridge}, which belongs to {other}",
                fix="rename one of the two directories, or choose user mode",
            )
        was_there = self.is_open()
        anchor = self._netlink.make_bridge(self.names.bridge)
        self._netlink.set_alias(anchor, hostobjects.alias(book.network, self._surroundings.directory))
        self._netlink.set_link(anchor)
        taps.set_ipv6(self.names.bridge, on=bool(book.network6))
        services = self._surroundings.service_network
        if book.network:
            self._anchor(anchor, book.network, book.host, IP4.network_of(services))
            self._netlink.set_route(INNER_NETWORK, _LOOPBACK, table=self.names.routes)
        if book.network6:
            self._anchor(anchor, book.network6, book.host6, IP6.network_of(services))
        self._table = self._read()
        if not was_there:
            # A host that has booted again forgot these settings.
            self._table = replace(self._table, opened6=(), advertised=())

    def _anchor(self, anchor: int, network: str, host: str, services: str) -> None:
        is_ipv6 = IP6.has(network)
        self._netlink.add_address(anchor, host, int(network.partition("/")[2]) if is_ipv6 else 32, with_route=False)
        self._netlink.set_route(network, 0, kind=UNREACHABLE)
        # A host without a default route has to know these networks, or it answers nobody who asks for them. It comes last.
        if services:
            self._netlink.set_route(services, anchor, source=host, table=self.names.routes)
        self._netlink.add_rule(self.names.routes, hostobjects.RULE_PRIORITY, socket.AF_INET6 if is_ipv6 else socket.AF_INET)

    def _read(self) -> RuleTable:
        """Return the last table, without the cards whose device is gone: a rebooted host has none."""
        try:
            table = msgspec.json.decode(self._path.read_bytes(), type=RuleTable)
        except (OSError, ValueError):
            return self._fresh
        known = self._netlink.links()
        cards = tuple(nic for nic in table.cards if nic.device in known)
        bridged = tuple(nic for nic in table.bridged if nic.device in known)
        made = tuple(bridge for bridge in table.made if bridge in known)
        fresh = self._fresh
        table = replace(table, name=fresh.name, pod_network=fresh.pod_network, host=fresh.host, users=fresh.users)
        table = replace(table, pod_network6=fresh.pod_network6, host6=fresh.host6)
        return replace(table, cards=cards, bridged=bridged, made=made)

    async def refresh(self) -> None:
        """Write the table as it was, in the words of this version."""
        self._wanted += 1
        await self._write()

    async def close(self) -> None:
        """Let go of everything; the host's side stays."""
        await self.responder.close()
        self._netlink.close()

    async def clear(self) -> None:
        """Take everything of ours off the host, which may get it again."""
        await self.responder.end()
        self._cards.clear()
        # A write that had begun would come after the removal, and leave a table behind.
        async with self._writing:
            self._written = self._wanted
            table = self._table if self._table != self._fresh else self._read()
            for bridge in table.made:
                self._netlink.delete_link(bridge)
            await hostobjects.remove(self._netlink, self._surroundings.directory, self._book.network)
            hostobjects.close_uplinks(self._netlink, table.opened, forwards6=bool(table.opened6), advertised=table.advertised)
            self._path.unlink(missing_ok=True)
            self.names = hostobjects.names_of(self._netlink, self._surroundings.directory)
            self._table = self._fresh = replace(self._fresh, name=self.names.filters)

    async def plug(self, nic: NicSpec, entry: AddressEntry) -> AttachedNic:
        """A tap of its own for the card."""
        device = self.device(nic.key)
        found = self._cards.get(nic.key)
        if found is not None and (found.nic, found.entry) == (nic, entry) and found.number == index(device):
            return found.plug
        if nic.binding == "host-bridge":
            bridge = self._bridge_for(nic)
            made = self._bridge(nic, entry, bridge, await self._bridged.give(nic.key, bridge))
        else:
            made = self._route(nic, entry, device)
        self._cards[nic.key] = made
        self._say(made.rule)
        names = guestnames.own_names(nic, self._surroundings.zone)
        self.responder.put_nic(NamedNic(*nic.key, names, made.plug.addresses))
        try:
            await self._write()
            await self.responder.tell()
            self.responder.check(device)
        except BaseException:
            # Without its rules a card is not there.
            self._cards.pop(nic.key, None)
            self.responder.drop_nics(lambda each: (each.owner, each.name) == nic.key)
            raise
        return made.plug

    def device(self, key: Key) -> str:
        """The name of a card's tap."""
        return self.names.tap(key)

    async def unplug(self, key: Key) -> None:
        """The card's tap goes, and what the table says of it."""
        found = self._cards.pop(key, None)
        self._remove(self.device(key))
        if found is not None and isinstance(found.rule, BridgedNic):
            self._leave(found.rule.bridge)
        self.responder.drop_nics(lambda nic: (nic.owner, nic.name) == key)
        await self._write()
        await self.responder.tell()

    def _remove(self, device: str) -> None:
        self.responder.drop_port(device)
        self._netlink.delete_link(device)
        cards = tuple(nic for nic in self._table.cards if nic.device != device)
        bridged = tuple(nic for nic in self._table.bridged if nic.device != device)
        self._change(replace(self._table, cards=cards, bridged=bridged))

    async def collect(self, owners: Collection[str]) -> list[str]:
        """Remove the taps of ours that belong to none of these; returns their names."""
        known: list[TapNic | BridgedNic] = [*self._table.cards, *self._table.bridged]
        kept = {self.device(key) for key in self._cards} | {nic.device for nic in known if nic.owner in owners}
        gone = [name for name in self._netlink.links() if self.names.is_tap(name) and name not in kept]
        for name in gone:
            self._remove(name)
        left = ({nic.device for nic in self._table.cards} | {nic.device for nic in self._table.bridged}) - kept
        for name in left:
            self._remove(name)
        for bridge in self._table.made:
            self._leave(bridge)
        # A card that is plugged has names, whoever has it.
        self.responder.drop_nics(lambda nic: nic.owner not in owners and (nic.owner, nic.name) not in self._cards)
        await self._write()
        await self.responder.tell()
        return gone

    async def serve(self, services: Collection[ServiceForward]) -> None:
        """Lead these services to their targets."""
        self._change(replace(self._table, services=tuple(services)))
        await self._write()

    async def police(self, policies: Collection[NicPolicy]) -> None:
        """Hold cards to these policies."""
        self._change(replace(self._table, policies=tuple(policies)))
        await self._write()

    def place(self, entry: AddressEntry, port: int) -> tuple[str, int]:
        """Return the address of a card's port, IPv4's before IPv6's."""
        found = self._cards.get(entry.key)
        if found is None or not found.plug.addresses:
            raise GuestUnreachable(f"cannot reach {entry.name}", why="its address is not known here")
        return found.plug.addresses[0], port

    # -- a card on a tap of its own

    def _route(self, nic: NicSpec, entry: AddressEntry, device: str) -> _Plugged:
        if nic.binding == "passt":
            raise NetworkUnusable(f"cannot route {nic.name}", why="it is bound by passt")
        number = self._tap(nic, device)
        has_ipv6 = bool(self._book.network6) and not self._is_without_ipv6(device)
        taps.set_routed(device)
        taps.set_ipv6(device, on=has_ipv6)
        link = self._netlink.link(device)
        mtu = guestaddresses.mtu(nic, self._open_uplink(), link.mtu if link is not None and link.running else 0)
        if has_ipv6:
            self._open_uplink6()
        self._netlink.set_link(number, mtu=mtu, mac=taps.GATEWAY_MAC)
        inside = guestaddresses.ipv4(nic, self._book, entry) if self._book.network else guestaddresses.NONE
        inside6 = guestaddresses.ipv6(nic, self._book, entry) if has_ipv6 else guestaddresses.NONE
        if inside.address:
            self._lead(number, inside, self._book.host, entry.mac)
            if inside.network:
                self._netlink.set_route(inside.network, _LOOPBACK, table=self.names.routes)
        if inside6.address:
            self._netlink.add_address(number, ROUTER, 64)
            self._netlink.answer_for(number, inside6.gateway)
            self._lead(number, inside6, self._book.host6, entry.mac)
        zone, search = self._surroundings.zone, hostnetwork.search()
        lease = guestaddresses.lease(nic, entry.mac, inside, mtu, zone, search) if inside.address else None
        lease6 = guestaddresses.lease6(nic, entry.mac, inside6, mtu, zone, search) if inside6.address else None
        self.responder.put_port(GuestPort(device, number, taps.GATEWAY_MAC, lease, lease6))
        rule = _rule(device, nic, entry.mac, (inside, inside6))
        plug = AttachedNic(
            entry.mac,
            inside.address,
            inside.guest,
            Tap(device, nic.queues),
            mtu=mtu,
            address6=inside6.address,
            guest_address6=inside6.guest,
            gateway=inside.gateway or inside6.gateway,
            dns=(*(lease.dns if lease is not None else ()), *(lease6.dns if lease6 is not None else ())),
            search=lease.search if lease is not None else lease6.search if lease6 is not None else (),
        )
        return _Plugged(nic, entry, plug, rule, number)

    def _lead(self, number: int, inside: GuestAddress, host: str, mac: str) -> None:
        """Lead the address that others use to the card."""
        self._netlink.set_route(f"{inside.address}/{128 if IP6.has(inside.address) else 32}", number, source=host)
        self._netlink.set_neighbour(number, inside.address, mac)

    def _is_without_ipv6(self, device: str) -> bool:
        """Return whether a guest runs that began when there was no IPv6: it stays as it is."""
        listed: tuple[TapNic | BridgedNic, ...] = (*self._table.cards, *self._table.bridged)
        known = next((nic for nic in listed if nic.device == device), None)
        link = self._netlink.link(device)
        return known is not None and not known.address6 and link is not None and link.running

    def _tap(self, nic: NicSpec, device: str) -> int:
        known = self._netlink.link(device)
        if known is not None and known.many_queues != (nic.queues > 1):
            # It cannot be changed, and no machine uses it: a machine's queues do not change while it runs.
            self._netlink.delete_link(device)
        taps.make(device, user=nic.user, queues=nic.queues)
        return index(device)

    def _open_uplink(self) -> int:
        """Let replies from outside through to machines; returns the MTU there. This host is no router for others (`rules`)."""
        device = namespace.call(hostnetwork.default_device)
        if taps.read_setting("ipv4/ip_forward") == "1":
            self._change(replace(self._table, opened=()))
        elif device:
            taps.write_setting(f"ipv4/conf/{device}/forwarding", "1")
            self._change(replace(self._table, opened=(device,)))
        uplink = self._netlink.link(device) if device else None
        largest = LARGEST_MTU if namespace.holder() else USUAL_MTU
        return min(largest, max(uplink.mtu, _SMALLEST_MTU)) if uplink is not None else largest

    def _open_uplink6(self) -> None:
        """The same for IPv6. A host that forwards already is left as it is."""
        if taps.read_setting("ipv6/conf/all/forwarding") == "0":
            devices = tuple(sorted(name for name in self._netlink.links() if not self.names.has(name) and name not in self._table.made))
            advertised = hostobjects.open_forwarding6(devices)
            self._change(replace(self._table, opened6=devices, advertised=tuple(sorted({*self._table.advertised, *advertised}))))

    # -- a card in a bridge

    def _bridge(self, nic: NicSpec, entry: AddressEntry, bridge: HostBridge, options: tuple[BridgeOptions, BridgeOptions]) -> _Plugged:
        device, has_ipv6 = self.device(nic.key), hostnetwork.has_ipv6()
        own, own6 = options
        if self._is_without_ipv6(device):
            own6 = NOTHING
        elif not has_ipv6 and not bridges.is_link_local(own6.gateway):
            # It is nobody's router, and the guests of the bridge still reach each other.
            own6 = replace(own6, gateway="", routes=())
        router = BridgeRouter.of(str(self._surroundings.directory.resolve()), bridge.name)
        families = (IP4, IP6) if has_ipv6 else (IP4,)
        number = self._prepare_bridge(bridge, router, families)
        self._masquerade(nic, bridge, [each for each in bridges.networks(bridge) if family_of(each) in families])
        mtu = bridge.mtu or USUAL_MTU
        tap = self._tap(nic, device)
        taps.set_ipv6(device, on=False)
        self._netlink.set_link(tap, mtu=mtu, master=number)
        if bridge.vlan:
            self._netlink.set_vlan(tap, bridge.vlan)
        search = hostnetwork.search()
        lease = bridges.lease(nic, own, entry.mac, mtu, search) if own.address else None
        lease6 = bridges.lease6(nic, own6, entry.mac, mtu, router, search) if own6.address else None
        if lease is not None or lease6 is not None:
            self.responder.put_port(GuestPort(device, tap, self._netlink.links()[bridge.name].mac, lease, lease6))
        plug = AttachedNic(
            entry.mac,
            own.own,
            own.address,
            Tap(device, nic.queues),
            mtu=mtu,
            address6=own6.own,
            guest_address6=own6.address,
            gateway=own.gateway or own6.gateway,
        )
        rule = BridgedNic(device, nic.owner, entry.mac, bridge.name, own.own, nic.traffic, own6.own)
        return _Plugged(nic, entry, plug, replace(rule, router6=router.address if own6.gateway else ""), tap)

    def _prepare_bridge(self, bridge: HostBridge, router: BridgeRouter, families: Collection[Family]) -> int:
        """Make the bridge if it is missing, and the host its gateway if it shall be that; returns its number."""
        number = index(bridge.name)
        if not number:
            self._change(replace(self._table, made=(*self._table.made, bridge.name)))
            number = self._netlink.make_bridge(bridge.name)
            # Otherwise it has that of the port with the lowest one, and guests would lose their gateway when another comes.
            self._netlink.set_link(number, up=False, mac=router.mac)
            taps.set_ipv6(bridge.name, on=False)
        self._netlink.set_link(number, mtu=bridge.mtu)
        own = [each for each in bridges.own_addresses(bridge) if family_of(each[0]) in families]
        if bridge.is_gateway:
            taps.write_setting(f"ipv4/conf/{bridge.name}/forwarding", "1")
            self._open_uplink()
        if any(IP6.has(address) for address, _ in own):
            self._open_uplink6()
            self._change(replace(self._table, opened6=tuple(each for each in self._table.opened6 if each != bridge.name)))
            if bridge.name in self._table.made:
                taps.set_ipv6(bridge.name, on=True)
            else:
                taps.write_setting(f"ipv6/conf/{bridge.name}/disable_ipv6", "0")
            self._netlink.add_address(number, router.address, 64)
        for address, prefix in own:
            self._netlink.add_address(number, address, prefix)
        return number

    def _masquerade(self, nic: NicSpec, bridge: HostBridge, networks: list[str]) -> None:
        """Have these networks of a bridge leave behind the host's address. Those of other definitions of the bridge stay."""
        known = {self.device(nic.key), *map(self.device, self._cards)}
        beside = [each.nic.bridge for each in self._cards.values() if each.nic.key != nic.key and each.rule.device in self._in(bridge)]
        others = {network for each in beside if each is not None for network in bridges.networks(each)}
        # After a start, cards that are not plugged yet may have some.
        is_known = known.issuperset(self._in(bridge))
        kept = [each for each in self._table.masqueraded if each[0] != bridge.name or each[1] in others or not is_known]
        listed = dict.fromkeys((*kept, *((bridge.name, network) for network in networks)))
        self._change(replace(self._table, masqueraded=tuple(listed)))

    def _in(self, bridge: HostBridge) -> set[str]:
        """The taps in a bridge."""
        return {each.device for each in self._table.bridged if each.bridge == bridge.name}

    def _bridge_for(self, nic: NicSpec) -> HostBridge:
        """The device that a card is put into. A VLAN is kept apart by the host's own bridge, or has a bridge of ours to itself."""
        bridge, action = nic.bridge, f"cannot connect {nic.name}"
        if bridge is None:
            raise NetworkUnusable(action, why="no bridge is named")
        if namespace.holder() and hostnetwork.has_device(bridge.name):
            fix = "run Paddock as root, or name a bridge that the host does not have: machines then share one of their own"
            raise NetworkUnusable(action, why=f"{bridge.name} is the host's, and only root puts interfaces into it", fix=fix)
        if bridge.vlan and (bridge.name in self._table.made or not index(bridge.name)):
            bridge = bridges.segment(bridge)
        found = self._netlink.link(bridge.name)
        if found is None and not bridge.create:
            raise NetworkUnusable(action, why=f"the host has no bridge {bridge.name}", fix="make it")
        if found is not None and found.kind != "bridge":
            raise NetworkUnusable(action, why=f"{bridge.name} is no bridge", fix="name another")
        if found is not None and bridge.vlan:
            if not found.filters:
                fix = f"ip link set {bridge.name} type bridge vlan_filtering 1"
                raise NetworkUnusable(
                    action, why=f"the host's bridge {bridge.name} does not keep VLANs apart", fix=fix, reason=reasons.NETWORK_VLAN
                )
            if bridge.is_gateway:
                why = f"the host cannot be the gateway of a VLAN of {bridge.name}"
                raise NetworkUnusable(action, why=why, fix="leave isGateway out", reason=reasons.NETWORK_VLAN)
        return bridge

    async def release(self, owners: AbstractSet[str], seconds: float) -> None:
        """The addresses of these owners in bridges are free."""
        await self._bridged.release(owners, seconds)

    def _leave(self, bridge: str) -> None:
        """A bridge of ours goes with its last card."""
        links = self._netlink.links()
        known = links.get(bridge)
        if known is not None and any(link.master == known.number for link in links.values()):
            return
        masqueraded = tuple(each for each in self._table.masqueraded if each[0] != bridge)
        made = tuple(each for each in self._table.made if each != bridge)
        if bridge in self._table.made:
            self._netlink.delete_link(bridge)
        self._change(replace(self._table, masqueraded=masqueraded, made=made))

    # -- the table

    def _say(self, rule: TapNic | BridgedNic) -> None:
        if isinstance(rule, TapNic):
            others = tuple(nic for nic in self._table.cards if nic.device != rule.device)
            self._change(replace(self._table, cards=(*others, rule)))
        else:
            kept = tuple(nic for nic in self._table.bridged if nic.device != rule.device)
            self._change(replace(self._table, bridged=(*kept, rule)))

    def _change(self, table: RuleTable) -> None:
        if table != self._table:
            self._table = table
            self._wanted += 1

    async def _write(self) -> None:
        """Bring the host to what the table says now. Whoever waits here while another writes is served by the next write for all."""
        wanted = self._wanted
        async with self._writing:
            if self._written >= wanted:
                return
            now, table = self._wanted, self._table
            await nft.run(rules.text(table))
            self._written = now
            write_record(self._path, msgspec.json.encode(table))


def _rule(device: str, nic: NicSpec, mac: str, ends: tuple[GuestAddress, GuestAddress]) -> TapNic:
    """The card as the packet filter knows it; `ends`: its addresses in both families."""
    own, own6 = ends
    rule = TapNic(device, nic.owner, mac, own.address, own.inner, own.inner_gateway, nic.ports, nic.traffic)
    return replace(rule, address6=own6.address, inner6=own6.inner, inner_gateway6=own6.inner_gateway)
