"""Through proxies: HTTP CONNECT over plain TCP and over TLS, SOCKS5, and which one is meant."""

import asyncio
import base64
import ssl
from pathlib import Path

import pytest

from paddock.kubernetes.client.errors import BadAccess, Unreachable
from paddock.kubernetes.client.http import proxy
from paddock.server.security.pki import Authority
from tests.coroutines import played_by
from tests.unit.kubernetes.client.talking import GET, POST, echo, edge, listening, play, reaching, serving


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
@played_by(play)
async def test_through_a_proxy(tmp_path: Path, scheme: str, user: str) -> None:
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


@played_by(play)
async def test_through_a_proxy_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
