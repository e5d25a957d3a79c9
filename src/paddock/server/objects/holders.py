"""The objects of one collection by the values that they hold, such as addresses. Follows the store."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import msgspec

from paddock.server.store.contract import CommittedWrite, Store, StoredValue, StoreKey

ValuesOf = Callable[[dict[str, Any]], Iterable[Hashable]]


class ValueHolders:
    """Index of the newest objects of a collection by the values that they hold.

    What was committed is read when somebody asks, each form of an object once. So a question costs as much as has changed since the last
    one, not as much as there are objects.
    """

    def __init__(self, store: Store, collection: str, values_of: ValuesOf, part: Any = dict) -> None:
        """`part` is a type with the members that `values_of` reads; the decoder skips all others."""
        self._store = store
        self._collection = collection
        self._values_of = values_of
        self._decode = msgspec.json.Decoder(part).decode
        self._values: dict[StoreKey, tuple[Hashable, ...]] = {}
        # in the order in which they took it
        self._holders: dict[Hashable, dict[StoreKey, None]] = {}
        self._changed = {record.key for record in store.scan(collection)}
        # values of the forms that are being written, each with the bytes that they were read from
        self._moving: dict[StoreKey, tuple[bytes, tuple[Hashable, ...]]] = {}
        store.follow(self._follow)

    def of(self, value: Hashable) -> Iterator[StoreKey]:
        """Yield the keys of the objects that hold a value; of those that are being written the newest form counts."""
        self._catch_up()
        moving = dict.fromkeys(self._store.deciding(self._collection))
        self._moving = {key: form for key, form in self._moving.items() if key in moving}
        yield from (key for key in self._holders.get(value, ()) if key not in moving)
        for key in moving:
            record = self._store.decided(key)
            if record is not None and value in self._read(record):
                yield key

    def _follow(self, changes: tuple[CommittedWrite, ...]) -> None:
        self._changed.update(change.key for change in changes if change.key.collection == self._collection)

    def _catch_up(self) -> None:
        while self._changed:
            key = self._changed.pop()
            record = self._store.get(key)
            self._put(key, () if record is None else self._read(record))

    def _read(self, record: StoredValue) -> tuple[Hashable, ...]:
        # Compare the bytes, not the revision: after a failed commit, the store gives its revision to another write.
        value, values = self._moving.get(record.key, (b"", ()))
        if value is not record.value:
            values = tuple(self._values_of(self._decode(record.value)))
            self._moving[record.key] = record.value, values
        return values

    def _put(self, key: StoreKey, values: tuple[Hashable, ...]) -> None:
        before = self._values.pop(key, ())
        if values:
            self._values[key] = values
        if values == before:
            return
        for value in before:
            holders = self._holders.get(value, {})
            holders.pop(key, None)
            if not holders:
                self._holders.pop(value, None)
        for value in values:
            self._holders.setdefault(value, {})[key] = None
