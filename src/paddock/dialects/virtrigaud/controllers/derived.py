"""Facts derived from cached objects, kept until they change: reading an object anew for each look at it costs more than the look."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.plan import references
from paddock.dialects.virtrigaud.plan.references import MachineReference
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.informer import Informer

T = TypeVar("T")


class _Status(msgspec.Struct):
    id: str | None = None


class _Machine(msgspec.Struct):
    status: _Status | None = None


_MACHINES = msgspec.json.Decoder(_Machine)


class DerivedValues(Generic[T]):
    """A value for each object of an informer, made again when the object changes. Nobody may change a value."""

    def __init__(self, informer: Informer, make: Callable[[CachedObject], T]) -> None:
        self._make = make
        self._values: dict[Key, tuple[CachedObject, T]] = {}
        informer.handle(self._forget)

    def of(self, seen: CachedObject) -> T:
        """The value for an object."""
        known = self._values.get(seen.key)
        if known is None or known[0] is not seen:
            known = self._values[seen.key] = (seen, self._make(seen))
        return known[1]

    def _forget(self, change: CacheChange) -> None:
        if change.new is None:
            self._values.pop(change.seen.key, None)


class MachineReferences:
    """The references of each machine. They follow from the spec, so they are the same for all revisions of a generation."""

    def __init__(self, machines: Informer) -> None:
        self._known: dict[Key, tuple[str, int | None, tuple[MachineReference, ...]]] = {}
        machines.handle(self._forget)

    def of(self, seen: CachedObject) -> tuple[MachineReference, ...]:
        """The references of a machine; the first one is its Provider."""
        meta, known = seen.meta, self._known.get(seen.key)
        if known is not None and known[:2] == (meta.uid, meta.generation):
            return known[2]
        found = tuple(references.references(seen.read(targets.MACHINES)))
        self._known[seen.key] = (meta.uid, meta.generation, found)
        return found

    def _forget(self, change: CacheChange) -> None:
        if change.new is None:
            self._known.pop(change.seen.key, None)


def is_made(seen: CachedObject) -> bool:
    """Return whether a machine has an id at its provider."""
    return bool(id_of(seen))


def id_of(seen: CachedObject) -> str:
    """The id of a machine at its provider."""
    status = _MACHINES.decode(seen.raw).status
    return (status.id if status is not None else None) or ""


def concerns_others(change: CacheChange) -> bool:
    """Return whether a change of a machine concerns the objects that it refers to: they count machines, and those that are made."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    same = (old.meta.uid, old.meta.generation, old.meta.deleting) == (new.meta.uid, new.meta.generation, new.meta.deleting)
    return not same or is_made(old) != is_made(new)
