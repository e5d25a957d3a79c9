"""Views: objects of one kind that show what objects of another kind say, made when somebody reads them (docs/design/0026-views.md).

A view is in no store. It has the revision of its source, so lists, watches and revisions of both agree. Whatever is stored under the name
of a view hides it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge

import msgspec

from paddock.base.jsondata import Data
from paddock.server.objects.encoding import decode, stamp
from paddock.server.store.contract import CommittedWrite, Store, StoredValue, StoreKey


class View(msgspec.Struct, frozen=True):
    """The views that one kind gives of another. Both are named by their collections."""

    source: str
    target: str
    # makes the views of a source, in its namespace
    make: Callable[[Data], Iterable[Data]]
    # whether a source of the first name may have a view of the second: cheaper than to make it
    may_show: Callable[[str, str], bool]
    # why a view cannot be written, and what to do instead; given the source
    explain: Callable[[Data], str]


class ViewedStore:
    """What readers see of a store: its objects, and the views that they give."""

    def __init__(self, store: Store, views: Sequence[View] = ()) -> None:
        self._store = store
        self._by_target: dict[str, list[View]] = {}
        self._by_source: dict[str, list[View]] = {}
        for view in views:
            self._by_target.setdefault(view.target, []).append(view)
            self._by_source.setdefault(view.source, []).append(view)
        self._targets = {source: tuple(dict.fromkeys(view.target for view in of)) for source, of in self._by_source.items()}

    @property
    def revision(self) -> int:
        """The last committed revision."""
        return self._store.revision

    @property
    def compacted(self) -> int:
        """History is complete from the revision after this one."""
        return self._store.compacted

    def has_views(self, collection: str) -> bool:
        """Return whether a collection can have views."""
        return collection in self._by_target

    def targets(self, source: str) -> tuple[str, ...]:
        """Return the collections that show something of the objects of another one."""
        return self._targets.get(source, ())

    def get(self, key: StoreKey) -> StoredValue | None:
        """The committed value of a key, or a view."""
        stored = self._store.get(key)
        if stored is not None:
            return stored
        found = self._find(key)
        return None if found is None else found[0]

    def explanation(self, key: StoreKey) -> str:
        """Return why an object cannot be written; empty if it is no view."""
        found = self._find(key) if self._store.decided(key) is None else None
        return "" if found is None else found[1]

    def scan(self, collection: str, namespace: str = "") -> Iterable[StoredValue]:
        """The committed values of a collection with its views, by namespace and name; of the views, only those of one namespace."""
        return self.with_views(collection, self._store.scan(collection), namespace)

    def with_views(self, collection: str, records: Iterable[StoredValue], namespace: str = "") -> Iterable[StoredValue]:
        """Add the views of a collection to records of it that are in order."""
        views = self._by_target.get(collection)
        if not views:
            return records
        sources = ((view, each) for view in views for each in self._store.scan(view.source) if namespace in ("", each.key.namespace))
        return merge(records, sorted(self._made(sources)))

    def snapshot(self, collection: str, revision: int) -> tuple[StoredValue, ...]:
        """A collection with its views as it was at a revision; raises `Compacted`."""
        stored = self._store.snapshot(collection, revision)
        sources = ((view, each) for view in self._by_target.get(collection, ()) for each in self._store.snapshot(view.source, revision))
        return tuple(sorted((*stored, *self._made(sources))))

    def has_changed(self, collection: str, revision: int) -> bool:
        """Return whether something in a collection may be different from what it was at a revision; raises `Compacted`."""
        concerned = {collection, *(view.source for view in self._by_target.get(collection, ()))}
        return any(change.key.collection in concerned for change in self._store.history(revision))

    def changes(self, collection: str, after: int) -> Iterator[CommittedWrite]:
        """Yield the changes of a collection and its views after a revision; raises `Compacted`."""
        for change in self._store.history(after):
            if change.key.collection == collection:
                yield change
            yield from self.changes_of_views(change, collection)

    def changes_of_views(self, change: CommittedWrite, collection: str) -> Iterator[CommittedWrite]:
        """Yield what a change means for the views of a collection, at the same revision."""
        for view in self._by_source.get(change.key.collection, ()):
            if view.target != collection:
                continue
            previous = change.previous
            before = {} if previous is None else {each.key: each for each in self._made([(view, previous)])}
            now = StoredValue(change.key, change.revision, change.value)
            after = {} if change.deleted else {each.key: each for each in self._made([(view, now)])}
            for key, each in after.items():
                yield CommittedWrite(change.revision, key, each.value, before.get(key), deleted=False)
            for key, each in before.items():
                if key not in after:
                    yield CommittedWrite(change.revision, key, stamp(decode(each.value), change.revision), each, deleted=True)

    def _find(self, key: StoreKey) -> tuple[StoredValue, str] | None:
        for view in self._by_target.get(key.collection, ()):
            for source in self._store.scan(view.source):
                if source.key.namespace == key.namespace and view.may_show(source.key.name, key.name):
                    for made in self._made([(view, source)]):
                        if made.key == key:
                            return made, view.explain(decode(source.value))
        return None

    def _made(self, sources: Iterable[tuple[View, StoredValue]]) -> Iterator[StoredValue]:
        for view, source in sources:
            for data in view.make(decode(source.value)):
                key = StoreKey(view.target, source.key.namespace, data["metadata"]["name"])
                if self._store.get(key) is None:
                    yield StoredValue(key, source.revision, stamp(data, source.revision))
