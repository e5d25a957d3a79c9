"""Counts the machines that use classes and networks, and says whether these can be used (docs/spec/virtrigaud.md 2.2)."""

from abc import abstractmethod

import msgspec

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.derived import is_made
from paddock.dialects.virtrigaud.kinds.vmclass import VMClassStatus
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import VMNetworkAttachmentStatus
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.conditions import READY, settled, true
from paddock.dialects.virtrigaud.plan.preparation import provider_key
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.schema.field import Object

# A count that changes all the time is written this often.
_COUNT_SECONDS = 2.0


class CountPauses:
    """Pauses between two looks at an object that a thousand new machines concern, so that these are not a thousand looks or writes."""

    def __init__(self, parts: VirtrigaudParts, seconds: float = _COUNT_SECONDS) -> None:
        self._parts = parts
        self._seconds = seconds
        # generation and time of the last write
        self._written: dict[Key, tuple[int | None, float]] = {}

    def left(self, seen: CachedObject) -> float:
        """Seconds until an object is due again; a new generation waits for nothing."""
        generation, at = self._written.get(seen.key, (None, 0.0))
        return at + self._seconds - self._parts.now() if generation == seen.meta.generation else 0.0

    def wrote(self, seen: CachedObject) -> None:
        self._written[seen.key] = (seen.meta.generation, self._parts.now())

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._written.pop(key, None)


class CountReconciler(KindReconciler):
    """Reports on an object how many machines use it, until it is gone."""

    def __init__(self, parts: VirtrigaudParts, informer: Informer) -> None:
        super().__init__(informer)
        self._parts = parts
        self._pauses = CountPauses(parts)
        self._statuses = StatusWriter(parts.client, informer.target, informer.expectations)

    async def work(self, seen: CachedObject) -> Outcome:
        """Write the status of one object, if it differs and is due."""
        if (pause := self._pauses.left(seen)) > 0:
            return again(pause)
        if await self._statuses.write(seen, self.status(seen)) is not None:
            self._pauses.wrote(seen)
        return DONE

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Report on: machines may use it to its end."""
        return await self.work(seen)

    async def forget(self, key: Key) -> None:
        """Drop what is remembered of an object that is gone."""
        self._pauses.forget(key)

    @abstractmethod
    def status(self, seen: CachedObject) -> Object:
        """Return the status that an object is to have."""


class VirtrigaudClassReconciler(CountReconciler):
    """Reports how many machines are of a class."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts, parts.caches.classes)

    def status(self, seen: CachedObject) -> VMClassStatus:
        """Return the status that a class is to have."""
        before = seen.read(targets.CLASSES).status or VMClassStatus()
        value = true(READY, reasons.SUCCESS, f"the class {seen.key} can be used")
        return msgspec.structs.replace(
            before,
            conditions=settled(before.conditions, (value,), self._parts.timestamp(), seen.meta.generation),
            observedGeneration=seen.meta.generation,
            usedByVMs=len(self._parts.caches.referring("VMClass", seen.key)),
        )


class VirtrigaudNetworkReconciler(CountReconciler):
    """Reports how many machines are on a network, and which Providers have them."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts, parts.caches.networks)

    def status(self, seen: CachedObject) -> VMNetworkAttachmentStatus:
        """Return the status that a network is to have."""
        before = seen.read(targets.NETWORKS).status or VMNetworkAttachmentStatus()
        users = self._parts.caches.users("VMNetworkAttachment", seen.key)
        value = true(READY, reasons.SUCCESS, f"the network {seen.key} can be used")
        return msgspec.structs.replace(
            before,
            ready=True,
            phase="Ready",
            message=value.message,
            availableOn=self._providers(seen.key, users) or None,
            conditions=settled(before.conditions, (value,), self._parts.timestamp(), seen.meta.generation),
            observedGeneration=seen.meta.generation,
            connectedVMs=len(users),
        )

    def _providers(self, key: Key, users: list[Key]) -> list[str]:
        """The Providers that have made machines on the network."""
        found = set()
        for each in users:
            seen = self._parts.caches.machines.cache.get(each)
            if seen is not None and is_made(seen):
                place = self._parts.caches.references(seen)[0]
                found.add(provider_key(key.namespace, place.namespace, place.name))
        return sorted(found)
