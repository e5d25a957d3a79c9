"""Prepares images at the Providers whose machines need them: once for each image and Provider, however many machines wait.

One controller writes an image's status, so two machines cannot begin the same preparation. Tasks and results are in the status; how often a
preparation failed is remembered in this process.
"""

from collections.abc import Iterable, Mapping

import msgspec

from paddock.base import reasons as causes
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.specs import ImagePrepare
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.images.removal import ImageRemoval
from paddock.dialects.virtrigaud.controllers.usage import CountPauses
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage, VMImage
from paddock.dialects.virtrigaud.plan import imagecredentials, preparation, reasons, removal
from paddock.dialects.virtrigaud.plan.preparation import ImageState, ImageUse
from paddock.dialects.virtrigaud.plan.references import MachineReference
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter

# Machines that come within so long of each other count together.
_TOGETHER_SECONDS = 0.5


class _Attempts(msgspec.Struct):
    """How often a preparation failed in a row, for one generation of the image, and when it is tried again."""

    generation: int | None
    failures: int = 0
    until: float = 0.0
    problem: str = ""
    # the reason code of the problem
    code: str = ""


class _ImagePass:
    """One image, and what the pass changes."""

    def __init__(self, image: VMImage, now: str) -> None:
        self.image = image
        self.now = now
        current = preparation.is_current(image)
        status = image.status
        # What was prepared from another source is of no use.
        self.entries: dict[str, ProviderImage] = dict((status.providerStatus if status is not None and current else None) or {})
        self.tasks = preparation.tasks_of(status) if current else {}
        self.prepared = False
        self.wait: float | None = None

    def note_preparation(self) -> None:
        """Note that a preparation began."""
        self.prepared = True

    def look_again(self, seconds: float) -> None:
        """Look again after so long, if nobody wants it sooner."""
        self.wait = seconds if self.wait is None else min(self.wait, seconds)


