"""The allocation of addresses: the same each time, none twice, and not at once a stranger's."""

import asyncio
import ipaddress
import itertools
import os
import signal
import threading
from pathlib import Path

import pytest

from paddock.engine.networks import addresses
from paddock.engine.networks.addresses import AddressTable, check_network, choose_network, free_mac, loopback
from paddock.engine.networks.addressstore import AddressStore
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import NicSpec
from tests.coroutines import run_by

NETWORK = "10.112.64.0/18"
FULL = ipaddress.IPv4Network("10.0.0.0/28").num_addresses - 3


def test_a_card_keeps_what_it_was_given() -> None:
    book, first = AddressTable(NETWORK).give(("vm", "default"), 0.0)
    again, second = book.give(("vm", "default"), 50.0)
    assert again is book and first == second
    assert AddressTable(NETWORK).give(("vm", "default"), 9.0)[1] == first, "the same card on an empty book"


def test_a_mac_of_ours_is_locally_administered_and_no_group() -> None:
    first = int(free_mac(("vm", "default"), ()).split(":")[0], 16)
    assert first & 2 and not first & 1


def test_a_taken_mac_is_passed_over() -> None:
    first = free_mac(("vm", "a"), ())
    assert free_mac(("vm", "a"), {first}) != first


def test_a_mac_that_the_user_wrote_wins_and_changes_nothing_else() -> None:
    book, before = AddressTable(NETWORK).give(("vm", "a"), 0.0)
    _, after = book.give(("vm", "a"), 0.0, "DE:AD:00:00:be:ef")
    assert (after.mac, after.index) == ("de:ad:00:00:be:ef", before.index)


def test_every_address_of_a_network_is_given_once_and_then_no_more() -> None:
    book, seen = AddressTable("10.0.0.0/28"), set()
    for number in range(FULL):
        book, entry = book.give((f"vm{number}", "a"), 0.0)
        seen.add(book.address(entry))
    assert len(seen) == FULL and book.host not in seen and "10.0.0.0" not in seen and "10.0.0.15" not in seen
    with pytest.raises(NetworkUnusable, match="all 13 addresses"):
        book.give(("one more", "a"), 0.0)


def test_a_released_address_rests_before_somebody_else_gets_it() -> None:
    book = AddressTable("10.0.0.0/28")
    for number in range(FULL):
        book, _ = book.give((f"vm{number}", "a"), 0.0)
    book = book.release({"vm3"}, 100.0)
    with pytest.raises(NetworkUnusable):
        book.give(("new", "a"), 100.0 + addresses.REST_SECONDS - 1)
    book, entry = book.give(("new", "a"), 100.0 + addresses.REST_SECONDS)
    assert entry.index in range(2, 15)


def test_releasing_a_stranger_changes_nothing() -> None:
    book, _ = AddressTable(NETWORK).give(("vm", "a"), 0.0)
    assert book.release({"nobody"}, 1.0) is book


@pytest.mark.parametrize(
    ("wanted", "routes", "chosen"),
    [
        ("", [], addresses.CANDIDATES[0]),
        ("", ["10.112.0.0/14"], addresses.CANDIDATES[1]),
        ("", ["10.0.0.0/8"], "172.30.64.0/18"),
        ("10.1.0.0/16", ["10.2.0.0/16"], "10.1.0.0/16"),
    ],
)
def test_a_network_is_chosen_that_nobody_uses(wanted: str, routes: list[str], chosen: str) -> None:
    assert choose_network(wanted, routes, "10.96.0.0/12") == chosen


@pytest.mark.parametrize("wanted", ["10.96.64.0/18", "192.0.2.0/24"])
def test_a_network_in_use_is_refused_and_the_clash_is_named(wanted: str) -> None:
    with pytest.raises(NetworkUnusable, match=r"10\.96\.0\.0/12|192\.0\.2\.0/25"):
        choose_network(wanted, ["192.0.2.0/25"], "10.96.0.0/12")


@pytest.mark.parametrize("text", ["10.0.0.1/8", "nonsense", "10.0.0.0/30", "fd00::/64"])
def test_a_malformed_network_is_refused(text: str) -> None:
    with pytest.raises(NetworkUnusable):
        check_network(text)


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        ("10.0.0.0/8", ("10.0.0.0/8", "")),
        ("fd00:1::/64", ("", "fd00:1::/64")),
        ("10.0.0.0/8,fd00:1::/64", ("10.0.0.0/8", "fd00:1::/64")),
        ("fd00:1::/104, 10.0.0.0/8", ("10.0.0.0/8", "fd00:1::/104")),
    ],
)
def test_one_network_for_each_family(text: str, networks: tuple[str, str]) -> None:
    assert addresses.check_networks(text) == networks


