"""Group commit under every interleaving that a seed can find: writers come and go, commits are slow, and some of them fail."""

import asyncio
import random

import pytest

from paddock.server.store.contract import CommittedWrite, Make, RevisionConflict, StoreKey, StoreUnavailable
from paddock.server.store.memory import MemoryStore
from tests import virtualtime

KEYS = [StoreKey("things", "n", name) for name in "abcd"]


def valued(value: bytes) -> Make:
    return lambda _: value


class Unsteady(MemoryStore):
    """Takes a while for each commit, and fails some of them."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.groups: list[tuple[int, ...]] = []
        self.fallen: list[tuple[int, ...]] = []

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        for _ in range(self._chance.randrange(6)):
            await asyncio.sleep(self._chance.choice((0, 0.01)))
        revisions = tuple(change.revision for change in changes)
        if self._chance.random() < 0.3:
            self.fallen.append(revisions)
            raise StoreUnavailable("cannot write", why="so it is said")
        self.groups.append(revisions)


class Crowd:
    """Writers of the same few keys, who give up at random and whose requests are dropped at random."""

    def __init__(self, store: Unsteady, chance: random.Random) -> None:
        self.store = store
        self.chance = chance
        self.heard: list[CommittedWrite] = []
        self.told: list[tuple[int, StoreKey, bytes]] = []
        self.refused: set[bytes] = set()
        self.dropped = 0
        store.follow(lambda changes: self.heard.extend(changes))

    async def write(self, number: int) -> None:
        for turn in range(10):
            await asyncio.sleep(self.chance.choice((0, 0, 0.005, 0.02)))
            key = self.chance.choice(KEYS)
            value = b"%d.%d" % (number, turn)
            before = self.store.decided(key)
            try:
                if before is not None and self.chance.random() < 0.3:
                    pending = self.store.delete(key, before.revision, valued(value))
                else:
                    pending = self.store.put(key, before.revision if before else 0, valued(value))
                if self.chance.random() < 0.2:
                    # A client that goes away: its write counts all the same.
                    task = asyncio.ensure_future(pending.committed())
                    await asyncio.sleep(0)
                    task.cancel()
                    self.dropped += 1
                    continue
                self.told.append((await pending.committed(), key, value))
                # Who is told finds it, or something newer.
                assert self.store.revision >= self.told[-1][0]
            except RevisionConflict:
                raise AssertionError("decided and offered at once") from None
            except StoreUnavailable:
                self.refused.add(value)

    def judge(self) -> None:
        """Everybody was told the truth, and everybody heard the same."""
        revisions = [change.revision for change in self.heard]
        assert revisions == list(range(1, self.store.revision + 1))
        assert [revision for group in self.store.groups for revision in group] == revisions
        heard = {(change.revision, change.key, change.value) for change in self.heard}
        assert set(self.told) <= heard
        assert not self.refused & {change.value for change in self.heard}
        assert len(self.heard) <= len(self.told) + self.dropped
        state: dict[StoreKey, CommittedWrite] = {}
        for change in self.heard:
            before = state.get(change.key)
            assert (change.previous.revision if change.previous else 0) == (before.revision if before and not before.deleted else 0)
            state[change.key] = change
        for key in KEYS:
            last = state.get(key)
            record = self.store.get(key)
            assert (record.value if record else None) == (last.value if last and not last.deleted else None)
            assert self.store.decided(key) == record


def play(seed: int) -> Crowd:
    chance = random.Random(seed)
    crowd = Crowd(Unsteady(chance), chance)

    async def script() -> None:
        await asyncio.gather(*(crowd.write(number) for number in range(8)))
        await crowd.store.close()

    virtualtime.run(script())
    crowd.judge()
    return crowd


def test_writers_are_told_the_truth() -> None:
    crowds = [play(seed) for seed in range(40)]
    # The seeds meet what they are for.
    assert sum(len(crowd.store.fallen) for crowd in crowds) > 100
    assert any(len(group) > 2 for crowd in crowds for group in crowd.store.fallen)
    assert sum(crowd.dropped for crowd in crowds) > 100


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_writers_are_always_told_the_truth(part: int) -> None:
    for seed in range(1000 + part, 9000, 4):
        play(seed)
