"""Networks without root: each machine behind a user-mode network of its own.

The machine stands behind a loopback address that is its alone, 127.64.x.y: port P of the guest is port P there. Ports below 1024 cannot be
bound without root and are 64512+P, and those from 64512 on are at 127.65.x.y instead. A port is opened when somebody asks for it: through
QEMU while the machine runs, or at its start when the card lists it.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine import namespace
from paddock.engine.machine.config import StreamNetwork, UserNetwork
from paddock.engine.networks import hostnetwork, passt
from paddock.engine.networks.addresses import AddressEntry, Key, loopback
from paddock.engine.networks.errors import GuestUnreachable, NetworkUnusable
from paddock.engine.networks.families import IP4, IP6
from paddock.engine.networks.nics import INNER_NETWORK, INNER_NETWORK6, NO_LIMIT, AttachedNic, NicSpec, Protocol
from paddock.engine.networks.resolver import ResolverConfig

# owner, name of the card, protocol, address and port on the host, port of the guest
Forward = Callable[[str, str, Protocol, str, int, int], Awaitable[None]]

_LOW, _HIGH = 1024, 64512
# A card that lists more is served when somebody asks.
_MOST_AHEAD = 64
# The network's, the gateway's, the guest's, the name server's and the last.
_LEAST_ADDRESSES = 8
# Of a network that guests make addresses of.
_PREFIX6 = 64

NO_MEETING = "machines cannot reach each other: user mode has no pod network; they can where Paddock is root or gets a network namespace"
STAYS = "the machine stays in user mode until it starts again; then it is in the pod network"
NO_SERVICES = "the machine cannot reach Services by their address inside"
ONLY_LOOPBACK = "the machine's address is a loopback address: only this host reaches it; a NodePort reaches it from elsewhere"
HOST_IS_OPEN = "the machine reaches what listens at this host's loopback address, through its gateway; passt binding does not allow that"
ONE_QUEUE = "the card has one queue"
PASST_PORTS = "only the ports that the card lists can be reached, as passt opens them when it starts"
NO_NAMES = "machines of the namespace are not found by name"
NO_HOST_NAME = "the machine is not told its host name by DHCP; cloud-init tells it"
LINK_LOCAL = "the machine reaches link-local addresses (169.254.0.0/16) and a cloud's metadata service, by IPv6 too, as this host does"
NO_LIMITS = "traffic is not limited: that needs root"
NO_SERVERS = "the machine does not get the name servers of its dnsConfig: QEMU's user-mode network has its own; passt hands them on"
NO_SERVERS6 = "the machine does not get the IPv6 name servers of its dnsConfig: QEMU's user-mode network has its own; passt hands them on"
NO_IPV6_SERVERS = "the machine does not get the IPv6 name servers of its dnsConfig: this host has no IPv6"
ONLY_IPV4 = "others reach the machine by IPv4 alone; by IPv6 it reaches others"
NO_PING = "only TCP and UDP leave the machine"


def host_place(index: int, port: int) -> tuple[str, int]:
    """Return the host's address for a port of the guest."""
    if port < _LOW:
        return loopback(index), _HIGH + port
    return loopback(index, high=port >= _HIGH), port


class _Plugged(Struct):
    nic: NicSpec
    entry: AddressEntry
    plug: AttachedNic
    helper: passt.PasstProcess | None = None


