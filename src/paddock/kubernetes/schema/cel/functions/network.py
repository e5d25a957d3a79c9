import ipaddress
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function, NotMine, pure
from paddock.kubernetes.schema.cel.values import Cidr, Ip, Url, no_overload

_LENGTH = re.compile(r"(0|[1-9][0-9]{0,2})\Z", re.ASCII)
_PORT = re.compile(r"[0-9]*\Z", re.ASCII)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f<>\"\\^`{}|]")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


def _address(text: str) -> Ip | None:
    if "%" in text or len(text) > 64:
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None
    return None if mapped else Ip(found)


def _ip(text: str) -> Ip:
    found = _address(text)
    if found is None:
        raise EvaluationError(f'IP Address "{text[:64]}" parse error during conversion from string')
    return found


def _network(text: str) -> Cidr | None:
    address, slash, length = text.partition("/")
    found = _address(address)
    if not slash or found is None or _LENGTH.match(length) is None or int(length) > found.address.max_prefixlen:
        return None
    return Cidr(ipaddress.ip_interface(text))


def _cidr(text: str) -> Cidr:
    found = _network(text)
    if found is None:
        raise EvaluationError(f'network address parse error during conversion from string: "{text[:64]}"')
    return found


def _holds(network: Cidr, other: Any) -> bool:
    address = _ip(other).address if isinstance(other, str) else other.address if isinstance(other, Ip) else None
    if address is None:
        raise no_overload("containsIP", network, other)
    return address in network.interface.network


def _covers(network: Cidr, other: Any) -> bool:
    inner = _cidr(other) if isinstance(other, str) else other
    if not isinstance(inner, Cidr):
        raise no_overload("containsCIDR", network, other)
    one, two = network.interface.network, inner.interface.network
    if isinstance(one, ipaddress.IPv4Network) and isinstance(two, ipaddress.IPv4Network):
        return two.subnet_of(one)
    if isinstance(one, ipaddress.IPv6Network) and isinstance(two, ipaddress.IPv6Network):
        return two.subnet_of(one)
    return False


def _is_global(ip: Ip) -> bool:
    address = ip.address
    broadcast = str(address) == "255.255.255.255"
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or special)


def _masked(network: Cidr) -> Cidr:
    return Cidr(ipaddress.ip_interface(str(network.interface.network)))


def _split_url(text: str) -> Url | None:
    """An absolute URL or an absolute path, as Go reads a request URI."""
    if not text or _FORBIDDEN.search(text) or _BAD_ESCAPE.search(text.partition("?")[0]):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if not parts.scheme and not text.startswith("/"):
        return None
    if parts.scheme and not parts.netloc and not parts.path.startswith("/") and not text.startswith(parts.scheme + ":/"):
        return None
    host = parts.netloc.rpartition("@")[2]
    name, port = _host_and_port(host)
    if name is None or _PORT.match(port) is None:
        return None
    return Url(text, parts.scheme, host, port, parts.path, parse_qs(parts.query, keep_blank_values=True))


def _host_and_port(host: str) -> tuple[str | None, str]:
    if host.startswith("["):
        name, bracket, rest = host.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None, ""
        return name[1:], rest[1:]
    name, _, port = host.partition(":")
    return (None, "") if ":" in port else (name, port)


def _url(budget: CostBudget, value: Any) -> Url:
    if isinstance(value, Url):
        return value
    if not isinstance(value, str):
        raise no_overload("url", value)
    budget.spend(len(value) // 10)
    found = _split_url(value)
    if found is None:
        raise EvaluationError(f'URL parse error during conversion from string: parse "{value[:100]}": invalid URI for request')
    return found


def _is_ip(budget: CostBudget, value: Any) -> bool:
    if not isinstance(value, str):
        raise no_overload("isIP", value)
    return _address(value) is not None


def _ip_of(budget: CostBudget, value: Any) -> Ip:
    if not isinstance(value, Cidr):
        raise NotMine(str(no_overload("ip", value)))
    return Ip(value.interface.ip)


def _canonical(text: str) -> bool:
    return str(_ip(text).address) == text


GLOBAL: dict[str, Function] = {
    "ip": pure("ip", (str,), _ip, "ip"),
    "isIP": Function(_is_ip, 1, 1, "bool"),
    "ip.isCanonical": pure("ip.isCanonical", (str,), _canonical, "bool"),
    "cidr": pure("cidr", (str,), _cidr, "cidr"),
    "isCIDR": pure("isCIDR", (str,), lambda text: _network(text) is not None, "bool"),
    "url": Function(_url, 1, 1, "url"),
    "isURL": pure("isURL", (str,), lambda text: _split_url(text) is not None, "bool"),
}
METHODS: dict[str, Function] = {
    "family": pure("family", (Ip,), lambda ip: ip.address.version, "int"),
    "isUnspecified": pure("isUnspecified", (Ip,), lambda ip: ip.address.is_unspecified, "bool"),
    "isLoopback": pure("isLoopback", (Ip,), lambda ip: ip.address.is_loopback, "bool"),
    "isLinkLocalMulticast": pure(
        "isLinkLocalMulticast",
        (Ip,),
        lambda ip: ip.address in ipaddress.ip_network("224.0.0.0/24" if ip.address.version == 4 else "ff02::/16"),
        "bool",
    ),
    "isLinkLocalUnicast": pure("isLinkLocalUnicast", (Ip,), lambda ip: ip.address.is_link_local, "bool"),
    "isGlobalUnicast": pure("isGlobalUnicast", (Ip,), _is_global, "bool"),
    "containsIP": pure("containsIP", (Cidr, object), _holds, "bool"),
    "containsCIDR": pure("containsCIDR", (Cidr, object), _covers, "bool"),
    "ip": Function(_ip_of, 1, 1, "ip"),
    "masked": pure("masked", (Cidr,), _masked, "cidr"),
    "prefixLength": pure("prefixLength", (Cidr,), lambda network: network.interface.network.prefixlen, "int"),
    "getScheme": pure("getScheme", (Url,), lambda url: url.scheme, "string"),
    "getHost": pure("getHost", (Url,), lambda url: url.host, "string"),
    "getHostname": pure("getHostname", (Url,), lambda url: _host_and_port(url.host)[0] or "", "string"),
    "getPort": pure("getPort", (Url,), lambda url: url.port, "string"),
    "getEscapedPath": pure("getEscapedPath", (Url,), lambda url: url.path, "string"),
    "getQuery": pure("getQuery", (Url,), lambda url: url.query, "map"),
}
