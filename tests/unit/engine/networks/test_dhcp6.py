"""DHCPv6 and router advertisements as bytes: what is answered, and what is not."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paddock.engine.networks import dhcp, dhcp6
from paddock.engine.networks.dhcp6 import Dhcp6Lease

MAC, ROUTER_MAC = "02:00:00:00:00:05", "02:00:00:00:00:00"
LEASE = Dhcp6Lease(MAC, "fd10:0:2::2", "fe80::1", ROUTER_MAC, dns=("fd10:0:2::1",), search=("svc.cluster.local",), mtu=1400)
GUEST = ipaddress.IPv6Address("fe80::5").packed
IDENTITY = struct.pack("!HH", 3, 1) + bytes.fromhex(MAC.replace(":", ""))
SERVER = struct.pack("!HH", 3, 1) + bytes.fromhex(ROUTER_MAC.replace(":", ""))
ASSOCIATION = b"abcd" + bytes(8)


def option(code: int, value: bytes) -> bytes:
    return struct.pack("!HH", code, len(value)) + value


def framed(protocol: int, body: bytes, mac: str = MAC) -> bytes:
    head = struct.pack("!IHBB", 6 << 28, len(body), protocol, 255) + GUEST + ipaddress.IPv6Address("ff02::1:2").packed
    return b"\x33\x33\0\1\0\2" + bytes.fromhex(mac.replace(":", "")) + b"\x86\xdd" + head + body


def asked(kind: int, *options: bytes, mac: str = MAC, port: int = 547) -> bytes:
    message = bytes([kind]) + b"xyz" + b"".join(options)
    return framed(17, struct.pack("!HHHH", 546, port, 8 + len(message), 0) + message, mac)


def message(frame: bytes | None) -> tuple[int, dict[int, bytes]]:
    """Return the kind and the options of an answer, whose checksum is right."""
    assert frame is not None
    packet = frame[14:]
    length = struct.unpack("!H", packet[4:6])[0]
    assert dhcp.checksum(packet[8:40] + struct.pack("!II", length, packet[6]) + packet[40:]) == 0
    assert frame[:6] == bytes.fromhex(MAC.replace(":", "")) and packet[24:40] == GUEST and packet[48 + 1 : 48 + 4] == b"xyz"
    return packet[48], options_of(packet[52:])


def options_of(data: bytes) -> dict[int, bytes]:
    found = {}
    while data:
        code, length = struct.unpack_from("!HH", data)
        found[code], data = data[4 : 4 + length], data[4 + length :]
    return found


CLIENT, NAMED, WANTED = option(1, IDENTITY), option(2, SERVER), option(3, ASSOCIATION)


@pytest.mark.parametrize(
    ("frame", "kind", "status"),
    [
        (asked(1, CLIENT, WANTED), 2, None),
        (asked(1, CLIENT, WANTED, option(14, b"")), 7, None),
        (asked(3, CLIENT, NAMED, WANTED), 7, None),
        (asked(5, CLIENT, NAMED, WANTED), 7, None),
        (asked(6, CLIENT, WANTED), 7, None),
        (asked(8, CLIENT, NAMED, WANTED), 7, 0),
        (asked(9, CLIENT, NAMED, WANTED), 7, 0),
        (asked(11), 7, None),
    ],
)
def test_what_is_answered(frame: bytes, kind: int, status: int | None) -> None:
    said, options = message(dhcp6.answer(frame, LEASE))
    assert said == kind and options[2] == SERVER
    assert (int.from_bytes(options[13], "big") if 13 in options else None) == status
    if 3 in options:
        address = options_of(options[3][12:])[5]
        assert options[3][:4] == b"abcd" and ipaddress.IPv6Address(address[:16]) == ipaddress.IPv6Address("fd10:0:2::2")
        assert struct.unpack("!II", address[16:24]) == (999 * 86400, 999 * 86400)


@pytest.mark.parametrize(
    "frame",
    [
        asked(1, WANTED),
        asked(3, CLIENT, WANTED),
        asked(3, CLIENT, option(2, b"other"), WANTED),
        asked(1, CLIENT, NAMED, WANTED),
        asked(1, CLIENT, WANTED, mac="02:00:00:00:00:06"),
        asked(1, CLIENT, WANTED, port=546),
        asked(2, CLIENT, WANTED),
        asked(12, CLIENT, WANTED),
        asked(1, CLIENT, b"\0\3\xff\xff"),
        framed(58, b"\x87\0\0\0"),
        framed(6, b"\x85\0\0\0\0\0\0\0"),
        framed(58, b"\x85\0\0\0")[:40],
    ],
)
def test_what_is_not_answered(frame: bytes) -> None:
    assert dhcp6.answer(frame, LEASE) is None


def test_nobody_gets_a_second_address_or_a_prefix() -> None:
    _, options = message(dhcp6.answer(asked(1, CLIENT, WANTED, option(25, b"pppp" + bytes(8))), LEASE))
    assert int.from_bytes(options_of(options[25][12:])[13], "big") == 6
    answer = dhcp6.answer(asked(1, CLIENT, WANTED, option(3, b"more" + bytes(8))), LEASE)
    _, options = message(answer)
    assert options[3][:4] == b"more" and int.from_bytes(options_of(options[3][12:])[13], "big") == 2


def test_an_address_of_somebody_else_is_taken_away_and_not_confirmed() -> None:
    other = ipaddress.IPv6Address("fd00::9").packed
    wanted = option(3, ASSOCIATION + option(5, other + bytes(8)))
    answer = dhcp6.answer(asked(6, CLIENT, wanted), LEASE)
    assert answer is not None and other + bytes(8) in answer
    _, options = message(dhcp6.answer(asked(4, CLIENT, wanted), LEASE))
    assert int.from_bytes(options[13], "big") == 4


def test_the_router_says_that_it_is_there_and_no_prefix() -> None:
    for frame in (dhcp6.advertisement(LEASE), dhcp6.answer(framed(58, b"\x85\0\0\0\0\0\0\0"), LEASE)):
        assert frame is not None
        packet = frame[14:]
        assert dhcp.checksum(packet[8:40] + struct.pack("!II", len(packet) - 40, 58) + packet[40:]) == 0
        assert packet[7] == 255 and packet[40] == 134 and packet[45] == 0xC0 and packet[46:48] == b"\xff\xff"
        options, kinds = packet[56:], []
        while options:
            kinds.append(options[0])
            options = options[8 * options[1] :]
        assert kinds == [1, 5, 25, 31]
    assert dhcp6.advertisement(replace(LEASE, is_gateway=False))[60:62] == b"\0\0"


@given(st.binary(max_size=300))
def test_no_bytes_of_a_guest_do_harm(data: bytes) -> None:
    dhcp6.answer(data, LEASE)
    dhcp6.answer(framed(17, struct.pack("!HHHH", 546, 547, 0, 0) + data), LEASE)
    dhcp6.answer(framed(58, data), LEASE)
