"""The network objects of one Paddock on the host, and their removal: devices, routes, a routing rule, tables of the packet filter.

The bridge of the pod network says in its alias whose it is, so that objects of a directory that is gone can be found and removed.
"""

import base64
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from paddock.engine.networks import hostnetwork, nft, rules, taps
from paddock.engine.networks.netlink import UNREACHABLE, Netlink, NetworkDevice

RULE_PRIORITY = 33000
_TABLES = 0x50000000
# Of 33 million pairs of directories, one has the same five digits.
_BASE, _DIGITS = 32, 5
_BRIDGE = re.compile(rf"pk[0-9a-v]{{{_DIGITS}}}")
_MARK = "paddock"


class BridgeMark(NamedTuple):
    """The owner of a bridge."""

    network: str
    directory: str


def instance_of(directory: Path) -> str:
    """Five characters that tell the devices of one Paddock from those of another."""
    return short_hash(str(directory.resolve()), _DIGITS)


def short_hash(text: str, digits: int) -> str:
    """Return the first digits of a text's hash, in the base of the instances' names."""
    return base64.b32hexencode(hashlib.sha256(text.encode()).digest()).decode().lower()[:digits]


def prefix(instance: str) -> str:
    """Return the prefix of its devices' names, which is the whole name of the pod network's bridge."""
    return f"pk{instance}"


def routes(instance: str) -> int:
    """The number of its routing table."""
    return _TABLES + int(instance, _BASE)


def filters(instance: str) -> str:
    """The name of its tables of the packet filter."""
    return f"paddock_{instance}"


def alias(network: str, directory: Path) -> str:
    """The mark of the bridge."""
    return f"{_MARK} {network} {directory.resolve()}"


def read(link: NetworkDevice | None) -> BridgeMark | None:
    """The mark of a device; None when it has none."""
    word, _, rest = link.alias.partition(" ") if link is not None else ("", "", "")
    network, _, directory = rest.partition(" ")
    return BridgeMark(network, directory) if word == _MARK and directory else None


def other_owner(netlink: Netlink, directory: Path) -> str:
    """Return the other directory whose devices have the names of this one's; "" when there is none."""
    mark = _mark(netlink, directory)
    return mark.directory if mark is not None and not _is_of(mark, directory) else ""


async def remove(netlink: Netlink, directory: Path, network: str = "") -> None:
    """Take everything of a directory off the host, nothing of another one. `network` is its pod network if the bridge names none."""
    mark = _mark(netlink, directory)
    if mark is None or _is_of(mark, directory):
        await _remove(netlink, instance_of(directory), mark.network if mark is not None else network)


def _mark(netlink: Netlink, directory: Path) -> BridgeMark | None:
    return read(netlink.link(prefix(instance_of(directory))))


def _is_of(mark: BridgeMark, directory: Path) -> bool:
    return mark.directory == str(directory.resolve())


async def _remove(netlink: Netlink, instance: str, network: str) -> None:
    """Remove what there is of an instance."""
    own = prefix(instance)
    for name in [*netlink.links()]:
        if name.startswith(own):
            netlink.delete_link(name)
    if network:
        netlink.delete_route(network, kind=UNREACHABLE)
    netlink.delete_rule(routes(instance), RULE_PRIORITY)
    for each in netlink.networks(routes(instance)):
        netlink.delete_route(each, table=routes(instance))
    if hostnetwork.nft() is not None:
        await nft.run(rules.removal(filters(instance)))


def close_uplinks(netlink: Netlink, devices: tuple[str, ...]) -> None:
    """Devices forwarded for the machines of this host alone; with the last pod network they do no longer."""
    if taps.read_setting("ipv4/ip_forward") != "0" or any(_BRIDGE.fullmatch(name) for name in netlink.links()):
        return
    for device in devices:
        if taps.read_setting(f"ipv4/conf/{device}/forwarding"):
            taps.write_setting(f"ipv4/conf/{device}/forwarding", "0")


async def collect() -> list[str]:
    """Remove what directories that are gone have left on the host; returns these directories.

    A tap that a process has open keeps all of its instance: its guest lives, and its directory may be one that only others can see.
    """
    netlink = Netlink()
    try:
        links = netlink.links()
        gone = []
        for name, link in links.items():
            mark = read(link)
            if mark is None or not _BRIDGE.fullmatch(name) or Path(mark.directory).exists():
                continue
            if not any(each.running for other, each in links.items() if other.startswith(name) and other != name):
                await _remove(netlink, name.removeprefix(prefix("")), mark.network)
                gone.append(mark.directory)
        return gone
    finally:
        netlink.close()
