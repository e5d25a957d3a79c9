"""Names: what is known, what is asked of others, and that no packet breaks anything."""

import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.engine.networks import dns, dnsserver, guestnames
from paddock.engine.networks.dns import AAAA, NO_NAME, OK, PTR, A, Zone
from paddock.engine.networks.dnsserver import DnsServer
from paddock.engine.networks.nics import NicSpec
from tests.coroutines import run_by

CARDS = (
    (NicSpec("vm", "default", hostname="Web", group="shop", domain="front.shop.svc.cluster.local"), ("10.112.64.5", "fd00::5")),
    (NicSpec("db", "default", hostname="db", group="shop"), ("10.112.64.6",)),
    (NicSpec("mute", "default"), ("10.112.64.7",)),
)
NAMED = [(guestnames.own_names(card, "cluster.local"), addresses) for card, addresses in CARDS]
ZONE = Zone.of("cluster.local", NAMED, {"api.shop.svc.cluster.local": ("10.97.0.5",)}, "10.112.64.0/18", "10.96.0.0/12")


def query(name: str, kind: int = A, *, number: int = 7, flags: int = 0x0100, size: int = 0) -> bytes:
    more = b"\0" + struct.pack("!HHIH", dns.OPT, size, 0, 0) if size else b""
    return struct.pack("!HHHHHH", number, flags, 1, 0, 0, 1 if size else 0) + dns.wire(name) + struct.pack("!HH", kind, 1) + more


def look(name: str, kind: int = A) -> tuple[int, list[bytes]] | None:
    return ZONE.answer(dns.read(query(name, kind)))


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("web.shop.vm.cluster.local", A, (OK, [bytes([10, 112, 64, 5])])),
        ("WEB.Shop.VM.cluster.local", A, (OK, [bytes([10, 112, 64, 5])])),
        ("web.front.shop.svc.cluster.local", A, (OK, [bytes([10, 112, 64, 5])])),
        ("web.shop.vm.cluster.local", AAAA, (OK, [bytes([0xFD, *[0] * 14, 5])])),
        ("db.shop.vm.cluster.local", AAAA, (OK, [])),
        ("web.shop.vm.cluster.local", 16, (OK, [])),
        ("api.shop.svc.cluster.local", A, (OK, [bytes([10, 97, 0, 5])])),
        ("nobody.shop.vm.cluster.local", A, (NO_NAME, [])),
        ("shop.vm.cluster.local", A, (OK, [])),
        ("cluster.local", A, (OK, [])),
        ("web", A, (NO_NAME, [])),
        ("www.example.com", A, None),
        ("notcluster.local", A, None),
        ("5.64.112.10.in-addr.arpa", PTR, (OK, [dns.wire("web.front.shop.svc.cluster.local")])),
        ("9.64.112.10.in-addr.arpa", PTR, (NO_NAME, [])),
        ("9.2.0.192.in-addr.arpa", PTR, None),
    ],
)
def test_who_knows_what(name: str, kind: int, found: tuple[int, list[bytes]] | None) -> None:
    assert look(name, kind) == found


def test_services_are_found_before_machines() -> None:
    assert guestnames.search("shop", "cluster.local") == (
        "shop.svc.cluster.local",
        "svc.cluster.local",
        "cluster.local",
        "shop.vm.cluster.local",
        "vm.cluster.local",
    )


def test_an_answer_repeats_the_question() -> None:
    question = dns.read(query("Web.example"))
    said = dns.answer(question, OK, [bytes([1, 2, 3, 4])])
    assert said[12 : 12 + len(question.raw)] == query("Web.example")[12:]
    assert struct.unpack_from("!HHHH", said) == (7, 0x8580, 1, 1) and said.endswith(bytes([1, 2, 3, 4]))


def test_what_does_not_fit_is_asked_for_again_by_tcp() -> None:
    values = [bytes([10, 0, 0, number]) for number in range(60)]
    short = dns.answer(dns.read(query("a.example")), OK, values)
    assert len(short) < 512 and short[2] & 2
    assert not dns.answer(dns.read(query("a.example", size=4096)), OK, values)[2] & 2
    assert not dns.answer(dns.read(query("a.example")), OK, values, truncate=False)[2] & 2


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (query("a", flags=0x2000), dns.NOT_IMPLEMENTED),
        (query("a")[:-3], dns.FORMAT),
        (query("a")[:5] + b"\x02" + query("a")[6:], dns.FORMAT),
        (query("a")[:-1] + b"\x03", dns.REFUSED),
        (struct.pack("!HHHHHH", 7, 0, 1, 0, 0, 0) + b"\xc0\x0c" + b"\0\x01\0\x01", dns.FORMAT),
        (struct.pack("!HHHHHH", 7, 0, 1, 0, 0, 0) + (b"\x3f" + b"a" * 63) * 4 + b"\0\0\x01\0\x01", dns.FORMAT),
    ],
)
def test_what_is_no_question_is_said(data: bytes, code: int) -> None:
    with pytest.raises(dns.MalformedQuery) as caught:
        dns.read(data)
    assert (caught.value.id, caught.value.code) == (7, code)


