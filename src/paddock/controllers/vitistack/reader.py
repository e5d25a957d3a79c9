"""The caches of machines and of the objects that they refer to."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

from paddock.client.target import Key, Target
from paddock.controllers.vitistack import targets
from paddock.dialects.vitistack.marks import MACHINE
from paddock.plan.vitistack.objects import RemainingObjects
from paddock.plan.vitistack.phases import PENDING
from paddock.runtime.cache import CacheChange, CachedObject, CachedOwner, by_label
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers
from paddock.runtime.memo import StateMemo
from paddock.runtime.reference import is_owned

T = TypeVar("T")
# Machines by what they refer to: `networkconfigurations/namespace/name`.
REFERS, LABELLED = "what vitistack machines refer to", "vitistack machine"


class _Named(msgspec.Struct):
    name: str = ""


class _Network(msgspec.Struct):
    networkName: str = ""


class _CloudInit(msgspec.Struct):
    secretRef: _Named | None = None


class _Spec(msgspec.Struct):
    template: str | None = None
    networks: list[_Network] | None = None
    cloudInit: _CloudInit | None = None


class _Status(msgspec.Struct):
    phase: str | None = None


class MachineSummary(msgspec.Struct):
    """As much of a machine as is read very often."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def phase(self) -> str:
        """Its phase; a machine that nobody has looked at waits for it."""
        return self.status.phase or PENDING


_BRIEF = msgspec.json.Decoder(MachineSummary)


def brief(seen: CachedObject) -> MachineSummary:
    """A machine, in short."""
    return _BRIEF.decode(seen.raw)


class ReferenceReader(Generic[T]):
    """Objects of a kind that many machines refer to, read once at each revision."""

    def __init__(self, informer: Informer, target: Target[T]) -> None:
        self.informer = informer
        self._target = target
        self._read: StateMemo[str, T] = StateMemo(informer)

    def get(self, key: Key) -> T | None:
        """The object there."""
        seen = self.informer.cache.get(key)
        if seen is None:
            return None
        known = self._read.get(key, seen.meta.resourceVersion)
        return known if known is not None else self._read.put(key, seen.meta.resourceVersion, seen.read(self._target))


