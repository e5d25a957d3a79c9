"""The promises of a store, held against every implementation, with a small model as the judge."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from paddock.server.store.contract import CommittedWrite, Compacted, RevisionConflict, Store, StoredValue, StoreKey, StoreUnavailable
from paddock.server.store.memory import MemoryStore
from paddock.server.store.sqlite import open_store
from tests.coroutines import played_by, run_by
from tests.kit.declarations.sampling import one_in

Open = Callable[[], Store]
A, B = StoreKey("things", "ns", "a"), StoreKey("things", "ns", "b")


@pytest.fixture(params=["memory", "sqlite"])
def open_new(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return MemoryStore if request.param == "memory" else lambda: open_store(tmp_path / "store.db")


def run(open_new: Open, script: Callable[[Store], Any]) -> None:
    async def play() -> None:
        store = open_new()
        try:
            await script(store)
        finally:
            await store.close()

    asyncio.run(play())


def said(text: str) -> Callable[[int], bytes]:
    return lambda revision: f"{text}@{revision}".encode()


@played_by(run, "open_new")
async def test_revisions_are_one_two_three(store: Store, /) -> None:
    assert store.revision == 0
    pending = [store.put(StoreKey("c", "n", str(i)), 0, said("x")) for i in range(5)]
    assert [write.revision for write in pending] == [1, 2, 3, 4, 5]
    assert [await write.committed() for write in pending] == [1, 2, 3, 4, 5]
    assert store.revision == 5


@played_by(run, "open_new")
async def test_a_write_is_decided_at_once_and_seen_when_committed(store: Store, /) -> None:
    write = store.put(A, 0, said("x"))
    assert store.decided(A) == StoredValue(A, 1, b"x@1")
    assert store.get(A) is None
    await write.committed()
    assert store.get(A) == StoredValue(A, 1, b"x@1")


@played_by(run, "open_new")
async def test_conflicts_are_decided_against_what_is_not_yet_committed(store: Store, /) -> None:
    store.put(A, 0, said("x"))
    with pytest.raises(RevisionConflict) as refused:
        store.put(A, 0, said("y"))
    assert (refused.value.expected, refused.value.found) == (0, 1)
    last = store.put(A, 1, said("z"))
    with pytest.raises(RevisionConflict):
        store.delete(A, 1, said("gone"))
    assert await last.committed() == 2
    with pytest.raises(RevisionConflict):
        store.delete(B, 0, said("never there"))


@played_by(run, "open_new")
async def test_followers_hear_every_change_in_order_before_the_writer_is_answered(store: Store, /) -> None:
    heard: list[CommittedWrite] = []
    store.follow(lambda changes: heard.extend(changes))
    store.put(A, 0, said("one"))
    store.put(A, 1, said("two"))
    last = store.delete(A, 2, said("gone"))
    await last.committed()
    assert heard == [
        CommittedWrite(1, A, b"one@1", None, False),
        CommittedWrite(2, A, b"two@2", StoredValue(A, 1, b"one@1"), False),
        CommittedWrite(3, A, b"gone@3", StoredValue(A, 2, b"two@2"), True),
    ]
    assert store.history(1) == tuple(heard[1:])


@played_by(run, "open_new")
async def test_scan_and_snapshot_are_in_order(store: Store, /) -> None:
    for name in ("b", "a", "c"):
        await store.put(StoreKey("things", "n", name), 0, said(name)).committed()
    await store.put(StoreKey("things", "m", "z"), 0, said("z")).committed()
    await store.put(StoreKey("others", "n", "a"), 0, said("other")).committed()
    assert [record.key[1:] for record in store.scan("things")] == [("m", "z"), ("n", "a"), ("n", "b"), ("n", "c")]
    await store.delete(StoreKey("things", "n", "a"), 2, said("gone")).committed()
    assert [record.key.name for record in store.snapshot("things", 3)] == ["a", "b", "c"]
    assert store.collections() == ("others", "things")


@played_by(run, "open_new")
async def test_compaction_forgets_history_and_keeps_values(store: Store, /) -> None:
    for count in range(10):
        await store.put(A, count, said("x")).committed()
    await store.compact(6)
    assert store.compacted == 6
    with pytest.raises(Compacted):
        store.history(5)
    assert [change.revision for change in store.history(6)] == [7, 8, 9, 10]
    assert store.snapshot("things", 6) == (StoredValue(A, 6, b"x@6"),)
    assert store.get(A) == StoredValue(A, 10, b"x@10")


@played_by(run, "open_new")
async def test_a_writer_that_goes_away_does_not_take_its_write_back(store: Store, /) -> None:
    waiting = asyncio.create_task(store.put(A, 0, said("x")).committed())
    await asyncio.sleep(0)
    waiting.cancel()
    await store.put(B, 0, said("y")).committed()
    assert store.get(A) is not None


@run_by(asyncio.run)
async def test_a_closed_store_refuses(open_new: Open) -> None:
    store = open_new()
    write = store.put(A, 0, said("x"))
    await store.close()
    assert await write.committed() == 1
    with pytest.raises(StoreUnavailable):
        store.put(B, 0, said("y"))


class StoreAndModel(RuleBasedStateMachine):
    """Random writes against a dictionary and a list; sqlite is closed and opened again at random."""

    reopens = False
    runs = 0

    @staticmethod
    def open_numbered(number: int) -> Store:
        """The store of one run; runs are numbered, because each starts empty."""
        raise LookupError(f"run {number} has no store")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.values: dict[StoreKey, tuple[int, bytes]] = {}
        self.log: list[tuple[int, StoreKey, bool]] = []
        self.compacted = 0

    @initialize()
    def start(self) -> None:
        type(self).runs += 1
        self.store = self.open()

    def open(self) -> Store:
        return type(self).open_numbered(type(self).runs)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()

    keys = st.builds(StoreKey, st.sampled_from(["c", "d"]), st.sampled_from(["", "n"]), st.sampled_from(["a", "b", "c"]))

    @rule(batch=st.lists(st.tuples(keys, st.sampled_from(["put", "put", "delete", "stale"])), min_size=1, max_size=8))
    def write(self, batch: list[tuple[StoreKey, str]]) -> None:
        async def play() -> None:
            pending = []
            for key, verb in batch:
                at = self.values.get(key, (0, b""))[0]
                if verb == "stale":
                    with pytest.raises(RevisionConflict):
                        self.store.put(key, at + 1, said("never"))
                elif verb == "put":
                    write = self.store.put(key, at, said("v"))
                    self.values[key] = (write.revision, b"v@%d" % write.revision)
                    self.log.append((write.revision, key, False))
                    pending.append(write)
                elif at:
                    write = self.store.delete(key, at, said("gone"))
                    del self.values[key]
                    self.log.append((write.revision, key, True))
                    pending.append(write)
            for write in pending:
                await write.committed()

        self.loop.run_until_complete(play())

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(0, len(self.log) - 1))
        self.loop.run_until_complete(self.store.compact(revision))
        self.compacted = max(self.compacted, revision)

    @precondition(lambda self: self.reopens)
    @rule()
    def reopen(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.store = self.open()

    @invariant()
    def agrees(self) -> None:
        assert self.store.revision == len(self.log)
        found = {record.key: (record.revision, record.value) for name in "cd" for record in self.store.scan(name)}
        assert found == self.values
        assert [(c.revision, c.key, c.deleted) for c in self.store.history(self.store.compacted)] == self.log[self.store.compacted :]
        for name in "cd":
            at = {}
            for _, key, deleted in self.log[: self.store.compacted]:
                at[key] = not deleted
            assert [r.key for r in self.store.snapshot(name, self.store.compacted)] == sorted(
                key for key, there in at.items() if there and key.collection == name
            )


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_random_writes_agree_with_a_model(kind: str, tmp_path: Path) -> None:
    class Machine(StoreAndModel):
        reopens = kind == "sqlite"

        @staticmethod
        def open_numbered(number: int) -> Store:
            return MemoryStore() if kind == "memory" else open_store(tmp_path / f"{number}.db")

    run_state_machine_as_test(Machine, settings=one_in(3))