@pytest.mark.parametrize("text", ["", "10.0.0.0/8,10.0.0.0/9", "fd00::/64,fd01::/64", "fd00::1/64", "fd00::/112", "fe80::/64", "ff02::/64"])
def test_other_networks_are_refused(text: str) -> None:
    with pytest.raises(NetworkUnusable, match="as pod network"):
        addresses.check_networks(text)


def test_the_number_of_a_card_is_the_same_in_both_families() -> None:
    book, entry = AddressTable("10.0.0.0/24", network6="fd00:1::/64").give(("vm", "a"), 0.0)
    assert ipaddress.IPv4Address(book.address(entry)) == ipaddress.IPv4Network("10.0.0.0/24")[entry.index]
    assert ipaddress.IPv6Address(book.address6(entry)) == ipaddress.IPv6Network("fd00:1::/64")[entry.index]
    assert (book.host, book.host6) == ("10.0.0.1", "fd00:1::1")
    assert book.moved("10.0.0.0/24").address6(entry) == "" and book.moved("10.0.0.0/24").entries == book.entries
    alone = book.moved("", "fd00:1::/64")
    assert (alone.address(entry), alone.host) == ("", "") and alone.address6(entry) == book.address6(entry)


def test_the_ipv6_network_is_that_of_the_site() -> None:
    assert addresses.choose_network6("", "0123456789", (), "10.96.0.0/12,fd00:10:96::/112") == "fd01:2345:6789::/64"
    assert addresses.choose_network6("fd00:1::/64", "0123456789", ("fd00:2::/64", "10.0.0.0/8"), "") == "fd00:1::/64"
    with pytest.raises(NetworkUnusable, match="overlaps fd01:2345:6789:0:8000::/65"):
        addresses.choose_network6("", "0123456789", ("fd01:2345:6789:0:8000::/65",), "")


def test_loopback_addresses_of_all_numbers_are_loopback_addresses() -> None:
    places = {loopback(index, high=high) for index in (2, 255, 16383) for high in (False, True)}
    assert len(places) == 6 and all(ipaddress.IPv4Address(place).is_loopback for place in places)


