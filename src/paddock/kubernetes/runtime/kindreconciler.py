"""The frame of a reconciler: what every pass over an object begins with, and what is remembered between passes.

missing ──▶ forget     going ──▶ finalize        else ──▶ finalizer on it? ──yes──▶ work
                                                                └──no──▶ put it on; the watch brings the object here again
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from paddock.base.errors import PaddockError
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, Unreachable
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.informer import Informer

M = TypeVar("M")
P = TypeVar("P")


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
        if seen.meta.deleting:
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


class ReportingReconciler(KindReconciler, Generic[P]):
    """Reconciles the objects of one kind, and writes their status once at the end of a pass, also after an error.

    begin ──▶ act ──done───▶ report ──▶ conclude
               └───error──▶ report ──▶ the error is raised: the queue tries again
    """

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring an object that stays a step on, and report."""
        pass_ = await self.begin(seen)
        if isinstance(pass_, Outcome):
            return pass_
        outcome, error = DONE, None
        try:
            outcome = await self.act(pass_)
        except (Conflict, Unreachable):
            # After a conflict the next pass decides anew; without a server the status cannot be written either.
            raise
        except PaddockError as caught:
            error = caught
        await self.report(pass_, error)
        if error is not None:
            raise error
        await self.conclude(pass_)
        return outcome

    @abstractmethod
    async def begin(self, seen: CachedObject) -> P | Outcome:
        """Return what the pass knows and learns, or the outcome where nothing is to be done."""

    @abstractmethod
    async def act(self, pass_: P) -> Outcome:
        """Do what the object asks for; an error is reported and raised."""

    @abstractmethod
    async def report(self, pass_: P, error: PaddockError | None) -> None:
        pass

    async def conclude(self, pass_: P) -> None:
        """Do what has to wait until the status says what was done; by default that is nothing."""


class WholeKindReconciler(ABC):
    """Reconciles all objects of a kind at once: whichever has changed, what all of them say is computed anew."""

    async def reconcile(self, key: Key) -> Outcome:
        """Do the work for all of them; the key only says that something changed."""
        return await self.work()

    @abstractmethod
    async def work(self) -> Outcome:
        """Bring about what all objects say now."""


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
