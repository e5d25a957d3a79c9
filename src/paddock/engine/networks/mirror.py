"""The host's own addresses in the namespace of an ordinary user's machines.

What a guest sends to the host then stays in the namespace, where the packet filter treats it as root's does: node ports lead to machines,
and nothing else answers. Without them the uplink would carry it to the programs that listen on the host.
"""

import asyncio
import contextlib
import ipaddress
import socket

from paddock.base.errors import PaddockError
from paddock.engine.networks.netlink import Netlink, index

# Changes of IPv4 and IPv6 addresses.
_GROUPS = 0x10 | 0x100


class AddressMirror:
    """Gives the namespace's loopback device the host's addresses, as they come and go."""

    def __init__(self) -> None:
        self._watch: socket.socket | None = None

    def open(self) -> None:
        """Give it the addresses, and follow them from now on."""
        if self._watch is None:
            watch = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
            watch.bind((0, _GROUPS))
            asyncio.get_running_loop().add_reader(watch, self._changed, watch)
            self._watch = watch
        bring()

    def _changed(self, watch: socket.socket) -> None:
        # What changed is not read: messages that do not fit are lost, the addresses are not.
        with contextlib.suppress(BlockingIOError, OSError):
            while watch.recv(1 << 16):
                pass
        with contextlib.suppress(PaddockError):
            bring()

    def close(self) -> None:
        """Follow them no more; those that are there stay."""
        if self._watch is not None:
            asyncio.get_running_loop().remove_reader(self._watch)
            self._watch.close()
            self._watch = None


def bring() -> None:
    """Bring the addresses of the namespace to those of the host."""
    with contextlib.closing(Netlink(is_host=True)) as host, contextlib.closing(Netlink()) as inside:
        loopback = index("lo")
        wanted = {address for _, address in host.addresses() if is_mirrored(address)}
        present = {address for device, address in inside.addresses() if device == loopback and is_mirrored(address)}
        for address in sorted(wanted - present):
            inside.add_address(loopback, address, 128 if ":" in address else 32)
        for address in sorted(present - wanted):
            inside.delete_address(loopback, address)


def is_mirrored(address: str) -> bool:
    """Return whether others could reach the host by an address."""
    given = ipaddress.ip_address(address)
    return not (given.is_loopback or given.is_link_local)
