"""The transport over sockets: connections kept and lost, TLS, proxies, credentials that are refused."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.apiserver.edge.http import Answer, Request, Response, Sink, Stream
from paddock.apiserver.edge.server import Server
from paddock.apiserver.security.pki import Authority
from paddock.apiserver.security.tls import Serving
from paddock.client.access import Access, ClientCertificate, Credential, Fixed, bearer
from paddock.client.errors import BadAccess, BadAnswer, TimedOut, Unreachable
from paddock.client.http import https, proxy
from paddock.client.http.https import Https
from paddock.client.transport import Ask

GET = Ask(method="GET", target="/x?y=1")
POST = Ask(method="POST", target="/x", body=b"body")
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def play(script: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await script()

    asyncio.run(limited())


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """A server that talks as it likes."""
    talks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def reaching(port: int, **access: Any) -> AsyncIterator[Https]:
    scheme = access.pop("scheme", "http")
    transport = Https(Access(server=f"{scheme}://127.0.0.1:{port}", **{"credentials": Fixed(), **access}))
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def edge(handler: Callable[[Request], Awaitable[Answer]], tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = Server(handler, tls=tls)
    port = await server.listen("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.close(0.1)


def serving(authority: Authority, names: list[str]) -> ssl.SSLContext:
    """TLS of a server of an authority."""
    return Serving(lambda: authority.server(names), authority.certificate_file).context


async def echo(request: Request) -> Answer:
    """Who asked for what."""
    said = {
        "method": request.method,
        "target": request.target,
        "body": request.body.decode(),
        "user": request.peer.common_name,
        "token": request.headers.get("authorization", ""),
        "type": request.headers.get("content-type", ""),
    }
    return Response(200, msgspec.json.encode(said), (("content-type", "application/json"),))


def test_requests_share_a_connection() -> None:
    async def script() -> None:
        ports = set()

        async def handler(request: Request) -> Answer:
            ports.add(request.headers["host"])
            return await echo(request)

        async with edge(handler) as port, reaching(port, credentials=Fixed(bearer("t"))) as transport:
            for _ in range(3):
                reply = await transport.send(GET)
                assert msgspec.json.decode(reply.body)["target"] == "/x?y=1"
            said = msgspec.json.decode((await transport.send(POST)).body)
            assert (said["body"], said["token"], said["type"]) == ("body", "Bearer t", "application/json")
            assert len(transport._idle) == 1
            assert transport._idle[0].used == 4
            await asyncio.gather(*(transport.send(GET) for _ in range(80)))
            assert len(transport._idle) <= 32
            assert ports == {f"127.0.0.1:{port}"}

    play(script)


def test_a_stream_has_a_connection_of_its_own_and_ends() -> None:
    async def script() -> None:
        async def handler(request: Request) -> Answer:
            async def run(sink: Sink) -> None:
                for _ in range(50):
                    sink.write(b"x" * 100_000)
                    await sink.drained()

            return Stream(200, run)

        async with edge(handler) as port, reaching(port) as transport:
            flow = await transport.stream(GET)
            size = 0
            while chunk := await flow.read():
                size += len(chunk)
            assert size == 5_000_000
            flow.close()
            unread = await transport.stream(GET)
            await asyncio.sleep(0.1)
            # Nobody reads it: it holds a bounded amount.
            assert unread._connection._size < 3_000_000  # type: ignore[attr-defined]
            unread.close()

    play(script)


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (HEAD + b"content-length: 2\r\n\r\nhi", b"hi"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"hi"),
        (HEAD + b"connection: close\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"content-length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (HEAD + b"content-length: 5\r\n\r\nhi", Unreachable),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nhi", Unreachable),
        (b"SSH-2.0-OpenSSH\r\n\r\n", BadAnswer),
        (HEAD + b"x: " + b"y" * 100_000 + b"\r\n\r\n", BadAnswer),
        (b"", Unreachable),
    ],
)
def test_answers_of_all_sorts(answer: bytes, body: bytes | type[Exception]) -> None:
    async def script() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()

        async with listening(talk) as port, reaching(port) as transport:
            if isinstance(body, bytes):
                assert (await transport.send(GET)).body == body
            else:
                with pytest.raises(body):
                    await transport.send(GET)

    play(script)


@pytest.mark.parametrize("ask", [GET, POST], ids=["GET", "POST"])
def test_a_kept_connection_that_was_closed_meanwhile(ask: Ask) -> None:
    """What reads is asked again on a new connection; what writes is not, because nobody knows how far it came."""

    async def script() -> None:
        served = 0

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal served
            await reader.readuntil(b"\r\n\r\n")
            served += 1
            writer.write(HEAD + b"content-length: 2\r\n\r\nhi")
            await reader.readuntil(b"\r\n\r\n")
            # It is gone just when the next request arrives.

        async with listening(talk) as port, reaching(port) as transport:
            await transport.send(GET)
            if ask is GET:
                assert (await transport.send(ask)).body == b"hi"
                assert served == 2
            else:
                with pytest.raises(Unreachable) as lost:
                    await transport.send(ask)
                assert lost.value.sent

    play(script)


def test_nobody_there_and_nobody_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with listening(silent) as port, reaching(port) as transport:
            with pytest.raises(TimedOut, match=r"within 0\.05 s"):
                await transport.send(msgspec.structs.replace(GET, seconds=0.05))
        async with reaching(port) as transport:
            with pytest.raises(Unreachable, match="cannot connect") as refused:
                await transport.send(POST)
            assert not refused.value.sent
        await transport.close()
        with pytest.raises(Unreachable, match="closed"):
            await transport.send(GET)

    play(script)


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    async def script() -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(HEAD + b"content-length: 2\r\n\r\nhi")
                await writer.drain()
                await asyncio.sleep(0.02)
                writer.write(HEAD + b"content-length: 4\r\n\r\nevil")

        async with listening(talk) as port, reaching(port) as transport:
            for _ in range(2):
                assert (await transport.send(GET)).body == b"hi"
                await asyncio.sleep(0.05)

    play(script)


class Renewed:
    """Credentials that get better when they are refused."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def current(self) -> Credential:
        return bearer(self.tokens[0])

    def refused(self, credential: Credential) -> bool:
        if len(self.tokens) == 1:
            return False
        self.tokens.pop(0)
        return True


