"""Looks up what a VMClone is made from: its source, what the new machine refers to, and the driver. Nothing is asked of a provider."""

from dataclasses import dataclass

from paddock.contract.driver import Driver
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclone import VMClone
from paddock.dialects.virtrigaud.plan import guest, marks, reasons, references, status
from paddock.dialects.virtrigaud.plan.clones import firstboot, judging, target
from paddock.dialects.virtrigaud.plan.clones.requests import CloneParts
from paddock.dialects.virtrigaud.plan.guest import Secrets
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.secret import decoded
from paddock.kubernetes.meta.world import namespace_of

_TAKEN = "Ready"


class CloneWaits(Exception):
    """A clone waits for something that a watch brings."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class CloneReady:
    """Everything that a clone needs. `source` is None for an image."""

    target: VirtrigaudVirtualMachine
    found: MachineDependencies
    driver: Driver
    provider: Key
    source: VirtrigaudVirtualMachine | None = None
    parts: CloneParts | None = None


class ClonePrerequisites:
    """Looks everything up; raises `CloneWaits` for what is missing and `Refusal` for what cannot be."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts

    async def of_machine(self, clone: VMClone) -> CloneReady:
        """The prerequisites of a machine's clone."""
        snapshot, key = self._snapshot(clone)
        source = self._source(key)
        wanted = target.from_machine(clone, source)
        await self._consent(clone)
        place = references.provider_of(source)
        judging.check_provider(clone, (place.namespace, place.name))
        found, driver, provider = self._resolve(wanted)
        can = self._parts.caches.capabilities(provider)
        unknown = judging.check_linked(clone, can, str(provider)) or judging.check_snapshot(clone, can, str(provider))
        if unknown:
            raise CloneWaits(reasons.WAITING, unknown)
        target.check_disks(clone, source)
        assert found.provider is not None and found.vmclass is not None
        parts = CloneParts(source, wanted, found.provider, found.vmclass, self._documents(source), snapshot, self._secrets(clone))
        return CloneReady(wanted, found, driver, provider, source, parts)

    async def of_image(self, clone: VMClone) -> CloneReady:
        """The prerequisites of a machine that is made from an image."""
        target.check_secrets(clone)
        custom = judging.customization(clone)
        user_data = firstboot.user_data(custom, self._secrets(clone), namespace_of(clone))
        wanted = target.from_image(clone, user_data)
        await self._consent(clone)
        found, driver, provider = self._resolve(wanted)
        assert found.image is not None and found.provider is not None
        judging.check_template(clone, found.image, found.provider)
        return CloneReady(wanted, found, driver, provider)

    def driver(self, provider: Key, type: str) -> Driver:
        """The driver of a Provider; raises `CloneWaits` without one."""
        connection = self._parts.providers.find(provider, type)
        if connection.driver is None:
            raise CloneWaits(connection.waiting, f"Provider {provider}: {connection.runtime.message}")
        return connection.driver

    def _snapshot(self, clone: VMClone) -> tuple[str, Key]:
        """The id of the snapshot, if one is cloned, and the place of its machine."""
        place, source = namespace_of(clone), clone.spec.source
        if source.vmRef is not None:
            return "", Key(place, source.vmRef.name)
        assert source.snapshotRef is not None
        key = Key(place, source.snapshotRef.name)
        seen = self._parts.caches.snapshots.cache.get(key)
        if seen is None:
            raise CloneWaits(reasons.SOURCE_NOT_FOUND, f"there is no VMSnapshot {key}")
        found = seen.read(targets.SNAPSHOTS)
        if found.status is None or found.status.phase != _TAKEN or not found.status.snapshotID:
            raise CloneWaits(reasons.WAITING, f"VMSnapshot {key} is not ready")
        return found.status.snapshotID, Key(place, found.spec.vmRef.name)

    def _source(self, key: Key) -> VirtrigaudVirtualMachine:
        seen = self._parts.caches.machines.cache.get(key)
        if seen is None:
            raise CloneWaits(reasons.SOURCE_NOT_FOUND, f"there is no VirtualMachine {key}")
        if seen.meta.deleting:
            raise CloneWaits(reasons.SOURCE_NOT_FOUND, f"VirtualMachine {key} is being deleted")
        source = seen.read(targets.MACHINES)
        if not status.of(source).id:
            raise CloneWaits(reasons.WAITING, f"VirtualMachine {key} is not made yet")
        return source

    async def _consent(self, clone: VMClone) -> None:
        """A machine in another namespace needs that namespace's consent, as an object of it would."""
        place = target.namespace(clone)
        if place == namespace_of(clone):
            return
        try:
            found = await self._parts.client.get(targets.NAMESPACES, Key("", place))
        except NotFound:
            raise CloneWaits(reasons.WAITING, f"there is no Namespace {place}") from None
        annotations = found["metadata"].get("annotations") or {}
        if not {namespace_of(clone), "*"} & {each.strip() for each in annotations.get(marks.ALLOWED_SOURCES, "").split(",")}:
            what = f"the namespace {place} does not take machines from VMClones of {namespace_of(clone)}"
            fix = f"its owner can add the annotation {marks.ALLOWED_SOURCES}: {namespace_of(clone)} to it"
            raise Refusal(what, fix=fix, reason=reasons.CONSUMER_NOT_ALLOWED)

    def _resolve(self, vm: VirtrigaudVirtualMachine) -> tuple[MachineDependencies, Driver, Key]:
        found = references.resolve(vm, self._parts.caches.objects_of(vm))
        if found.missing:
            raise CloneWaits(reasons.WAITING, references.listed(found.missing))
        if found.refused:
            raise CloneWaits(reasons.CONSUMER_NOT_ALLOWED, references.refusal(found.refused, namespace_of(vm)))
        place = references.provider_of(vm)
        provider = Key(place.namespace, place.name)
        assert found.provider is not None
        return found, self.driver(provider, found.provider.spec.type), provider

    def _documents(self, source: VirtrigaudVirtualMachine) -> bytes:
        """The document that the source's guest has read; none that anybody knows is none."""
        known = references.resolve(source, self._parts.caches.objects_of(source))
        try:
            return guest.user_data(source, known.secrets)
        except Refusal:
            return b""

    def _secrets(self, clone: VMClone) -> Secrets:
        place, found = namespace_of(clone), {}
        for name in firstboot.secret_names(judging.customization(clone)):
            seen = self._parts.caches.secrets.cache.get(Key(place, name))
            if seen is None:
                raise CloneWaits(reasons.WAITING, f"there is no Secret {place}/{name}")
            found[name] = decoded(seen.read(targets.SECRETS))
        return found
