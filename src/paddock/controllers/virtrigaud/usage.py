"""Counts the machines that use classes and networks, and says whether these can be used (docs/spec/virtrigaud.md 2.2)."""

import msgspec

from paddock.client.target import Key
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.dialects.virtrigaud.vmclass import VMClassStatus
from paddock.dialects.virtrigaud.vmnetworkattachment import VMNetworkAttachmentStatus
from paddock.plan.virtrigaud import reasons, references
from paddock.plan.virtrigaud.conditions import READY, settled, true
from paddock.plan.virtrigaud.preparation import provider_key
from paddock.runtime.controller import DONE, Outcome
from paddock.runtime.statuses import StatusWriter


class VirtrigaudClassReconciler:
    """Reports how many machines are of a class."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.CLASSES, parts.caches.classes.expectations)

    async def reconcile(self, key: Key) -> Outcome:
        """Write the status of one class, if it differs."""
        seen = self._parts.caches.classes.cache.get(key)
        if seen is None:
            return DONE
        found = seen.read(targets.CLASSES)
        before = found.status or VMClassStatus()
        value = true(READY, reasons.SUCCESS, f"the class {key} can be used")
        wanted = msgspec.structs.replace(
            before,
            conditions=settled(before.conditions, (value,), self._parts.timestamp(), seen.meta.generation),
            observedGeneration=seen.meta.generation,
            usedByVMs=len(self._parts.caches.users("VMClass", key)),
        )
        await self._statuses.write(seen, wanted)
        return DONE


class VirtrigaudNetworkReconciler:
    """Reports how many machines are on a network, and which Providers have them."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.NETWORKS, parts.caches.networks.expectations)

    async def reconcile(self, key: Key) -> Outcome:
        """Write the status of one network, if it differs."""
        caches = self._parts.caches
        seen = caches.networks.cache.get(key)
        if seen is None:
            return DONE
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
        await self._statuses.write(seen, wanted)
        return DONE

    def _providers(self, key: Key, users: list[Key]) -> list[str]:
        """The Providers that have made machines on the network."""
        found = set()
        for each in users:
            seen = self._parts.caches.machines.cache.get(each)
            vm = seen.read(targets.MACHINES) if seen is not None else None
            if vm is not None and vm.status is not None and vm.status.id:
                place = references.provider_of(vm)
                found.add(provider_key(key.namespace, place.namespace, place.name))
        return sorted(found)
