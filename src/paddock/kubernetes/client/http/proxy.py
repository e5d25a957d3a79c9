"""Getting through a proxy: HTTP CONNECT (over plain TCP or TLS) and SOCKS5."""

import asyncio
import base64
import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from paddock.base.certificates import trusting
from paddock.kubernetes.client.errors import BadAccess, Unreachable

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_HEAD_BYTES = 16 * 1024
_SOCKS_REASONS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time ran out",
    7: "command not supported",
    8: "address type not supported",
}


def chosen(url: str, host: str, scheme: str, environ: Mapping[str, str]) -> SplitResult | None:
    """The proxy for a host: the one that is given, else the environment's; None to go straight there."""
    if not url:
        url = _of_environment(host, scheme, environ)
    if not url:
        return None
    found = urlsplit(url if "://" in url else f"http://{url}")
    if found.scheme not in _PORTS or not found.hostname:
        raise BadAccess(f"{url!r} is no proxy", fix="write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT")
    return found


def _of_environment(host: str, scheme: str, environ: Mapping[str, str]) -> str:
    if host == "localhost" or _is_loopback(host):
        return ""
    for entry in (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(","):
        if _excludes(entry.strip(), host):
            return ""
    name = f"{scheme}_proxy"
    return environ.get(name.upper()) or environ.get(name) or ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _excludes(entry: str, host: str) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    return host == entry.lstrip(".") or host.endswith("." + entry.lstrip("."))


def port_of(proxy: SplitResult) -> int:
    """Return the port of the proxy."""
    return proxy.port or _PORTS[proxy.scheme]


async def tunnel(proxy: SplitResult, host: str, port: int) -> socket.socket:
    """A socket that ends at the host; for proxies that are reached over plain TCP."""
    loop = asyncio.get_running_loop()
    (family, kind, protocol, _, address), *_ = await loop.getaddrinfo(proxy.hostname, port_of(proxy), type=socket.SOCK_STREAM)
    connected = socket.socket(family, kind, protocol)
    try:
        connected.setblocking(False)
        await loop.sock_connect(connected, address)
        if proxy.scheme == "http":
            await loop.sock_sendall(connected, connect_request(proxy, host, port))
            check_connected(await _head(connected), proxy)
        else:
            await _socks(connected, proxy, host, port)
    except BaseException:
        connected.close()
        raise
    return connected


async def tunnel_tls(proxy: SplitResult, host: str, port: int) -> asyncio.StreamWriter:
    """A writer that ends at the host; for proxies that are reached over TLS."""
    reader, writer = await asyncio.open_connection(proxy.hostname, port_of(proxy), ssl=trusting())
    try:
        writer.write(connect_request(proxy, host, port))
        head = await reader.readuntil(b"\r\n\r\n")
        check_connected(head, proxy)
    except BaseException:
        writer.transport.abort()
        raise
    return writer


def connect_request(proxy: SplitResult, host: str, port: int) -> bytes:
    """Return the CONNECT request for an HTTP proxy."""
    where = f"{f'[{host}]' if ':' in host else host}:{port}"
    lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}"]
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


def check_connected(head: bytes, proxy: SplitResult) -> None:
    """Raises `Unreachable` unless the proxy said yes."""
    status = head.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise Unreachable(f"the proxy {proxy.hostname} does not connect us", why=status, sent=False, fix="check proxy-url")


async def _head(connected: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    head = b""
    # Byte by byte: what follows the head belongs to TLS.
    while not head.endswith(b"\r\n\r\n"):
        part = await loop.sock_recv(connected, 1)
        if not part or len(head) > _HEAD_BYTES:
            raise Unreachable("the proxy closed the connection", sent=False)
        head += part
    return head


async def _socks(connected: socket.socket, proxy: SplitResult, host: str, port: int) -> None:
    """RFC 1928 and 1929. The proxy resolves the name."""
    loop = asyncio.get_running_loop()
    methods = b"\x05\x02\x00\x02" if proxy.username is not None else b"\x05\x01\x00"
    await loop.sock_sendall(connected, methods)
    _, method = await _exactly(connected, 2)
    if method == 2 and proxy.username is not None:
        user, password = unquote(proxy.username).encode(), unquote(proxy.password or "").encode()
        await loop.sock_sendall(connected, b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
        if (await _exactly(connected, 2))[1] != 0:
            raise Unreachable(f"the proxy {proxy.hostname} does not take the user's password", sent=False, fix="check proxy-url")
    elif method != 0:
        raise Unreachable(f"the proxy {proxy.hostname} wants to know who asks", sent=False, fix="write socks5://USER:PASSWORD@HOST:PORT")
    await loop.sock_sendall(connected, b"\x05\x01\x00" + _socks_address(host) + port.to_bytes(2, "big"))
    _, said, _, kind = await _exactly(connected, 4)
    if said != 0:
        raise Unreachable(f"the proxy {proxy.hostname} does not connect us", why=_SOCKS_REASONS.get(said, str(said)), sent=False)
    length = {1: 4, 4: 16}.get(kind)
    if length is None:
        length = (await _exactly(connected, 1))[0]
    await _exactly(connected, length + 2)


def _socks_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return b"\x03" + bytes([len(name)]) + name
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed


async def _exactly(connected: socket.socket, count: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        part = await loop.sock_recv(connected, count - len(data))
        if not part:
            raise Unreachable("the proxy closed the connection", sent=False)
        data += part
    return data
