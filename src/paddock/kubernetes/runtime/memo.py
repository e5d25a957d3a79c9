"""Results that hold as long as what they were made from is the same, such as "nothing to do"."""

from collections.abc import ItemsView
from typing import Generic, TypeVar

from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.informer import Informer

S = TypeVar("S")
V = TypeVar("V")


class StateMemo(Generic[S, V]):
    """One result for each object of an informer, with the state that it was made from. It goes with its object."""

    def __init__(self, informer: Informer) -> None:
        self._cache = informer.cache
        self._entries: dict[Key, tuple[S, V]] = {}
        informer.handle(self._observe)

    def get(self, key: Key, state: S) -> V | None:
        """The result for an object in this state; that of another state is forgotten."""
        known = self._entries.get(key)
        if known is None:
            return None
        if known[0] == state:
            return known[1]
        del self._entries[key]
        return None

    def put(self, key: Key, state: S, value: V) -> V:
        """Remember the result for an object, unless the object is gone."""
        if self._cache.get(key) is not None:
            self._entries[key] = state, value
        return value

    def items(self) -> ItemsView[Key, tuple[S, V]]:
        """All states and results by their objects."""
        return self._entries.items()

    def _observe(self, change: CacheChange) -> None:
        if change.new is None or (change.old is not None and change.old.meta.uid != change.new.meta.uid):
            self._entries.pop(change.seen.key, None)