def test_the_book_is_the_same_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "networks" / "addresses.json"
    ledger = AddressStore.open(path, lambda: AddressTable(NETWORK, "00000000ab", network6="fd00:1::/64"))
    entry = asyncio.run(ledger.give(("vm", "a"), 5.0))
    asyncio.run(ledger.give(("gone", "a"), 5.0))
    asyncio.run(ledger.release({"gone"}, 6.0))
    again = AddressStore.open(path, lambda: AddressTable("10.0.0.0/28"))
    assert again.book == ledger.book and again.get(("vm", "a")) == entry
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_could_not_be_written_was_not_given(tmp_path: Path) -> None:
    ledger = AddressStore.open(tmp_path / "addresses.json", lambda: AddressTable(NETWORK))
    (tmp_path / "addresses.new").mkdir()
    with pytest.raises(OSError, match="directory"):
        asyncio.run(ledger.give(("vm", "a"), 0.0))
    assert ledger.get(("vm", "a")) is None


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b'{"version": 2}', b'{"version": 1, "network": "10.0.0.0/24"}', b'{"version":1,"cards":3}', b"\xff"]
)
def test_an_unreadable_book_is_said_and_not_replaced(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "addresses.json"
    path.write_bytes(raw)
    ledger = AddressStore.open(path, lambda: AddressTable(NETWORK))
    for _ in range(2):
        with pytest.raises(NetworkUnusable, match=f"cannot read the addresses of machines in {path}") as refused:
            asyncio.run(ledger.give(("vm", "a"), 0.0))
        assert refused.value.reason_code == "AddressesDamaged"
    asyncio.run(ledger.release({"vm"}, 0.0))
    assert path.read_bytes() == raw and ledger.owners() == set()


def test_a_book_that_is_put_back_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "addresses.json"
    entry = asyncio.run(AddressStore.open(path, lambda: AddressTable(NETWORK)).give(("vm", "a"), 0.0))
    kept = path.read_bytes()
    path.write_bytes(kept.replace(b"vm", b"\xff\xfe"))
    ledger = AddressStore.open(path, lambda: AddressTable(NETWORK))
    with pytest.raises(NetworkUnusable):
        asyncio.run(ledger.give(("vm", "a"), 0.0))
    path.write_bytes(kept)
    assert asyncio.run(ledger.give(("vm", "a"), 0.0)) == entry and not ledger.is_damaged
    asyncio.run(ledger.release({"vm"}, 0.0))
    assert ledger.owners() == set()


def test_a_sudden_end_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    path = tmp_path / "addresses.json"
    answered: dict[tuple[str, str], str] = {}
    for turn in range(5):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            ledger = AddressStore.open(path, lambda: AddressTable(NETWORK))
            for number in range(10_000):
                entry = asyncio.run(ledger.give((f"vm{turn}-{number}", "a"), 0.0))
                os.write(writer, f"{entry.owner} {entry.mac}\n".encode())
        os.close(writer)
        with os.fdopen(reader) as lines:
            for _ in range(3 + 7 * turn):
                owner, mac = lines.readline().split()
                answered[owner, "a"] = mac
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        book = AddressStore.open(path, lambda: AddressTable(NETWORK)).book
        assert {key: book.entries[key].mac for key in answered} == answered
        assert len({entry.index for entry in book.entries.values()}) == len(book.entries)


@run_by(asyncio.run)
async def test_a_slow_disk_keeps_nobody_but_the_one_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = AddressStore.open(tmp_path / "addresses.json", lambda: AddressTable(NETWORK))
    flushed = threading.Event()
    monkeypatch.setattr("os.fdatasync", lambda _: flushed.wait(30))
    asked = [asyncio.create_task(ledger.give((name, "a"), 0.0)) for name in ("vm", "other")]
    await asyncio.sleep(0.01)
    assert not any(each.done() for each in asked) and ledger.owners() == set()
    flushed.set()
    one, other = await asyncio.gather(*asked)
    assert one.index != other.index and ledger.owners() == {"vm", "other"}


@run_by(asyncio.run)
async def test_who_gives_up_waits_for_what_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "addresses.json"
    ledger = AddressStore.open(path, lambda: AddressTable(NETWORK))
    flushed, times = threading.Event(), itertools.count()
    monkeypatch.setattr("os.fdatasync", lambda _: next(times) == 0 and flushed.wait(30))
    given_up = asyncio.create_task(ledger.give(("gone", "a"), 0.0))
    await asyncio.sleep(0.01)
    given_up.cancel()
    later = asyncio.create_task(ledger.give(("vm", "a"), 0.0))
    await asyncio.sleep(0.01)
    assert not later.done()
    flushed.set()
    await later
    assert given_up.cancelled()
    assert AddressStore.open(path, lambda: AddressTable(NETWORK)).book == ledger.book and ledger.owners() == {"vm"}


def test_there_are_networks_for_hundreds_of_directories_and_none_overlaps_another() -> None:
    networks = sorted(ipaddress.IPv4Network(each) for each in addresses.CANDIDATES)
    assert len(networks) > 500 and all(each.is_private for each in networks)
    assert all(one.broadcast_address < other.network_address for one, other in itertools.pairwise(networks))
    assert choose_network("", addresses.CANDIDATES[:-1], "10.96.0.0/12") == addresses.CANDIDATES[-1]


def test_user_mode_takes_no_network_and_keeps_addresses_when_there_is_one(tmp_path: Path) -> None:
    networks = Networks(tmp_path / "networks", NetworkSettings(mode="user"))
    card = NicSpec("vm", "default")
    plug = asyncio.run(networks.plug(card))
    assert networks._ledger.book.network == "" and plug.address.startswith("127.64.")
    moved = networks._ledger.book.moved("10.1.0.0/16")
    entry = moved.entries[card.key]
    assert entry.mac == plug.mac and moved.address(entry).startswith("10.1.")
    assert networks._ledger.book.moved("10.1.0.0/28").entries.keys() <= {card.key}


@pytest.mark.parametrize(
    ("routes", "found"), [([], ""), (["10.0.0.0/8"], ""), (["10.112.64.0/18"], "10.112.64.0/18"), (["10.112.65.0/24"], "10.112.65.0/24")]
)
def test_a_wider_route_does_no_harm_to_a_network_that_is_there(routes: list[str], found: str) -> None:
    assert addresses.intruder(NETWORK, routes) == found
