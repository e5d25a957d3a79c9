"""The server's side of the responder: what it is to answer, and the process that does it.

The process outlives the server and is found again by the next one. The state is kept in `responder.json`, so that a responder that has to
start anew answers everything at once. One of another build is replaced: it hands over its sockets with what waits in them, so that no
question is lost.
"""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from paddock.base.errors import PaddockError
from paddock.engine import namespace
from paddock.engine.claims import FIRST
from paddock.engine.machine.process import Process, end_process, start_ticks
from paddock.engine.networks import dnsserver, listeners, packetsocket, responderprocess
from paddock.engine.networks.addressstore import write_record
from paddock.engine.networks.errors import NetworkBusy
from paddock.engine.networks.listeners import ForwardTo, ListenEndpoint
from paddock.engine.networks.netlink import index
from paddock.engine.networks.nics import NicPolicy
from paddock.engine.networks.responderstate import MOST_SOCKETS, GuestPort, NamedNic, RelayedPort, ResponderRequest, ResponderState

_LOG = logging.getLogger(__name__)
_STATE = "responder.json"
_NOBODY = 65534
# A server that is just ending may have the addresses for a moment.
_ATTEMPTS, _PAUSE_SECONDS = 20, 0.1
# One that ends sooner than this more than once is started again after a pause.
_STEADY_SECONDS, _LONGEST_PAUSE = 10.0, 30.0
_LOOK_SECONDS = 30.0


