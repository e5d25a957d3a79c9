"""The transport over sockets: connections kept and lost, TLS, credentials that are refused."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from paddock.base import certificates
from paddock.kubernetes.client.access import Access, ClientCertificate, Credential, StaticCredential, bearer
from paddock.kubernetes.client.errors import BadAccess, BadAnswer, TimedOut, Unreachable
from paddock.kubernetes.client.http import https
from paddock.kubernetes.client.transport import TransportRequest
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, StreamSink
from paddock.server.security.pki import Authority
from tests.coroutines import played_by
from tests.unit.kubernetes.client.talking import GET, POST, echo, edge, listening, play, reaching, serving


@played_by(play)
async def test_requests_share_a_connection() -> None:
    ports = set()

    async def handler(request: HttpRequest) -> Answer:
        ports.add(request.headers["host"])
        return await echo(request)

    async with edge(handler) as port, reaching(port, credentials=StaticCredential(bearer("t"))) as transport:
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


@played_by(play)
async def test_a_stream_has_a_connection_of_its_own_and_ends() -> None:
    async def handler(request: HttpRequest) -> Answer:
        async def run(sink: StreamSink) -> None:
            for _ in range(50):
                sink.write(b"x" * 100_000)
                await sink.drained()

        return StreamResponse(200, run)

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
@played_by(play)
async def test_answers_of_all_sorts(answer: bytes, body: bytes | type[Exception]) -> None:
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


@pytest.mark.parametrize("ask", [GET, POST], ids=["GET", "POST"])
@played_by(play)
async def test_a_kept_connection_that_was_closed_meanwhile(ask: TransportRequest) -> None:
    """A request that reads is repeated on a new connection; one that writes is not, because nobody knows how far it came."""
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


@played_by(play)
async def test_nobody_there_and_nobody_answering(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as port, reaching(port) as transport:
        with pytest.raises(TimedOut, match=rf"127\.0\.0\.1:{port} did not answer GET /x\?y=1 within 0\.05 s"):
            await transport.send(msgspec.structs.replace(GET, seconds=0.05))
    async with reaching(port, title="the lab") as transport:
        with pytest.raises(Unreachable, match="cannot connect to the lab: ") as refused:
            await transport.send(POST)
        assert not refused.value.sent
    await transport.close()
    with pytest.raises(Unreachable, match="closed"):
        await transport.send(GET)


@played_by(play)
async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    heard, sent = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + b"content-length: 2\r\n\r\nhi")
            await heard.wait()
            heard.clear()
            # It goes into the socket at once.
            writer.write(HEAD + b"content-length: 4\r\n\r\nevil")
            sent.set()

    async with listening(talk) as port, reaching(port) as transport:
        for _ in range(2):
            assert (await transport.send(GET)).body == b"hi"
            heard.set()
            await sent.wait()
            sent.clear()
            # The loop has read what is in the socket.
            await asyncio.sleep(0.01)


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


@played_by(play)
async def test_a_refused_credential_is_renewed_once() -> None:
    asked: list[str] = []

    async def handler(request: HttpRequest) -> Answer:
        asked.append(request.headers["authorization"])
        return HttpResponse(200 if asked[-1] == "Bearer good" else 401, b"{}")

    async with edge(handler) as port:
        async with reaching(port, credentials=Renewed("old", "good")) as transport:
            assert (await transport.send(POST)).status == 200
        async with reaching(port, credentials=Renewed("old", "older", "good")) as transport:
            assert (await transport.send(GET)).status == 401
            assert (await transport.stream(GET)).status == 200
        assert asked == ["Bearer old", "Bearer good", "Bearer old", "Bearer older", "Bearer older", "Bearer good"]


@played_by(play)
async def test_a_token_cannot_smuggle_headers() -> None:
    async with reaching(1, credentials=StaticCredential(bearer("t\r\nimpersonate-user: root"))) as transport:
        with pytest.raises(BadAccess, match="line break"):
            await transport.send(GET)


def describe(authority: Authority) -> str:
    return certificates.describe(authority.certificate.decode())


def user_of(raw: bytes) -> str:
    return str(msgspec.json.decode(raw)["user"])


@played_by(play)
async def test_tls_trusts_one_authority_and_shows_a_certificate(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    certificate = ClientCertificate(*authority.client("ada", ("g",)))
    credentials = StaticCredential(Credential((), certificate))
    async with edge(echo, serving(authority, ["h.example"])) as port:
        async with reaching(port, scheme="https", authority=authority.certificate, credentials=credentials) as transport:
            assert user_of((await transport.send(GET)).body) == "ada"
        async with reaching(port, scheme="https", authority=authority.certificate, tls_name="h.example") as transport:
            assert user_of((await transport.send(GET)).body) == ""
        for access, text in (
            ({"authority": other.certificate}, rf"certificate-authority-data, which names {re.escape(describe(other))}, and whether"),
            ({}, "check certificate-authority-data, which names no authority, so the authorities of this computer apply, and"),
            ({"authority": other.certificate, "authority_source": "the field", "title": "the lab"}, "of the lab is not .*the field,"),
            ({"authority": authority.certificate, "tls_name": "wrong.example"}, "not trusted: .*'wrong.example'"),
        ):
            async with reaching(port, scheme="https", **access) as transport:
                with pytest.raises(BadAccess, match=text):
                    await transport.send(GET)
        async with reaching(port, scheme="https", insecure=True) as transport:
            assert (await transport.send(GET)).status == 200


class Changing:
    """Another certificate each time it is asked for one."""

    def __init__(self, *certificates: ClientCertificate) -> None:
        self.certificates = list(certificates)

    async def current(self) -> Credential:
        return Credential((), self.certificates[0])

    def refused(self, credential: Credential) -> bool:
        return False


@played_by(play)
async def test_a_new_client_certificate_is_shown_at_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    credentials = Changing(*(ClientCertificate(*authority.client(name)) for name in ("ada", "bob")))
    async with (
        edge(echo, serving(authority, [])) as port,
        reaching(port, scheme="https", authority=authority.certificate, credentials=credentials) as transport,
    ):
        assert user_of((await transport.send(GET)).body) == "ada"
        credentials.certificates.pop(0)
        assert user_of((await transport.send(GET)).body) == "bob"


@pytest.mark.parametrize("wrong", [b"no certificate", b""])
@played_by(play)
async def test_certificates_that_are_none(tmp_path: Path, wrong: bytes) -> None:
    credentials = StaticCredential(Credential((), ClientCertificate(wrong, wrong)))
    async with reaching(1, scheme="https", authority=b"x", credentials=credentials) as transport:
        with pytest.raises(BadAccess):
            await transport.send(GET)
    async with reaching(1, scheme="https", insecure=True, credentials=credentials) as transport:
        with pytest.raises(BadAccess, match="client certificate"):
            await transport.send(GET)


def test_servers_that_are_none() -> None:
    for server in ("ftp://h", "https://"):
        with pytest.raises(BadAccess, match="is no server"):
            https.Https(Access(server=server, credentials=StaticCredential()))


@played_by(play)
async def test_a_body_of_unknown_length_goes_in_chunks_and_is_whole_or_nothing() -> None:
    async def pieces(*, breaks: bool) -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"x" * (number * 1000)
        if breaks:
            raise Unreachable("the source is gone", sent=True)

    empty = msgspec.structs.replace(POST, body=b"")
    async with edge(echo) as port, reaching(port) as transport:
        reply = await transport.send_stream(empty, pieces(breaks=False), None)
        assert len(msgspec.json.decode(reply.body)["body"]) == 3000
        with pytest.raises(Unreachable, match="the source is gone"):
            await transport.send_stream(empty, pieces(breaks=True), None)
