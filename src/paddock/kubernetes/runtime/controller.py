"""The loop of a controller: keys in, `reconcile(key)`, and again until it says that it is done.

Level-triggered: a key says where to look, never what happened. The type of an error decides: a `Transient` one is tried again
after a growing pause; a `Terminal` one waits for a change, or the longest pause; anything else is a defect of the controller, is logged
with its traceback, and must not stop the others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from paddock.base import together
from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError, Terminal
from paddock.kubernetes.client.errors import Conflict, QuotaExceeded
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime import logs
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.queue import BACKOFF, WorkQueue
from paddock.kubernetes.runtime.reference import InvolvedObject, reference

_LOG = logging.getLogger(__name__)


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a reconcile: done, or requeue after some seconds."""

    after: float | None = None


DONE = Outcome()


def again(seconds: float) -> Outcome:
    """Look again after a while, whatever happens."""
    return Outcome(seconds)


Reconcile = Callable[[Key], Awaitable[Outcome]]
Keys = Callable[[CacheChange], Iterable[Key]]
# What every line of the log about a key has, beside the key.
About = Callable[[Key], Mapping[str, str]]
# controller, result (done, again, failed, refused, defect), seconds
Observer = Callable[[str, str, float], None]


class EventRecorder(Protocol):
    def tell(self, about: InvolvedObject, kind: str, reason: str, note: str) -> None:
        """Tell; never waits."""


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a controller."""

    workers: int = 2
    backoff: Backoff = BACKOFF
    # a reconcile that takes longer is ended and tried again
    seconds: float = 600.0
    # what one that is working gets at the end
    finish_seconds: float = 3.0
    # every object is reconciled again this often, with or without events: the net below lost events; None: never
    sweep_seconds: float | None = None
    # further fields of the log about a key
    about: About | None = None


class Controller:
    """Reconciles the objects of one kind."""

    def __init__(
        self,
        name: str,
        primary: Informer,
        reconcile: Reconcile,
        *,
        machinery: Machinery,
        recorder: EventRecorder | None = None,
        settings: ControllerSettings = ControllerSettings(),  # noqa: B008 - frozen
    ) -> None:
        self.name = name
        self.queue: WorkQueue[Key] = WorkQueue(name, machinery, settings.backoff)
        self.informers: list[Informer] = []
        self.observers: list[Observer] = []
        self._primary = primary
        self._reconcile = reconcile
        self._recorder = recorder
        self._settings = settings
        self._count = 0
        self._busy: set[asyncio.Task[None]] = set()
        self._ending = False
        metrics = machinery.metrics
        self._results = metrics.counter("paddock_reconcile_total", "Reconciles, by their result.", ("controller", "result"))
        self._durations = metrics.histogram("paddock_reconcile_duration_seconds", "How long reconciles took.", ("controller",))
        self.watch(primary, own_key)

    def watch(self, informer: Informer, keys: Keys, *, gather: float = 0.0) -> None:
        """Look at the keys that a change of this kind concerns; with `gather`, after so many seconds, at what came together once."""
        if informer not in self.informers:
            self.informers.append(informer)

        def handler(change: CacheChange) -> None:
            for key in keys(change):
                if gather:
                    self.queue.add_after(key, gather)
                else:
                    self.queue.add(key)

        informer.handle(handler)

    def offer(self, key: Key) -> None:
        """Look at a key, because of something that no informer sees."""
        self.queue.add(key)

    async def run(self) -> None:
        """Work until cancelled; may be called again. The caches are whole before the first reconcile."""
        for informer in self.informers:
            await informer.wait_synced()
        workers = [asyncio.create_task(self._work(), name=f"{self.name} {number}") for number in range(self._settings.workers)]
        sweep = asyncio.create_task(self._sweep(), name=f"{self.name} sweep")
        try:
            # Cancelling this wait leaves the workers to `_end`.
            ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for worker in ended:
                worker.result()
        finally:
            sweep.cancel()
            await self._end(workers)

    async def _sweep(self) -> None:
        while (pause := self._settings.sweep_seconds) is not None:
            await asyncio.sleep(pause)
            for seen in self._primary.cache:
                self.queue.add(seen.key)

    async def _end(self, workers: list[asyncio.Task[None]]) -> None:
        """Let busy workers finish, within a time; idle ones end at once, and none begins with another key."""
        for worker in workers:
            if worker not in self._busy:
                worker.cancel()
        try:
            if self._busy:
                self._ending = True
                await asyncio.wait(workers, timeout=self._settings.finish_seconds)
        finally:
            # Whoever is cancelled twice waits no longer, but no worker outlives its controller.
            for worker in workers:
                worker.cancel()
            self._ending = False
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        task = together.this_task()
        while not self._ending:
            key = await self.queue.get()
            self._busy.add(task)
            try:
                await self._handle(key)
            except asyncio.CancelledError:
                # Whoever works here next begins with it.
                self.queue.add(key)
                raise
            finally:
                self._busy.discard(task)
                self.queue.done(key)
            # A reconcile may have waited for nothing, and the next key may be here: everybody else has a turn between the two.
            await asyncio.sleep(0)

    async def _handle(self, key: Key) -> None:
        self._count += 1
        started = asyncio.get_running_loop().time()
        fields = {"controller": self.name, "namespace": key.namespace, "name": key.name, "reconcile": str(self._count)}
        if self._settings.about is not None:
            fields.update(self._settings.about(key))
        with logs.about(**fields):
            result = await self._try(key)
        seconds = asyncio.get_running_loop().time() - started
        self._results.inc(self.name, result)
        self._durations.observe(seconds, self.name)
        for observe in self.observers:
            observe(self.name, result, seconds)

    async def _try(self, key: Key) -> str:
        """Reconcile a key and see to what follows from that; returns what it came to."""
        if self._primary.expectations.is_stale(key):
            # The write that the cache does not show yet brings the key here again.
            return "done"
        try:
            async with asyncio.timeout(self._settings.seconds):
                outcome = await self._reconcile(key)
        except Conflict as error:
            # Somebody else was faster: ordinary, and gone at the next look.
            _LOG.debug("reconcile conflicted; retrying", extra={"error": str(error)})
            self.queue.add_failed(key)
            return "failed"
        except PaddockError as error:
            return self._failed(key, error)
        except TimeoutError:
            return self._defect(key, f"it took longer than {self._settings.seconds:g} s")
        except Exception as error:
            return self._defect(key, f"{type(error).__name__}; the log of the controller has the details", log=True)
        self.queue.forget(key)
        if outcome.after is None:
            return "done"
        self.queue.add_after(key, outcome.after)
        return "again"

    def _failed(self, key: Key, error: PaddockError) -> str:
        refused = isinstance(error, Terminal) and not isinstance(error, QuotaExceeded)
        pause = self.queue.add_failed(key, longest=refused)
        _LOG.warning("reconcile failed", extra={"error": str(error), "failures": self.queue.failures(key), "again_in": round(pause, 1)})
        self._tell(key, str(error))
        return "refused" if refused else "failed"

    def _defect(self, key: Key, why: str, *, log: bool = False) -> str:
        pause = self.queue.add_failed(key)
        _LOG.error("reconcile failed because of a defect", extra={"error": why, "again_in": round(pause, 1)}, exc_info=log)
        self._tell(key, f"this is a defect of {self.name}: {why}")
        return "defect"

    def _tell(self, key: Key, note: str) -> None:
        seen = self._primary.cache.get(key)
        if self._recorder is not None and seen is not None:
            self._recorder.tell(reference(self._primary.target, seen.meta), "Warning", "ReconcileError", note)


def own_key(change: CacheChange) -> Iterable[Key]:
    """A change of an object concerns the object."""
    return (change.seen.key,)


def there(informer: Informer, keys: Keys) -> Keys:
    """Map a change only to keys that are in the informer's cache; an object added later triggers an event of its own."""
    return lambda change: [key for key in keys(change) if informer.cache.get(key) is not None]


def owners(group: str, kind: str) -> Keys:
    """A change of an object concerns the objects of a kind that own it, before or after."""

    def keys(change: CacheChange) -> Iterable[Key]:
        found: dict[Key, None] = {}
        for seen in (change.old, change.new):
            for key in _owned_by(seen, group, kind):
                found[key] = None
        return found

    return keys


def _owned_by(seen: CachedObject | None, group: str, kind: str) -> Iterable[Key]:
    if seen is None:
        return ()
    place = seen.meta.namespace or ""
    return (Key(place, owner.name) for owner in seen.meta.ownerReferences or () if (owner.group, owner.kind) == (group, kind))


def labelled(label: str) -> Keys:
    """A change of an object concerns the object in its namespace that a label names."""

    def keys(change: CacheChange) -> Iterable[Key]:
        found: dict[Key, None] = {}
        for seen in (change.old, change.new):
            name = (seen.meta.labels or {}).get(label, "") if seen is not None else ""
            if seen is not None and name:
                found[Key(seen.meta.namespace or "", name)] = None
        return found

    return keys
