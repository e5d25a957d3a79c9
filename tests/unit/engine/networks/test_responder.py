"""The responder, and its server's side: what is answered, handed over, kept, and when it ends."""

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from paddock.engine.networks import dns, dnsserver, respondercontrol, responderprocess
from paddock.engine.networks.dhcp import DhcpLease
from paddock.engine.networks.dhcp6 import Dhcp6Lease
from paddock.engine.networks.errors import NetworkBusy
from paddock.engine.networks.nics import DhcpOptions
from paddock.engine.networks.responder import Responder, is_mapped
from paddock.engine.networks.respondercontrol import ResponderControl
from paddock.engine.networks.responderprocess import FoundResponder
from paddock.engine.networks.responderstate import GuestPort, NamedNic, ResponderAnswer, ResponderRequest, ResponderState
from tests.coroutines import played, played_by

MAC, HOST = "02:00:00:00:00:07", "127.0.0.1"
LEASE = DhcpLease(MAC, "10.0.2.2/24", "10.0.2.1", search=("a.example",), options=DhcpOptions(private=((224, "x"),)))
PORT = GuestPort("pk0", 7, "02:00:00:00:00:00", LEASE, Dhcp6Lease(MAC, "fd10:0:2::2", "fe80::1", "02:00:00:00:00:00"))
WEB = NamedNic("vm", "default", ("web.shop.vm.cluster.local",), ("10.112.64.5",))
STATE = ResponderState((PORT,), ("10.112.64.1", "fd00::1"), "cluster.local", ("10.112.64.0/18",), (WEB,), {"api.example": ("10.96.0.5",)})
NAMES = msgspec.structs.replace(STATE, ports=(), addresses=(HOST,))


def question(name: str) -> bytes:
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + dns.wire(name) + struct.pack("!HH", dns.A, 1)


def test_the_state_is_read_as_it_was_written() -> None:
    written = msgspec.json.encode(STATE)
    assert msgspec.json.decode(written, type=ResponderState) == STATE
    later = msgspec.json.encode(msgspec.json.decode(written) | {"more": 1})
    assert msgspec.json.decode(later, type=ResponderState) == STATE, "that of a later version, too"


def test_every_answer_has_a_socket() -> None:
    assert [*STATE.sockets()] == ["udp 10.112.64.1", "tcp 10.112.64.1", "udp fd00::1", "tcp fd00::1", "tap pk0 7"]


@pytest.mark.parametrize(
    ("name", "code", "found"),
    [
        ("web.shop.vm.cluster.local", dns.OK, [bytes([10, 112, 64, 5])]),
        ("api.example", dns.OK, [bytes([10, 96, 0, 5])]),
        ("db.shop.vm.cluster.local", dns.NO_NAME, []),
    ],
)
def test_the_names_are_those_of_cards_and_services(name: str, code: int, found: list[bytes]) -> None:
    assert STATE.zone().answer(dns.read(question(name))) == (code, found)


OPEN: list["Process"] = []


def perform(script: Callable[[], Awaitable[None]]) -> None:
    """Run a script, and close what it has opened."""

    async def inside() -> None:
        try:
            await script()
        finally:
            while OPEN:
                await OPEN.pop().close()

    asyncio.run(inside())


@pytest.mark.parametrize(
    ("uid_map", "mapped"),
    [
        ("         0          0 4294967295\n", True),
        ("         0       1000          1\n", False),
        ("0 1000 1\n1 100000 65536\n", True),
        ("0 1000 1\n1 100000 65533\n", False),
    ],
)
def test_a_user_namespace_has_a_number_or_not(uid_map: str, mapped: bool) -> None:
    assert is_mapped(65534, uid_map) == mapped


class Process:
    """A responder in this process, with a server that talks to it."""

    def __init__(self, build: str = "this") -> None:
        OPEN.append(self)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server.settimeout(5)
        self.responder = Responder(build, self.listener)
        self.responder.talk(theirs)

    async def close(self) -> None:
        """End it."""
        await self.responder.close()
        self.server.close()

    async def ask(self, request: ResponderRequest, *handles: int) -> ResponderAnswer:
        """Return its answer."""
        return await asyncio.to_thread(responderprocess.exchange, self.server, request, handles)


async def serve(process: Process, folder: Path, state: ResponderState, *sockets: socket.socket) -> ResponderAnswer:
    """Hand over a state, and a socket for UDP."""
    (folder / "state").write_bytes(msgspec.json.encode(state))
    with (folder / "state").open("rb") as file:
        return await process.ask(
            ResponderRequest("serve", tuple(f"udp {HOST}" for _ in sockets)), file.fileno(), *(each.fileno() for each in sockets)
        )


async def answered(client: socket.socket) -> bool:
    """Return whether a name was found."""
    answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 512), 5)
    return answer[3] & 15 == dns.OK and answer.endswith(bytes([10, 112, 64, 5]))