class UserMode:
    """The cards of machines without a network of the host's."""

    def __init__(self, directory: Path, *, passt_program: str | None, reasons: tuple[str, ...] = (), is_routed: bool = False) -> None:
        # QEMU connects as another user: nobody can list the places, and nobody guesses their names
        self._places = passt.PasstSockets(directory)
        self._passt = passt_program
        self._reasons = reasons
        # others of this Paddock are in the pod network
        self._is_routed = is_routed
        self._cards: dict[Key, _Plugged] = {}
        # nothing here keeps machines from link-local addresses; set by whoever knows
        self.link_local_open = True
        # set by whoever runs the machines
        self.forward: Forward | None = None

    async def plug(self, nic: NicSpec, entry: AddressEntry) -> AttachedNic:
        """A network of its own for the card."""
        found = self._cards.get(nic.key)
        if found is not None and found.nic == nic and found.entry == entry and (found.helper is None or found.helper.alive()):
            return found.plug
        if found is not None:
            await self._end(found)
        if nic.binding == "host-bridge":
            raise NetworkUnusable(
                f"cannot connect {nic.name} to a bridge",
                why="bridges need root or a network namespace",
                fix="run `paddock doctor`, which says what lacks, or use the pod network",
            )
        made = await self._with_passt(nic, entry) if nic.binding == "passt" else self._with_slirp(nic, entry)
        self._cards[nic.key] = made
        return made.plug

    def __contains__(self, key: Key) -> bool:
        return key in self._cards

    async def unplug(self, key: Key) -> None:
        found = self._cards.pop(key, None)
        if found is not None:
            await self._end(found)

    async def reach(self, entry: AddressEntry, protocol: Protocol, port: int) -> tuple[str, int]:
        """Return the host's address for a port of the guest; open it if necessary."""
        found = self._cards.get(entry.key)
        if found is None:
            raise GuestUnreachable(f"cannot reach port {port} of {entry.name}", why="the card is not plugged")
        ports = found.nic.ports
        if ports and not any(each.protocol == protocol and each.first <= port <= each.end for each in ports):
            raise GuestUnreachable(
                f"cannot reach {protocol} port {port} of {entry.name}", why="the interface lists other ports", fix="add it to `ports`"
            )
        place = host_place(entry.index, port)
        # Whatever was opened before: the machine may be another process now.
        if found.helper is None and not is_bound(protocol, place):
            await self._open(found, protocol, place, port)
        return place

    async def _open(self, plugged: _Plugged, protocol: Protocol, place: tuple[str, int], port: int) -> None:
        if self.forward is None:
            raise GuestUnreachable(f"cannot reach port {port} of {plugged.entry.name}", why="the machine does not run")
        try:
            await self.forward(plugged.entry.owner, plugged.entry.name, protocol, *place, port)
        except PaddockError:
            # Somebody else may have asked for it at the same time.
            if not is_bound(protocol, place):
                raise

    def _link_local(self) -> tuple[str, ...]:
        return (LINK_LOCAL,) if self.link_local_open else ()

    @property
    def is_idle(self) -> bool:
        """Return True if there are no cards."""
        return not self._cards

    async def _end(self, plugged: _Plugged) -> None:
        if plugged.helper is not None:
            await plugged.helper.end()

    def _with_slirp(self, nic: NicSpec, entry: AddressEntry) -> _Plugged:
        inner = ipaddress.IPv4Network(nic.network or INNER_NETWORK)
        _check_inner(inner)
        forwards = tuple((protocol, *host_place(entry.index, port), port) for protocol, port in sorted(_ahead(nic)))
        resolver, inner6 = _resolver(nic, inner), _inner6(nic)
        backend = UserNetwork(
            network=str(inner),
            gateway=str(inner[1]),
            address=str(inner[2]),
            dns=str(inner[3]),
            hostname=nic.hostname,
            domain=nic.domain,
            search=resolver.search,
            forwards=forwards,
        )
        if inner6 is not None:
            # QEMU gives guests no IPv6 address: they make one of the network.
            wide = inner6 if inner6.prefixlen <= _PREFIX6 else inner6.supernet(new_prefix=_PREFIX6)
            backend = replace(backend, network6=f"{wide[0]}/{_PREFIX6}", gateway6=str(inner6[1]), dns6=str(inner6[3]))
        limits = [NO_MEETING, NO_SERVICES, NO_NAMES, ONLY_LOOPBACK, NO_PING, HOST_IS_OPEN, *self._link_local(), *self._reasons]
        if self._is_routed:
            limits.append(STAYS)
        if nic.queues > 1:
            limits.append(ONE_QUEUE)
        if nic.traffic != NO_LIMIT:
            limits.append(NO_LIMITS)
        if resolver.servers != (backend.dns,):
            limits.append(NO_SERVERS)
        if nic.resolver.of(IP6).given.servers:
            limits.append(NO_SERVERS6)
        if nic.binding == "bridge":
            limits.append("the card is behind masquerade: user mode has no bridges")
        if inner6 is not None:
            limits.append(ONLY_IPV4)
        reached = ResolverConfig((backend.dns,), resolver.search)
        return _Plugged(nic, entry, _attached(entry, backend, inner, reached, limits))

    async def _with_passt(self, nic: NicSpec, entry: AddressEntry) -> _Plugged:
        if self._passt is None:
            raise NetworkUnusable(f"cannot connect {nic.name} by passt", why="there is no passt on this host", fix="install passt")
        inner = ipaddress.IPv4Network(nic.network or INNER_NETWORK)
        _check_inner(inner)
        opened, resolver, inner6 = _ahead(nic), _resolver(nic, inner), _inner6(nic)
        servers6 = nic.resolver.of(IP6).given.servers
        if inner6 is not None:
            resolver = replace(resolver, servers=(*resolver.servers, *servers6))
        wanted = passt.PasstRequest(
            socket=self._places.socket(nic, entry.mac),
            inner=str(inner),
            inner6=str(inner6 or ""),
            mac="02:00:00:00:00:00",
            user=nic.user or passt.NOBODY,
            dns=resolver,
            forwards=tuple((protocol, *host_place(entry.index, port), port) for protocol, port in sorted(opened)),
        )
        helper = await passt.start(self._passt, wanted)
        limits = [NO_MEETING, NO_SERVICES, NO_NAMES, ONLY_LOOPBACK, PASST_PORTS, NO_HOST_NAME, *self._link_local(), *self._reasons]
        if inner6 is not None:
            limits.append(ONLY_IPV4)
        elif servers6:
            limits.append(NO_IPV6_SERVERS)
        if nic.traffic != NO_LIMIT:
            limits.append(NO_LIMITS)
        plug = _attached(entry, StreamNetwork(wanted.socket), inner, resolver, limits)
        if inner6 is not None:
            plug = replace(plug, guest_address6=f"{inner6[2]}/{inner6.prefixlen}")
        return _Plugged(nic, entry, plug, helper)


