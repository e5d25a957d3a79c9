"""`Networks`: the cards of machines, and who reaches them.

As root, or in a network namespace (`rootless`), each card is a tap that is routed to; otherwise QEMU's user-mode network or passt. Callers
see the same calls either way, and `AttachedNic.limits` names what cannot be done. Every call may be repeated.
"""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine import namespace
from paddock.engine.claims import HostReservations
from paddock.engine.networks import admission, hostnames, hostnetwork, hostobjects, listeners, nft, rules, serviceforwards
from paddock.engine.networks.addresses import AddressTable, check_networks, choose_network, choose_network6, intruder
from paddock.engine.networks.addressstore import AddressStore
from paddock.engine.networks.datagrams import Datagrams, open_datagrams
from paddock.engine.networks.errors import GuestUnreachable, NetworkUnusable
from paddock.engine.networks.families import IP4, IP6, Family
from paddock.engine.networks.hostnames import HostNames
from paddock.engine.networks.listeners import ForwardTo, ListenEndpoint, Listeners
from paddock.engine.networks.nics import AttachedNic, ForwardTarget, NicPolicy, NicSpec, Protocol, PublishedService, check_card
from paddock.engine.networks.podnetwork import PodNetworkSettings, RoutedPodNetwork
from paddock.engine.networks.respondercontrol import ResponderControl
from paddock.engine.networks.rootless import Uplink
from paddock.engine.networks.usermode import Forward, UserMode, connect

_LOG = logging.getLogger(__name__)
_DIAL_SECONDS = 10.0


class NetworkSettings(Struct, frozen=True):
    """The settings of machines' networks."""

    # "auto" is routed where that is possible; "rootless" is routed in the namespace that this process joined
    mode: Literal["auto", "routed", "rootless", "user"] = "auto"
    # one for each family, with a comma; "" chooses those that the host does not use, once
    pod_network: str = ""
    service_network: str = "10.96.0.0/12"
    # names end with it
    zone: str = "cluster.local"
    # where node ports are listened at, and those of Services with IPv6
    node_port_address: str = "0.0.0.0"
    node_port_address6: str = "::"