class ResponderControl:
    """The responder of one directory."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory
        self.state = _read(directory / _STATE)
        # the first and the last user of machines
        self.users = (0, 0)
        self._is_open = False
        self._server: socket.socket | None = None
        self._process: Process | None = None
        self._begun = self._pause = 0.0
        # the keys of its sockets, and the sockets that an earlier one gave up
        self._has: frozenset[str] = frozenset()
        self._given: dict[str, socket.socket] = {}
        # what is not answered, and why
        self._problems: dict[str, str] = {}
        self._wanted = self._reported = 0
        self._telling = asyncio.Lock()
        self._reviving: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    # -- what it answers

    def put_port(self, port: GuestPort) -> None:
        """Have DHCP, DHCPv6 and router solicitations answered at a tap."""
        others = tuple(each for each in self.state.ports if each.device != port.device)
        self._change(replace(self.state, ports=(*others, port)))

    def drop_port(self, device: str) -> None:
        """Have nothing answered there any more."""
        self._change(replace(self.state, ports=tuple(each for each in self.state.ports if each.device != device)))

    def put_nic(self, nic: NamedNic) -> None:
        """Have the names of a card answered."""
        others = tuple(each for each in self.state.nics if (each.owner, each.name) != (nic.owner, nic.name))
        self._change(replace(self.state, nics=(*others, nic)))

    def drop_nics(self, gone: Callable[[NamedNic], bool]) -> None:
        """Have the names of these cards answered no more."""
        self._change(replace(self.state, nics=tuple(each for each in self.state.nics if not gone(each))))

    def put_names(self, names: Mapping[str, Collection[str]]) -> None:
        """Have exactly these names answered, besides those of cards."""
        self._change(replace(self.state, names={name: tuple(addresses) for name, addresses in names.items()}))

    async def relay(self, leads: Mapping[ListenEndpoint, ForwardTo], policies: Collection[NicPolicy]) -> dict[ListenEndpoint, str]:
        """Have exactly these ports of the host lead to cards, for clients that the policies admit. Returns those that could not be had."""
        owners = {target.owner for lead in leads.values() for target in lead.targets}
        concerned = tuple(each for each in policies if each.ingress is not None and not owners.isdisjoint(each.owners))
        relays = tuple(RelayedPort(place, lead) for place, lead in leads.items())
        self._change(replace(self.state, relays=relays, policies=concerned))
        if any(place.key in self._problems for place in leads):
            # Somebody else's port may be free.
            self._wanted += 1
        await self.tell()
        return {place: self._problems[place.key] for place in leads if place.key in self._problems}

    @property
    def relayed(self) -> list[ListenEndpoint]:
        """The ports of the host that it listens at."""
        return [each.place for each in self.state.relays if each.place.key not in self._problems]

    def _change(self, state: ResponderState) -> None:
        if state != self.state:
            self.state = state
            self._wanted += 1

    def addresses(self, owner: str, name: str) -> tuple[str, ...]:
        """Return the addresses of a card, also of one that a former run plugged."""
        return next((nic.addresses for nic in self.state.nics if (nic.owner, nic.name) == (owner, name)), ())

    def check(self, device: str) -> None:
        """Raise `NetworkBusy` if nothing is answered at a tap."""
        for port in self.state.ports:
            if port.device == device and port.key in self._problems:
                raise NetworkBusy(f"cannot answer DHCP at {device}", why=self._problems[port.key])

    # -- the process

    async def open(self, addresses: Collection[str], suffix: str, networks: Collection[str]) -> None:
        """Have it answer, by the process that is there or a new one. Raises `NetworkBusy`."""
        # Another number, as after a boot of the host, is another device, whose card is not plugged yet.
        ports = tuple(port for port in self.state.ports if index(port.device) == port.number)
        self._change(replace(self.state, ports=ports, addresses=tuple(addresses), suffix=suffix, networks=tuple(networks)))
        self._wanted += 1
        self._is_open = True
        try:
            await self.tell()
        except BaseException:
            self._is_open = False
            raise
        if self._looking is None:
            self._looking = asyncio.create_task(self._check())

    async def tell(self) -> None:
        """Bring the process to the state. Whoever waits here while another tells is served by the next telling for all."""
        wanted = self._wanted
        async with self._telling:
            if not self._is_open or (self._reported >= wanted and self._server is not None):
                return
            now = self._wanted
            try:
                await self._bring(self.state)
            except (OSError, ValueError) as error:
                raise NetworkBusy("cannot answer DHCP and DNS for guests", why=str(error)) from error
            self._reported = now

    async def close(self) -> None:
        """Let go of it; it goes on."""
        self._is_open = False
        for task in filter(None, (self._reviving, self._looking)):
            task.cancel()
        self._reviving = self._looking = None
        async with self._telling:
            self._let_go()

    async def end(self) -> None:
        """End it: there is no guest left."""
        await self.close()
        if self._folder.is_dir():
            await asyncio.to_thread(responderprocess.end_all, self._folder)
            responderprocess.remove(self._folder)
            (self._folder / _STATE).unlink(missing_ok=True)
        self.state = replace(self.state, ports=(), nics=(), addresses=(), relays=(), policies=())

    async def _bring(self, state: ResponderState) -> None:
        write_record(self._folder / _STATE, msgspec.json.encode(state))
        if self._server is None:
            await self._take()
        try:
            await self._serve(state)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                raise
            _LOG.warning("guest responder does not answer", extra={"error": str(error)})
            self._let_go()
            await asyncio.to_thread(responderprocess.end_all, self._folder)
            await self._start()
            await self._serve(state)
        responderprocess.settle(self._folder)

    async def _take(self) -> None:
        """Find the process, or start one. One of another build goes on answering until the new one can."""
        earlier = await asyncio.to_thread(responderprocess.find, self._folder)
        if earlier is not None and earlier.answer.build == responderprocess.build():
            self._server, self._has = earlier.server, frozenset(earlier.answer.sockets)
            self._watch(earlier.answer.pid, earlier.server)
            _LOG.info("guest responder adopted", extra={"pid": earlier.answer.pid})
            return
        if earlier is None:
            await asyncio.to_thread(responderprocess.end_all, self._folder)
            await self._start()
            return
        with earlier.server:
            await self._start()
            try:
                self._given = await asyncio.to_thread(responderprocess.receive_sockets, earlier.server)
            except (OSError, ValueError) as error:
                _LOG.warning("sockets of the former guest responder lost", extra={"error": str(error)})
                end_process(earlier.answer.pid, start_ticks(earlier.answer.pid))
        _LOG.info("guest responder replaced", extra={"former": earlier.answer.pid, "sockets": len(self._given)})

    async def _start(self) -> None:
        # A resolver of the host may be link-local, where the packet filter lets none of the machines' users go.
        user = self.users[1] + 1 if self.users[0] >= FIRST else _NOBODY
        server, pid = responderprocess.start(self._folder, user)
        self._server, self._has, self._begun = server, frozenset(), time.monotonic()
        self._watch(pid, server)
        try:
            await asyncio.to_thread(responderprocess.exchange, server, ResponderRequest("hello"))
        except BaseException:
            self._let_go()
            end_process(pid, start_ticks(pid))
            raise
        _LOG.info("guest responder started", extra={"pid": pid})

    async def _serve(self, state: ResponderState) -> None:
        """Hand over the state, and the sockets that it lacks."""
        self._problems = {}
        made: dict[str, socket.socket] = {}
        try:
            for key in state.sockets():
                if key not in self._has and (fresh := await self._socket(key)) is not None:
                    made[key] = fresh
            for first in range(0, max(1, len(made)), MOST_SOCKETS):
                await self._hand(dict([*made.items()][first : first + MOST_SOCKETS]))
        finally:
            for each in (*made.values(), *self._given.values()):
                each.close()
            self._given = {}

    async def _hand(self, sockets: Mapping[str, socket.socket]) -> None:
        server = self._server
        if server is None:
            raise ConnectionResetError(errno.ECONNRESET, "it has ended")
        try:
            with open(self._folder / _STATE, "rb") as file:
                handles = [file.fileno(), *(each.fileno() for each in sockets.values())]
                said = await asyncio.to_thread(responderprocess.exchange, server, ResponderRequest("serve", tuple(sockets)), handles)
        except BaseException:
            # An answer that nobody has read would be taken for that of the next question.
            self._let_go()
            raise
        self._has = frozenset(said.sockets)

    async def _socket(self, key: str) -> socket.socket | None:
        """Return what an earlier process gave up, or a new one."""
        if (given := self._given.pop(key, None)) is not None:
            return given
        kind, place = key.split()[:2]
        if kind == "listen":
            try:
                return listeners.bound(next(each.place for each in self.state.relays if each.place.key == key))
            except OSError as error:
                self._problems[key] = listeners.why(error)
                return None
        if kind == "tap":
            try:
                return namespace.call(packetsocket.at, place)
            except OSError as error:
                self._problems[key] = error.strerror or str(error)
                return None
        return await _bound(place, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)

    # -- its end

    def _watch(self, pid: int, server: socket.socket) -> None:
        self._process = Process(pid, lambda status: self._ended(server, status))

    def _ended(self, server: socket.socket, status: int | None) -> None:
        if server is not self._server:
            return
        self._let_go()
        if not self._is_open:
            return
        if time.monotonic() > self._begun + _STEADY_SECONDS:
            self._pause = 0.0
        _LOG.warning("guest responder ended", extra={"status": status, "again_seconds": self._pause})
        self._reviving = asyncio.create_task(self._revive())

    async def _revive(self) -> None:
        while self._is_open and self._server is None:
            await asyncio.sleep(self._pause)
            # For the next time, if that comes soon.
            self._pause = min(max(1.0, 2 * self._pause), _LONGEST_PAUSE)
            try:
                await self.tell()
            except PaddockError as error:
                _LOG.warning("guest responder not started", extra={"error": str(error), "again_seconds": self._pause})

    async def _check(self) -> None:
        """Start one anew that lives and does not answer."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            async with self._telling:
                server = self._server
                try:
                    if server is not None:
                        await asyncio.to_thread(responderprocess.exchange, server, ResponderRequest("hello"))
                        continue
                except (OSError, ValueError) as error:
                    _LOG.warning("guest responder does not answer", extra={"error": str(error)})
                    self._let_go()
                    await asyncio.to_thread(responderprocess.end_all, self._folder)
            with contextlib.suppress(PaddockError):
                await self.tell()

    def _let_go(self) -> None:
        if self._process is not None:
            self._process.release()
            self._process = None
        if self._server is not None:
            self._server.close()
            self._server = None
        self._has = frozenset()


def _read(path: Path) -> ResponderState:
    try:
        return msgspec.json.decode(path.read_bytes(), type=ResponderState)
    except (OSError, ValueError):
        # The cards that are plugged, and the Services, say all of it again.
        return ResponderState()


async def _bound(address: str, kind: socket.SocketKind) -> socket.socket:
    for _ in range(_ATTEMPTS):
        try:
            return namespace.call(dnsserver.bound, address, kind)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)
    return namespace.call(dnsserver.bound, address, kind)
