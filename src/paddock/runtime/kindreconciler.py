"""The frame of a reconciler: what every pass over an object begins with, and what is remembered between passes.

missing ──▶ forget     going ──▶ finalize        else ──▶ finalizer on it? ──yes──▶ work
                                                                └──no──▶ put it on; the watch brings the object here again
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from paddock.client.client import Client
from paddock.client.target import Key
from paddock.runtime import finalizers
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Outcome
from paddock.runtime.informer import Informer

M = TypeVar("M")


class ObjectFinalizer(NamedTuple):
    """The finalizer of a kind, and who puts it on."""

    client: Client
    name: str


class KindReconciler(ABC):
    """Reconciles the objects of one kind. A subclass says what to do with one, and what before it goes."""

    def __init__(self, informer: Informer, finalizer: ObjectFinalizer | None = None) -> None:
        self._informer = informer
        self._finalizer = finalizer

    async def reconcile(self, key: Key) -> Outcome:
        """Bring one object a step on."""
        seen = self._informer.cache.get(key)
        if seen is None:
            return await self.missing(key)
        if seen.meta.going:
            return await self.finalize(seen)
        if self._finalizer is not None and self.needs_finalizer(seen):
            written = await finalizers.put_on(self._finalizer.client, self._informer.target, seen.meta, self._finalizer.name)
            if written is not None:
                self._informer.expectations.wrote(written)
                return DONE
        return await self.work(seen)

    @abstractmethod
    async def work(self, seen: CachedObject) -> Outcome:
        """Bring an object that stays a step on."""

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Bring an object that is being deleted a step on; by default there is nothing to clear away."""
        return DONE

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether anything has to be cleared away before this object goes."""
        return True

    async def missing(self, key: Key) -> Outcome:
        """Answer for a key without an object: forget it. A kind with an object that is always there makes that one here."""
        await self.forget(key)
        return DONE

    async def forget(self, key: Key) -> None:  # noqa: B027 - most remember nothing
        """Drop what is remembered of an object that is gone; by default that is nothing."""


class ObjectMemories(Generic[M]):
    """The memories of objects between passes. Another object of the same name begins with nothing."""

    def __init__(self, new: Callable[[CachedObject], M], identity: Callable[[CachedObject], Hashable] = lambda seen: seen.meta.uid) -> None:
        self._new = new
        self._identity = identity
        self._memories: dict[Key, tuple[Hashable, M]] = {}

    def of(self, seen: CachedObject) -> M:
        """Return the memory of an object."""
        identity = self._identity(seen)
        known = self._memories.get(seen.key)
        if known is None or known[0] != identity:
            known = self._memories[seen.key] = identity, self._new(seen)
        return known[1]

    def known(self, key: Key) -> M | None:
        """Return the memory of the object that was last seen at a place."""
        known = self._memories.get(key)
        return known[1] if known is not None else None

    def forget(self, key: Key) -> None:
        """Drop the memory of an object that is gone."""
        self._memories.pop(key, None)
