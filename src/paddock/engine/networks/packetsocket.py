"""The socket at a tap that hears DHCP, DHCPv6 and router solicitations: its filter in the kernel lets nothing else through."""

import ctypes
import socket
import struct

from paddock.engine.networks import dhcp, dhcp6

# With a protocol of its own it would hear nothing at a tap that is in a bridge.
_EVERYTHING = 0x0003
_ATTACH_FILTER, _LOCK_FILTER = 26, 44
# Classic BPF: an IPv4 packet with UDP to port 67 that is no later fragment; an IPv6 packet with UDP to port 547 or a router solicitation;
# else nothing. tcpdump -dd gives the same for each.
_PROGRAM = (
    (0x28, 0, 0, 12),
    (0x15, 0, 7, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 14, 17),
    (0x28, 0, 0, 20),
    (0x45, 12, 0, 0x1FFF),
    (0xB1, 0, 0, 14),
    (0x48, 0, 0, 16),
    (0x15, 8, 9, dhcp.SERVER_PORT),
    (0x15, 0, 8, 0x86DD),
    (0x30, 0, 0, 20),
    (0x15, 0, 2, 58),
    (0x30, 0, 0, 54),
    (0x15, 3, 4, dhcp6.SOLICITATION),
    (0x15, 0, 3, 17),
    (0x28, 0, 0, 56),
    (0x15, 0, 1, dhcp6.SERVER_PORT),
    (0x06, 0, 0, 0x40000),
    (0x06, 0, 0, 0),
)


def at(device: str) -> socket.socket:
    """Return a socket at a device; raises OSError. Whoever gets it cannot take the filter away."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 0)
    try:
        code = b"".join(struct.pack("=HBBI", *step) for step in _PROGRAM)
        kept = ctypes.create_string_buffer(code)
        program = struct.pack("HP", len(_PROGRAM), ctypes.addressof(kept))
        made.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
        made.setsockopt(socket.SOL_SOCKET, _LOCK_FILTER, 1)
        # Not before the filter is there: it would hear everything.
        made.bind((device, _EVERYTHING))
    except BaseException:
        made.close()
        raise
    return made