class Networks:
    """All cards, by (owner, name)."""

    def __init__(
        self,
        directory: Path,
        settings: NetworkSettings = NetworkSettings(),  # noqa: B008 - frozen
        *,
        claims: HostReservations | None = None,
        seconds: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._claims = claims
        self._seconds = seconds
        self._wanted, self._wanted6 = check_networks(settings.pod_network) if settings.pod_network else ("", "")
        why_user = "user mode was chosen" if settings.mode == "user" else hostnetwork.why_not_routed()
        if settings.mode == "rootless" and not namespace.holder():
            why_user = why_user or "this process is in no network namespace of a user"
        if settings.mode in ("routed", "rootless") and why_user:
            raise NetworkUnusable("cannot route to machines", why=why_user, fix="run as root, or choose user mode")
        self._ledger = AddressStore.open(directory / "addresses.json", lambda: AddressTable("", os.urandom(5).hex()))
        self._cards: dict[tuple[str, str], NicSpec] = {}
        reasons = (f"no pod network: {why_user}",) if why_user else ()
        self._user = UserMode(directory, passt_program=shutil.which("passt"), reasons=reasons, is_routed=not why_user)
        self._uplink = Uplink(directory)
        # whether a machine runs whose card of this MAC is in QEMU's own network; set by whoever runs the machines
        self.runs_in_user_mode: Callable[[str], bool] = lambda mac: False
        surroundings = PodNetworkSettings(directory, settings.service_network, settings.zone)
        self._routed = None if why_user else RoutedPodNetwork(surroundings)
        self._listeners = Listeners(self._reach_target, self._admits)
        self._published: tuple[PublishedService, ...] | None = None
        self._policies: tuple[NicPolicy, ...] | None = None
        # the users that QEMU and its helpers run as, when they have some of their own; set by whoever runs the machines
        self.users = (0, 0)
        self._opening, self._listening = asyncio.Lock(), asyncio.Lock()
        self._is_open = False
        # None: a former run may have left its filters
        self._is_guarded: bool | None = None
        # cards that are on their way
        self._plugging = 0

    @property
    def mode(self) -> Literal["routed", "user"]:
        """The mode of cards' connections."""
        return "user" if self._routed is None else "routed"

    @property
    def instance(self) -> str:
        """The text that distinguishes our devices and tables from those of another Paddock."""
        return self._names_on_host.instance

    @property
    def _names_on_host(self) -> HostNames:
        return self._routed.names if self._routed is not None else hostnames.every(self._directory)[0]

    def device(self, owner: str, name: str) -> str:
        """The name of a card's tap."""
        return self._routed.device((owner, name)) if self._routed is not None else ""

    @property
    def outside_addresses(self) -> tuple[str, ...]:
        """The addresses of this host for whoever is outside, IPv4 first."""
        device = hostnetwork.default_device()
        own, own6 = hostnetwork.address_of(device), hostnetwork.address6_of(device)
        return tuple(each for each in (own, own6) if each) or ("127.0.0.1",)

    async def open(self) -> None:
        """Once, before the first card. What a former run left goes on as it was; a host that had no machines is not touched before one."""
        if self._routed is not None or hostnetwork.may_filter():
            for gone in await hostobjects.collect():
                _LOG.info("network of a deleted directory removed", extra={"directory": gone})
        if self._routed is None:
            return
        # With addresses that cannot be read, the host's side stays as it is.
        if self._routed.was_used() and not self._ledger.is_damaged:
            await self._open()

    async def _open(self) -> None:
        async with self._opening:
            if self._routed is None or self._is_open:
                return
            await self._place(self._routed)
            self._uplink.open()
            book = self._book
            self._routed.open(book, self.users)
            await self._answer(self._routed.responder, book)
            self._is_open = True
            # The last setting holds until another comes.
            await self._routed.refresh()
            if self._policies is not None:
                await self._routed.police(self._policies)
            await self._lead()

    async def _answer(self, responder: ResponderControl, book: AddressTable) -> None:
        """Have the questions of guests answered at the host's addresses."""
        responder.users = self.users
        networks = (book.network, book.network6, *self._settings.service_network.split(","))
        await responder.open([each for each in (book.host, book.host6) if each], self._settings.zone, [*filter(None, networks)])

    async def _place(self, routed: RoutedPodNetwork) -> None:
        """Give machines a network that neither the host nor another server on it uses. What is on the host already stays."""
        self._ledger.check()
        book = self._ledger.book
        if routed.is_open() and (book.network or not self._wants(IP4)) and (book.network6 or not self._wants(IP6)):
            return
        # Nobody else is in a namespace of its own.
        if self._claims is not None and not namespace.holder():
            await self._ledger.move(*self._claims.networks(self._directory.parent, self._choose))
        else:
            await self._ledger.move(*self._choose(()))

    def _wants(self, family: Family) -> bool:
        """Return whether machines get addresses of a family. A host without IPv6 has none for them."""
        named = self._wanted if family is IP4 else self._wanted6
        return bool(named or not self._settings.pod_network) and (family is IP4 or hostnetwork.has_ipv6())

    @property
    def _book(self) -> AddressTable:
        """The addresses, without the family that machines do not get for now."""
        book = self._ledger.book
        return book if self._wants(IP6) else replace(book, network6="")

    def _choose(self, others: Collection[str]) -> tuple[str, str]:
        return self._choose4([*filter(IP4.has, others)]), self._choose6([*filter(IP6.has, others)])

    def _choose6(self, others: Collection[str]) -> str:
        book, own = self._ledger.book, hostnames.every(self._directory)
        if not self._wants(IP6):
            return book.network6
        routes = {network: device for device, network in hostnetwork.routes6() if not any(names.has(device) for names in own)}
        clash = intruder(book.network6, [*routes, *others]) if book.network6 else ""
        if book.network6 and not clash:
            return book.network6
        if book.network6 and book.entries:
            raise _taken(book.network6, clash, routes.get(clash, ""))
        return choose_network6(self._wanted6, book.site, [*routes, *others], self._settings.service_network)

    def _choose4(self, others: Collection[str]) -> str:
        book, own = self._ledger.book, hostnames.every(self._directory)
        if not book.network and not self._wants(IP4):
            return ""
        foreign = [(device, network) for device, network in hostnetwork.routes() if not any(names.has(device) for names in own)]
        # The route of the whole network leads nowhere and has no device.
        routes = {network: device for device, network in foreign if device != "*"}
        clash = intruder(book.network, [*routes, *others]) if book.network else ""
        if book.network and not clash:
            return book.network
        if book.network and book.entries:
            raise _taken(book.network, clash, routes.get(clash, ""))
        every = [network for _, network in hostnetwork.routes()]
        return choose_network(self._wanted, [*every, *others], self._settings.service_network)

    async def _guard(self) -> None:
        """Keep the processes of user mode from link-local addresses, where they have users of their own that a packet filter can tell."""
        async with self._opening:
            can = bool(self.users[0]) and hostnetwork.may_filter()
            self._user.link_local_open = not can
            if can and not self._is_open and not self._is_guarded:
                names = self._names_on_host
                earlier = hostobjects.removal_of_filters(self._directory, kept=names)
                await nft.run(earlier + rules.guard_processes(names.filters, self.users, hostobjects.mark_of_filters(self._directory)))
                self._is_guarded = True

    async def _rest(self) -> None:
        """With its last card everything of ours leaves the host's network."""
        async with self._opening:
            is_guarding = not self._user.is_idle or self._plugging > 0
            if self._routed is not None and self._is_open and self._routed.is_idle and not self._plugging:
                self._is_open = self._is_guarded = False
                await self._routed.clear()
                self._uplink.end()
                await self._listen()
            elif self._is_guarded is not False and self._routed is None and self.users[0] and not is_guarding and hostnetwork.may_filter():
                self._is_guarded = None
                await nft.run(hostobjects.removal_of_filters(self._directory))
                self._is_guarded = False
        if is_guarding:
            await self._guard()

    async def close(self) -> None:
        """End what is in this process; what the host has for machines stays."""
        await self._listeners.close()
        self._uplink.close()
        if self._routed is not None:
            await self._routed.close()

    async def collect(self, owners: Collection[str]) -> None:
        """Remove taps that belong to nobody of these: what machines that ended while nobody looked have left."""
        if self._routed is not None and self._is_open:
            for device in await self._routed.collect(owners):
                _LOG.info("tap device without a machine removed", extra={"device": device})
        await self._rest()

    async def destroy(self) -> None:
        """Take everything of ours off the host's network. Addresses stay written down."""
        await self._listeners.close()
        self._uplink.end()
        self._is_open = self._is_guarded = False
        if self._routed is not None:
            await self._routed.clear()
            await self._routed.close()
        elif hostnetwork.may_filter():
            await nft.run(hostobjects.removal_of_filters(self._directory))

    def forward_by(self, forward: Forward) -> None:
        """Set the function that forwards a port of a running machine in user mode."""
        self._user.forward = forward

    async def plug(self, nic: NicSpec) -> AttachedNic:
        """The card is ready for a machine, with the same MAC and addresses each time."""
        check_card(nic)
        try:
            plug = await self._plugged(nic)
        except BaseException:
            await self._rest()
            raise
        if self._cards.get(nic.key) != nic:
            self._cards[nic.key] = nic
            # A target that was not there when its service was published.
            await self._lead(nic.owner)
        return plug

    async def _plugged(self, nic: NicSpec) -> AttachedNic:
        """Meanwhile the host's side stays, although the last card of another machine goes."""
        self._plugging += 1
        try:
            if self._routed is None or nic.binding == "passt" or self.runs_in_user_mode(self.mac(*nic.key)):
                await self._guard()
                return await self._user.plug(nic, await self._ledger.give(nic.key, self._seconds(), nic.mac))
            await self._open()
            return await self._routed.plug(nic, await self._ledger.give(nic.key, self._seconds(), nic.mac))
        finally:
            self._plugging -= 1

    async def unplug(self, owner: str, name: str) -> None:
        """Remove the card from the host; its addresses stay."""
        key = (owner, name)
        self._cards.pop(key, None)
        if self._routed is not None and key not in self._user:
            if self._is_open or (self._routed.was_used() and not self._ledger.is_damaged):
                await self._open()
                await self._routed.unplug(key)
                await self._rest()
        else:
            await self._user.unplug(key)
            await self._rest()

    async def release(self, owners: AbstractSet[str]) -> None:
        """The cards of these owners go, and their addresses with them."""
        for key in [key for key in self._cards if key[0] in owners]:
            await self.unplug(*key)
        if self._routed is not None:
            await self._routed.release(owners, self._seconds())
        await self._ledger.release(owners, self._seconds())

    def owners(self) -> set[str]:
        return self._ledger.owners()

    def mac(self, owner: str, name: str) -> str:
        """The MAC of a card; "" of one that is not known."""
        entry = self._ledger.get((owner, name))
        return entry.mac if entry is not None else ""

    async def dial(self, owner: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A TCP connection to the guest; raises `GuestUnreachable`."""
        return await connect(await self._reach(owner, name, "tcp", port), _DIAL_SECONDS)

    async def datagrams(self, owner: str, name: str, port: int) -> Datagrams:
        """UDP to the guest; raises `GuestUnreachable`."""
        return await open_datagrams(await self._reach(owner, name, "udp", port))

    async def publish(self, services: Collection[PublishedService]) -> Mapping[str, tuple[str, ...]]:
        """Listen for exactly these services. Returns what could not be had, by the name of the service; publish again to try again."""
        self._published = tuple(services)
        problems = await self._listen()
        await self._filter()
        return problems

    async def _listen(self) -> Mapping[str, tuple[str, ...]]:
        """Have the host's ports listened at by the responder, which outlives this server; here while there are no guests, and for cards in
        user mode. Returns what could not be had."""
        async with self._listening:
            wanted, problems = listeners.plan(
                self._published or (), {4: self._settings.node_port_address, 6: self._settings.node_port_address6}
            )
            own = {place: lead for place, lead in wanted.items() if not self._is_relayed(lead)}
            # Whoever had a port gives it up before the other takes it.
            self._listeners.bring({place: lead for place, lead in own.items() if place in self._listeners.places})
            failed: dict[ListenEndpoint, str] = {}
            if self._routed is not None and self._is_open:
                relayed = {place: lead for place, lead in wanted.items() if place not in own}
                failed = await self._routed.responder.relay(relayed, self._routed.policies)
            failed |= self._listeners.bring(own)
        messages = {name: [*said] for name, said in problems.items()}
        for place, why in failed.items():
            messages.setdefault(wanted[place].service, []).append(f"{place}: {why}")
        return {name: tuple(said) for name, said in messages.items()}

    def _is_relayed(self, lead: ForwardTo) -> bool:
        return self._routed is not None and self._is_open and not any((each.owner, each.name) in self._user for each in lead.targets)

    @property
    def _listened(self) -> Collection[ListenEndpoint]:
        relayed = self._routed.responder.relayed if self._routed is not None else ()
        return {*self._listeners.places, *relayed}

    async def police(self, policies: Collection[NicPolicy]) -> None:
        """Hold cards to exactly these policies. Without a pod network no machine reaches another: there is nothing to police but what
        leaves, which user mode cannot; see `AttachedNic.limits`."""
        self._policies = tuple(policies)
        if self._routed is not None and self._is_open:
            await self._routed.police(self._policies)
            if self._published is not None:
                await self._listen()

    async def name(self, names: Mapping[str, Collection[str]]) -> None:
        """Answer for exactly these names, besides those of the cards."""
        if self._routed is not None:
            self._routed.responder.put_names(names)
            await self._routed.responder.tell()

    async def _lead(self, owner: str = "") -> None:
        """Have services led to cards that came (or only if one of them leads to this owner)."""
        if self._published is None or not self._is_open:
            return
        concerned = any(target.owner == owner for service in self._published for port in service.ports for target in port.targets)
        if not owner or concerned:
            await self._listen()
            await self._filter()

    async def _filter(self) -> None:
        """Tell the packet filter about services."""
        if self._routed is not None and self._is_open:
            await self._routed.serve(serviceforwards.services(self._published or (), self._listened, self._addresses))

    def _addresses(self, target: ForwardTarget) -> tuple[str, ...]:
        # In user mode and behind passt a machine has a loopback address, to which the kernel leads nobody. The others are known after a
        # restart, too.
        if self._routed is None or (target.owner, target.name) in self._user:
            return ()
        return self._routed.responder.addresses(target.owner, target.name)

    def _admits(self, target: ForwardTarget, protocol: Protocol, client: str) -> bool:
        """Hold clients of listeners to the policies, but for this host's own programs."""
        policies = self._routed.policies if self._routed is not None else ()
        return admission.admits(policies, target, protocol, client) or hostnetwork.is_own(client)

    async def _reach_target(self, target: ForwardTarget, protocol: Protocol) -> tuple[str, int]:
        return await self._reach(target.owner, target.name, protocol, target.port)

    async def _reach(self, owner: str, name: str, protocol: Protocol, port: int) -> tuple[str, int]:
        entry, nic = self._ledger.get((owner, name)), self._cards.get((owner, name))
        if entry is None or nic is None:
            raise GuestUnreachable(f"cannot reach {name}", why="the card is not plugged")
        if self._routed is None or (owner, name) in self._user:
            return await self._user.reach(entry, protocol, port)
        return self._routed.place(entry, port)


def _taken(network: str, part: str, device: str) -> NetworkUnusable:
    """The network of machines that have addresses is used by somebody else. What is advised leaves guests and addresses alone."""
    if device:
        why = f"the host leads {part} to {device}, which is not this server's"
        fix = f"find what made that route (`ip -d link show {device}`) and give it another network; Paddock tries again by itself"
    else:
        why = f"another server on this host has {part}"
        fix = "run one of the two on another host, or in a network namespace of its own"
    return NetworkUnusable(f"cannot use the pod network {network}", why=why, fix=f"{fix}. Running guests keep their network meanwhile")
