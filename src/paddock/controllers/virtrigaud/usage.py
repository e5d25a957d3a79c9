"""Counts the machines that use classes and networks, and says whether these can be used (docs/spec/virtrigaud.md 2.2)."""

import msgspec

from paddock.client.target import Key
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.controllers.virtrigaud.derived import is_made
from paddock.dialects.virtrigaud.vmclass import VMClassStatus
from paddock.dialects.virtrigaud.vmnetworkattachment import VMNetworkAttachmentStatus
from paddock.plan.virtrigaud import reasons
from paddock.plan.virtrigaud.conditions import READY, settled, true
from paddock.plan.virtrigaud.preparation import provider_key
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.statuses import StatusWriter

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
        """Begin a pause."""
        self._written[seen.key] = (seen.meta.generation, self._parts.now())

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._written.pop(key, None)


class VirtrigaudClassReconciler:
    """Reports how many machines are of a class."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.CLASSES, parts.caches.classes.expectations)
        self._pauses = CountPauses(parts)

    async def reconcile(self, key: Key) -> Outcome:
        """Write the status of one class, if it differs."""
        seen = self._parts.caches.classes.cache.get(key)
        if seen is None:
            self._pauses.forget(key)
            return DONE
        if (pause := self._pauses.left(seen)) > 0:
            return again(pause)
        found = seen.read(targets.CLASSES)
        before = found.status or VMClassStatus()
        value = true(READY, reasons.SUCCESS, f"the class {key} can be used")
        wanted = msgspec.structs.replace(
            before,
            conditions=settled(before.conditions, (value,), self._parts.timestamp(), seen.meta.generation),
            observedGeneration=seen.meta.generation,
            usedByVMs=len(self._parts.caches.referring("VMClass", key)),
        )
        if await self._statuses.write(seen, wanted) is not None:
            self._pauses.wrote(seen)
        return DONE


class VirtrigaudNetworkReconciler:
    """Reports how many machines are on a network, and which Providers have them."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.NETWORKS, parts.caches.networks.expectations)
        self._pauses = CountPauses(parts)

    async def reconcile(self, key: Key) -> Outcome:
        """Write the status of one network, if it differs."""
        caches = self._parts.caches
        seen = caches.networks.cache.get(key)
        if seen is None:
            self._pauses.forget(key)
            return DONE
        if (pause := self._pauses.left(seen)) > 0:
            return again(pause)
        before = seen.read(targets.NETWORKS).status or VMNetworkAttachmentStatus()
        users = caches.users("VMNetworkAttachment", key)
        value = true(READY, reasons.SUCCESS, f"the network {key} can be used")
        wanted = msgspec.structs.replace(
            before,
            ready=True,
            phase="Ready",
            message=value.message,
            availableOn=self._providers(key, users) or None,
            conditions=settled(before.conditions, (value,), self._parts.timestamp(), seen.meta.generation),
            observedGeneration=seen.meta.generation,
            connectedVMs=len(users),
        )
        if await self._statuses.write(seen, wanted) is not None:
            self._pauses.wrote(seen)
        return DONE

    def _providers(self, key: Key, users: list[Key]) -> list[str]:
        """The Providers that have made machines on the network."""
        found = set()
        for each in users:
            seen = self._parts.caches.machines.cache.get(each)
            if seen is not None and is_made(seen):
                place = self._parts.caches.references(seen)[0]
                found.add(provider_key(key.namespace, place.namespace, place.name))
        return sorted(found)
