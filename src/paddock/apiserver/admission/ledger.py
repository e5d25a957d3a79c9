"""The usage of every namespace with a quota: counted once, then kept by following the store.

Decided writes that are not yet committed are looked up in the store whenever they matter, so that the writes of one commit group see one
another and none of them can exceed a quota.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from paddock.apiserver.admission import measuring
from paddock.apiserver.admission.measuring import Amounts, Data
from paddock.apiserver.objects.encoding import decode
from paddock.base import quantity
from paddock.store.contract import CommittedWrite, Store, StoredValue, StoreKey

QUOTAS = "resourcequotas"
_CLASSES = "VolumeAttributesClass"
Scope = tuple[str, str, tuple[str, ...]]


class Quota(msgspec.Struct, frozen=True):
    """One quota, as it is enforced."""

    name: str
    hard: Amounts
    # (scope, operator, values): all must hold for what is counted
    scopes: tuple[Scope, ...]
    # the bounds as they are written
    spelled: dict[str, str] = {}

    @property
    def is_scoped(self) -> bool:
        """True if the quota counts only some objects."""
        return bool(self.scopes)

    def covers(self, collection: str, data: Data) -> bool:
        """Return whether the quota counts an object. All scopes but one are about pods."""
        return all(collection == measuring.CLAIMS and _in_scope(scope, data) for scope in self.scopes)


def _in_scope(scope: Scope, claim: Data) -> bool:
    name, operator, values = scope
    if name != _CLASSES:
        return False
    status = claim.get("status") or {}
    found = {
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    } - {None, ""}
    match operator:
        case "Exists":
            return bool(found)
        case "DoesNotExist":
            return not found
        case "In":
            return bool(found & set(values))
    return any(each not in values for each in found) if found else True


def read(data: Data) -> Quota:
    """A stored quota."""
    spec = data.get("spec") or {}
    spelled = spec.get("hard") or {}
    hard = {name: quantity.parse(amount) for name, amount in spelled.items()}
    plain = tuple((each, "Exists", ()) for each in spec.get("scopes") or ())
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    chosen = tuple((each.get("scopeName", ""), each.get("operator", ""), tuple(each.get("values") or ())) for each in selected)
    return Quota(data["metadata"]["name"], hard, plain + chosen, spelled)


class QuotaUsage:
    """The quotas of all namespaces and what is used of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # the quotas by namespace and name; a namespace without any does not stand here
        self.namespaces: dict[str, dict[str, Quota]] = {}
        self._used: dict[str, dict[str, int]] = {}
        # called with a namespace whose quotas or usage changed
        self.on_change: list[Callable[[str], None]] = []
        for record in store.scan(QUOTAS):
            self.namespaces.setdefault(record.key.namespace, {})[record.key.name] = read(decode(record.value))
        self._count(self.namespaces)
        store.follow(self._changed)

    def quotas(self, namespace: str) -> list[Quota]:
        """The quotas of a namespace, by name."""
        return sorted(self.namespaces.get(namespace, {}).values(), key=lambda each: each.name)

    def used(self, quota: Quota, namespace: str) -> Amounts:
        """Return the committed usage of a quota."""
        totals = self._scoped(quota, namespace) if quota.is_scoped else self._used.get(namespace, {})
        return {name: totals.get(name, 0) for name in quota.hard}

    def pending(self, quota: Quota, namespace: str, collection: str) -> Amounts:
        """Return the change of that usage by writes that are decided and not yet committed."""
        change: dict[str, int] = defaultdict(int)
        for key in self._store.deciding(collection):
            if key.namespace == namespace:
                self._add(change, quota, self._store.decided(key), 1)
                self._add(change, quota, self._store.get(key), -1)
        return change

    def _add(self, amounts: dict[str, int], quota: Quota, record: StoredValue | None, sign: int) -> None:
        if record is None:
            return
        for name, amount in _of(quota, record.key.collection, record.value).items():
            amounts[name] += sign * amount

    def _scoped(self, quota: Quota, namespace: str) -> dict[str, int]:
        totals: dict[str, int] = defaultdict(int)
        for record in self._store.scan(measuring.CLAIMS):
            if record.key.namespace == namespace:
                self._add(totals, quota, record, 1)
        return totals

    def _count(self, namespaces: Iterable[str]) -> None:
        """Count everything in some namespaces, in one walk."""
        wanted = set(namespaces)
        if not wanted:
            return
        for namespace in wanted:
            self._used[namespace] = defaultdict(int)
        for collection in self._store.collections():
            if collection not in measuring.IGNORED:
                for record in self._store.scan(collection):
                    if record.key.namespace in wanted:
                        self._put(record.key, record.value, 1)

    def _put(self, key: StoreKey, value: bytes, sign: int) -> None:
        used = self._used[key.namespace]
        weighed = measuring.is_weighed(key.collection)
        amounts = measuring.measured(key.collection, decode(value)) if weighed else measuring.counted(key.collection)
        for name, amount in amounts.items():
            used[name] += sign * amount

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        touched: dict[str, None] = {}
        # Counted from the store, which holds everything of this commit already.
        fresh: set[str] = set()
        for change in changes:
            namespace = change.key.namespace
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

    def _moved(self, change: CommittedWrite) -> bool:
        """Take a change into account; whether it made a difference."""
        if measuring.is_weighed(change.key.collection):
            if change.previous is not None:
                self._put(change.key, change.previous.value, -1)
            if not change.deleted:
                self._put(change.key, change.value, 1)
            return True
        if change.deleted or change.previous is None:
            self._put(change.key, change.value, -1 if change.deleted else 1)
            return True
        return False


def _of(quota: Quota, collection: str, value: bytes) -> Amounts:
    if not quota.is_scoped and not measuring.is_weighed(collection):
        return measuring.counted(collection)
    data = decode(value)
    return measuring.measured(collection, data) if quota.covers(collection, data) else {}
