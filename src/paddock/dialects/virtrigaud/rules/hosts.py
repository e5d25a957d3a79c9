"""Hosts that no migration may read from or write to: the machine itself, its neighbours on the wire, a cloud's metadata.

Only what a manifest says is judged here. A name has to be judged once more when its addresses are known.
"""

import ipaddress
from urllib.parse import urlsplit

_NAMES = ("localhost", "metadata", "metadata.google.internal", "instance-data")
_METADATA = (ipaddress.ip_address("169.254.169.254"), ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200"))


def host_of(endpoint: str) -> str:
    """The host of `https://host:port/path`, of `host:port` and of `host`; the empty text when there is none."""
    try:
        return urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").hostname or ""
    except ValueError:
        return ""


def refusal(host: str) -> str:
    """Return the reason why a host is refused, or an empty text."""
    plain = host.rstrip(".").lower()
    if plain in _NAMES or plain.endswith(".localhost"):
        return f"{host} is this machine or a cloud's metadata service"
    address = _address(plain)
    if address is None:
        return ""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    for what, holds in (
        ("a cloud's metadata service", address in _METADATA),
        ("a loopback address", address.is_loopback),
        ("a link-local address", address.is_link_local),
        ("the unspecified address", address.is_unspecified),
        ("a multicast address", address.is_multicast),
    ):
        if holds:
            return f"{host} is {what}"
    return ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as programs in C read it: also `127.1`, `0x7f000001` and `2130706433`."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return _loose(text)


def _loose(text: str) -> ipaddress.IPv4Address | None:
    parts = text.split(".")
    if len(parts) > 4:
        return None
    numbers = []
    for part in parts:
        base = 16 if part.startswith("0x") else 8 if part.startswith("0") and len(part) > 1 else 10
        try:
            numbers.append(int(part[:20], base))
        except ValueError:
            return None
    *front, last = numbers
    value = last
    for index, number in enumerate(front):
        if number > 255:
            return None
        value += number << (24 - 8 * index)
    return ipaddress.IPv4Address(value) if last < 256 ** (4 - len(front)) and value < 2**32 else None
