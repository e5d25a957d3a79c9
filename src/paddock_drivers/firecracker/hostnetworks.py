"""Taps of this host: made for a machine's start, joined to a bridge, taken away with the machine.

A tap lasts without a process, so it is named after its machine and found again by its name.
"""

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals

# From linux/if_tun.h, linux/sockios.h and linux/if.h.
_SETIFF, _SETPERSIST, _SETOWNER = 0x400454CA, 0x400454CB, 0x400454CC
_TAP, _NO_PI, _VNET_HDR = 0x0002, 0x1000, 0x4000
_GETFLAGS, _SETFLAGS, _ADD_TO_BRIDGE, _TAKE_FROM_BRIDGE, _IFINDEX = 0x8913, 0x8914, 0x89A2, 0x89A3, 0x8933
_UP = 1
_CLASS = Path("/sys/class/net")
_ARP = Path("/proc/net/arp")
_FIX = "run the provider as root, or with CAP_NET_ADMIN and a readable /dev/net/tun"


class HostNetwork(Protocol):
    """The network of the host, as machines need it."""

    def check(self, bridge: str) -> None:
        """Raise `ProviderError` unless machines can be joined to a bridge."""

    def ensure(self, tap: str, bridge: str, user: int) -> None:
        """Make a tap that a user may open, and join it to a bridge."""

    def remove(self, tap: str) -> None:
        """Take a tap away. One that is gone is taken away."""

    def addresses(self) -> Mapping[str, str]:
        """Return the addresses that the host has seen, by MAC."""


class TapNetwork:
    """Taps by the kernel's own calls."""

    def check(self, bridge: str) -> None:
        """Raise `ProviderError` unless the bridge is there."""
        if not (_CLASS / bridge / "bridge").is_dir():
            raise refusals.conflict(f"there is no bridge {bridge} on this host", fix="make it, or name another one")

    def ensure(self, tap: str, bridge: str, user: int) -> None:
        """Make a tap and join it; what is there already stays."""
        self.check(bridge)
        try:
            if not (_CLASS / tap).exists():
                _make(tap, user)
            _join(tap, bridge)
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EACCES, errno.ENOENT):
                why = error.strerror or ""
                raise refusals.not_supported("the driver cannot make network interfaces here", why=why, fix=_FIX) from error
            what = f"cannot join a machine to bridge {bridge}"
            raise ProviderError(ErrorKind.UNAVAILABLE, what, why=error.strerror or "") from error

    def remove(self, tap: str) -> None:
        if not (_CLASS / tap).exists():
            return
        try:
            handle = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(handle, _SETIFF, _request(tap))
                fcntl.ioctl(handle, _SETPERSIST, 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise ProviderError(ErrorKind.UNAVAILABLE, f"cannot remove the interface {tap}", why=error.strerror or "") from error

    def addresses(self) -> Mapping[str, str]:
        """Return the host's table of neighbours, IPv4."""
        try:
            lines = _ARP.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            return {}
        fields = [line.split() for line in lines]
        return {each[3].lower(): each[0] for each in fields if len(each) >= 6 and each[2] != "0x0"}


def _request(tap: str) -> bytes:
    return struct.pack("16sH22x", tap.encode(), _TAP | _NO_PI | _VNET_HDR)


def _make(tap: str, user: int) -> None:
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(handle, _SETIFF, _request(tap))
        if user:
            fcntl.ioctl(handle, _SETOWNER, user)
        # Last: a tap that is not complete goes with this handle.
        fcntl.ioctl(handle, _SETPERSIST, 1)
    finally:
        os.close(handle)


def _join(tap: str, bridge: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as control:
        master = _CLASS / tap / "master"
        before = master.resolve().name if master.exists() else ""
        if before != bridge:
            index = struct.unpack_from("i", fcntl.ioctl(control, _IFINDEX, struct.pack("16si20x", tap.encode(), 0)), 16)[0]
            if before:
                fcntl.ioctl(control, _TAKE_FROM_BRIDGE, struct.pack("16si20x", before.encode(), index))
            fcntl.ioctl(control, _ADD_TO_BRIDGE, struct.pack("16si20x", bridge.encode(), index))
        flags = struct.unpack_from("H", fcntl.ioctl(control, _GETFLAGS, struct.pack("16sH22x", tap.encode(), 0)), 16)[0]
        fcntl.ioctl(control, _SETFLAGS, struct.pack("16sH22x", tap.encode(), flags | _UP))