@given(st.binary(max_size=600))
def test_nothing_that_is_sent_breaks_anything(data: bytes) -> None:
    dns.lifetime(data)
    try:
        question = dns.read(data)
    except dns.MalformedQuery:
        return
    found = ZONE.answer(question)
    dns.answer(question, *(found or (OK, [])))


@given(st.binary(max_size=80), st.integers(0, 65535))
def test_any_name_is_answered(tail: bytes, kind: int) -> None:
    try:
        ZONE.answer(dns.read(struct.pack("!HHHHHH", 7, 0, 1, 0, 0, 0) + tail + b"\0" + struct.pack("!HH", kind, 1)))
    except dns.MalformedQuery:
        return


def foreign(question: bytes, ttl: int = 60, code: int = 0) -> bytes:
    """Somebody else's answer to a question."""
    record = b"\xc0\x0c" + struct.pack("!HHIH", A, 1, ttl, 4) + bytes([192, 0, 2, 1])
    return question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, 1, 0, 0) + question[12:] + record


@run_by(asyncio.run)
async def test_answers_of_others_are_kept_for_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    now = [100.0]

    async def ask(server: str, data: bytes) -> bytes:
        asked.append(data)
        if server == "192.0.2.53":
            raise OSError("nobody there")
        return foreign(data)

    monkeypatch.setattr(dnsserver, "_ask_udp", ask)
    server = DnsServer(lambda: ZONE, lambda: ("192.0.2.53", "192.0.2.54"), seconds=lambda: now[0])
    said: list[bytes] = []
    for number in (1, 2):
        server.ask(query("www.example.com", number=number), "10.112.64.5", said.append)
        for _ in range(5):
            await asyncio.sleep(0)
    assert [each[:2] for each in said] == [b"\0\x01", b"\0\x02"] and all(each.endswith(bytes([192, 0, 2, 1])) for each in said)
    assert len(asked) == 2, "both resolvers once, then nobody"
    assert asked[0][:2] != b"\0\x01" or asked[1][:2] != b"\0\x01", "the number is our own"
    now[0] += 31
    server.ask(query("www.example.com"), "10.112.64.5", said.append)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(asked) == 4
    await server.close()


@run_by(asyncio.run)
async def test_a_guest_cannot_have_everybody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(server: str, data: bytes) -> bytes:
        await asyncio.sleep(3600)
        return b""

    monkeypatch.setattr(dnsserver, "_ask_udp", ask)
    server = DnsServer(lambda: ZONE, lambda: ("192.0.2.54",), seconds=lambda: 0.0)
    greedy: list[bytes] = []
    for number in range(100):
        server.ask(query(f"n{number}.example"), "10.112.64.5", greedy.append)
    assert len(greedy) == 36 and all(each[3] & 15 == dns.REFUSED for each in greedy)
    other: list[bytes] = []
    server.ask(query("www.example.com"), "10.112.64.6", other.append)
    assert other == [], "it waits, as it should"
    await server.close()


@pytest.mark.parametrize(("number", "name"), [(b"\0\x08", "www.example.com"), (b"\0\x07", "evil.example.com")])
def test_a_guess_is_no_answer(number: bytes, name: str) -> None:
    assert not dnsserver._is_answer(number + foreign(query(name))[2:], b"\0\x07", query("www.example.com"))
    assert dnsserver._is_answer(foreign(query("www.example.com")), b"\0\x07", query("www.example.com"))


@run_by(asyncio.run)
async def test_tcp_and_udp_at_one_port() -> None:
    server = DnsServer(lambda: ZONE, lambda: (), seconds=lambda: 0.0)
    await server.listen("127.0.0.1", port=0)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for name, code in (("db.shop.vm.cluster.local", OK), ("www.example.com", dns.FAILURE)):
        writer.write(struct.pack("!H", len(query(name))) + query(name))
        said = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        assert said[3] & 15 == code
    writer.close()
    await server.close()
