"""What servers say to each other at the port for migrations: who is heard, and what becomes of input that is not one."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from paddock.app.controllers import migrationauthorities as whom
from paddock.app.controllers.migrationauthorities import MigrationAuthorities
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.migration import peers
from paddock.kubevirt.controllers.migration.peers import MigrationPort, NotYet, PeerConnection, PeerReply, PeerRequest, RemoteTarget
from paddock.server.security.pki import Authority
from tests.coroutines import played

HERE = "127.0.0.1"


class FakeMaps:
    """ConfigMaps of a server."""

    def __init__(self) -> None:
        self.maps: dict[Any, dict[str, Any]] = {}

    async def find(self, _: Any, key: Any) -> dict[str, Any] | None:
        return self.maps.get(key)

    async def create(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        self.maps[Key(body["metadata"]["namespace"], body["metadata"]["name"])] = body
        return body


class Server:
    """One server: its authority, those that it trusts, and its port."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root, self.maps = root, FakeMaps()
        self.authorities = MigrationAuthorities(root / "authority", cast(Client, self.maps))
        self.port = MigrationPort(HERE, 0, self.authorities)
        self.asked: list[PeerRequest] = []
        self.answer: Callable[[PeerRequest, PeerConnection], Awaitable[None]] = self._yes

    async def _yes(self, request: PeerRequest, connection: PeerConnection) -> None:
        self.asked.append(request)
        await connection.send(PeerReply(yes=True))

    def trust(self, other: "Server") -> None:
        self.maps.maps[whom.OTHERS] = {"data": {whom.BUNDLE: (other.root / "authority" / "ca.crt").read_text()}}

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.port.addresses[0].rpartition(":")
        return host, int(port)

    def target(self, other: "Server", migration: str = "m") -> RemoteTarget:
        """The other server, as this one asks it."""
        return RemoteTarget(other.place, partial(peers.dial, self.authorities), migration)


@asynccontextmanager
async def pair(root: Path) -> AsyncIterator[tuple[Server, Server]]:
    a, b = Server(root / "a"), Server(root / "b")
    a.trust(b)
    b.trust(a)
    await b.port.open()
    b.port.serve(lambda request, connection: b.answer(request, connection))
    try:
        yield a, b
    finally:
        await b.port.close()