def test_a_refused_credential_is_renewed_once() -> None:
    async def script() -> None:
        asked: list[str] = []

        async def handler(request: Request) -> Answer:
            asked.append(request.headers["authorization"])
            return Response(200 if asked[-1] == "Bearer good" else 401, b"{}")

        async with edge(handler) as port:
            async with reaching(port, credentials=Renewed("old", "good")) as transport:
                assert (await transport.send(POST)).status == 200
            async with reaching(port, credentials=Renewed("old", "older", "good")) as transport:
                assert (await transport.send(GET)).status == 401
                assert (await transport.stream(GET)).status == 200
            assert asked == ["Bearer old", "Bearer good", "Bearer old", "Bearer older", "Bearer older", "Bearer good"]

    play(script)


def test_a_token_cannot_smuggle_headers() -> None:
    async def script() -> None:
        async with reaching(1, credentials=Fixed(bearer("t\r\nimpersonate-user: root"))) as transport:
            with pytest.raises(BadAccess, match="line break"):
                await transport.send(GET)

    play(script)


def user_of(raw: bytes) -> str:
    return str(msgspec.json.decode(raw)["user"])


def test_tls_trusts_one_authority_and_shows_a_certificate(tmp_path: Path) -> None:
    async def script() -> None:
        authority, other = Authority(tmp_path / "a"), Authority(tmp_path / "b")
        certificate = ClientCertificate(*authority.client("ada", ("g",)))
        credentials = Fixed(Credential((), certificate))
        async with edge(echo, serving(authority, ["h.example"])) as port:
            async with reaching(port, scheme="https", authority=authority.certificate, credentials=credentials) as transport:
                assert user_of((await transport.send(GET)).body) == "ada"
            async with reaching(port, scheme="https", authority=authority.certificate, tls_name="h.example") as transport:
                assert user_of((await transport.send(GET)).body) == ""
            for access, text in (
                ({"authority": other.certificate}, "not trusted"),
                ({}, "not trusted"),
                ({"authority": authority.certificate, "tls_name": "wrong.example"}, "not trusted"),
            ):
                async with reaching(port, scheme="https", **access) as transport:
                    with pytest.raises(BadAccess, match=text):
                        await transport.send(GET)
            async with reaching(port, scheme="https", insecure=True) as transport:
                assert (await transport.send(GET)).status == 200

    play(script)


class Changing:
    """Another certificate each time it is asked for one."""

    def __init__(self, *certificates: ClientCertificate) -> None:
        self.certificates = list(certificates)

    async def current(self) -> Credential:
        return Credential((), self.certificates[0])

    def refused(self, credential: Credential) -> bool:
        return False


def test_a_new_client_certificate_is_shown_at_once(tmp_path: Path) -> None:
    async def script() -> None:
        authority = Authority(tmp_path)
        credentials = Changing(*(ClientCertificate(*authority.client(name)) for name in ("ada", "bob")))
        async with (
            edge(echo, serving(authority, [])) as port,
            reaching(port, scheme="https", authority=authority.certificate, credentials=credentials) as transport,
        ):
            assert user_of((await transport.send(GET)).body) == "ada"
            credentials.certificates.pop(0)
            assert user_of((await transport.send(GET)).body) == "bob"

    play(script)


@pytest.mark.parametrize("wrong", [b"no certificate", b""])
def test_certificates_that_are_none(tmp_path: Path, wrong: bytes) -> None:
    async def script() -> None:
        credentials = Fixed(Credential((), ClientCertificate(wrong, wrong)))
        async with reaching(1, scheme="https", authority=b"x", credentials=credentials) as transport:
            with pytest.raises(BadAccess):
                await transport.send(GET)
        async with reaching(1, scheme="https", insecure=True, credentials=credentials) as transport:
            with pytest.raises(BadAccess, match="client certificate"):
                await transport.send(GET)

    play(script)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