def client_of(listening: socket.socket) -> socket.socket:
    """Return a client of a socket."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    client.connect(listening.getsockname())
    return client


@played_by(perform)
async def test_what_waits_in_a_socket_is_answered_by_the_next_one(tmp_path: Path) -> None:
    earlier, later = Process("earlier"), Process("later")
    listening = dnsserver.bound(HOST, socket.SOCK_DGRAM, 0)
    client = client_of(listening)
    said = await serve(earlier, tmp_path, NAMES, listening)
    assert (said.build, said.pid, said.sockets) == ("earlier", os.getpid(), (f"udp {HOST}",))
    listening.close()
    client.send(question("web.shop.vm.cluster.local"))
    assert await answered(client)
    given = await asyncio.to_thread(responderprocess.receive_sockets, earlier.server)
    assert earlier.responder.ended.is_set() and [*given] == [f"udp {HOST}"]
    client.send(question("web.shop.vm.cluster.local"))
    await asyncio.sleep(0.1)
    assert (await serve(later, tmp_path, NAMES, *given.values())).sockets == (f"udp {HOST}",)
    assert await answered(client), "it came while nobody listened"
    # A state without an address.
    assert (await serve(later, tmp_path, msgspec.structs.replace(NAMES, addresses=()))).sockets == ()
    for each in (client, *given.values()):
        each.close()


@played_by(perform)
async def test_without_a_server_and_without_a_guest_it_ends(tmp_path: Path) -> None:
    process = Process()
    await serve(process, tmp_path, NAMES)
    assert not process.responder.ended.is_set()
    process.server.close()
    await asyncio.wait_for(process.responder.ended.wait(), 5)


@played_by(perform)
async def test_a_message_that_is_none_ends_the_talk_and_nothing_else(tmp_path: Path) -> None:
    process, other = Process(), Process()
    process.server.send(b'{"verb": "sing"}')
    assert await asyncio.to_thread(process.server.recv, 10) == b""
    assert (await serve(other, tmp_path, NAMES)).build == "this"


class Stage:
    """A server's side whose processes are in this one."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.started: list[Process] = []
        self.bound: list[str] = []
        self.found: FoundResponder | None = None
        self.ended = 0
        self.controls: list[ResponderControl] = []
        for name, stand_in in (("start", self.start), ("find", lambda folder: self.found), ("end_all", self.end_all)):
            patch.setattr(responderprocess, name, stand_in)
        patch.setattr(responderprocess, "build", lambda: "this")
        patch.setattr(respondercontrol, "_bound", self.bind)

    def start(self, folder: Path, user: int) -> tuple[socket.socket, int]:
        """Start one."""
        self.started.append(Process())
        return self.started[-1].server, os.getpid()

    def end_all(self, folder: Path) -> None:
        """Count."""
        self.ended += 1

    async def bind(self, address: str, kind: socket.SocketKind) -> socket.socket:
        """Another port than that of DNS, which only root may have."""
        self.bound.append(address)
        return dnsserver.bound(address, kind, 0)

    async def open(self) -> ResponderControl:
        """Another server starts."""
        control = ResponderControl(self.folder)
        self.controls.append(control)
        await control.open((HOST,), "cluster.local", ("10.112.64.0/18",))
        return control

    async def act(self, script: Callable[["Stage"], Awaitable[None]]) -> None:
        """Play a script, and let go of everything."""
        try:
            await script(self)
        finally:
            for control in self.controls:
                await control.close()


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Stage], Awaitable[None]]], None]:
    """Runs a script."""
    return lambda script: perform(lambda: Stage(tmp_path, monkeypatch).act(script))


Play = Callable[[Callable[[Stage], Awaitable[None]]], None]


@played
async def test_the_next_server_knows_what_is_answered_and_takes_the_process_over(stage: Stage, /) -> None:
    control = await stage.open()
    control.put_nic(WEB)
    control.put_names({"api.example": ["10.96.0.5"]})
    await control.tell()
    await control.close()
    stage.found = FoundResponder(*adopted(stage.started[0]))
    later = await stage.open()
    assert later.state == control.state and later.addresses("vm", "default") == WEB.addresses
    assert (len(stage.started), stage.bound) == (1, [HOST, HOST]), "neither a process nor a socket is new"
    later.drop_nics(lambda nic: nic.owner == "vm")
    assert later.addresses("vm", "default") == ()


def adopted(process: Process) -> tuple[socket.socket, ResponderAnswer]:
    """Return another connection to a process, and what it said."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(5)
    process.responder.talk(theirs)
    return ours, ResponderAnswer(process.responder._build, os.getpid(), tuple(process.responder._sockets))


@played
async def test_one_of_another_build_gives_its_sockets_to_a_new_one(stage: Stage, /) -> None:
    earlier = Process("earlier")
    listening = dnsserver.bound(HOST, socket.SOCK_DGRAM, 0)
    await serve(earlier, stage.folder, NAMES, listening)
    listening.close()
    stage.found = FoundResponder(*adopted(earlier))
    await stage.open()
    assert earlier.responder.ended.is_set() and len(stage.started) == 1
    assert stage.bound == [HOST], "only that of TCP, which it did not have"
    assert {*stage.started[0].responder._sockets} == {f"udp {HOST}", f"tcp {HOST}"}


@played
async def test_one_that_is_gone_is_replaced_with_the_next_change(stage: Stage, /) -> None:
    control = await stage.open()
    stage.started[0].responder._part(*stage.started[0].responder._servers)
    control.put_nic(WEB)
    await control.tell()
    assert len(stage.started) == 2 and stage.started[1].responder.zone().names
    await control.tell()
    assert len(stage.started) == 2, "nothing has changed"


@played
async def test_a_tap_that_is_not_there_is_named(stage: Stage, /) -> None:
    control = await stage.open()
    control.put_port(PORT)
    await control.tell()
    with pytest.raises(NetworkBusy, match="cannot answer DHCP at pk0"):
        control.check("pk0")
    control.check("pk1")


@played
async def test_a_change_that_is_cancelled_leaves_no_answer_behind(stage: Stage, /) -> None:
    control = await stage.open()
    control.put_nic(WEB)
    telling = asyncio.create_task(control.tell())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)
    stage.found = FoundResponder(*adopted(stage.started[0]))
    control.put_names({"api.example": ["10.96.0.5"]})
    await control.tell()
    zone = stage.started[0].responder.zone()
    assert len(stage.started) == 1 and "api.example" in zone.names and "web.shop.vm.cluster.local" in zone.names