Play = Callable[[Callable[[tuple[Server, Server]], Awaitable[None]]], None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with two servers."""

    def run(script: Callable[[tuple[Server, Server]], Awaitable[None]]) -> None:
        async def inside() -> None:
            async with asyncio.timeout(30), pair(tmp_path) as servers:
                await script(servers)

        asyncio.run(inside())

    return run


@played
async def test_two_that_trust_each_other_talk(servers: tuple[Server, Server], /) -> None:
    a, b = servers
    assert await a.target(b).take("m") and await a.target(b).drop("no room")
    assert [(each.verb, each.migration, each.why) for each in b.asked] == [("take", "m", ""), ("drop", "m", "no room")]
    # One server, two namespaces.
    assert await b.target(b).take("m")


@played
async def test_a_session_says_when_the_guest_is_there_and_what_is_missing(servers: tuple[Server, Server], /) -> None:
    a, b = servers
    gone = asyncio.Event()

    async def stays(request: PeerRequest, connection: PeerConnection) -> None:
        assert connection.address == HERE
        await connection.send(PeerReply())
        await connection.send(PeerReply(yes=True))
        await connection.gone()
        gone.set()

    b.answer = stays
    target = a.target(b)
    await target.receive(PeerRequest("receive", "m"))
    await target.arrived("m")
    assert not gone.is_set()
    target.close()
    await gone.wait()
    for reply, error in ((PeerReply("later"), NotYet), (PeerReply("never", is_final=True), RequestRefused)):

        async def says(_: PeerRequest, connection: PeerConnection, reply: PeerReply = reply) -> None:
            await connection.send(reply)

        b.answer = says
        with pytest.raises(error, match=reply.problem):
            await a.target(b).receive(PeerRequest("receive", "m"))

    async def fails(_: PeerRequest, __: PeerConnection) -> None:
        raise Unanswered("nothing is known of it")

    b.answer = fails
    with pytest.raises(Unanswered, match="nothing is known of it"):
        await a.target(b).take("m")


@pytest.mark.spec("kubevirt", 292)
@pytest.mark.parametrize("side", ["source", "target", "user", "broken"])
@played
async def test_nobody_else_is_heard(servers: tuple[Server, Server], /, side: str) -> None:
    a, b = servers
    root = a.root.parent
    if side == "source":
        b.maps.maps.clear()
    elif side == "target":
        a.maps.maps.clear()
    elif side == "broken":
        b.maps.maps[whom.OTHERS] = {"data": {whom.BUNDLE: "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----"}}
    else:
        # Whom the API of the server knows.
        api = Authority(root / "api")
        files = api.kept_client("admin", "admin", "system:masters")
        a.authorities._authority.kept_client = lambda *_: files  # type: ignore[method-assign]  # it shows that one
    with pytest.raises(NotYet, match=r"not trusted|does not answer|closed|reset") as caught:
        await a.target(b).take("m")
    print(caught.value)
    assert b.asked == []


@pytest.mark.spec("kubevirt", 292)
@played
async def test_a_server_shows_its_authority_and_no_key(servers: tuple[Server, Server], /) -> None:
    root = servers[0].root.parent
    server = Server(root / "c")
    keeping = asyncio.create_task(server.authorities.keep())
    while whom.OTHERS not in server.maps.maps:
        await asyncio.sleep(0.01)
    keeping.cancel()
    assert server.maps.maps[whom.OWN]["data"] == {whom.BUNDLE: (root / "c" / "authority" / "ca.crt").read_text()}
    assert "PRIVATE" not in str(server.maps.maps) and server.maps.maps[whom.OTHERS]["data"] == {whom.BUNDLE: ""}
    assert {oct(path.stat().st_mode & 0o777) for path in (root / "c" / "authority").glob("*.key")} == {"0o600"}
    assert (root / "c" / "authority").stat().st_mode & 0o777 == 0o700
    # Another start has the same one, or the others would not know it any more.
    assert MigrationAuthorities(root / "c" / "authority", cast(Client, server.maps))._authority.certificate
    assert "..." in repr(server.authorities.credentials("source").trusting(b""))


TOO_LONG = (1 << 31).to_bytes(4, "big")
HOSTILE = {
    "too long": TOO_LONG + b"x",
    "no JSON": b"\x00\x00\x00\x02no",
    "another form": b"\x00\x00\x00\x02{}",
    "an unknown verb": b"\x00\x00\x00\x23" + b'{"verb": "run", "migration": "mmmm"}'[:35],
    "unfinished": b"\x00\x00\x10\x00{",
    "nothing": b"",
}


@pytest.mark.spec("kubevirt", 293)
@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE)
@played
async def test_input_that_is_no_request_ends_its_connection(servers: tuple[Server, Server], /, sent: bytes) -> None:
    a, b = servers
    context: ssl.SSLContext = await a.authorities.calling()
    reader, writer = await asyncio.open_connection(*b.place, ssl=context, server_hostname=peers.NAME)
    writer.write(sent)
    if sent.endswith(b"{") or not sent:
        writer.transport.close()
    else:
        said = await reader.read()
        assert not said or b"cannot be read" in said
    writer.close()
    # A stranger without TLS, too.
    _, plain = await asyncio.open_connection(*b.place)
    plain.write(b"GET / HTTP/1.1\r\n\r\n")
    plain.close()
    assert b.asked == [] and await a.target(b).take("m")


@pytest.mark.spec("kubevirt", 293)
@played
async def test_only_so_many_are_served_at_once(servers: tuple[Server, Server], /, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = servers
    monkeypatch.setattr(peers, "_CONNECTIONS", 2)
    silent = [await asyncio.open_connection(*b.place) for _ in range(2)]
    await asyncio.sleep(0.1)
    with pytest.raises(NotYet):
        await a.target(b).take("m")
    for _, writer in silent:
        writer.close()
    await asyncio.sleep(0.1)
    assert await a.target(b).take("m")
