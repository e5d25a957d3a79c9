"""The host's own network. Read-only."""

import fcntl
import ipaddress
import os
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_ROUTES = Path("/proc/net/route")
_RESOLVERS = Path("/etc/resolv.conf")
_TUN = Path("/dev/net/tun")
_CAP_NET_ADMIN = 12


def routes(text: str | None = None) -> Iterator[tuple[str, str]]:
    """IPv4 routes but the default ones: (device, network)."""
    lines = (text if text is not None else _ROUTES.read_text()).splitlines()[1:]
    for line in lines:
        device, destination, _, _, _, _, _, mask = line.split()[:8]
        prefix = int(mask, 16).bit_count()
        if prefix:
            yield device, f"{ipaddress.IPv4Address(socket.ntohl(int(destination, 16)))}/{prefix}"


def default_device(text: str | None = None) -> str:
    """The device of the default route; "" without one."""
    for line in (text if text is not None else _ROUTES.read_text()).splitlines()[1:]:
        fields = line.split()
        if fields[1] == "00000000" and fields[7] == "00000000":
            return fields[0]
    return ""


def nameservers(text: str | None = None) -> tuple[str, ...]:
    """The host's resolvers, three at most as everywhere."""
    found: list[str] = []
    for line in (_resolvers() if text is None else text).splitlines():
        words = line.split()
        if len(words) < 2 or words[0] != "nameserver":
            continue
        try:
            found.append(str(ipaddress.ip_address(words[1])))
        except ValueError:
            continue
    return tuple(found[:3])


def search(text: str | None = None) -> tuple[str, ...]:
    """The domains that the host looks for short names in: those of the last line that names any."""
    found: tuple[str, ...] = ()
    for line in (_resolvers() if text is None else text).splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in ("search", "domain"):
            found = tuple(words[1:])
    return found


def _resolvers() -> str:
    try:
        return _RESOLVERS.read_text(errors="replace")
    except OSError:
        return ""


def address_of(device: str) -> str:
    """The IPv4 address of a device; "" without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        try:
            answer = fcntl.ioctl(probe, 0x8915, struct.pack("256s", device.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def may_filter() -> bool:
    """Return True if this process may set packet filters."""
    return is_admin() and nft() is not None


def is_admin() -> bool:
    """Return whether this process may administer networks."""
    status = Path("/proc/self/status").read_text()
    line = next((line for line in status.splitlines() if line.startswith("CapEff:")), "CapEff:\t0")
    return bool(int(line.split()[1], 16) >> _CAP_NET_ADMIN & 1)


def why_not_routed() -> str:
    """Return the reason why this process cannot make taps and rules; "" if it can."""
    if not is_admin():
        return "Paddock does not run as root"
    if not os.access(_TUN, os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    if nft() is None:
        return "nft is not installed"
    return ""


def nft() -> str | None:
    """The program that sets packet filters."""
    return shutil.which("nft", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
