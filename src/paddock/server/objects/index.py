"""An index of every committed object: labels, owners, identity. Follows the store.

The index answers label selectors without reading objects, and gives housekeeping the dependents of each object.
"""

from collections.abc import Iterable

from paddock.kubernetes.meta.matching import LabelQuery
from paddock.server.objects.encoding import Envelope, envelope
from paddock.server.store.contract import CommittedWrite, Store, StoreKey


class _Collection:
    """The envelopes of one collection and who has which label."""

    def __init__(self) -> None:
        self.envelopes: dict[StoreKey, Envelope] = {}
        # A label of one object, such as its name, is stored without a set, which would take 216 bytes.
        self._labelled: dict[tuple[str, str], StoreKey | set[StoreKey]] = {}

    def holders(self, label: tuple[str, str]) -> set[StoreKey]:
        """Return the keys of the objects with a label."""
        found = self._labelled.get(label)
        return found if isinstance(found, set) else set() if found is None else {found}

    def put(self, key: StoreKey, envelope: Envelope) -> None:
        before = self.envelopes.get(key)
        if before is None or before.labels != envelope.labels:
            self._unlabel(key, before)
            for label in envelope.labels.items():
                self._label(key, label)
        self.envelopes[key] = envelope

    def remove(self, key: StoreKey) -> None:
        self._unlabel(key, self.envelopes.pop(key, None))

    def _label(self, key: StoreKey, label: tuple[str, str]) -> None:
        holders = self._labelled.get(label)
        if holders is None:
            self._labelled[label] = key
        elif isinstance(holders, set):
            holders.add(key)
        else:
            self._labelled[label] = {holders, key}

    def _unlabel(self, key: StoreKey, before: Envelope | None) -> None:
        for label in before.labels.items() if before is not None else ():
            holders = self._labelled[label]
            if isinstance(holders, set) and len(holders) > 1:
                holders.discard(key)
            else:
                del self._labelled[label]


class ObjectIndex:
    """Labels, owners and identity of all committed objects."""

    def __init__(self, store: Store) -> None:
        self._collections: dict[str, _Collection] = {}
        self._dependents: dict[str, set[StoreKey]] = {}
        self._by_uid: dict[str, StoreKey] = {}
        for name in store.collections():
            for record in store.scan(name):
                self._put(record.key, record.value)
        store.follow(self._changed)

    def envelope(self, key: StoreKey) -> Envelope | None:
        """The metadata of a committed object."""
        found = self._collections.get(key.collection)
        return None if found is None else found.envelopes.get(key)

    def dependents(self, uid: str) -> tuple[StoreKey, ...]:
        """The objects that name an owner of this UID, in order."""
        return tuple(sorted(self._dependents.get(uid, ())))

    def owners(self) -> tuple[str, ...]:
        """The UIDs that some object names as its owner."""
        return tuple(self._dependents)

    def by_uid(self, uid: str) -> StoreKey | None:
        """Return the key of the object with a UID."""
        return self._by_uid.get(uid)

    def count(self, collection: str) -> int:
        """Return the number of objects in a collection."""
        found = self._collections.get(collection)
        return 0 if found is None else len(found.envelopes)

    def candidates(self, collection: str, query: LabelQuery) -> Iterable[StoreKey] | None:
        """The keys that fulfil the selector, in order; None when the index is no help and every object must be read."""
        found = self._collections.get(collection)
        if found is None:
            return ()
        best: set[StoreKey] | None = None
        for key, values in query.equalities:
            holders = set[StoreKey]().union(*(found.holders((key, value)) for value in values))
            best = holders if best is None else best & holders
        if best is None:
            return None
        return sorted(key for key in best if query.matches(found.envelopes[key].labels))

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.deleted:
                self._remove(change.key)
            else:
                self._put(change.key, change.value)

    def _put(self, key: StoreKey, value: bytes) -> None:
        collection = self._collections.setdefault(key.collection, _Collection())
        found = envelope(value)
        before = collection.envelopes.get(key)
        collection.put(key, found)
        if before is None or before.uid != found.uid:
            if before is not None:
                self._by_uid.pop(before.uid, None)
            self._by_uid[found.uid] = key
        if before is None or before.ownerReferences != found.ownerReferences:
            self._disown(key, before)
            for owner in found.ownerReferences:
                self._dependents.setdefault(owner.uid, set()).add(key)

    def _remove(self, key: StoreKey) -> None:
        collection = self._collections[key.collection]
        before = collection.envelopes.get(key)
        collection.remove(key)
        if before is not None:
            self._by_uid.pop(before.uid, None)
        self._disown(key, before)

    def _disown(self, key: StoreKey, before: Envelope | None) -> None:
        for owner in before.ownerReferences if before is not None else ():
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.discard(key)
                if not dependents:
                    del self._dependents[owner.uid]
