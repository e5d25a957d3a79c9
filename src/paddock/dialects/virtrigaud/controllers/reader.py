"""The caches of VirtRigaud's kinds, and the way from an object that changed to the objects that its change concerns."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import orjson

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.derived import DerivedValues, MachineReferences, concerns_others, id_of
from paddock.dialects.virtrigaud.controllers.registry import ProviderSecrets
from paddock.dialects.virtrigaud.controllers.relations import SnapshotRelations
from paddock.dialects.virtrigaud.kinds.provider import Provider, ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmmigration import VMMigrationSpec
from paddock.dialects.virtrigaud.plan import marks, references, removal
from paddock.dialects.virtrigaud.plan.clones import progress, target
from paddock.dialects.virtrigaud.plan.programs import transport
from paddock.dialects.virtrigaud.plan.references import MachineReference
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.secret import decoded
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Keys
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers

# Index of machines by what they refer to.
REFERS = "what virtrigaud's machines refer to"
# Index of machines by their Providers and ids there.
MADE = "what virtrigaud's providers call their machines"
# Index of Providers by the Secrets that they name.
SECRETS_OF_PROVIDERS = "what virtrigaud's providers name"
# Index of VMClones that are not settled, by what they concern.
CLONES = "what virtrigaud's clones concern"
_UNSETTLED = "unsettled"
# What machines are made from; changes of anything else of an object concern no machine.
_STATUS_MEMBERS = {"VMImage": ("observedGeneration", "providerStatus", "prepareTaskRef"), "Provider": ("healthy", "reportedCapabilities")}
State = tuple[Any, ...]


class VirtrigaudCaches:
    """The caches of a program, and what is filed in them."""

    def __init__(self, informers: Informers) -> None:
        self.machines = informers.of(targets.MACHINES)
        self.classes = informers.of(targets.CLASSES)
        self.images = informers.of(targets.IMAGES)
        self.networks = informers.of(targets.NETWORKS)
        self.providers = informers.of(targets.PROVIDERS)
        self.policies = informers.of(targets.POLICIES)
        self.namespaces = informers.of(targets.NAMESPACES)
        self.secrets = informers.of(targets.SECRETS)
        self.clones = informers.of(targets.CLONES)
        self.snapshots = informers.of(targets.SNAPSHOTS)
        self.migrations = informers.of(targets.MIGRATIONS)
        self.of_snapshots = SnapshotRelations(self.machines, self.snapshots)
        self._references = MachineReferences(self.machines)
        self.machines.cache.index(REFERS, self._refers)
        self.machines.cache.index(MADE, self._made)
        self.providers.cache.index(SECRETS_OF_PROVIDERS, _secrets_of)
        self.clones.cache.index(CLONES, _clone_concerns)
        self._by_kind: dict[str, tuple[Informer, Target[Any]]] = {
            "Provider": (self.providers, targets.PROVIDERS),
            "VMClass": (self.classes, targets.CLASSES),
            "VMImage": (self.images, targets.IMAGES),
            "VMNetworkAttachment": (self.networks, targets.NETWORKS),
            "VMPlacementPolicy": (self.policies, targets.POLICIES),
            "Secret": (self.secrets, targets.SECRETS),
        }
        self._facets = {kind: DerivedValues(informer, partial(_facets, kind)) for kind, (informer, _) in self._by_kind.items()}
        self._objects = {kind: DerivedValues(informer, partial(_read, target)) for kind, (informer, target) in self._by_kind.items()}

    # --- what a change concerns -------------------------------------------------------------------------------------------

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The other informers, with the machines that their changes concern."""
        for kind, (informer, _) in self._by_kind.items():
            yield informer, self._referring(kind)

    def _referring(self, kind: str) -> Keys:
        def keys(change: CacheChange) -> Iterable[Key]:
            if _means_the_same(kind, change):
                return ()
            return self.users(kind, change.seen.key)

        return keys

    def users(self, kind: str, key: Key) -> list[Key]:
        """The machines that refer to an object."""
        return [seen.key for seen in self.referring(kind, key)]

    def referring(self, kind: str, key: Key) -> list[CachedObject]:
        """The same, as they are in the cache."""
        return self.machines.cache.by(REFERS, f"{kind} {key}")

    def images_of_provider(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a Provider to the images that its machines name."""
        if _means_the_same("Provider", change):
            return ()
        found: dict[Key, None] = {}
        for key in self.users("Provider", change.seen.key):
            seen = self.machines.cache.get(key)
            for each in self.references(seen) if seen is not None else ():
                if each.kind == "VMImage":
                    found[Key(each.namespace, each.name)] = None
        return found

    def providers_of_image(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of an image that goes to the Providers that have prepared it."""
        return _preparers(change.seen) if change.seen.meta.deleting else ()

    def images_in_removal(self, key: Key) -> int:
        """Count the images that go, and that a Provider has yet to delete."""
        waiting = (each for each in self.images.cache if each.meta.deleting and marks.IMAGE_FINALIZER in (each.meta.finalizers or ()))
        return sum(key in _preparers(each) for each in waiting)

    def providers_of_secret(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a Secret to the Providers that name it."""
        return [seen.key for seen in self.providers.cache.by(SECRETS_OF_PROVIDERS, str(change.seen.key))]

    def migrations_of_machine(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a machine to the unfinished migrations that move it or make it."""
        return self._migrations(change, lambda key, spec: (key.namespace, spec.source.vmRef.name), _target_place)

    def migrations_of_provider(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a Provider to the unfinished migrations, whose sources or targets may be there."""
        if _means_the_same("Provider", change):
            return ()
        return [each.key for each in self.migrations.cache if not _is_final(each)]

    def _migrations(self, change: CacheChange, *places: "Callable[[Key, VMMigrationSpec], tuple[str, str]]") -> list[Key]:
        changed = (change.seen.key.namespace, change.seen.key.name)
        found = []
        for each in self.migrations.cache:
            spec = each.read(targets.MIGRATIONS).spec
            if not _is_final(each) and any(place(each.key, spec) == changed for place in places):
                found.append(each.key)
        return found

    def referred(self, kind: str) -> Callable[[CacheChange], Iterable[Key]]:
        """Map a change of a machine to the objects of a kind that it refers or referred to."""

        def keys(change: CacheChange) -> Iterable[Key]:
            found: dict[Key, None] = {}
            if not concerns_others(change):
                return ()
            for seen in (change.old, change.new):
                for each in references.references(seen.read(targets.MACHINES)) if seen is not None else ():
                    if each.kind == kind:
                        found[Key(each.namespace, each.name)] = None
            return found

        return keys

    def clones_of_machine(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a machine to the clones that are made from it or become it."""
        return [seen.key for seen in self.clones.cache.by(CLONES, f"VirtualMachine {change.seen.key}")]

    def clones_of_snapshot(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a snapshot to the clones that are made from it."""
        return [seen.key for seen in self.clones.cache.by(CLONES, f"VMSnapshot {change.seen.key}")]

    def unsettled_clones(self, kind: str) -> Keys:
        """Map a change of an object of a kind to the clones that may wait for it."""

        def keys(change: CacheChange) -> Iterable[Key]:
            return () if _means_the_same(kind, change) else self.waiting_clones()

        return keys

    def waiting_clones(self) -> list[Key]:
        """The clones that are not settled."""
        return [seen.key for seen in self.clones.cache.by(CLONES, _UNSETTLED)]

    def snapshots_of_provider(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a Provider to the snapshots of its machines."""
        if _means_the_same("Provider", change):
            return ()
        return [key for machine in self.users("Provider", change.seen.key) for key in self.of_snapshots.keys(machine)]

    def names_of_clones(self) -> tuple[set[str], set[str]]:
        """The names and ids of the machines that unsettled clones are making."""
        clones = [seen.read(targets.CLONES) for seen in self.clones.cache.by(CLONES, _UNSETTLED)]
        ids = {each.status.targetVMID or "" for each in clones if each.status is not None}
        return {each.spec.target.name for each in clones}, ids - {""}

    @property
    def named(self) -> dict[str, Informer]:
        """The informers of what machines refer to, by kind."""
        return {kind: informer for kind, (informer, _) in self._by_kind.items()}

    # --- reading ----------------------------------------------------------------------------------------------------------

    def objects_of(self, vm: VirtrigaudVirtualMachine) -> ObjectSet:
        """Everything that a machine refers to, as far as it exists."""
        found = (self.read(each) for each in references.references(vm))
        return ObjectSet((each for each in found if each is not None), complete=True)

    def read(self, reference: MachineReference) -> Resource | None:
        """An object that is referred to."""
        seen = self._by_kind[reference.kind][0].cache.get(Key(reference.namespace, reference.name))
        return self._objects[reference.kind].of(seen) if seen is not None else None

    def references(self, seen: CachedObject) -> tuple[MachineReference, ...]:
        """Return the references of a machine; its Provider comes first."""
        return self._references.of(seen)

    def _facet(self, reference: MachineReference) -> State | None:
        seen = self._by_kind[reference.kind][0].cache.get(Key(reference.namespace, reference.name))
        return self._facets[reference.kind].of(seen) if seen is not None else None

    def with_id(self, provider: MachineReference, id: str) -> list[Key]:
        """The machines that have an id at a Provider."""
        return [seen.key for seen in self.machines.cache.by(MADE, f"{Key(provider.namespace, provider.name)} {id}")]

    def _made(self, seen: CachedObject) -> Iterable[str]:
        made, place = id_of(seen), self.references(seen)[0]
        return (f"{Key(place.namespace, place.name)} {made}",) if made else ()

    def _refers(self, seen: CachedObject) -> Iterable[str]:
        return [f"{each.kind} {Key(each.namespace, each.name)}" for each in self.references(seen)]

    def inputs(self, vm: VirtrigaudVirtualMachine) -> State:
        """What the requests for a machine are made from: while it is the same, a request that was refused would be refused again."""
        annotations = vm.metadata.annotations or {}
        own = tuple(annotations.get(each, "") for each in (marks.FORCE_DELETE, marks.ORPHAN_ON_DELETE, marks.ALLOW_RESTART))
        found = (self._facet(each) for each in references.references(vm))
        return (vm.metadata.generation, vm.metadata.deletionTimestamp, own, self.of_snapshots.state(vm), *found)

    def provider_secrets(self, provider: Provider) -> ProviderSecrets:
        """The values of the Secrets that a Provider names."""
        own = namespace_of(provider)
        found = [self.secrets.cache.get(Key(own, name)) if name else None for name in secrets_of(provider)]
        credentials, tls = (decoded(seen.read(targets.SECRETS)) if seen is not None else None for seen in found)
        named = zip(("credentials", "tls"), found, strict=True)
        revisions = {name: f"{seen.meta.uid}.{seen.meta.resourceVersion}" for name, seen in named if seen is not None}
        return ProviderSecrets(credentials, tls, revisions)

    def provider_type(self, key: Key) -> str:
        """The type of a Provider; empty when there is none."""
        provider = self.read(MachineReference("Provider", key.namespace, key.name))
        return provider.spec.type if isinstance(provider, Provider) else ""

    def capabilities(self, key: Key) -> ReportedCapabilities | None:
        """What a Provider has reported."""
        provider = self.read(MachineReference("Provider", key.namespace, key.name))
        status = provider.status if isinstance(provider, Provider) else None
        return status.reportedCapabilities if status is not None else None


def _target_place(key: Key, spec: VMMigrationSpec) -> tuple[str, str]:
    return spec.target.namespace or key.namespace, spec.target.name


def _is_final(seen: CachedObject) -> bool:
    """Return whether a migration has ended and is not being deleted."""
    status = seen.read(targets.MIGRATIONS).status
    return not seen.meta.deleting and status is not None and status.phase in ("Ready", "Failed")


def secrets_of(provider: Provider) -> tuple[str, str]:
    """The names of the Secrets with the credentials and the certificates; empty: none."""
    given = provider.spec.credentialSecretRef
    # Another namespace's credentials are not this Provider's to use.
    credentials = given.name if given.namespace in (None, "", namespace_of(provider)) else ""
    return credentials, transport.secret_name(provider)


def _secrets_of(seen: CachedObject) -> Iterable[str]:
    provider = seen.read(targets.PROVIDERS)
    return [str(Key(seen.key.namespace, name)) for name in secrets_of(provider) if name]


def _clone_concerns(seen: CachedObject) -> Iterable[str]:
    clone = seen.read(targets.CLONES)
    if progress.is_settled(clone):
        return ()
    source, snapshot, place = clone.spec.source.vmRef, clone.spec.source.snapshotRef, clone.metadata.namespace or ""
    found = [_UNSETTLED, f"VirtualMachine {Key(target.namespace(clone), clone.spec.target.name)}"]
    if snapshot is not None:
        found.append(f"VMSnapshot {Key(place, snapshot.name)}")
    return [*found, f"VirtualMachine {Key(place, source.name)}"] if source is not None else found


def _read(target: Target[Any], seen: CachedObject) -> Any:
    return seen.read(target)


def _means_the_same(kind: str, change: CacheChange) -> bool:
    old, new = change.old, change.new
    return old is not None and new is not None and _facets(kind, old) == _facets(kind, new)


def _facets(kind: str, seen: CachedObject) -> State:
    """What counts of an object for the machines that refer to it."""
    if kind == "Secret":
        return (seen.meta.uid, seen.meta.resourceVersion)
    data = orjson.loads(seen.raw)
    status, annotations = data.get("status") or {}, data["metadata"].get("annotations") or {}
    return (
        seen.meta.uid,
        seen.meta.generation,
        annotations.get(marks.CONSUMERS),
        *(orjson.dumps(status.get(name)) for name in _STATUS_MEMBERS.get(kind, ())),
    )


def _preparers(seen: CachedObject) -> list[Key]:
    """Return the Providers that have prepared an image."""
    return [Key(*removal.place(name, seen.key.namespace)) for name, _ in removal.prepared_here(seen.read(targets.IMAGES))]
