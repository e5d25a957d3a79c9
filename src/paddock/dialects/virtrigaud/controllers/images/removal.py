"""Deletes what an image has left at Providers when the image goes.

Only what ImagePrepare made is deleted; what somebody else made available stays. The finalizer is put on before the first preparation, so a
manager that ends in between loses nothing. ImageDelete is called again until the provider has nothing left: it succeeds for what is gone.
"""

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage, VMImage, VMImageStatus
from paddock.dialects.virtrigaud.plan import marks, preparation, reasons, references, removal
from paddock.dialects.virtrigaud.plan.conditions import DELETING, PROVISIONING, holds, settled, true
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter

_POLL_SECONDS = 5.0
_RETRY_SECONDS = 15.0
# Errors that no repetition cures: what is there stays there.
_FINAL = (ErrorKind.NOT_SUPPORTED, ErrorKind.CONFLICT, ErrorKind.INVALID_SPEC)


class ImageRemoval:
    def __init__(self, parts: VirtrigaudParts, statuses: StatusWriter) -> None:
        self._parts = parts
        self._statuses = statuses
        # tasks of deletions, by image and Provider
        self._tasks: dict[tuple[str, str], m.TaskRef] = {}
        # when a removal that waits goes on, by image
        self._until: dict[str, float] = {}

    async def prepare(self, seen: CachedObject) -> bool:
        """Make sure that an image waits for its removal; whether anything was written."""
        written = await finalizers.put_on(self._parts.client, targets.IMAGES, seen.meta, marks.IMAGE_FINALIZER)
        if written is not None:
            self._parts.caches.images.expectations.wrote(written)
        return written is not None

    async def advance(self, seen: CachedObject) -> Outcome:
        """Bring the removal of an image a step on."""
        if marks.IMAGE_FINALIZER not in (seen.meta.finalizers or ()):
            return DONE
        image = seen.read(targets.IMAGES)
        forced = (image.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE
        if not forced and (pause := self._until.get(seen.meta.uid, 0.0) - self._parts.now()) > 0:
            # Its own status wakes it, too.
            return again(pause)
        waits = [] if forced else self._machines(seen.key, image)
        if waits:
            return await self._hold(seen, image, f"waiting until {', '.join(waits)} are made from the image", _POLL_SECONDS)
        for name, entry in removal.prepared_here(image):
            problem, pause = await self._remove(seen, name, entry)
            if problem and forced:
                self._left(seen, name, entry, problem)
            elif problem:
                return await self._hold(seen, image, problem, pause)
        self._until.pop(seen.meta.uid, None)
        await finalizers.take_off(self._parts.client, targets.IMAGES, seen.meta, marks.IMAGE_FINALIZER)
        return DONE

    def _machines(self, key: Key, image: VMImage) -> list[str]:
        """Machines that are being made from the image. Where it is not available none is."""
        found = []
        for each in self._parts.caches.users("VMImage", key):
            seen = self._parts.caches.machines.cache.get(each)
            vm = seen.read(targets.MACHINES) if seen is not None else None
            if vm is None or vm.status is None or not holds(vm.status.conditions, PROVISIONING):
                continue
            place = references.provider_of(vm)
            entry = preparation.prepared(image, preparation.provider_key(key.namespace, place.namespace, place.name))
            if entry is not None and entry.available:
                found.append(f"VirtualMachine {each}")
        return found

    async def _hold(self, seen: CachedObject, image: VMImage, message: str, pause: float) -> Outcome:
        before = image.status or VMImageStatus()
        conditions = settled(before.conditions, [true(DELETING, reasons.DELETING, message)], self._parts.timestamp(), seen.meta.generation)
        self._until[seen.meta.uid] = self._parts.now() + pause
        await self._statuses.write_surely(seen, removal.leaving_status(before, conditions, message))
        return again(pause)

    async def _remove(self, seen: CachedObject, name: str, entry: ProviderImage) -> tuple[str, float]:
        """Delete the image at one Provider: why it is not gone yet, and when to look again."""
        place = removal.place(name, seen.key.namespace)
        where = Key(*place)
        provider = self._parts.caches.providers.cache.get(where)
        if provider is None:
            self._left(seen, name, entry, f"Provider {where} does not exist any more")
            return "", 0.0
        reported = self._parts.caches.capabilities(where)
        if reported is None:
            return f"Provider {where} has not reported its capabilities yet", _RETRY_SECONDS
        if not features.has(reported.features, features.IMAGE_DELETE):
            self._left(seen, name, entry, f"Provider {where} does not report that it deletes images")
            return "", 0.0
        driver = self._parts.providers.find(where, provider.read(targets.PROVIDERS).spec.type).driver
        if driver is None:
            return f"Provider {where} cannot be reached", _RETRY_SECONDS
        try:
            return await self._delete(seen, name, entry, driver)
        except ProviderError as error:
            self._tasks.pop((seen.meta.uid, name), None)
            if error.kind in _FINAL:
                self._left(seen, name, entry, f"Provider {where}: {error}")
                return "", 0.0
            return f"Provider {where}: {error}", _RETRY_SECONDS

    async def _delete(self, seen: CachedObject, name: str, entry: ProviderImage, driver: Driver) -> tuple[str, float]:
        task = self._tasks.get((seen.meta.uid, name))
        if task is None:
            answer = await extensions(driver).image_delete(x.ImageDeleteRequest(image_id=entry.id or "", image_path=entry.path or ""))
            task = answer.task if answer.task is not None and answer.task.id else None
            if task is None:
                note = f"Provider {name} has deleted the prepared image {removal.named(entry)}"
                self._parts.recorder.tell(reference(targets.IMAGES, seen.meta), "Normal", "PreparedImageDeleted", note)
                return "", 0.0
            self._tasks[seen.meta.uid, name] = task
        status = await driver.task_status(m.TaskStatusRequest(task=task))
        if status.error:
            self._tasks.pop((seen.meta.uid, name))
            return f"Provider {name} could not delete the prepared image: {status.error}", _RETRY_SECONDS
        if status.done:
            # Once more, to hear that nothing is left.
            self._tasks.pop((seen.meta.uid, name))
            return f"Provider {name} has deleted the prepared image", 1.0
        return f"Provider {name} deletes the prepared image", _POLL_SECONDS

    def _left(self, seen: CachedObject, name: str, entry: ProviderImage, why: str) -> None:
        note = f"the prepared image {removal.named(entry)} stays at Provider {name}: {why}; delete it there"
        self._parts.recorder.tell(reference(targets.IMAGES, seen.meta), "Warning", "PreparedImageLeft", note)
