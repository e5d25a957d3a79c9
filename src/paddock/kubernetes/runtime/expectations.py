"""The writes of this program that a cache does not show yet; Kubernetes calls them expectations.

A write comes back through the watch a moment later. A controller that decides on the cache alone meanwhile does things twice: it creates
another object, deletes another one, or takes back its own last status. Each informer keeps the writes until its cache is at their
revision, and `Controller` reconciles no object of which the cache is older than the last write.

An expectation ends when the cache is at its revision, whatever became of the object: somebody else changed it, it was deleted, another one
has its name, or the watch had to begin anew with a list. So the memory holds only writes that are still on their way.
"""

from collections.abc import Callable

from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import Cache, CacheChange, CachedObject


class Expectations:
    """The expectations of one cache. `has_reached` tells whether the cache is at a revision."""

    def __init__(self, cache: Cache, has_reached: Callable[[str], bool]) -> None:
        self._cache = cache
        self._has_reached = has_reached
        self._written: dict[Key, CachedObject] = {}
        # UIDs of cached objects that were deleted, or asked to end
        self._leaving: set[str] = set()

    def wrote(self, written: CachedObject) -> None:
        """Expect an object that was created or changed, as the server answered it."""
        if self._has_reached(written.meta.resourceVersion):
            return
        before = self._written.get(written.key)
        if before is None or int(before.meta.resourceVersion) < int(written.meta.resourceVersion):
            self._written[written.key] = written

    def deleted(self, seen: CachedObject) -> None:
        """Expect an object to go: it was deleted, or asked to end."""
        found = self._cache.get(seen.key)
        if found is not None and found.meta.uid == seen.meta.uid:
            self._leaving.add(seen.meta.uid)

    def is_stale(self, key: Key) -> bool:
        """Return whether the cache is older than the last write of an object."""
        return self._pending(key) is not None

    def latest(self, key: Key) -> CachedObject | None:
        """An object as it was written last, or as the cache has it when that is newer."""
        return self._pending(key) or self._cache.get(key)

    def created_for(self, owner: str) -> list[CachedObject]:
        """The objects that were created for an owner, given by its UID, and that the cache does not have."""
        found = (each for key in tuple(self._written) if (each := self._pending(key)) is not None)
        return [each for each in found if _is_of(each, owner) and not self._has(each)]

    def is_leaving(self, uid: str) -> bool:
        """Return whether an object was deleted or asked to end; it may still be in the cache."""
        return uid in self._leaving

    # --- for the informer -------------------------------------------------------------------------------------------------

    def observe(self, change: CacheChange) -> None:
        """End what a change of the cache fulfils."""
        old, new = change.old, change.new
        if old is not None and (new is None or new.meta.uid != old.meta.uid):
            self._leaving.discard(old.meta.uid)
        self._pending(change.seen.key)

    def settle(self) -> list[CachedObject]:
        """End what a new list fulfils; return the objects that were created and deleted since the last one, which nobody has heard of."""
        found = [each for key, each in tuple(self._written.items()) if self._pending(key) is None]
        return [each for each in found if self._cache.get(each.key) is None]

    def _pending(self, key: Key) -> CachedObject | None:
        written = self._written.get(key)
        if written is not None and self._has_reached(written.meta.resourceVersion):
            del self._written[key]
            return None
        return written

    def _has(self, written: CachedObject) -> bool:
        seen = self._cache.get(written.key)
        return seen is not None and seen.meta.uid == written.meta.uid


def _is_of(seen: CachedObject, owner: str) -> bool:
    return any(each.uid == owner for each in seen.meta.ownerReferences or ())