class VitistackCaches:
    """The informers that the controllers read."""

    def __init__(self, informers: Informers) -> None:
        self.machines = informers.of(targets.MACHINES)
        self.networks = informers.of(targets.NETWORKS)
        self.templates = informers.of(targets.TEMPLATES)
        self.attachments = informers.of(targets.ATTACHMENTS, optional=True)
        self.secrets = informers.of(targets.SECRETS)
        self.classes = informers.of(targets.CLASSES)
        self.vms = informers.of(targets.VMS)
        self.instances = informers.of(targets.INSTANCES)
        self.claims = informers.of(targets.CLAIMS)
        self.volumes = informers.of(targets.VOLUMES, optional=True)
        self.machines.cache.index(REFERS, references)
        for each in (self.claims, self.volumes):
            each.cache.index(LABELLED, by_label(MACHINE))
        # the kinds between a machine and what goes with it
        self._between = {(each.target.group, each.target.kind): each for each in (self.vms, self.volumes)}
        self.by_plural = {each.target.plural: each for each in (self.networks, self.templates, self.attachments, self.secrets)}
        # counts the changes of classes: all machines together read all of them
        self.classes_revision = 0
        self.classes.handle(self._count_class)
        self.read_network = ReferenceReader(self.networks, targets.NETWORKS)
        self.read_template = ReferenceReader(self.templates, targets.TEMPLATES)
        self.read_attachment = ReferenceReader(self.attachments, targets.ATTACHMENTS)
        self.read_secret = ReferenceReader(self.secrets, targets.SECRETS)
        self.read_class = ReferenceReader(self.classes, targets.CLASSES)

    def _count_class(self, change: CacheChange) -> None:
        self.classes_revision += 1

    def users(self, informer: Informer) -> Callable[[CacheChange], Iterable[Key]]:
        """The machines that refer to an object of a kind that changed."""

        def keys(change: CacheChange) -> Iterable[Key]:
            return self.users_of(informer, change.seen.key)

        return keys

    def users_of(self, informer: Informer, key: Key) -> list[Key]:
        """The machines that refer to an object."""
        return [seen.key for seen in self.machines.cache.by(REFERS, f"{informer.target.plural}/{key}")]

    def claims_of(self, key: Key, uid: str) -> list[CachedObject]:
        """The claims that were made for a machine, or put in their place: those of disks that it has no longer, too."""
        return _of(self.claims, key, uid)

    def volumes_of(self, key: Key, uid: str) -> list[CachedObject]:
        """The DataVolumes that were made for a machine, or put in their place."""
        return _of(self.volumes, key, uid)

    def own_claims(self, seen: CachedObject) -> list[CachedObject]:
        """The claims that go with a machine."""
        return [each for each in self.claims_of(seen.key, seen.meta.uid) if self._goes_with(each, seen.meta.uid)]

    def own_volumes(self, seen: CachedObject) -> list[CachedObject]:
        """The DataVolumes that go with a machine."""
        return [each for each in self.volumes_of(seen.key, seen.meta.uid) if self._goes_with(each, seen.meta.uid)]

    def vm_of(self, seen: CachedObject) -> CachedObject | None:
        """The VirtualMachine of a machine; None when that of its name is not its own."""
        found = self.vms.cache.get(seen.key)
        return found if found is not None and is_owned(found.meta, seen.meta.uid) else None

    def instance_of(self, key: Key) -> CachedObject | None:
        """The run of a machine; None when that of its name is not its own."""
        found = self.instances.cache.get(key)
        return found if found is not None and (found.meta.labels or {}).get(MACHINE) == key.name else None

    def remains(self, seen: CachedObject, networks: Iterable[str]) -> RemainingObjects:
        """Return the remaining objects of a machine under deletion."""
        key, name = seen.key, str(seen.key)
        left = dict.fromkeys(each.meta.name for each in (*self.own_claims(seen), *self.own_volumes(seen)))
        instance = self.instance_of(key)
        return RemainingObjects(
            vm=self.vm_of(seen) is not None,
            instance=instance is not None and self._goes_with(instance, seen.meta.uid),
            claims=tuple(left),
            networks=tuple(each for each in dict.fromkeys(networks) if name in self.connected(Key(key.namespace, each))),
        )

    def _goes_with(self, seen: CachedObject, uid: str) -> bool:
        """Return whether the machine of this UID owns an object, or owns its owner.

        The label alone is not enough: an object without an owner was released by a deletion that leaves the dependents, or put in place
        by a user. A machine uses such objects, and they outlive it.
        """
        owners = seen.meta.ownerReferences or ()
        return is_owned(seen.meta, uid) or (bool(owners) and all(self._owner_goes(seen.key.namespace, each, uid) for each in owners))

    def _owner_goes(self, namespace: str, owner: CachedOwner, uid: str) -> bool:
        informer = self._between.get((owner.group, owner.kind))
        if informer is None:
            return False
        found = informer.cache.get(Key(namespace, owner.name))
        # The garbage collector deletes the dependents of an owner that is gone.
        return found is None or found.meta.uid != owner.uid or self._goes_with(found, uid)

    def connected(self, key: Key) -> tuple[str, ...]:
        """The machines that a network's status lists."""
        found = self.read_network.get(key)
        return tuple((found.status.connectedMachines if found and found.status else None) or ())


def _of(informer: Informer, key: Key, uid: str) -> list[CachedObject]:
    """Objects of a machine: labelled with its name and its own, or a DataVolume's; those of another of that name are not."""
    named = (each for each in informer.cache.by(LABELLED, key.name) if each.key.namespace == key.namespace)
    ours = [each for each in named if each.meta.owner is None or each.meta.owner.uid == uid or each.meta.owner.kind != "Machine"]
    return ours + [each for each in informer.cache.by("owner", uid) if each not in ours]


def references(seen: CachedObject) -> Iterable[str]:
    """Yield the references of a machine."""
    spec, place = brief(seen).spec, seen.meta.namespace or ""
    if spec.template:
        yield f"{targets.TEMPLATES.plural}/{Key(place, spec.template)}"
    for name in dict.fromkeys(each.networkName for each in spec.networks or ()):
        # The definition of a network has its name.
        yield f"{targets.NETWORKS.plural}/{Key(place, name)}"
        yield f"{targets.ATTACHMENTS.plural}/{Key(place, name)}"
    if spec.cloudInit is not None and spec.cloudInit.secretRef is not None:
        yield f"{targets.SECRETS.plural}/{Key(place, spec.cloudInit.secretRef.name)}"
