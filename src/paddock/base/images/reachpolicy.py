"""The addresses that images may come from.

A user who names a URL lets this host speak for them. Link-local addresses (where clouds hand out credentials) are never reached;
loopback only where the host's settings allow it. Names are resolved here, every address is judged, and the connection goes to an
address that was judged: no second resolution can change it.
"""

import ipaddress
import socket
from collections.abc import Iterable

from paddock.base import reasons
from paddock.base.images.errors import Code, ImageRefused, ImageUnavailable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Metadata services that are not link-local: Amazon's over IPv6, Alibaba's, Oracle's.
_METADATA = tuple(map(ipaddress.ip_network, ("fd00:ec2::254/128", "100.100.100.200/32", "192.0.0.192/32")))
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class ReachPolicy:
    """The rules of one host. `allow` holds networks (`127.0.0.0/8`), addresses, or `host` and `host:port` by name."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self._names: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                self._names.add(entry.lower())

    def refusal(self, host: str, port: int, address: Address) -> str:
        """Return the reason why this address may not be reached, or an empty text."""
        plain = _plain(address)
        if plain.is_link_local:
            return "it is a link-local address"
        if any(plain in network for network in _METADATA):
            return "it is a cloud's metadata service"
        if plain.is_multicast:
            return "it is a multicast address"
        if not plain.is_loopback and not plain.is_unspecified and not (plain.version == 4 and int(plain) >> 24 == 0):
            return ""
        if {host.lower(), f"{host.lower()}:{port}"} & self._names or any(plain in network for network in self._networks):
            return ""
        return (
            "it is an address of this host itself, and neither --image-from of paddock up nor a provider's PROVIDER_IMAGE_HOSTS allows it"
        )

    def judge_literal(self, host: str, port: int) -> None:
        """Refuse a host that is written as an address which may not be reached (when somebody else resolves names)."""
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            if host.lower() != "localhost" and not host.lower().endswith(".localhost"):
                return
            address = ipaddress.ip_address("127.0.0.1")
        self._judge(host, port, address)

    def _judge(self, host: str, port: int, address: Address) -> None:
        if why := self.refusal(host, port, address):
            shown = host if host.strip("[]") == str(address) else f"{host} ({address})"
            raise ImageRefused("Denied", f"images may not come from {shown}", why=why)

    def dial(self, host: str, port: int, timeout: float) -> socket.socket:
        """A connection to one of the host's addresses. Any address that is refused refuses the host."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ImageUnavailable(
                "Unreachable", f"the name {host} cannot be resolved", why=str(error), reason=reasons.IMAGE_SERVER_UNKNOWN
            ) from error
        for entry in found:
            self._judge(host, port, ipaddress.ip_address(str(entry[4][0]).partition("%")[0]))
        failure: OSError | None = None
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(timeout)
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            except OSError as error:
                sock.close()
                failure = error
        code: Code = "TimedOut" if isinstance(failure, TimeoutError) else "Unreachable"
        raise ImageUnavailable(code, f"{host}:{port} cannot be reached", why=str(failure)) from failure


def _plain(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, where it stands for one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
