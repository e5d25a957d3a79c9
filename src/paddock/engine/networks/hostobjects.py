"""The network objects of one Paddock on the host, and their removal: devices, routes, a routing rule, tables of the packet filter.

The bridge of the pod network says in its alias whose it is, so that objects of a directory that is gone can be found and removed.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from paddock.engine.claims import FIRST, uids
from paddock.engine.networks import hostnames, hostnetwork, nft, rules, taps
from paddock.engine.networks.hostnames import HostNames
from paddock.engine.networks.netlink import UNREACHABLE, Netlink, NetworkDevice, index

RULE_PRIORITY = 33000
_MARK = "paddock"
# of nft
_LONGEST_COMMENT = 127
_GUARD = re.compile(rf'meta skuid (?P<first>\d+)-(?P<last>\d+) .* comment "{_MARK} (?P<directory>/[^"]*)"')


class BridgeMark(NamedTuple):
    """The owner of a bridge."""

    network: str
    directory: str


def alias(network: str, directory: Path) -> str:
    """The mark of the bridge."""
    return f"{_MARK} {network} {directory.resolve()}"


def read(link: NetworkDevice | None) -> BridgeMark | None:
    """The mark of a device; None when it has none."""
    word, _, rest = link.alias.partition(" ") if link is not None else ("", "", "")
    network, _, directory = rest.partition(" ")
    return BridgeMark(network, directory) if word == _MARK and directory else None


def names_of(netlink: Netlink, directory: Path) -> HostNames:
    """Return the names that the directory's objects have on the host; those that this version gives when there are none."""
    every = hostnames.every(directory)
    there = (names for names in every if (link := netlink.link(names.bridge)) is not None and _is_of(read(link), directory))
    return next(there, every[0])


def other_owner(netlink: Netlink, names: HostNames, directory: Path) -> str:
    """Return the other directory whose bridge has this name; "" when there is none."""
    mark = read(netlink.link(names.bridge))
    return mark.directory if mark is not None and not _is_of(mark, directory) else ""


async def remove(netlink: Netlink, directory: Path, network: str = "") -> None:
    """Take everything of a directory off the host, nothing of another one. `network` is its pod network if the bridge names none."""
    for names in hostnames.every(directory):
        mark = read(netlink.link(names.bridge))
        if _is_of(mark, directory):
            await _remove(netlink, names, mark.network if mark is not None else network)


def removal_of_filters(directory: Path, kept: HostNames | None = None) -> str:
    """Return the commands for nft that remove the tables of a directory, but those of these names."""
    return "".join(rules.removal(names.filters) for names in hostnames.every(directory) if names != kept)


def _is_of(mark: BridgeMark | None, directory: Path) -> bool:
    # Nobody else marks a bridge of this name; a directory whose path is too long for a mark has none.
    return mark is None or mark.directory == str(directory.resolve())


async def _remove(netlink: Netlink, names: HostNames, network: str) -> None:
    """Remove what there is of these names. The bridge's own address tells the IPv6 network."""
    bridge = netlink.link(names.bridge)
    networks6 = netlink.addresses6(bridge.number) if bridge is not None else []
    for device in [*netlink.links()]:
        if names.has(device):
            netlink.delete_link(device)
    if network:
        netlink.delete_route(network, kind=UNREACHABLE)
    for each in networks6:
        netlink.delete_route(str(ipaddress.IPv6Interface(each).network), kind=UNREACHABLE)
    families = (socket.AF_INET, socket.AF_INET6) if taps.read_setting("ipv6/conf/all/disable_ipv6") else (socket.AF_INET,)
    for family in families:
        netlink.delete_rule(names.routes, RULE_PRIORITY, family)
        for each in netlink.networks(names.routes, family):
            netlink.delete_route(each, table=names.routes)
    if hostnetwork.nft() is not None:
        await nft.run(rules.removal(names.filters))


def open_forwarding6(devices: Collection[str]) -> tuple[str, ...]:
    """Have the host forward IPv6, which it does between all devices or none; returns those that it told to accept router advertisements on.

    A router accepts none unless its setting says so, and forgets the routes that it has learned.
    """
    changed = tuple(sorted(device for device in devices if taps.read_setting(f"ipv6/conf/{device}/accept_ra") == "1"))
    for device in changed:
        taps.write_setting(f"ipv6/conf/{device}/accept_ra", "2")
    taps.write_setting("ipv6/conf/all/forwarding", "1")
    return changed


def close_uplinks(netlink: Netlink, devices: tuple[str, ...], *, forwards6: bool = False, advertised: tuple[str, ...] = ()) -> None:
    """Devices forwarded for the machines of this host alone; with the last pod network they do no longer."""
    if any(hostnames.of_bridge(name) for name in netlink.links()):
        return
    if taps.read_setting("ipv4/ip_forward") == "0":
        for device in devices:
            if taps.read_setting(f"ipv4/conf/{device}/forwarding"):
                taps.write_setting(f"ipv4/conf/{device}/forwarding", "0")
    if forwards6:
        taps.write_setting("ipv6/conf/all/forwarding", "0")
        for device in advertised:
            if taps.read_setting(f"ipv6/conf/{device}/accept_ra") == "2":
                taps.write_setting(f"ipv6/conf/{device}/accept_ra", "1")


def mark_of_filters(directory: Path) -> str:
    """Return the comment that says whose the rules for processes are; "" where nft takes none: the path is too long, or has quotes."""
    mark = f"{_MARK} {directory.resolve()}"
    return mark if len(os.fsencode(mark)) <= _LONGEST_COMMENT and mark.isprintable() and not {*mark} & {*'"\\'} else ""


async def collect() -> list[str]:
    """Remove what directories that are gone have left on the host; returns these directories.

    A tap that a process has open keeps all of its instance: its guest lives, and its directory may be one that only others can see.
    """
    return [*await _collect_bridges(), *await _collect_filters()]


async def _collect_filters() -> list[str]:
    """Remove tables without a bridge. A process of a user that the table holds keeps it."""
    gone: list[str] = []
    alive: set[int] | None = None
    for name in await nft.tables("inet"):
        bridge = hostnames.bridge_beside(name)
        if not bridge or index(bridge):
            continue
        found = _GUARD.search(await nft.table("inet", name))
        # Of numbers below, `uids` tells nothing.
        if found is None or int(found["first"]) < FIRST or Path(found["directory"]).exists():
            continue
        alive = uids() if alive is None else alive
        if not any(int(found["first"]) <= uid <= int(found["last"]) for uid in alive):
            await nft.run(rules.removal(name))
            gone.append(found["directory"])
    return gone


async def _collect_bridges() -> list[str]:
    netlink = Netlink()
    try:
        links = netlink.links()
        gone = []
        for name, link in links.items():
            mark, names = read(link), hostnames.of_bridge(name)
            if mark is None or names is None or Path(mark.directory).exists():
                continue
            if not any(each.running for other, each in links.items() if names.is_tap(other)):
                await _remove(netlink, names, mark.network)
                gone.append(mark.directory)
        return gone
    finally:
        netlink.close()
