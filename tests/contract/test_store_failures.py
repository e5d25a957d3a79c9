"""The store when its disk fails: every file operation in turn, each with every error; and power failures."""

import asyncio
import itertools
import random
import sqlite3
from pathlib import Path

import pytest

from paddock.server.store import database
from paddock.server.store.contract import StoreUnavailable
from paddock.server.store.sqlite import SqliteStore, open_store
from tests.contract.work import Work
from tests.kit.hostile import faultydisk
from tests.kit.hostile.faultydisk import ERRORS, Disk

pytestmark = pytest.mark.skipif(not faultydisk.usable, reason="the SQLite of this Python is not a shared library")
SEED = 5


def integrity(path: Path) -> str:
    with sqlite3.connect(path) as connection:
        verdict: str = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return verdict


def opened(path: Path, disk: Disk) -> SqliteStore:
    """Open on a disk that may fail at it; then it says so, and opening works when the disk is well."""
    faultydisk.insert(disk)
    try:
        return open_store(path, connect=faultydisk.connect, heal_seconds=0)
    except StoreUnavailable as error:
        if "cannot be opened" not in error.what:
            raise
        disk.mend()
        return open_store(path, connect=faultydisk.connect, heal_seconds=0)


class Patient(Work):
    """Looks, while nothing can be written, whether everything else goes on; then mends the disk."""

    def __init__(self, seed: int, disk: Disk) -> None:
        super().__init__(seed)
        self.disk = disk

    async def healed(self, store: SqliteStore) -> None:  # type: ignore[override]
        if store.unavailable and self.disk.lasting:
            assert "cannot write to" in store.unavailable
            before = [(key, value) for key, (_, value) in self.known.items() if value is not None]
            for key, value in before:
                record = store.get(key)
                assert record is not None and record.value == value
            assert store.history(store.compacted) is not None
            # Some attempts to heal meet the failure too.
            until = self.disk.count + 30
            for _ in range(20):
                if self.disk.count < until:
                    await asyncio.sleep(0.001)
            self.disk.mend()
        await super().healed(store)


def play(path: Path, disk: Disk) -> Patient:
    """The work on a disk; what was acknowledged must be all there is, in memory and on the disk."""
    work = Patient(SEED, disk)

    async def script() -> None:
        store = opened(path, disk)
        async with asyncio.timeout(20):
            await work.run(store)
        disk.mend()
        work.check(store, exactly=True)
        work.check_heard()
        await store.close()

    asyncio.run(script())
    assert integrity(path) == "ok"
    store = open_store(path, connect=database.connect)
    work.check(store, exactly=True)
    asyncio.run(store.close())
    return work


def operations(folder: Path) -> list[str]:
    """The file operations of the work when nothing fails."""
    disk = Disk()
    work = play(folder / "well.db", disk)
    assert not work.refused
    assert {"open", "write", "sync", "truncate", "size", "delete", "access", "shm"} <= set(disk.log)
    return disk.log


def check_failure(folder: Path, number: int, how: str, *, lasting: bool) -> int:
    disk = Disk()
    disk.fails, disk.lasting = (number, how), lasting
    folder.mkdir()
    return play(folder / "store.db", disk).refused


def cases(log: list[str]) -> list[tuple[int, str, bool]]:
    """Every operation with every error, once and for a while."""
    return [(number, how, lasting) for (number, _), how, lasting in itertools.product(enumerate(log), ERRORS, (False, True))]


def test_any_file_operation_may_fail(tmp_path: Path) -> None:
    log = operations(tmp_path)
    chance = random.Random(1)
    # Each kind of operation with each error, somewhere in the work.
    places = {kind: [number for number, found in enumerate(log) if found == kind] for kind in sorted(set(log))}
    chosen = [(chance.choice(places[kind]), how, chance.random() < 0.5) for kind in places for how in ERRORS]
    # A sync that fails for a while leaves on the disk what was refused, for whoever reads it next.
    chosen += [(number, "EIO", True) for number in chance.sample(places["sync"], 12)]
    refused = sum(check_failure(tmp_path / str(count), number, how, lasting=lasting) for count, (number, how, lasting) in enumerate(chosen))
    # The failures reached the writers; otherwise this would prove nothing.
    assert refused > len(chosen) // 4


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_every_file_operation_may_fail(tmp_path: Path, part: int) -> None:
    for count, (number, how, lasting) in enumerate(cases(operations(tmp_path))[part::8]):
        check_failure(tmp_path / str(count), number, how, lasting=lasting)


def check_power_cut(folder: Path, number: int, seed: int) -> None:
    """Cut the power at an operation, and start from what a disk may hold then."""
    folder.mkdir()
    disk = Disk()
    disk.cut_at = number
    work = Work(SEED)

    async def script() -> None:
        faultydisk.insert(disk)
        store = open_store(folder / "store.db", connect=faultydisk.connect, heal_seconds=3600)
        try:
            running = asyncio.create_task(work.run(store))
            while not running.done() and not disk.dead:
                await asyncio.sleep(0)
            # Nothing is acknowledged any more, and whoever waits is never answered.
            for _ in range(20):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        finally:
            await store.close()

    try:
        asyncio.run(script())
    except StoreUnavailable:
        assert not work.acknowledged
    after = folder / "after"
    after.mkdir()
    disk.image(after, random.Random(seed))
    (after / "store.db.lock").write_bytes((folder / "store.db.lock").read_bytes())
    store = open_store(after / "store.db")
    work.check(store, exactly=False)
    asyncio.run(store.close())
    assert integrity(after / "store.db") == "ok"


def test_the_power_may_go_at_any_operation(tmp_path: Path) -> None:
    count = len(operations(tmp_path))
    chance = random.Random(2)
    for turn in range(40):
        check_power_cut(tmp_path / str(turn), chance.randrange(count), turn)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_the_power_may_go_at_every_operation(tmp_path: Path, part: int) -> None:
    count = len(operations(tmp_path))
    for number in range(part, count, 4):
        for seed in range(5):
            check_power_cut(tmp_path / f"{number}-{seed}", number, seed)
