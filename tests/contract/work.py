"""A writer that knows what it was promised: seeded writes to a store, and what must be found of them afterwards."""

import asyncio
import random

from paddock.server.store.contract import CommittedWrite, Store, StoreKey, StoreUnavailable

COLLECTIONS = ("things", "others")


class Work:
    """Writes, deletes and compactions, and the memory of those that were acknowledged."""

    def __init__(self, seed: int, rounds: int = 12) -> None:
        self._chance = random.Random(seed)
        self._rounds = rounds
        # what was acknowledged last of each key: revision and value, or None when it is deleted
        self.known: dict[StoreKey, tuple[int, bytes | None]] = {}
        self.acknowledged: list[int] = []
        self.heard: list[CommittedWrite] = []
        self.refused = 0
        # what was asked for and never answered
        self.open: dict[StoreKey, set[bytes | None]] = {}

    async def run(self, store: Store) -> None:
        """Do the work; goes on after refusals when the store has healed."""
        store.follow(lambda changes: self.heard.extend(changes))
        for turn in range(self._rounds):
            keys = [
                StoreKey(self._chance.choice(COLLECTIONS), "n", f"k{self._chance.randrange(8)}") for _ in range(self._chance.randint(1, 4))
            ]
            await asyncio.gather(*(self._write(store, key) for key in dict.fromkeys(keys)))
            if turn % 4 == 3:
                await self._compact(store)

    async def _write(self, store: Store, key: StoreKey) -> None:
        before = store.decided(key)
        value = self._chance.randbytes(self._chance.randrange(100, 3000))
        delete = before is not None and self._chance.random() < 0.3
        self.open.setdefault(key, set()).add(None if delete else value)
        try:
            offer = store.delete if delete else store.put
            revision = await offer(key, before.revision if before is not None else 0, lambda _: value).committed()
        except StoreUnavailable:
            self.refused += 1
            await self.healed(store)
        else:
            self.known[key] = (revision, None if delete else value)
            self.acknowledged.append(revision)
        self.open.pop(key, None)

    async def _compact(self, store: Store) -> None:
        try:
            await store.compact(max(0, store.revision - 5))
        except StoreUnavailable:
            await self.healed(store)

    async def healed(self, store: Store) -> None:
        """Called when something was refused; returns when the store takes writes again."""
        while store.unavailable:
            await asyncio.sleep(0)

    # --- judging ----------------------------------------------------------------------------------------------------------

    def check(self, store: Store, *, exactly: bool) -> None:
        """Hold a store against what was acknowledged. `exactly`: nothing that was refused may be in it either."""
        assert store.revision >= max(self.acknowledged, default=0)
        if exactly:
            assert store.revision == max(self.acknowledged, default=0)
        found = {record.key: record for name in store.collections() for record in store.scan(name)}
        for key in {*found, *self.known}:
            revision, value = self.known.get(key, (0, None))
            record = found.get(key)
            got = None if record is None else record.value
            if got != value or (record is not None and record.revision != revision):
                # Only what was under way when it ended may have come to be, or not.
                assert not exactly, f"{key} is not what was acknowledged"
                assert got in self.open.get(key, set()), f"{key} is neither what was acknowledged nor what was asked for"
                assert record is None or record.revision > revision

    def check_heard(self) -> None:
        """Followers heard every acknowledged write once and in order, and nothing else."""
        assert [change.revision for change in self.heard] == sorted(self.acknowledged)
        assert self.acknowledged == list(dict.fromkeys(self.acknowledged))