def _attached(
    entry: AddressEntry, backend: UserNetwork | StreamNetwork, inner: ipaddress.IPv4Network, resolver: ResolverConfig, limits: list[str]
) -> AttachedNic:
    return AttachedNic(
        mac=entry.mac,
        address=loopback(entry.index),
        guest_address=f"{inner[2]}/{inner.prefixlen}",
        backend=backend,
        limits=tuple(limits),
        gateway=str(inner[1]),
        dns=resolver.servers,
        search=resolver.search,
    )


def _ahead(nic: NicSpec) -> set[tuple[Protocol, int]]:
    listed = [(each.protocol, port) for each in nic.ports for port in range(each.first, each.end + 1)]
    return set(listed[:_MOST_AHEAD])


def _resolver(nic: NicSpec, inner: ipaddress.IPv4Network) -> ResolverConfig:
    return nic.resolver.of(IP4).over(ResolverConfig((str(inner[3]),)), hostnetwork.search())


def _inner6(nic: NicSpec) -> ipaddress.IPv6Network | None:
    """The IPv6 network inside; None where the host has no IPv6. Raises `NetworkUnusable`."""
    if not hostnetwork.has_ipv6():
        return None
    inner = ipaddress.IPv6Network(nic.network6 or INNER_NETWORK6, strict=False)
    if inner.num_addresses < _LEAST_ADDRESSES:
        raise _without_room(inner, "vmIPv6NetworkCIDR")
    return inner


def _check_inner(inner: ipaddress.IPv4Network) -> None:
    if inner.num_addresses < _LEAST_ADDRESSES:
        raise _without_room(inner, "vmNetworkCIDR")


def _without_room(inner: ipaddress.IPv4Network | ipaddress.IPv6Network, field: str) -> NetworkUnusable:
    why = f"it has fewer than {_LEAST_ADDRESSES} addresses"
    return NetworkUnusable(f"cannot use {inner} inside a machine", why=why, fix=f"set a larger {field}")


def is_bound(protocol: Protocol, place: tuple[str, int]) -> bool:
    """Return whether this port of a loopback address is taken."""
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind | socket.SOCK_CLOEXEC) as probe:
        if protocol == "tcp":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError:
            return True
    return False


async def connect(place: tuple[str, int], seconds: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a place on the host or in the pod network."""
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.open_connection(sock=await namespace.connected(*place, socket.SOCK_STREAM))
    except TimeoutError as error:
        raise GuestUnreachable(f"cannot connect to {place[0]}:{place[1]}", why=f"no answer within {seconds:g} s") from error
    except OSError as error:
        raise GuestUnreachable(f"cannot connect to {place[0]}:{place[1]}", why=error.strerror or str(error)) from error
