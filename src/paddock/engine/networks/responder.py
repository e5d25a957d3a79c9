"""A program of its own: answers the DHCP, DHCPv6, router solicitations and DNS of guests, whether the server runs or not.

It has no rights: the server makes its sockets, and hands them over with a file that says what to answer (`responderstate`). It keeps both
in memory until another message comes. It ends by SIGTERM, after it has handed its sockets over, and when the devices of its guests are gone
while no server is connected.

`respondercontrol` starts it. It imports little, and nothing after it has given up its rights: its user may be unable to read the sources.
"""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
import time

import msgspec

from paddock.engine import namespace
from paddock.engine.networks import admission, hostnetwork, resolvconf
from paddock.engine.networks.dhcpserver import DhcpServer
from paddock.engine.networks.dns import Zone
from paddock.engine.networks.dnsserver import DnsServer
from paddock.engine.networks.errors import GuestUnreachable
from paddock.engine.networks.listeners import ListenEndpoint, Listeners
from paddock.engine.networks.nics import ForwardTarget, Protocol
from paddock.engine.networks.responderstate import (
    LONGEST_MESSAGE,
    MOST_SOCKETS,
    GuestPort,
    ResponderAnswer,
    ResponderRequest,
    ResponderState,
)

# Far within the 18 hours that a router's advertisement lasts.
_ADVERTISING_SECONDS = 600.0
# So long, answers that others are asked for may take after the sockets were handed over.
_DRAIN_SECONDS = 5.0
_SEND_SECONDS = 5.0
_LOOK_SECONDS = 0.5


