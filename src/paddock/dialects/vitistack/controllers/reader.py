"""The caches of machines and of the objects that they refer to."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.kinds.marks import MACHINE
from paddock.dialects.vitistack.plan.objects import RemainingObjects
from paddock.dialects.vitistack.plan.phases import PENDING
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject, CachedOwner, by_label
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.memo import StateMemo
from paddock.kubernetes.runtime.reference import is_owned

T = TypeVar("T")
# Machines by what they refer to: `networkconfigurations/namespace/name`.
REFERS, LABELLED = "what vitistack machines refer to", "vitistack machine"


class _Named(msgspec.Struct):
    name: str = ""


class _Network(msgspec.Struct):
    networkName: str = ""


class _OwnNetwork(msgspec.Struct):
    networkNamespaceName: str | None = None


class _CloudInit(msgspec.Struct):
    secretRef: _Named | None = None
    userDataSecretRef: _Named | None = None
    networkDataSecretRef: _Named | None = None
    userDataConfigMapRef: _Named | None = None
    networkDataConfigMapRef: _Named | None = None

    @property
    def secrets(self) -> Iterable[str]:
        return _names(self.secretRef, self.userDataSecretRef, self.networkDataSecretRef)

    @property
    def config_maps(self) -> Iterable[str]:
        return _names(self.userDataConfigMapRef, self.networkDataConfigMapRef)


def _names(*given: _Named | None) -> Iterable[str]:
    return dict.fromkeys(each.name for each in given if each is not None)


class _Spec(msgspec.Struct):
    template: str | None = None
    networks: list[_Network] | None = None
    cloudInit: _CloudInit | None = None
    machineClass: str | None = None
    network: _OwnNetwork | None = None

    @property
    def network_names(self) -> Iterable[str]:
        """The networks of a machine, in either form."""
        own = self.network.networkNamespaceName if self.network is not None else None
        return dict.fromkeys((*(each.networkName for each in self.networks or ()), *((own,) if own else ())))


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
        self.machine_classes = informers.of(targets.MACHINE_CLASSES, optional=True)
        self.config_maps = informers.of(targets.CONFIG_MAPS, optional=True)
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
        referred = (self.networks, self.templates, self.machine_classes, self.attachments, self.secrets, self.config_maps)
        self.by_plural = {each.target.plural: each for each in referred}
        # counts the changes of classes: all machines together read all of them
        self.classes_revision = 0
        self.classes.handle(self._count_class)
        self.read_network = ReferenceReader(self.networks, targets.NETWORKS)
        self.read_template = ReferenceReader(self.templates, targets.TEMPLATES)
        self.read_machine_class = ReferenceReader(self.machine_classes, targets.MACHINE_CLASSES)
        self.read_config_map = ReferenceReader(self.config_maps, targets.CONFIG_MAPS)
        self.read_attachment = ReferenceReader(self.attachments, targets.ATTACHMENTS)
        self.read_secret = ReferenceReader(self.secrets, targets.SECRETS)
        read = (self.read_network, self.read_template, self.read_machine_class)
        also = (self.read_attachment, self.read_secret, self.read_config_map)
        self.readers: dict[str, ReferenceReader[Any]] = {each.informer.target.plural: each for each in (*read, *also)}
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
    for target, key in referred(brief(seen).spec, seen.meta.namespace or ""):
        yield f"{target.plural}/{key}"


def referred(spec: _Spec, place: str) -> Iterable[tuple[Target[Any], Key]]:
    """Yield the kind and the place of each object that a machine of a namespace refers to."""
    if spec.template:
        yield targets.TEMPLATES, Key(place, spec.template)
    if spec.machineClass:
        yield targets.MACHINE_CLASSES, Key("", spec.machineClass)
    for name in spec.network_names:
        # The definition of a network has its name.
        yield targets.NETWORKS, Key(place, name)
        yield targets.ATTACHMENTS, Key(place, name)
    if spec.cloudInit is not None:
        yield from ((targets.SECRETS, Key(place, name)) for name in spec.cloudInit.secrets)
        yield from ((targets.CONFIG_MAPS, Key(place, name)) for name in spec.cloudInit.config_maps)