class Proxy:
    """A proxy that leads wherever it is asked to, on this host."""

    def __init__(self, user: str = "") -> None:
        self.asked: list[str] = []
        self._user = user

    async def http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split("\r\n")[0])
        pair = base64.b64encode(self._user.encode()).decode()
        if self._user and f"Proxy-Authorization: Basic {pair}" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await self._lead(int(head.split(" ")[1].rpartition(":")[2]), reader, writer)

    async def socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if self._user and 2 not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(b"\x05\x02" if self._user else b"\x05\x00")
        if self._user:
            _, size = await reader.readexactly(2)
            user = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            if user + b":" + password != self._user.encode():
                writer.write(b"\x01\x01")
                return
            writer.write(b"\x01\x00")
        _, _, _, kind = await reader.readexactly(4)
        name = await reader.readexactly(4 if kind == 1 else (await reader.readexactly(1))[0])
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{name!r} {port}")
        if port == 1:
            writer.write(b"\x05\x05\x00\x01" + b"\x00" * 6)
            return
        writer.write(b"\x05\x00\x00\x01" + b"\x00" * 6)
        await self._lead(port, reader, writer)

    async def _lead(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            done, left = await asyncio.wait(
                (asyncio.create_task(pump(reader, inner_writer)), asyncio.create_task(pump(inner_reader, writer))),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in left:
                task.cancel()
            await asyncio.gather(*done, *left, return_exceptions=True)
        finally:
            inner_writer.close()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("user", ["", "ada:pass word"])
def test_through_a_proxy(tmp_path: Path, scheme: str, user: str) -> None:
    async def script() -> None:
        authority = Authority(tmp_path)
        through = Proxy(user)
        login = user.replace(" ", "%20") + "@" if user else ""
        async with (
            edge(echo, serving(authority, [])) as port,
            listening(through.http if scheme == "http" else through.socks) as door,
        ):
            url = f"{scheme}://{login}127.0.0.1:{door}"
            async with reaching(port, scheme="https", authority=authority.certificate, proxy=url) as transport:
                assert (await transport.send(GET)).status == 200
            assert len(through.asked) == 1
            if user:
                async with reaching(port, scheme="https", insecure=True, proxy=f"{scheme}://127.0.0.1:{door}") as transport:
                    with pytest.raises(Unreachable, match=r"407|wants to know who asks") as refused:
                        await transport.send(POST)
                    assert not refused.value.sent
        if scheme == "socks5" and not user:
            async with listening(through.socks) as door, reaching(1, proxy=f"socks5://127.0.0.1:{door}") as transport:
                with pytest.raises(Unreachable, match="connection refused"):
                    await transport.send(GET)

    play(script)


def test_through_a_proxy_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script() -> None:
        authority = Authority(tmp_path / "server")
        outer = Authority(tmp_path / "proxy")
        monkeypatch.setattr(ssl, "create_default_context", ssl._create_unverified_context)
        through = Proxy()
        server = await asyncio.start_server(through.http, "127.0.0.1", 0, ssl=serving(outer, []))
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with edge(echo, serving(authority, [])) as port:
            async with reaching(port, scheme="https", authority=authority.certificate, proxy=url) as transport:
                assert (await transport.send(GET)).status == 200
                assert (await transport.send(GET)).status == 200
            assert len(through.asked) == 1
        await asyncio.sleep(0.05)
        server.close()
        await server.wait_closed()

    play(script)


@pytest.mark.parametrize(
    ("url", "host", "environ", "wanted"),
    [
        ("", "h.example", {}, None),
        ("", "h.example", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("", "h.example", {"https_proxy": "p:1"}, "http://p:1"),
        ("", "h.example", {"HTTP_PROXY": "http://p:1"}, None),
        ("", "127.0.0.1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("", "localhost", {"HTTPS_PROXY": "http://p:1"}, None),
        ("", "h.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .example"}, None),
        ("", "h.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example"}, None),
        ("", "hexample", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "example"}, "http://p:1"),
        ("", "10.2.3.4", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ("", "11.2.3.4", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8,x/y"}, "http://p:1"),
        ("", "h.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("socks5://q:2", "127.0.0.1", {"NO_PROXY": "*"}, "socks5://q:2"),
    ],
)
def test_which_proxy(url: str, host: str, environ: dict[str, str], wanted: str | None) -> None:
    found = proxy.chosen(url, host, "https", environ)
    assert (None if found is None else found.geturl()) == wanted


@pytest.mark.parametrize("url", ["ftp://p:1", "http://"])
def test_proxies_that_are_none(url: str) -> None:
    with pytest.raises(BadAccess, match="is no proxy"):
        proxy.chosen(url, "h", "https", {})


def test_servers_that_are_none() -> None:
    for server in ("ftp://h", "https://"):
        with pytest.raises(BadAccess, match="is no server"):
            https.Https(Access(server=server, credentials=Fixed()))
