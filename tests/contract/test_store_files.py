"""The files of a store: what is found when they were damaged, lost, replaced or restored. Never an empty store in silence."""

import asyncio
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from paddock.base.errors import Terminal
from paddock.server.store import backup
from paddock.server.store.contract import CommittedWrite, Compacted, Damaged, StoreKey, StoreUnavailable
from paddock.server.store.sqlite import SqliteStore, open_store
from paddock.server.store.watermark import InUse
from tests.coroutines import played_by

A = StoreKey("things", "ns", "a")
Script = Callable[[SqliteStore], Awaitable[None]]


def run(path: Path, script: Script) -> None:
    async def play() -> None:
        store = open_store(path, heal_seconds=0)
        try:
            await script(store)
        finally:
            await store.close()

    asyncio.run(play())


async def fill(store: SqliteStore) -> None:
    for number in range(60):
        key = StoreKey("things", "ns", f"k{number % 20}")
        before = store.decided(key)
        await store.put(key, before.revision if before else 0, lambda revision: b"%d " % revision * 200).committed()


def killed(path: Path, script: Script = fill) -> Path:
    """A store whose process is gone at once: its files copied while it is in use."""
    after = path.parent / "after"
    after.mkdir()

    async def then_copy(store: SqliteStore) -> None:
        await script(store)
        for name in (path.name, path.name + "-wal", path.name + ".lock"):
            (after / name).write_bytes((path.parent / name).read_bytes())

    run(path, then_copy)
    return after / path.name


def end_of(path: Path) -> int:
    found = []

    async def look(store: SqliteStore) -> None:
        found.append(store.revision)

    run(path, look)
    return found[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


# --- what is there --------------------------------------------------------------------------------------------------------


def test_after_a_kill_everything_is_there(path: Path) -> None:
    assert end_of(killed(path)) == 60


@pytest.mark.parametrize("kept", [0, 1, 32, 5000, 100_000])
def test_a_log_that_is_cut_off_is_not_taken_for_the_whole(path: Path, kept: int) -> None:
    left = killed(path)
    log = left.with_name("store.db-wal")
    log.write_bytes(log.read_bytes()[:kept])
    with pytest.raises(Damaged, match=r"has lost its newest writes: it ends at revision \d+, but 60 was written.*paddock backup restore"):
        open_store(left)


def test_a_log_that_is_gone_is_missed(path: Path) -> None:
    left = killed(path)
    left.with_name("store.db-wal").unlink()
    with pytest.raises(Damaged, match="-wal file"):
        open_store(left)


def test_what_is_left_of_a_store_can_be_restored(path: Path, tmp_path: Path) -> None:
    run(path, fill)
    left = killed(path)
    left.with_name("store.db-wal").unlink()
    (tmp_path / "aside").mkdir()
    left.rename(tmp_path / "aside" / "store.db")
    floor = backup.restore(tmp_path / "aside" / "store.db", left, now=0)
    assert floor > 120
    assert end_of(left) == floor


def test_a_log_with_a_flipped_bit_is_not_taken_for_the_whole(path: Path) -> None:
    left = killed(path)
    log = left.with_name("store.db-wal")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 4
    log.write_bytes(content)
    with pytest.raises(Damaged, match="paddock backup restore"):
        open_store(left)


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_a_database_that_is_gone_is_missed(path: Path, there: bool) -> None:
    run(path, fill)
    path.unlink()
    if there:
        path.touch()
    for _ in range(2):
        with pytest.raises(Damaged, match=r"there was a store here.*paddock backup restore"):
            open_store(path)
    assert path.exists() == there


def test_an_older_copy_is_not_taken_for_the_store(path: Path) -> None:
    run(path, fill)
    old = path.read_bytes()
    run(path, lambda store: store.put(A, 0, lambda _: b"later").committed())  # type: ignore[arg-type,return-value]
    path.write_bytes(old)
    with pytest.raises(Damaged, match="this is an older copy"):
        open_store(path)


def test_shared_memory_that_is_missing_or_wrong_is_made_anew(path: Path) -> None:
    left = killed(path)
    left.with_name("store.db-shm").write_bytes(b"\xff" * 32768)
    assert end_of(left) == 60


def test_flipped_bits_are_found(path: Path) -> None:
    run(path, fill)
    good = path.read_bytes()
    chance = random.Random(3)
    unnoticed = 0
    for _ in range(60):
        content = bytearray(good)
        for _ in range(3):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        try:
            store = open_store(path)
        except Damaged:
            continue
        # Free pages and unused bytes of a page say nothing; what is read must be what was written.
        unnoticed += 1
        assert store.revision == 60
        assert all(record.value == b"%d " % record.revision * 200 for record in store.scan("things"))
        asyncio.run(store.close())
    assert unnoticed < 20


def test_a_value_that_was_changed_by_hand_is_found(path: Path) -> None:
    run(path, fill)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET value = x'00' WHERE revision = 60")
    connection.close()
    with pytest.raises(Damaged, match="things k19 was changed on the disk"):
        open_store(path)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM log WHERE revision = 50", "revisions between 0 and 60 are missing"),
        ("UPDATE meta SET value = 3 WHERE key = 'format'", "has the format 3.*a newer one"),
        ("UPDATE meta SET value = 1 WHERE key = 'format'", "has the format 1"),
        ("DELETE FROM meta", "is not a store of Paddock"),
        ("DROP TABLE current", "the table current is missing"),
        ("UPDATE current SET name = 'other' WHERE name = 'k3'", "things other is missing from its log"),
    ],
)
def test_what_does_not_hold_together_is_refused(path: Path, statement: str, said: str) -> None:
    run(path, fill)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Damaged, match=said):
        open_store(path)
    assert path.read_bytes() == before


