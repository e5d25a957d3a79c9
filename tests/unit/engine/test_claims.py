"""Servers of one host: each has user numbers and a pod network of its own, also after a reboot, and nobody's for ever."""

import json
import os
from pathlib import Path

import pytest

from paddock.engine import claims
from paddock.engine.claims import BLOCK, FIRST, HostReservations, ReservationsUnusable
from paddock.engine.networks.addresses import choose_network


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Guests of other tests may run.
    monkeypatch.setattr(claims, "uids", set)
    return tmp_path / "host"


def directories(tmp_path: Path, count: int) -> list[Path]:
    found = [tmp_path / f"d{number}" for number in range(count)]
    for each in found:
        each.mkdir()
    return found


@pytest.mark.spec("kubevirt", 118)
def test_directories_have_blocks_of_their_own_and_keep_them(tmp_path: Path, place: Path) -> None:
    made = directories(tmp_path, 25)
    first = [HostReservations(place).users(each) for each in made]
    assert len(set(first)) == 25 and all(abs(one - other) >= BLOCK for one in first for other in first if one != other)
    assert [HostReservations(place).users(each) for each in reversed(made)] == first[::-1], "the next process reads the same"
    assert set(HostReservations(place).directories()) == set(made)


def test_numbers_of_earlier_versions_are_given_to_nobody(tmp_path: Path, place: Path) -> None:
    assert HostReservations(place).users(directories(tmp_path, 1)[0]) >= FIRST + BLOCK


def test_a_directory_has_networks_that_no_other_has(tmp_path: Path, place: Path) -> None:
    made = directories(tmp_path, 25)
    given = [HostReservations(place).networks(each, lambda others: (choose_network("", others, "10.96.0.0/12"), ""))[0] for each in made]
    assert len(set(given)) == 25


def test_a_directory_that_is_gone_lets_go_and_one_whose_processes_run_does_not(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three, four = directories(tmp_path, 4)
    first, second = HostReservations(place).users(one), HostReservations(place).users(two)
    one.rmdir()
    two.rmdir()
    monkeypatch.setattr(claims, "uids", lambda: {second + 5})
    assert HostReservations(place).users(three) == first
    assert HostReservations(place).users(four) not in (first, second)


def test_a_lost_record_gives_nobody_the_numbers_of_what_runs(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = directories(tmp_path, 2)
    running = HostReservations(place).users(one)
    (place / "claims.json").unlink()
    monkeypatch.setattr(claims, "uids", lambda: {running})
    assert HostReservations(place).users(two) != running


@pytest.mark.spec("kubevirt", 118)
def test_what_a_newer_version_added_to_the_record_stays(tmp_path: Path, place: Path) -> None:
    one, other = directories(tmp_path, 2)
    HostReservations(place).users(one)
    record = json.loads((place / "claims.json").read_text())
    record |= {"later": True, "claims": [each | {"vlan": 7} for each in record["claims"]]}
    (place / "claims.json").write_text(json.dumps(record))
    HostReservations(place).users(other)
    HostReservations(place).networks(one, lambda _: ("10.0.0.0/24", "fd00::/64"))
    found = json.loads((place / "claims.json").read_text())
    assert found["later"] and [(each.get("vlan"), each["network"]) for each in found["claims"]] == [(7, "10.0.0.0/24"), (None, "")]


def test_what_is_released_is_free(tmp_path: Path, place: Path) -> None:
    one, two = directories(tmp_path, 2)
    first = HostReservations(place).users(one)
    HostReservations(place).release(one)
    assert HostReservations(place).users(two) == first


@pytest.mark.parametrize("raw", [b"", b"{", b'{"version": 2, "claims": []}', b'{"claims": 3}'])
def test_a_damaged_record_is_an_error_and_stays(tmp_path: Path, place: Path, raw: bytes) -> None:
    place.mkdir()
    (place / "claims.json").write_bytes(raw)
    with pytest.raises(ReservationsUnusable, match=r"claims\.json"):
        HostReservations(place).users(tmp_path)
    assert (place / "claims.json").read_bytes() == raw


def test_many_processes_at_once_get_different_blocks(tmp_path: Path, place: Path) -> None:
    made = directories(tmp_path, 8)
    readers = []
    for each in made:
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, str(HostReservations(place).users(each)).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    given = []
    for reader in readers:
        with os.fdopen(reader) as said:
            given.append(said.read())
        os.wait()
    assert len(set(given)) == 8 and all(given)
