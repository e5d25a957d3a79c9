"""A store that forgets everything when it goes: for tests, the measure of what the disk costs, and the base of the store on disk."""

from collections.abc import Iterator

from paddock.server.store.contract import CommitListener, CommittedWrite, Make, Pending, StoredValue, StoreKey
from paddock.server.store.history import History
from paddock.server.store.writes import Writes


class MemoryStore:
    """The store's contract without a disk."""

    def __init__(self, history: History | None = None) -> None:
        self._history = History() if history is None else history
        self._writes = Writes(self._history, self._commit)

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        """Make changes durable; there is nothing to do without a disk."""

    @property
    def revision(self) -> int:
        return self._history.revision

    @property
    def compacted(self) -> int:
        return self._history.compacted

    @property
    def unavailable(self) -> str:
        return self._writes.unavailable

    def decided(self, key: StoreKey) -> StoredValue | None:
        return self._writes.decided(key)

    def deciding(self, collection: str) -> tuple[StoreKey, ...]:
        return self._writes.deciding(collection)

    def get(self, key: StoreKey) -> StoredValue | None:
        return self._history.get(key)

    def scan(self, collection: str) -> Iterator[StoredValue]:
        return self._history.scan(collection)

    def collections(self) -> tuple[str, ...]:
        return self._history.collections()

    def put(self, key: StoreKey, expected: int, make: Make) -> Pending:
        return self._writes.offer(key, expected, make, delete=False)

    def delete(self, key: StoreKey, expected: int, make: Make) -> Pending:
        return self._writes.offer(key, expected, make, delete=True)

    def follow(self, follower: CommitListener) -> None:
        self._writes.follow(follower)

    def history(self, after: int) -> tuple[CommittedWrite, ...]:
        return self._history.after(after)

    def snapshot(self, collection: str, revision: int) -> tuple[StoredValue, ...]:
        return self._history.snapshot(collection, revision)

    async def settled(self, key: StoreKey) -> None:
        await self._writes.settled(key)

    async def compact(self, revision: int) -> None:
        self._history.forget(revision)

    async def close(self) -> None:
        await self._writes.close()