def test_other_files_are_not_stores(path: Path) -> None:
    path.write_bytes(b"something else\n" * 100)
    with pytest.raises(Damaged, match="file is not a database"):
        open_store(path)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(Damaged, match="is not a store of Paddock"):
        open_store(path)


@played_by(run, "path")
async def test_one_process_at_a_time(store: SqliteStore, /, path: Path) -> None:
    with pytest.raises(InUse, match="paddock down"):
        open_store(path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    with pytest.raises(StoreUnavailable, match=r"cannot be opened.*directory"):
        open_store(tmp_path / "store.db")
    with pytest.raises(StoreUnavailable, match="No such file"):
        open_store(tmp_path / "nowhere" / "store.db")


# --- files that change while they are used ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_file_that_is_removed_stops_writing_until_it_is_back(path: Path, suffix: str) -> None:
    async def script(store: SqliteStore) -> None:
        await fill(store)
        file = path.with_name(path.name + suffix)
        aside = path.with_name("aside")
        file.rename(aside)
        with pytest.raises(StoreUnavailable, match="was removed while it was in use"):
            await store.put(A, 0, lambda _: b"x").committed()
        assert store.get(StoreKey("things", "ns", "k0")) is not None
        if not suffix:
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert store.unavailable
            aside.rename(file)
        # Where the log was removed, the database was closed in between, which moves the log into it: an older log must not come back.
        async with asyncio.timeout(60):
            while store.unavailable:
                await asyncio.sleep(0.001)
        await store.put(A, 0, lambda _: b"x").committed()

    run(path, script)
    assert end_of(path) == 61


@played_by(run, "path")
async def test_a_file_that_is_replaced_is_not_written_to(store: SqliteStore, /, path: Path) -> None:
    await fill(store)
    path.unlink()
    path.write_bytes(b"")
    with pytest.raises(StoreUnavailable, match="was replaced while it was in use"):
        await store.put(A, 0, lambda _: b"x").committed()
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert store.unavailable


# --- backups --------------------------------------------------------------------------------------------------------------


def test_a_backup_of_a_store_in_use(path: Path, tmp_path: Path) -> None:
    async def script(store: SqliteStore) -> None:
        await fill(store)
        backup.copy(path, tmp_path / "copy")

    run(path, script)
    backup.copy(path, tmp_path / "stopped")
    for name in ("copy", "stopped"):
        assert end_of(tmp_path / name) == 60
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    with pytest.raises(Terminal, match="the file exists"):
        backup.copy(path, tmp_path / "copy")


def moved_away(path: Path) -> None:
    for each in path.parent.glob("store.db*"):
        if each.suffix != ".lock":
            each.unlink()


@pytest.mark.spec("kubevirt", 108, "Backup and restore of the engine's store")
@pytest.mark.parametrize("now", [1_700_000_000.0, 0.0], ids=["clock", "clock set back"])
def test_revisions_are_never_used_again(path: Path, tmp_path: Path, now: float) -> None:
    """The same old backup is restored again and again; what was issued in between is never issued again."""
    run(path, fill)
    backup.copy(path, tmp_path / "old")
    issued = 60
    for turn in range(4):
        moved_away(path)
        floor = backup.restore(tmp_path / "old", path, now=now + turn)
        assert floor > issued

        async def script(store: SqliteStore) -> None:
            nonlocal issued
            assert store.revision == store.compacted > issued
            with pytest.raises(Compacted):
                store.history(issued)
            assert len(list(store.scan("things"))) == 20
            heard: list[CommittedWrite] = []
            store.follow(heard.extend)  # type: ignore[arg-type]
            await fill(store)
            assert heard[0].revision > issued
            assert heard[0].previous is not None
            issued = store.revision

        run(path, script)
        assert end_of(path) == issued < 2**53


def test_a_clock_keeps_revisions_apart_where_nothing_else_is_known(path: Path, tmp_path: Path) -> None:
    """Two hosts restore the same backup, one an hour after the other."""
    run(path, fill)
    backup.copy(path, tmp_path / "old")
    first = backup.restore(tmp_path / "old", tmp_path / "one", now=1_700_000_000.0)
    second = backup.restore(tmp_path / "old", tmp_path / "two", now=1_700_003_600.0)
    assert second - first > 3600 * 100_000


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_nothing_is_restored_over_what_is_there(path: Path, tmp_path: Path, suffix: str) -> None:
    run(path, fill)
    backup.copy(path, tmp_path / "old")
    moved_away(path)
    path.with_name(path.name + suffix).write_bytes(b"x")
    with pytest.raises(Terminal, match=f"store.db{suffix} exists; move it away first"):
        backup.restore(tmp_path / "old", path, now=0)


def test_a_store_that_is_there_moves_aside_whole(path: Path, tmp_path: Path) -> None:
    run(path, fill)
    backup.copy(path, tmp_path / "old")
    left = killed(path, lambda store: store.put(A, 0, lambda _: b"later").committed())  # type: ignore[arg-type,return-value]
    aside = backup.place_aside(left, 1_700_000_000.5)
    assert aside == left.with_name("store.db.before-2023-11-14T22-13-20.500000")
    floor = backup.restore(tmp_path / "old", left, now=0, aside=aside)
    assert end_of(left) == floor
    assert end_of(aside) == 61
    with pytest.raises(backup.StoreConflict, match=r"before-.* exists; repeat the command"):
        backup.restore(tmp_path / "old", left, now=0, aside=aside)
    assert end_of(aside) == 61 and end_of(left) == floor


def test_a_store_takes_its_own_place(path: Path) -> None:
    run(path, fill)
    left = killed(path)
    left.with_name("store.db-wal").unlink()
    floor = backup.restore(left, left, now=0, aside=backup.place_aside(left, 1.0))
    assert end_of(left) == floor > 60


def test_no_store_moves_aside_for_a_backup_that_is_none(path: Path, tmp_path: Path) -> None:
    run(path, fill)
    (tmp_path / "wrong").write_bytes(b"no database")
    with pytest.raises((Damaged, sqlite3.Error)):
        backup.restore(tmp_path / "wrong", path, now=0, aside=backup.place_aside(path, 1.0))
    assert end_of(path) == 60


@pytest.mark.parametrize("wrong", [b"", b"no database", b"SQLite format 3\0"], ids=["empty", "text", "torn"])
def test_what_is_no_backup_is_not_restored(path: Path, tmp_path: Path, wrong: bytes) -> None:
    (tmp_path / "wrong").write_bytes(wrong)
    with pytest.raises((Damaged, sqlite3.Error)):
        backup.restore(tmp_path / "wrong", path, now=0)
    assert [each.name for each in tmp_path.iterdir() if each.name != "store.db.lock"] == ["wrong"]


def test_a_restore_that_is_killed_leaves_no_store(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(path, fill)
    backup.copy(path, tmp_path / "old")
    moved_away(path)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        backup.restore(tmp_path / "old", path, now=0)
    assert not path.exists()
    monkeypatch.undo()
    backup.restore(tmp_path / "old", path, now=0)


@played_by(run, "path")
async def test_a_store_in_use_is_not_restored(store: SqliteStore, /, path: Path, tmp_path: Path) -> None:
    with pytest.raises(InUse):
        backup.restore(tmp_path / "any", path, now=0)


def test_a_new_store_is_its_owners_alone(path: Path) -> None:
    run(path, fill)
    assert path.stat().st_mode & 0o777 == 0o600
