"""The order and the time of guests that shut down with their host."""

from pathlib import Path

import pytest

from paddock.engine.machine.directory import Directory, Renewal, RunRecord
from paddock.engine.machine.hostshutdown import ShutdownGuest, guest_of, note_end, rounds, share


def guest(name: str, priority: int = 0, grace: float = 30.0) -> ShutdownGuest:
    return ShutdownGuest(Directory(Path(name)), priority, grace)


def test_guests_go_in_the_reverse_order_of_their_starts() -> None:
    found = rounds([guest("db", 1000), guest("web"), guest("idle", -5), guest("api")])
    assert [[each.directory.id for each in one] for one in found] == [["idle"], ["web", "api"], ["db"]]
    assert rounds([]) == []


@pytest.mark.parametrize(
    ("graces", "seconds", "first"),
    [
        ([[30, 60], [30]], 240, 60),
        ([[30], [30]], 60, 30),
        # Each round gets its part of what is there.
        ([[180], [180]], 240, 120),
        ([[300], [100], [100]], 100, 60),
        ([[30]], 0, 0),
        ([[0]], 240, 0),
    ],
)
def test_the_time_of_a_round(graces: list[list[float]], seconds: float, first: float) -> None:
    assert share([[guest("a", grace=each) for each in one] for one in graces], seconds) == pytest.approx(first)


def machine(tmp_path: Path, record: RunRecord | None) -> Directory:
    directory = Directory(tmp_path / "a")
    directory.make()
    if record is not None:
        directory.write_record(record)
    return directory


def test_a_guest_is_as_its_record_says(tmp_path: Path) -> None:
    lost = guest_of(machine(tmp_path, None))
    assert (lost.priority, lost.grace) == (0, 30.0)
    found = guest_of(machine(tmp_path, RunRecord(active=True, priority=7, grace=5.0)))
    assert (found.priority, found.grace) == (7, 5.0)


def test_a_guest_that_has_moved_is_beside(tmp_path: Path) -> None:
    directory = machine(tmp_path, RunRecord(active=True, renewal=Renewal(moved=True)))
    assert guest_of(directory).directory.run == directory.run, "its files have been renamed"
    directory.beside.run.mkdir()
    assert guest_of(directory).directory.run == directory.beside.run
    directory.write_record(RunRecord(active=True, renewal=Renewal(moved=False)))
    assert guest_of(directory).directory.run == directory.run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RunRecord(active=True), ("host-reboot",)),
        (RunRecord(active=True, evidence=("guest-shutdown",)), ("guest-shutdown",)),
        (RunRecord(active=False), ()),
    ],
)
def test_the_host_is_the_reason_unless_there_is_another(tmp_path: Path, before: RunRecord, after: tuple[str, ...]) -> None:
    directory = machine(tmp_path, before)
    note_end(directory.beside)
    record = directory.read_record()
    assert record is not None and record.evidence == after
