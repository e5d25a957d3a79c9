"""The usage of every namespace with a quota: counted once, then kept by following the store.

Decided writes that are not yet committed are looked up in the store whenever they matter, so that the writes of one commit group see one
another and none of them can exceed a quota.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest

from paddock.base.jsondata import Data
from paddock.kubernetes.quotas import measuring
from paddock.kubernetes.quotas.measuring import Amounts, ObjectUsage
from paddock.kubernetes.quotas.quota import Quota, read
from paddock.server.objects.encoding import decode
from paddock.server.store.contract import CommittedWrite, Store, StoredValue, StoreKey

QUOTAS = "resourcequotas"
_NOTHING = ObjectUsage({})
# How many of those that use most a refusal names.
_NAMED = 3


class QuotaUsage:
    """The quotas of all namespaces and what is used of them."""

    def __init__(self, store: Store, *, launchers: bool = True) -> None:
        self._store = store
        self._launchers = launchers
        # the quotas by namespace and name; a namespace without any does not stand here
        self.namespaces: dict[str, dict[str, Quota]] = {}
        self._used: dict[str, dict[str, int]] = {}
        # what each object uses whose amounts depend on its content, by namespace
        self._objects: dict[str, dict[StoreKey, ObjectUsage]] = {}
        # the same of objects that are decided and not yet committed, with the revision at which each was measured
        self._decided: dict[StoreKey, tuple[int, ObjectUsage]] = {}
        # called with a namespace whose quotas or usage changed
        self.on_change: list[Callable[[str], None]] = []
        for record in store.scan(QUOTAS):
            self.namespaces.setdefault(record.key.namespace, {})[record.key.name] = read(decode(record.value))
        self._count(self.namespaces)
        store.follow(self._changed)

    def quotas(self, namespace: str) -> list[Quota]:
        """The quotas of a namespace, by name."""
        return sorted(self.namespaces.get(namespace, {}).values(), key=lambda each: each.name)

    def measure(self, collection: str, data: Data) -> ObjectUsage:
        """Return what an object uses."""
        return measuring.measured(collection, data, launchers=self._launchers)

    def used(self, quota: Quota, namespace: str) -> Amounts:
        """Return the committed usage of a quota."""
        totals = self._scoped(quota, namespace) if quota.is_scoped else self._used.get(namespace, {})
        return {name: totals.get(name, 0) for name in quota.hard}

    def pending(self, quota: Quota, namespace: str, collection: str) -> Amounts:
        """Return the change of that usage by writes that are decided and not yet committed."""
        change: dict[str, int] = defaultdict(int)
        for each in measuring.COMPUTING if collection in measuring.COMPUTING else (collection,):
            for key in self._store.deciding(each):
                if key.namespace == namespace:
                    _add(change, quota, self._newest(key), 1)
                    _add(change, quota, self._committed(key), -1)
        return change

    def users(self, quota: Quota, namespace: str, names: Iterable[str]) -> Iterator[tuple[str, Amounts]]:
        """Yield the objects that use most of the first of some amounts, as RESOURCE/NAME, each with what it uses."""
        wanted = list(names)
        objects = self._objects.get(namespace, {}).items()
        using = [(key, each) for key, each in objects if each.amounts.get(wanted[0]) and quota.covers(each)]
        for key, each in nlargest(_NAMED, using, key=lambda pair: (pair[1].amounts[wanted[0]], pair[0].name)):
            yield f"{key.collection}/{key.name}", {name: each.amounts[name] for name in wanted if name in each.amounts}

    def _newest(self, key: StoreKey) -> ObjectUsage:
        record = self._store.decided(key)
        if record is None:
            return _NOTHING
        if not measuring.is_weighed(key.collection):
            return ObjectUsage(measuring.counted(key.collection))
        known = self._decided.get(key)
        if known is None or known[0] != record.revision:
            known = self._decided[key] = (record.revision, self._of(record))
        return known[1]

    def _committed(self, key: StoreKey) -> ObjectUsage:
        if measuring.is_weighed(key.collection):
            return self._objects.get(key.namespace, {}).get(key, _NOTHING)
        return _NOTHING if self._store.get(key) is None else ObjectUsage(measuring.counted(key.collection))

    def _of(self, record: StoredValue) -> ObjectUsage:
        return self.measure(record.key.collection, decode(record.value))

    def _scoped(self, quota: Quota, namespace: str) -> dict[str, int]:
        totals: dict[str, int] = defaultdict(int)
        for each in self._objects.get(namespace, {}).values():
            _add(totals, quota, each, 1)
        return totals

    def _count(self, namespaces: Iterable[str]) -> None:
        """Count everything in some namespaces, in one walk."""
        wanted = set(namespaces)
        if not wanted:
            return
        for namespace in wanted:
            self._used[namespace], self._objects[namespace] = defaultdict(int), {}
        for collection in self._store.collections():
            if collection not in measuring.IGNORED:
                for record in self._store.scan(collection):
                    if record.key.namespace in wanted:
                        self._put(record.key, record.value)

    def _put(self, key: StoreKey, value: bytes | None) -> bool:
        """Count an object as it is now, None if it is gone; return whether its amounts changed."""
        used = self._used[key.namespace]
        if not measuring.is_weighed(key.collection):
            for name, amount in measuring.counted(key.collection).items():
                used[name] += amount if value is not None else -amount
            return True
        objects = self._objects[key.namespace]
        before = objects.pop(key, _NOTHING)
        now = _NOTHING
        if value is not None:
            now = objects[key] = self.measure(key.collection, decode(value))
        if now == before:
            return False
        for measured, sign in ((before, -1), (now, 1)):
            for name, amount in measured.amounts.items():
                used[name] += sign * amount
        return True

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        touched: dict[str, None] = {}
        # Counted from the store, which holds everything of this commit already.
        fresh: set[str] = set()
        for change in changes:
            namespace = change.key.namespace
            self._decided.pop(change.key, None)
            if change.key.collection == QUOTAS:
                touched[namespace] = None
                self._note(change)
                if namespace in self.namespaces and namespace not in self._used:
                    self._count([namespace])
                    fresh.add(namespace)
            counts = namespace in self._used and namespace not in fresh and change.key.collection not in measuring.IGNORED
            if counts and self._moved(change):
                touched[namespace] = None
        for namespace in touched:
            for tell in self.on_change:
                tell(namespace)

    def _note(self, change: CommittedWrite) -> None:
        """Know of a quota, or forget it."""
        namespace, name = change.key.namespace, change.key.name
        if not change.deleted:
            self.namespaces.setdefault(namespace, {})[name] = read(decode(change.value))
            return
        known = self.namespaces.get(namespace, {})
        known.pop(name, None)
        if not known:
            self.namespaces.pop(namespace, None)
            self._used.pop(namespace, None)
            self._objects.pop(namespace, None)

    def _moved(self, change: CommittedWrite) -> bool:
        """Take a change into account; whether it made a difference."""
        if not measuring.is_weighed(change.key.collection) and not change.deleted and change.previous is not None:
            return False
        return self._put(change.key, None if change.deleted else change.value)


def _add(amounts: dict[str, int], quota: Quota, measured: ObjectUsage, sign: int) -> None:
    """Add what a quota counts of an object."""
    if quota.covers(measured):
        for name, amount in measured.amounts.items():
            amounts[name] += sign * amount
