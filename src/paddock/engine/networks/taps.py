"""Taps: devices that stay when nobody has them open, so that neither the end of QEMU nor of Paddock changes the host's network."""

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path

from paddock.engine import namespace
from paddock.engine.networks.errors import NetworkBusy

_TUN = "/dev/net/tun"
_SETIFF, _SETPERSIST, _SETOWNER = 0x400454CA, 0x400454CB, 0x400454CC
_TAP, _NO_PI, _MULTI_QUEUE, _VNET_HEADER = 0x0002, 0x1000, 0x0100, 0x4000
# From the guest's side this is the gateway, on every card.
GATEWAY_MAC = "02:00:00:00:00:00"


def open_queue(name: str, *, queues: int = 1, header: bool = False) -> int:
    """A file descriptor of a tap, which is made when it is missing. `header`: packets carry what virtio wants to know."""
    flags = _TAP | _NO_PI | (_MULTI_QUEUE if queues > 1 else 0) | (_VNET_HEADER if header else 0)
    descriptor = namespace.call(os.open, _TUN, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, _SETIFF, struct.pack("16sH22x", name.encode(), flags))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make(name: str, *, user: int, queues: int) -> None:
    """A tap that stays, and that this user may open, 0 being Paddock's own. One that a machine uses is left as it is."""
    try:
        descriptor = open_queue(name, queues=queues)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return
        raise NetworkBusy(f"cannot make tap {name}", why=error.strerror or str(error)) from error
    try:
        fcntl.ioctl(descriptor, _SETOWNER, user or os.geteuid())
        fcntl.ioctl(descriptor, _SETPERSIST, 1)
    except OSError as error:
        raise NetworkBusy(f"cannot keep tap {name}", why=error.strerror or str(error)) from error
    finally:
        os.close(descriptor)


def set_routed(name: str) -> None:
    """Set the host's treatment of a tap: answer for all addresses, forward packets, and trust the rules, not the routes."""
    for path, value in (
        (f"ipv4/conf/{name}/proxy_arp", "1"),
        (f"ipv4/conf/{name}/forwarding", "1"),
        (f"ipv4/conf/{name}/rp_filter", "0"),
        (f"ipv4/conf/{name}/accept_local", "1"),
        (f"ipv4/conf/{name}/send_redirects", "0"),
        (f"ipv4/neigh/{name}/proxy_delay", "0"),
    ):
        write_setting(path, value)


def set_ipv6(name: str, *, on: bool) -> None:
    """Switch IPv6 at a device on or off. Its addresses are those that it is given."""
    with contextlib.suppress(FileNotFoundError):
        if on:
            write_setting(f"ipv6/conf/{name}/addr_gen_mode", "1")
        write_setting(f"ipv6/conf/{name}/disable_ipv6", "0" if on else "1")
        if on:
            for key, value in (("accept_ra", "0"), ("forwarding", "1"), ("proxy_ndp", "1"), ("accept_dad", "0")):
                write_setting(f"ipv6/conf/{name}/{key}", value)
            write_setting(f"ipv6/neigh/{name}/proxy_delay", "0")


def read_setting(path: str) -> str:
    """A setting of the kernel's network; "" when there is none."""
    try:
        return namespace.call(Path("/proc/sys/net", path).read_text).strip()
    except OSError:
        return ""


def write_setting(path: str, value: str) -> None:
    """Change a setting that is another."""
    if read_setting(path) != value:
        namespace.call(Path("/proc/sys/net", path).write_text, value)
