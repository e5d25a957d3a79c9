"""DHCP packets: what a guest is told, who gets no answer, and that nothing a guest sends breaks anything."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.engine.networks import dhcp
from paddock.engine.networks.dhcp import ACK, DISCOVER, INFORM, NAK, OFFER, REQUEST, DhcpLease
from paddock.engine.networks.nics import DhcpOptions

MAC = "02:11:22:33:44:55"
LEASE = DhcpLease(
    mac=MAC,
    address="10.0.2.2/24",
    server="10.0.2.1",
    gateway="10.0.2.1",
    dns=("10.0.2.1",),
    mtu=1500,
    hostname="web",
    domain="default.vm.cluster.local",
    search=("default.svc.cluster.local", "cluster.local"),
    options=DhcpOptions("tftp", "boot", ("192.0.2.1",), ((224, "x"), (255, "never"))),
)


def request(kind: int, mac: str = MAC, **options: bytes) -> bytes:
    """A client's packet; options by number, as o50=..."""
    fixed = struct.pack("!BBBBIHH16s16s64s128s", 1, 1, 6, 0, 7, 0, 0x8000, b"", bytes.fromhex(mac.replace(":", "")), b"", b"")
    told = b"".join(bytes([int(name[1:]), len(value)]) + value for name, value in options.items())
    return fixed + b"\x63\x82\x53\x63" + bytes([53, 1, kind]) + told + b"\xff"


def options_of(payload: bytes) -> dict[int, bytes]:
    return dhcp._options(payload[240:])


def answer(payload: bytes, lease: DhcpLease = LEASE) -> bytes | None:
    asked = dhcp.read(payload)
    assert asked is not None
    return dhcp.answer(asked, lease)


def test_an_offer_holds_everything() -> None:
    said = answer(request(DISCOVER))
    assert said is not None and len(said) >= 300
    assert said[16:20] == bytes([10, 0, 2, 2]) and said[4:8] == bytes([0, 0, 0, 7])
    found = options_of(said)
    assert found[53] == bytes([OFFER]) and found[54] == bytes([10, 0, 2, 1])
    assert found[51] == struct.pack("!I", 999 * 86400)
    assert (found[1], found[3], found[6]) == (bytes([255, 255, 255, 0]), bytes([10, 0, 2, 1]), bytes([10, 0, 2, 1]))
    assert (found[26], found[12], found[15]) == (b"\x05\xdc", b"web", b"default.vm.cluster.local")
    assert found[119] == b"\x07default\x03svc\x07cluster\x05local\0\x07cluster\x05local\0"
    assert (found[42], found[66], found[67], found[224]) == (bytes([192, 0, 2, 1]), b"tftp", b"boot", b"x")
    assert 121 not in found


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (request(REQUEST, o50=bytes([10, 0, 2, 2])), ACK),
        (request(REQUEST, o50=bytes([10, 0, 2, 2]), o54=bytes([10, 0, 2, 1])), ACK),
        (request(REQUEST, o50=bytes([10, 0, 2, 3])), NAK),
        (request(REQUEST), NAK),
        (request(INFORM), ACK),
        (request(REQUEST, o50=bytes([10, 0, 2, 2]), o54=bytes([10, 0, 2, 9])), None),
        (request(4), None),
        (request(7), None),
        (request(DISCOVER, "02:11:22:33:44:56"), None),
    ],
)
def test_what_a_request_comes_to(payload: bytes, kind: int | None) -> None:
    said = answer(payload)
    assert (None if said is None else options_of(said)[53][0]) == kind


def test_an_inform_gives_no_address_and_a_refusal_tells_nothing() -> None:
    informed, refused = answer(request(INFORM)), answer(request(REQUEST))
    assert informed is not None and informed[16:20] == bytes(4) and 51 not in options_of(informed)
    assert refused is not None and set(options_of(refused)) == {53, 54}


def test_a_gateway_outside_the_network_and_routes_are_classless() -> None:
    lease = DhcpLease(MAC, "10.112.64.5/32", "10.112.64.1", "10.112.64.1", routes=(("172.22.0.0/16", "10.112.64.9"),))
    said = answer(request(DISCOVER), lease)
    assert said is not None
    link, routed, default = bytes([32, 10, 112, 64, 1, 0, 0, 0, 0]), bytes([16, 172, 22, 10, 112, 64, 9]), bytes([0, 10, 112, 64, 1])
    assert options_of(said)[121] == link + routed + default


def test_a_long_option_comes_in_parts() -> None:
    said = answer(request(DISCOVER), DhcpLease(MAC, "10.0.2.2/24", "10.0.2.1", options=DhcpOptions(private=((230, "a" * 600),))))
    assert said is not None and options_of(said)[230] == b"a" * 600


def test_names_that_are_none_are_left_out() -> None:
    assert dhcp.names(("a..b", "x" * 64, "", "good.example", "y" * 60 + "." + "z.".join(["a" * 62] * 5))) == b"\x04good\x07example\0"


def test_a_frame_is_what_it_says() -> None:
    said = answer(request(DISCOVER))
    assert said is not None
    frame = dhcp.frame(said, LEASE, "02:00:00:00:00:00")
    assert frame[:6] == bytes.fromhex("021122334455") and dhcp.checksum(frame[14:34]) == 0
    pseudo = frame[26:34] + struct.pack("!BBH", 0, 17, len(frame) - 34)
    assert dhcp.checksum(pseudo + frame[34:]) in (0, 0xFFFF)
    turned = bytearray(frame)
    turned[36:38] = struct.pack("!H", 67)
    assert dhcp.unframe(bytes(turned)) == ("02:00:00:00:00:00", said)
    assert dhcp.unframe(frame) is None, "to a client, not to a server"


@given(st.binary(max_size=700))
def test_nothing_that_a_guest_sends_breaks_anything(data: bytes) -> None:
    dhcp.unframe(data)
    asked = dhcp.read(data)
    if asked is not None:
        dhcp.answer(asked, LEASE)


@given(st.binary(max_size=200), st.integers(0, 255))
def test_options_are_read_or_left(tail: bytes, kind: int) -> None:
    asked = dhcp.read(request(kind)[:-1] + tail)
    if asked is not None:
        dhcp.answer(asked, LEASE)


@given(st.binary(max_size=60))
def test_a_bent_frame_is_no_frame_or_stays_inside(noise: bytes) -> None:
    said = answer(request(DISCOVER))
    assert said is not None
    frame = bytearray(dhcp.frame(said, LEASE, "02:00:00:00:00:00"))
    frame[36:38] = struct.pack("!H", 67)
    frame[14 : 14 + len(noise)] = noise
    found = dhcp.unframe(bytes(frame))
    assert found is None or len(found[1]) <= len(frame) - 42