class VirtrigaudImageReconciler(KindReconciler):
    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts.caches.images)
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.IMAGES, parts.caches.images.expectations)
        self._pauses = CountPauses(parts, _TOGETHER_SECONDS)
        self._attempts: dict[tuple[str, str], _Attempts] = {}
        # when a task is polled next
        self._due: dict[tuple[str, str], float] = {}
        self._removal = ImageRemoval(parts, self._statuses)

    async def forget(self, key: Key) -> None:
        """Drop what is remembered of an image that is gone."""
        self._pauses.forget(key)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Remove the image where it was prepared."""
        return await self._removal.advance(seen)

    async def work(self, seen: CachedObject) -> Outcome:
        """Prepare one image where it is needed, and report how it stands."""
        if (pause := self._pauses.left(seen)) > 0:
            return again(pause)
        self._pauses.wrote(seen)
        image_pass = _ImagePass(seen.read(targets.IMAGES), self._parts.timestamp())
        uses = self._uses(seen.key, image_pass.tasks)
        if any(_is_imported(image_pass.image, use) for _, use in uses) and await self._removal.prepare(seen):
            return DONE
        states = [await self._stand(image_pass, seen.meta.uid, place, use) for place, use in uses]
        for each in states:
            if each.state == "failed" and image_pass.image.status is not None and image_pass.image.status.phase != preparation.FAILED:
                about = reference(targets.IMAGES, seen.meta)
                self._parts.recorder.tell(about, "Warning", reasons.PREPARATION_FAILED, each.message)
        wanted = preparation.status(image_pass.image, image_pass.entries, states, image_pass.tasks, image_pass.now)
        if image_pass.prepared:
            wanted = msgspec.structs.replace(wanted, lastPrepareTime=image_pass.now)
        await self._statuses.write_surely(seen, wanted)
        return again(image_pass.wait) if image_pass.wait is not None else DONE

    def _uses(self, key: Key, tasks: Iterable[str]) -> list[tuple[Key, ImageUse]]:
        """The Providers whose machines name the image, and those that still prepare it, with what they report."""
        caches = self._parts.caches
        places = dict.fromkeys(caches.references(seen)[0] for seen in caches.referring("VMImage", key) if not seen.meta.deleting)
        places |= dict.fromkeys(MachineReference("Provider", *preparation.place_of(each, key.namespace)) for each in tasks)
        found = []
        for place in places:
            where, provider = Key(place.namespace, place.name), caches.read(place)
            if isinstance(provider, Provider):
                reported = caches.capabilities(where)
                name = preparation.provider_key(key.namespace, where.namespace, where.name)
                imports = reported.supportsImageImport if reported is not None else None
                found.append((where, ImageUse(name, provider.spec.type, imports)))
        return found

    async def _stand(self, image_pass: _ImagePass, uid: str, key: Key, use: ImageUse) -> ImageState:
        """Bring the image a step on at one Provider."""
        if not preparation.needs_import(image_pass.image.spec, use.type):
            return ImageState(use, "reference")
        entry = image_pass.entries.get(use.provider)
        if entry is not None and entry.available:
            image_pass.tasks.pop(use.provider, None)
            return ImageState(use, "ready")
        missing = (image_pass.image.spec.prepare or ImagePrepare()).onMissing
        if missing == "Fail":
            return ImageState(use, "missing", f"the image is not at Provider {use.provider}, and onMissing is Fail")
        if missing == "Wait":
            return ImageState(use, "waiting", f"waiting until somebody makes the image available at Provider {use.provider}")
        if use.imports is not True:
            return ImageState(
                use, "unprepared" if use.imports is False else "unserved", f"Provider {use.provider} has not reported what it can do"
            )
        driver = self._parts.providers.find(key, use.type).driver
        if driver is None:
            return ImageState(use, "unserved", f"Provider {use.provider} cannot be reached")
        return await self._import(image_pass, uid, key, use, driver)

    # --- importing --------------------------------------------------------------------------------------------------------

    async def _import(self, image_pass: _ImagePass, uid: str, key: Key, use: ImageUse, driver: Driver) -> ImageState:
        attempts = self._attempts.get((uid, use.provider))
        if attempts is None or attempts.generation != image_pass.image.metadata.generation:
            attempts = self._attempts[uid, use.provider] = _Attempts(image_pass.image.metadata.generation)
        now = self._parts.now()
        if attempts.until > now:
            image_pass.look_again(attempts.until - now)
            return self._failed_state(image_pass, use, attempts)
        try:
            if use.provider in image_pass.tasks:
                return await self._poll(image_pass, uid, use, driver, attempts)
            return await self._prepare(image_pass, uid, key, use, driver, attempts)
        except Refusal as refusal:
            # Nobody tells when the Secret is there.
            return self._failed(image_pass, use, attempts, ProviderError(ErrorKind.NOT_FOUND, str(refusal), reason=causes.SECRET_MISSING))
        except ProviderError as error:
            return self._failed(image_pass, use, attempts, error)

    async def _prepare(self, image_pass: _ImagePass, uid: str, key: Key, use: ImageUse, driver: Driver, attempts: _Attempts) -> ImageState:
        document = imagecredentials.document(image_pass.image.spec, self._secrets(image_pass.image, key, use))
        request = m.ImagePrepareRequest(
            image_json=payloads.encode_manifest(document), target_name=preparation.target_name(image_pass.image)
        )
        answer = await driver.image_prepare(request)
        entry = ProviderImage(
            id=answer.prepared_image_id or None,
            path=answer.prepared_image_path or None,
            lastUpdated=image_pass.now,
            message=removal.preparing(attempts.problem),
            reason=attempts.code or None,
        )
        image_pass.note_preparation()
        if answer.task is None or not answer.task.id:
            return self._ready(image_pass, uid, use, entry)
        image_pass.entries[use.provider] = entry
        image_pass.tasks[use.provider] = answer.task.id
        self._due[uid, use.provider] = self._parts.now() + preparation.FIRST_POLL_SECONDS
        image_pass.look_again(preparation.FIRST_POLL_SECONDS)
        return preparation.importing(use, entry)

    def _secrets(self, image: VMImage, key: Key, use: ImageUse) -> imagecredentials.Secrets:
        """The Secrets beside the image whose values go to the Provider; raises `Refusal` for one that is not there."""
        caches = self._parts.caches
        reported = caches.capabilities(key)
        found: dict[str, Mapping[str, bytes]] = {}
        for name in imagecredentials.names(image.spec, use.type, reported.features if reported is not None else None):
            secret = caches.read(MachineReference("Secret", namespace_of(image), name))
            if not isinstance(secret, Secret):
                raise Refusal(f"there is no Secret {namespace_of(image)}/{name}", fix="create it")
            found[name] = decoded(secret)
        return found

    async def _poll(self, image_pass: _ImagePass, uid: str, use: ImageUse, driver: Driver, attempts: _Attempts) -> ImageState:
        now = self._parts.now()
        entry = image_pass.entries.get(use.provider) or ProviderImage(lastUpdated=image_pass.now)
        due = self._due.get((uid, use.provider), 0.0)
        if due > now:
            image_pass.look_again(due - now)
            return preparation.importing(use, entry)
        answer = await driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=image_pass.tasks[use.provider])))
        if answer.error:
            image_pass.tasks.pop(use.provider)
            return self._failed(image_pass, use, attempts, ProviderError(ErrorKind.INTERNAL, answer.error, reason=answer.reason))
        if answer.done:
            return self._ready(image_pass, uid, use, entry)
        since = ages.seconds_of(entry.lastUpdated or "") or now
        seconds = preparation.timeout_seconds(image_pass.image.spec)
        if now - since > seconds:
            image_pass.tasks.pop(use.provider)
            return self._failed(image_pass, use, attempts, ProviderError(ErrorKind.TIMEOUT, f"it took longer than {seconds:g} s"))
        self._due[uid, use.provider] = now + preparation.POLL_SECONDS
        image_pass.look_again(preparation.POLL_SECONDS)
        return preparation.importing(use, entry)

    def _ready(self, image_pass: _ImagePass, uid: str, use: ImageUse, entry: ProviderImage) -> ImageState:
        image_pass.entries[use.provider] = msgspec.structs.replace(
            entry, available=True, lastUpdated=image_pass.now, message=removal.PREPARED, reason=None
        )
        image_pass.tasks.pop(use.provider, None)
        self._attempts.pop((uid, use.provider), None)
        self._due.pop((uid, use.provider), None)
        return ImageState(use, "ready")

    def _failed(self, image_pass: _ImagePass, use: ImageUse, attempts: _Attempts, error: ProviderError) -> ImageState:
        attempts.failures += 1
        attempts.problem, attempts.code = str(error)[:1024], error.reason_code
        retries = (image_pass.image.spec.prepare or ImagePrepare()).retries
        if not _is_transient(error):
            attempts.failures = max(attempts.failures, retries + 1)
        exhausted = attempts.failures > retries
        pause = preparation.EXHAUSTED_SECONDS if exhausted else preparation.RETRY_SECONDS
        attempts.until = self._parts.now() + pause
        image_pass.look_again(pause)
        return self._failed_state(image_pass, use, attempts)

    def _failed_state(self, image_pass: _ImagePass, use: ImageUse, attempts: _Attempts) -> ImageState:
        retries = (image_pass.image.spec.prepare or ImagePrepare()).retries
        exhausted = attempts.failures > retries
        text = f"Provider {use.provider} could not prepare the image: {attempts.problem}"
        entry = image_pass.entries.get(use.provider) or ProviderImage()
        image_pass.entries[use.provider] = msgspec.structs.replace(
            entry, message=text, reason=attempts.code or None, lastUpdated=entry.lastUpdated if entry.message == text else image_pass.now
        )
        return ImageState(use, "failed" if exhausted else "due", text, attempts.code)


def _is_imported(image: VMImage, use: ImageUse) -> bool:
    """Return whether the image is to be prepared at a Provider, or was."""
    missing = (image.spec.prepare or ImagePrepare()).onMissing
    return use.imports is True and missing == "Import" and preparation.needs_import(image.spec, use.type)


def _is_transient(error: ProviderError) -> bool:
    return error.kind not in (ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED, ErrorKind.UNAUTHORIZED)
