"""The caches of VirtRigaud's kinds, and the way from an object that changed to the objects that its change concerns."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from paddock.client.target import Key, Target
from paddock.controllers.virtrigaud import targets
from paddock.dialects.virtrigaud.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.virtualmachine import VirtrigaudVirtualMachine
from paddock.meta.objects import Resource
from paddock.meta.world import ObjectSet
from paddock.plan.virtrigaud import marks, references
from paddock.plan.virtrigaud.references import MachineReference
from paddock.runtime.cache import CacheChange, CachedObject
from paddock.runtime.controller import Keys
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers

# Index of machines by what they refer to.
REFERS = "what virtrigaud's machines refer to"
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
        self.secrets = informers.of(targets.SECRETS)
        self.machines.cache.index(REFERS, _refers)
        self._by_kind: dict[str, tuple[Informer, Target[Any]]] = {
            "Provider": (self.providers, targets.PROVIDERS),
            "VMClass": (self.classes, targets.CLASSES),
            "VMImage": (self.images, targets.IMAGES),
            "VMNetworkAttachment": (self.networks, targets.NETWORKS),
            "Secret": (self.secrets, targets.SECRETS),
        }

    # --- what a change concerns -------------------------------------------------------------------------------------------

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The other informers, with the machines that their changes concern."""
        for kind, (informer, _) in self._by_kind.items():
            yield informer, self._referring(kind)

    def _referring(self, kind: str) -> Keys:
        def keys(change: CacheChange) -> Iterable[Key]:
            if _facets(kind, change.old) == _facets(kind, change.new):
                return ()
            return self.users(kind, change.seen.key)

        return keys

    def users(self, kind: str, key: Key) -> list[Key]:
        """The machines that refer to an object."""
        return [seen.key for seen in self.machines.cache.by(REFERS, f"{kind} {key}")]

    def images_of_provider(self, change: CacheChange) -> Iterable[Key]:
        """Map a change of a Provider to the images that its machines name."""
        if _facets("Provider", change.old) == _facets("Provider", change.new):
            return ()
        found: dict[Key, None] = {}
        for key in self.users("Provider", change.seen.key):
            seen = self.machines.cache.get(key)
            for each in references.references(seen.read(targets.MACHINES)) if seen is not None else ():
                if each.kind == "VMImage":
                    found[Key(each.namespace, each.name)] = None
        return found

    def referred(self, kind: str) -> Callable[[CacheChange], Iterable[Key]]:
        """Map a change of a machine to the objects of a kind that it refers or referred to."""

        def keys(change: CacheChange) -> Iterable[Key]:
            found: dict[Key, None] = {}
            for seen in (change.old, change.new):
                for each in references.references(seen.read(targets.MACHINES)) if seen is not None else ():
                    if each.kind == kind:
                        found[Key(each.namespace, each.name)] = None
            return found

        return keys

    # --- reading ----------------------------------------------------------------------------------------------------------

    def world(self, vm: VirtrigaudVirtualMachine) -> ObjectSet:
        """Everything that a machine refers to, as far as it exists."""
        found = (self.read(each) for each in references.references(vm))
        return ObjectSet((each for each in found if each is not None), complete=True)

    def read(self, reference: MachineReference) -> Resource | None:
        """An object that is referred to."""
        informer, target = self._by_kind[reference.kind]
        seen = informer.cache.get(Key(reference.namespace, reference.name))
        found: Resource | None = seen.read(target) if seen is not None else None
        return found

    def inputs(self, vm: VirtrigaudVirtualMachine) -> State:
        """What the requests for a machine are made from: while it is the same, a request that was refused would be refused again."""
        annotations = vm.metadata.annotations or {}
        own = tuple(annotations.get(each, "") for each in (marks.FORCE_DELETE, marks.ORPHAN_ON_DELETE, marks.ALLOW_RESTART))
        found = [
            _facets(each.kind, self._by_kind[each.kind][0].cache.get(Key(each.namespace, each.name))) for each in references.references(vm)
        ]
        return (vm.metadata.generation, vm.metadata.deletionTimestamp, own, *found)

    def capabilities(self, key: Key) -> ReportedCapabilities | None:
        """What a Provider has reported."""
        seen = self.providers.cache.get(key)
        status = seen.read(targets.PROVIDERS).status if seen is not None else None
        return status.reportedCapabilities if status is not None else None


def _refers(seen: CachedObject) -> Iterable[str]:
    found = references.references(seen.read(targets.MACHINES))
    return [f"{each.kind} {Key(each.namespace, each.name)}" for each in found]


def _facets(kind: str, seen: CachedObject | None) -> State | None:
    """What counts of an object for the machines that refer to it."""
    if seen is None:
        return None
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
