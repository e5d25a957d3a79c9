"""Ports of the host that lead to machines. What should be listened at is compared with what is; a place that is taken is a problem that is
told, and tried again with the next comparison.
"""

import asyncio
import errno
import ipaddress
import os
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from msgspec import Struct

from paddock.engine.networks.forwarding import TcpForward, UdpForward
from paddock.engine.networks.nics import ForwardTarget, Protocol, PublishedService

# Whether a client's address may connect to a target.
Admits = Callable[[ForwardTarget, Protocol, str], bool]
Reach = Callable[[ForwardTarget, Protocol], Awaitable[tuple[str, int]]]
_MOST_CLIENTS = 4096
_BACKLOG = 256


class ListenEndpoint(Struct, frozen=True):
    """An address to listen on."""

    protocol: Protocol
    address: str
    port: int

    @property
    def key(self) -> str:
        """The key of its socket at the responder."""
        return f"listen {self.address} {self.protocol} {self.port}"

    def __str__(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.protocol} {address}:{self.port}"


class ForwardTo(Struct, frozen=True):
    """The destination of a listener."""

    service: str
    targets: tuple[ForwardTarget, ...]
    sources: tuple[str, ...] = ()
    affinity_seconds: int = 0


def plan(
    services: Collection[PublishedService], everywhere: Mapping[int, str]
) -> tuple[dict[ListenEndpoint, ForwardTo], dict[str, tuple[str, ...]]]:
    """Return the endpoints to listen on, and the conflicts of Services that came second.

    `everywhere`: the address of node ports, by family.
    """
    wanted: dict[ListenEndpoint, ForwardTo] = {}
    problems: dict[str, list[str]] = {}
    for service in sorted(services, key=lambda each: each.name):
        for place, targets in _places(service, everywhere):
            holder = wanted.get(place)
            if holder is not None:
                problems.setdefault(service.name, []).append(f"{place} belongs to {holder.service}")
                continue
            wanted[place] = ForwardTo(service.name, targets, service.sources, service.affinity_seconds)
    return wanted, {name: tuple(said) for name, said in problems.items()}


def _places(service: PublishedService, everywhere: Mapping[int, str]) -> Iterable[tuple[ListenEndpoint, tuple[ForwardTarget, ...]]]:
    for port in service.ports:
        if port.node_port:
            for family in service.families:
                yield ListenEndpoint(port.protocol, everywhere[family], port.node_port), port.targets
        for address in service.outside:
            yield ListenEndpoint(port.protocol, address, port.port), port.targets


class _Choice:
    """The target of each client: in turns, or the same as before."""

    def __init__(self, lead: ForwardTo, reach: Reach, admits: Admits) -> None:
        self.lead = lead
        self._admits = admits
        self._reach = reach
        self._turn = 0
        self._stays: OrderedDict[str, tuple[float, ForwardTarget]] = OrderedDict()

    def allowed(self, client: str) -> bool:
        if not self.lead.sources:
            return True
        address = ipaddress.ip_address(client)
        return any(address in ipaddress.ip_network(network, strict=False) for network in self.lead.sources)

    async def choose(self, client: str) -> tuple[str, int] | None:
        target = self._target(client)
        if target is None or not self._admits(target, self.protocol, client):
            return None
        return await self._reach(target, self.protocol)

    protocol: Protocol = "tcp"

    def _target(self, client: str) -> ForwardTarget | None:
        targets = self.lead.targets
        if not targets:
            return None
        now = asyncio.get_running_loop().time()
        if self.lead.affinity_seconds:
            until, stays = self._stays.get(client, (0.0, targets[0]))
            if until > now and stays in targets:
                self._remember(client, now, stays)
                return stays
        self._turn += 1
        chosen = targets[self._turn % len(targets)]
        if self.lead.affinity_seconds:
            self._remember(client, now, chosen)
        return chosen

    def _remember(self, client: str, now: float, target: ForwardTarget) -> None:
        self._stays[client] = (now + self.lead.affinity_seconds, target)
        self._stays.move_to_end(client)
        if len(self._stays) > _MOST_CLIENTS:
            self._stays.popitem(last=False)


def bound(endpoint: ListenEndpoint) -> socket.socket:
    """Return a socket at a place of the host; raises OSError."""
    family = socket.AF_INET6 if ":" in endpoint.address else socket.AF_INET
    kind = socket.SOCK_STREAM if endpoint.protocol == "tcp" else socket.SOCK_DGRAM
    made = socket.socket(family, kind | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        if family == socket.AF_INET6:
            # The same port of IPv4 has a socket of its own.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if endpoint.protocol == "tcp":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((endpoint.address, endpoint.port))
        if endpoint.protocol == "tcp":
            made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


class Listeners:
    """Everything that is listened at."""

    def __init__(self, reach: Reach, admits: Admits = lambda *_: True, bind: Callable[[ListenEndpoint], socket.socket] = bound) -> None:
        self._reach = reach
        self._admits = admits
        self._bind = bind
        self._open: dict[ListenEndpoint, tuple[_Choice, TcpForward | UdpForward]] = {}
        # those that listen no more and have connections
        self._leaving: list[TcpForward | UdpForward] = []

    @property
    def places(self) -> Collection[ListenEndpoint]:
        return self._open.keys()

    @property
    def is_busy(self) -> bool:
        """Return True while one that listens no more has connections."""
        return any(forward.is_busy for forward in self._leaving)

    def bring(self, forwards: Mapping[ListenEndpoint, ForwardTo]) -> dict[ListenEndpoint, str]:
        """Bring about what is wanted; returns what could not be, and why."""
        for place in [place for place in self._open if place not in forwards]:
            self._open.pop(place)[1].end()
        failed: dict[ListenEndpoint, str] = {}
        for place, lead in forwards.items():
            known = self._open.get(place)
            if known is not None:
                known[0].lead = lead
                continue
            try:
                self._open[place] = self._listen(place, lead)
            except OSError as error:
                failed[place] = why(error)
        return failed

    def _listen(self, endpoint: ListenEndpoint, lead: ForwardTo) -> tuple[_Choice, TcpForward | UdpForward]:
        choice = _Choice(lead, self._reach, self._admits)
        choice.protocol = endpoint.protocol
        kind = TcpForward if endpoint.protocol == "tcp" else UdpForward
        forward = kind(choice.choose, choice.allowed)
        forward.serve(self._bind(endpoint))
        return choice, forward

    def leave(self) -> None:
        """Listen nowhere; connections go on."""
        self._leaving = [forward for _, forward in self._open.values()]
        self._open.clear()
        for forward in self._leaving:
            forward.close()

    async def close(self) -> None:
        for forward in (*self._leaving, *(forward for _, forward in self._open.values())):
            forward.end()
        self._open.clear()
        # Sockets are closed in the loop's next turns: the clients', then the guests'.
        for _ in range(3):
            await asyncio.sleep(0)


def why(error: OSError) -> str:
    """Return the reason why a place cannot be listened at."""
    number = error.errno or 0
    if number == errno.EADDRINUSE:
        return "another program has it"
    if number in (errno.EACCES, errno.EPERM):
        return "ports below 1024 need root"
    if number == errno.EADDRNOTAVAIL:
        return "the host does not have this address"
    return os.strerror(number) if number else str(error)
