"""The committed state and its recent history in memory: what every implementation of the store keeps for readers."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

from paddock.server.store.contract import CommittedWrite, Compacted, StoredValue, StoreKey


class _Collection:
    """The values of one collection, with their places in order."""

    def __init__(self) -> None:
        self.records: dict[StoreKey, StoredValue] = {}
        self._order: list[StoreKey] | None = []

    def put(self, record: StoredValue) -> None:
        if record.key not in self.records and self._order is not None:
            # New names mostly come alone; after a bulk load the order is made once, by sorting.
            insort(self._order, record.key)
        self.records[record.key] = record

    def load(self, record: StoredValue) -> None:
        self.records[record.key] = record
        self._order = None

    def remove(self, key: StoreKey) -> None:
        del self.records[key]
        if self._order is not None:
            del self._order[bisect_left(self._order, key)]

    def ordered(self) -> list[StoreKey]:
        if self._order is None:
            self._order = sorted(self.records)
        return self._order


class History:
    """Committed values by key and the changes since the last compaction."""

    def __init__(self) -> None:
        self.revision = 0
        self.compacted = 0
        self._collections: dict[str, _Collection] = {}
        self._changes: list[CommittedWrite] = []

    def load(self, records: Iterable[StoredValue], changes: Iterable[CommittedWrite], *, revision: int, compacted: int) -> None:
        """Start from what was stored."""
        for record in records:
            self._collection(record.key.collection).load(record)
        self._changes = list(changes)
        self.revision = revision
        self.compacted = compacted

    def apply(self, changes: Iterable[CommittedWrite]) -> None:
        """Take in a committed group."""
        for change in changes:
            collection = self._collection(change.key.collection)
            if change.deleted:
                collection.remove(change.key)
            else:
                collection.put(StoredValue(change.key, change.revision, change.value))
            self._changes.append(change)
            self.revision = change.revision

    def get(self, key: StoreKey) -> StoredValue | None:
        """The committed value of a key."""
        collection = self._collections.get(key.collection)
        return None if collection is None else collection.records.get(key)

    def scan(self, collection: str) -> Iterator[StoredValue]:
        """The values of a collection in order."""
        found = self._collections.get(collection)
        if found is not None:
            for key in found.ordered():
                yield found.records[key]

    def collections(self) -> tuple[str, ...]:
        """The collections that hold something."""
        return tuple(sorted(name for name, found in self._collections.items() if found.records))

    def after(self, revision: int) -> tuple[CommittedWrite, ...]:
        """The changes after a revision."""
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        return tuple(self._changes[bisect_right(self._changes, revision, key=lambda change: change.revision) :])

    def snapshot(self, collection: str, revision: int) -> tuple[StoredValue, ...]:
        """A collection at a revision, reckoned back from now."""
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        found = self._collections.get(collection)
        records = dict(found.records) if found is not None else {}
        undone = [change for change in self.after(revision) if change.key.collection == collection]
        for change in reversed(undone):
            if change.previous is None:
                records.pop(change.key, None)
            else:
                records[change.key] = change.previous
        return tuple(records[key] for key in sorted(records))

    def forget(self, revision: int) -> None:
        """Drop the changes up to a revision."""
        if revision > self.compacted:
            self.compacted = min(revision, self.revision)
            del self._changes[: bisect_right(self._changes, self.compacted, key=lambda change: change.revision)]

    def _collection(self, name: str) -> _Collection:
        return self._collections.setdefault(name, _Collection())