class Responder:
    """Its sockets by their keys, and who told it of them."""

    def __init__(self, build: str, listener: socket.socket) -> None:
        self._build = build
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._servers: set[socket.socket] = set()
        self._sockets: dict[str, socket.socket] = {}
        self._taps: dict[str, DhcpServer] = {}
        # what was handed over: answers that are under way still leave through it
        self._given: list[tuple[str, socket.socket]] = []
        self._state = ResponderState()
        # None: not asked for since the state changed
        self._zone: Zone | None = None
        self._dns = DnsServer(self.zone, resolvconf.nameservers, seconds=time.monotonic)
        self._relays = Listeners(self._reach, self._admits, self._bound)
        # where cards are reached
        self._cards: dict[tuple[str, str], tuple[str, ...]] = {}
        self.ended, self.terminated = asyncio.Event(), asyncio.Event()
        self._loop.add_reader(listener, self._arrived)
        self._advertise()

    def zone(self) -> Zone:
        """Everything that has a name."""
        if self._zone is None:
            self._zone = self._state.zone()
        return self._zone

    def terminate(self) -> None:
        """End soon, also what is under way."""
        self.terminated.set()
        self.ended.set()

    async def drain(self) -> None:
        """Wait for the answers that are under way, then for the end of clients' connections."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._dns.is_busy:
                    await asyncio.sleep(0.05)
        self._close_given()
        while self._relays.is_busy and not self.terminated.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self.terminated.wait()

    async def close(self) -> None:
        self._timer.cancel()
        for each in (*self._servers, *([self._listener] if self._listener.fileno() >= 0 else ())):
            self._loop.remove_reader(each)
            each.close()
        self._close_given()
        for key in [*self._sockets]:
            self._close(key)
        await self._relays.close()
        await self._dns.close()

    def _close_given(self) -> None:
        for _, made in self._given:
            made.close()
        self._given = []

    def talk(self, server: socket.socket) -> None:
        server.setblocking(False)
        self._servers.add(server)
        self._loop.add_reader(server, self._heard, server)

    def _arrived(self) -> None:
        with contextlib.suppress(OSError):
            self.talk(self._listener.accept()[0])

    def _heard(self, server: socket.socket) -> None:
        handles: list[int] = []
        try:
            data, handles, _, _ = socket.recv_fds(server, LONGEST_MESSAGE, MOST_SOCKETS + 1)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._part(server)
            return
        try:
            self._obey(server, msgspec.json.decode(data, type=ResponderRequest), handles)
        except (OSError, ValueError) as error:
            # A server that hears nothing of it starts another responder.
            print(f"cannot obey the server: {error}", file=sys.stderr, flush=True)
            self._part(server)

    def _part(self, server: socket.socket) -> None:
        self._loop.remove_reader(server)
        self._servers.discard(server)
        server.close()
        self._end_if_alone()

    def _end_if_alone(self) -> None:
        if not self._servers and not self._taps:
            self.ended.set()

    def _obey(self, server: socket.socket, request: ResponderRequest, handles: list[int]) -> None:
        if request.verb == "hand over":
            self._hand_over(server)
            return
        if request.verb == "serve":
            with os.fdopen(handles[0], "rb") as file:
                state = msgspec.json.decode(file.read(), type=ResponderState)
            self._serve(state, {key: socket.socket(fileno=handle) for key, handle in zip(request.sockets, handles[1:], strict=True)})
        said = ResponderAnswer(self._build, os.getpid(), tuple(self._sockets))
        server.send(msgspec.json.encode(said))

    def _serve(self, state: ResponderState, fresh: dict[str, socket.socket]) -> None:
        """Answer what the state says, at the sockets that are there."""
        wanted = {*state.sockets()}
        for key in [key for key in self._sockets if key not in wanted or key in fresh]:
            self._close(key)
        self._state, self._zone = state, None
        for key in fresh.keys() - wanted:
            fresh.pop(key).close()
        for key, made in fresh.items():
            made.setblocking(False)
            self._sockets[key] = made
            if key.startswith(("udp ", "tcp ")):
                self._dns.serve(made)
        for port in state.ports:
            if port.key in self._sockets:
                self._answer(port)
        self._cards = {(nic.owner, nic.name): nic.addresses for nic in state.nics}
        self._relays.bring({relay.place: relay.lead for relay in state.relays if relay.place.key in self._sockets})

    def _bound(self, endpoint: ListenEndpoint) -> socket.socket:
        return self._sockets[endpoint.key].dup()

    async def _reach(self, target: ForwardTarget, protocol: Protocol) -> tuple[str, int]:
        addresses = self._cards.get((target.owner, target.name))
        if not addresses:
            raise GuestUnreachable(f"cannot reach {target.name}", why="its address is not known here")
        return addresses[0], target.port

    def _admits(self, target: ForwardTarget, protocol: Protocol, client: str) -> bool:
        return admission.admits(self._state.policies, target, protocol, client) or hostnetwork.is_own(client)

    def _answer(self, port: GuestPort) -> None:
        tap = self._taps.get(port.key)
        if tap is None:
            tap = self._taps[port.key] = DhcpServer(self._sockets[port.key], port)
            self._loop.add_reader(tap.tap, self._asked, port.key)
            tap.advertise()
        elif tap.port != port:
            tap.port = port
            tap.advertise()

    def _asked(self, key: str) -> None:
        tap = self._taps[key]
        try:
            tap.serve()
        except OSError:
            # A device that is down comes back; one that is gone does not.
            if _number(tap.port.device) != tap.port.number:
                self._close(key)
                self._end_if_alone()

    def _advertise(self) -> None:
        for tap in self._taps.values():
            tap.advertise()
        self._timer = self._loop.call_later(_ADVERTISING_SECONDS, self._advertise)

    def _leave(self, key: str) -> socket.socket:
        """Take nothing from a socket any more."""
        made = self._sockets.pop(key)
        if self._taps.pop(key, None) is not None:
            self._loop.remove_reader(made)
        elif not key.startswith("listen "):
            self._dns.leave(made)
        return made

    def _close(self, key: str) -> None:
        self._leave(key).close()

    def _hand_over(self, server: socket.socket) -> None:
        """Give all sockets away. What waits in them is the next one's to answer."""
        for each in (self._listener, server):
            self._loop.remove_reader(each)
        self._listener.close()
        self._servers.discard(server)
        self._relays.leave()
        given = self._given = [(key, self._leave(key)) for key in [*self._sockets]]
        # Also when the server ends meanwhile: the next one starts another responder.
        self.ended.set()
        with server, contextlib.suppress(OSError):
            server.settimeout(_SEND_SECONDS)
            for first in range(0, max(1, len(given)), MOST_SOCKETS):
                batch = given[first : first + MOST_SOCKETS]
                said = ResponderAnswer(self._build, os.getpid(), tuple(key for key, _ in batch), more=first + MOST_SOCKETS < len(given))
                socket.send_fds(server, [msgspec.json.encode(said)], [made.fileno() for _, made in batch])


def _number(device: str) -> int:
    try:
        return socket.if_nametoindex(device)
    except OSError:
        return 0


def is_mapped(user: int, uid_map: str) -> bool:
    """Return whether a user namespace has a number."""
    spans = (tuple(map(int, line.split())) for line in uid_map.splitlines())
    return any(first <= user < first + count for first, _, count in spans)


def give_up_rights(user: int) -> None:
    """Become a user who may do nothing: neither start programs nor open what was not handed over.

    Where a user namespace has no such number, it keeps its own, whose rights were taken before.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
    with open("/proc/self/uid_map", encoding="ascii") as file:
        mapped = is_mapped(user, file.read())
    if os.geteuid() == 0 and mapped:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    os.chdir("/")


async def _run(build: str, listener: socket.socket, server: socket.socket) -> None:
    responder = Responder(build, listener)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, responder.terminate)
    responder.talk(server)
    await responder.ended.wait()
    await responder.drain()
    await responder.close()


def main(build: str, user: str, network: str, listener: str, server: str) -> None:
    """Answer until the end. The last three are numbers of open files: the network namespace of machines if it is another, and sockets."""
    opened = [socket.socket(fileno=int(number)) for number in (listener, server)]
    for each in opened:
        each.setblocking(False)
    if network:
        # Guests are connected to in there. It has its thread before it may have no more.
        namespace.join(int(network))
        os.close(int(network))
    give_up_rights(int(user))
    asyncio.run(_run(build, *opened))
