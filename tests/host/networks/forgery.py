"""IPv6 packets that no honest guest sends, and a way to send them past the guest's own kernel."""

import ipaddress
import socket
import struct
from collections.abc import Callable

_ROUTER, _ALL_NODES, _OWN = "fe80::1", "ff02::1", "fe80::99"


def router_advertisement() -> bytes:
    """A router advertisement for everybody on the link."""
    return _icmp(_OWN, _ALL_NODES, struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0))


def echo_request(source: str) -> bytes:
    """An echo request to everybody on the link."""
    return _icmp(source, _ALL_NODES, struct.pack("!BBHHH", 128, 0, 0, 1, 1))


def redirect(target: str) -> bytes:
    """A redirect: packets for the target should come to the sender."""
    there = ipaddress.IPv6Address(target).packed
    return _icmp(_OWN, _ROUTER, struct.pack("!BBHI", 137, 0, 0, 0) + ipaddress.IPv6Address(_OWN).packed + there)


def neighbour_advertisement(target: str) -> bytes:
    """The address is here, unasked and overriding what others said."""
    option = bytes((2, 1)) + bytes.fromhex("020000000099")
    return _icmp(_OWN, _ALL_NODES, struct.pack("!BBHI", 136, 0, 0, 0x20000000) + ipaddress.IPv6Address(target).packed + option)


def dhcpv6_answer() -> bytes:
    """An answer of a DHCPv6 server to everybody."""
    return _packet(_OWN, _ALL_NODES, 17, struct.pack("!HHHH", 547, 546, 12, 0) + b"\7abc", 6)


def send(device: str, mac: str, packet: bytes) -> Callable[[], None]:
    """Sends a packet as it is."""

    def work() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x86DD) as card:
            card.bind((device, 0x86DD))
            card.send(b"\x33\x33\0\0\0\1" + bytes.fromhex(mac.replace(":", "")) + b"\x86\xdd" + packet)

    return work


def _icmp(source: str, target: str, message: bytes) -> bytes:
    return _packet(source, target, 58, message, 2)


def _packet(source: str, target: str, protocol: int, message: bytes, place: int) -> bytes:
    ends = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(target).packed
    summed = _checksum(ends + struct.pack("!II", len(message), protocol) + message)
    return struct.pack("!IHBB", 6 << 28, len(message), protocol, 255) + ends + message[:place] + summed + message[place + 2 :]


def _checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)
