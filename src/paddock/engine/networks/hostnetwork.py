"""The host's own network, or that of machines where `namespace.call` runs these functions. Read-only."""

import fcntl
import ipaddress
import os
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from paddock.engine import namespace
from paddock.engine.networks import resolvconf

# Of the thread that reads: the threads of a process can be in different networks.
_ROUTES, _ROUTES6 = Path("/proc/thread-self/net/route"), Path("/proc/thread-self/net/ipv6_route")
_ADDRESSES6 = Path("/proc/thread-self/net/if_inet6")
_NO_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
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


def routes6(text: str | None = None) -> Iterator[tuple[str, str]]:
    """IPv6 routes but default, link-local and multicast ones, and those that lead nowhere: (device, network)."""
    for _, _, device, network in _routes6(text):
        if network.prefixlen and not network.is_link_local and not network.is_multicast and device != "lo":
            yield device, str(network)


def _routes6(text: str | None) -> Iterator[tuple[int, int, str, ipaddress.IPv6Network]]:
    for line in (text if text is not None else _text(_ROUTES6)).splitlines():
        destination, prefix, _, _, _, metric, _, _, flags, device = line.split()
        yield int(metric, 16), int(flags, 16), device, ipaddress.IPv6Network((bytes.fromhex(destination), int(prefix, 16)))


def has_ipv6() -> bool:
    """Return whether the host uses IPv6."""
    return _text(_NO_IPV6).strip() == "0"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def default_device(text: str | None = None, text6: str | None = None) -> str:
    """The device of the default route, IPv4's before IPv6's; "" without one."""
    for line in (text if text is not None else _ROUTES.read_text()).splitlines()[1:]:
        fields = line.split()
        if fields[1] == "00000000" and fields[7] == "00000000":
            return fields[0]
    led = (each for each in _routes6(text6 if text is None else text6 or "") if not each[3].prefixlen and each[2] != "lo")
    return min(led, default=(0, 0, ""))[2]


def search(text: str | None = None) -> tuple[str, ...]:
    """The domains that the host looks for short names in: those of the last line that names any."""
    found: tuple[str, ...] = ()
    for line in (resolvconf.read() if text is None else text).splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in ("search", "domain"):
            found = tuple(words[1:])
    return found


def address_of(device: str) -> str:
    """The IPv4 address of a device; "" without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        try:
            answer = fcntl.ioctl(probe, 0x8915, struct.pack("256s", device.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def address6_of(device: str, text: str | None = None) -> str:
    """The first IPv6 address of a device that is valid everywhere; "" without one."""
    for line in (text if text is not None else _text(_ADDRESSES6)).splitlines():
        address, _, _, scope, _, name = line.split()
        if name == device and scope == "00":
            return str(ipaddress.IPv6Address(bytes.fromhex(address)))
    return ""


def has_device(name: str) -> bool:
    """Return whether the host has a device of this name, other than the loopback device that every network has."""
    try:
        return name != "lo" and socket.if_nametoindex(name) > 0
    except OSError:
        return False


def is_own(address: str) -> bool:
    """Return whether an address is one of this host's."""
    address = address.partition("%")[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


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
        return str(namespace.refusal() or "Paddock does not run as root")
    if not os.access(_TUN, os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    if nft() is None:
        return "nft is not installed"
    return ""


def nft() -> str | None:
    """The program that sets packet filters."""
    return shutil.which("nft", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
