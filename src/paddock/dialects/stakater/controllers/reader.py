"""The caches of the controller, and what they hold of one machine: everything it refers to and everything made of it."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.dialects.stakater.controllers import targets
from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.plan import disks, plugins
from paddock.dialects.stakater.plan.conditions import ReferencedObjects
from paddock.dialects.stakater.plan.disks import PlannedDisk
from paddock.dialects.stakater.plan.status import PassOutcome, StatusFacts
from paddock.dialects.stakater.rules import MACHINE_LABEL
from paddock.dialects.stakater.translate import names
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Keys, own_key, there
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.memo import StateMemo
from paddock.kubernetes.runtime.reference import InvolvedObject, is_owned, reference
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.kinds.cdiconfig import FilesystemOverhead
from paddock.kubevirt.kinds.datavolume_kind import DataVolume

T = TypeVar("T")
# Index of the machines: what they refer to and what is made of them, as `plural.group namespace/name`.
REFERS = "what stakater's machines refer to"
# Index of disks and claims: the machine their label names, as `namespace/name`.
MACHINE = "stakater's machine"
# Index of the machines: the namespace of their image, alone and with their own.
IMAGES = "the images of stakater's machines"
_CONFIG = Key("", "config")

# The revision of everything a look depends on.
State = tuple[str, ...]


class StakaterCaches:
    """The informers of one program."""

    def __init__(self, informers: Informers) -> None:
        self.fronts = informers.of(targets.FRONTS)
        self.machines = informers.of(targets.MACHINES)
        self.instances = informers.of(targets.INSTANCES)
        self.services = informers.of(targets.SERVICES)
        self.secrets = informers.of(targets.SECRETS)
        self.disks = informers.of(targets.DISKS)
        self.claims = informers.of(targets.CLAIMS)
        self.classes = informers.of(targets.CLASSES)
        self.sources = informers.of(targets.SOURCES)
        self.definitions = informers.of(targets.DEFINITIONS, optional=True)
        self.installations = informers.of(targets.INSTALLATIONS, optional=True)
        self.configs = informers.of(targets.CONFIGS, optional=True)
        self._referred = {_place(each): each for each in (self.services, self.secrets, self.disks, self.claims, self.sources)}
        self._referred[_place(self.definitions)] = self.definitions
        self.fronts.cache.index(REFERS, _refers)
        self.fronts.cache.index(IMAGES, lambda seen: images(seen.read(targets.FRONTS)))
        for informer in (self.disks, self.claims):
            informer.cache.index(MACHINE, _machine)
        self._refers: StateMemo[str, list[tuple[Informer, Key]]] = StateMemo(self.fronts)

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The other informers, with the machines that their changes concern."""
        # The generated machine and its instance have the name of the front object, whoever they belong to.
        yield self.machines, there(self.fronts, own_key)
        yield self.instances, there(self.fronts, own_key)
        for informer in self._referred.values():
            yield informer, self._referring(informer)
        yield self.installations, self._of_bindings
        for informer in (self.classes, self.configs):
            yield informer, lambda change: ()

    def _referring(self, informer: Informer) -> Keys:
        """Machines that name the object, and the one whose label it has."""
        place = _place(informer)

        def keys(change: CacheChange) -> Iterable[Key]:
            found = {seen.key: None for seen in self.fronts.cache.by(REFERS, f"{place} {change.seen.key}")}
            for seen in (change.old, change.new):
                label = (seen.meta.labels or {}).get(MACHINE_LABEL) if seen is not None else None
                if seen is not None and label:
                    found[Key(seen.key.namespace, label)] = None
            return found

        return keys

    def _of_bindings(self, change: CacheChange) -> Iterable[Key]:
        """All machines, when a binding plug-in comes or goes."""
        before, after = (_plugins(seen) if seen is not None else frozenset[str]() for seen in (change.old, change.new))
        return [seen.key for seen in self.fronts.cache] if before != after else ()

    # --- looking ----------------------------------------------------------------------------------------------------------

    def plugins(self) -> frozenset[str]:
        """The binding plug-ins that machines may use."""
        found: set[str] = set()
        for seen in self.installations.cache:
            registered = _plugins(seen)
            if registered is None:
                return frozenset()
            found |= registered
        return frozenset(found)

    def overhead(self) -> FilesystemOverhead | None:
        """Return the configured overhead of filesystems."""
        seen = self.configs.cache.get(_CONFIG)
        status = seen.read(targets.CONFIGS).status if seen is not None else None
        return status.filesystemOverhead if status is not None else None

    def overhead_of(self, storage_class: str) -> str:
        """The same, of one class."""
        return claimsizes.overhead_of(self.overhead(), storage_class)

    def state(self, key: Key) -> State:
        """Return the state that a pass over a machine depends on: as long as it is the same, so is the result."""
        found = [_revision(each, key) for each in (self.fronts, self.machines, self.instances)]
        found += [_revision(informer, place) for informer, place in self._references(key)]
        found += [seen.meta.resourceVersion for informer in (self.disks, self.claims) for seen in informer.cache.by(MACHINE, str(key))]
        found += [seen.meta.resourceVersion for seen in self.installations.cache]
        return tuple(found)

    def _references(self, key: Key) -> list[tuple[Informer, Key]]:
        seen = self.fronts.cache.get(key)
        if seen is None:
            return []
        known = self._refers.get(key, seen.meta.resourceVersion)
        if known is None:
            parts = (each.partition(" ") for each in _refers(seen))
            known = self._refers.put(key, seen.meta.resourceVersion, [(self._referred[place], Key.of(name)) for place, _, name in parts])
        return known


def images(vm: StakaterVirtualMachine) -> Iterable[str]:
    """Return the namespace of a machine's image, and the pair with the namespace that it is copied to."""
    source = vm.spec.parameters.dataSource.namespace
    return (source, f"{source} {namespace_of(vm)}")


def _place(informer: Informer) -> str:
    return informer.target.qualified


def _revision(informer: Informer, key: Key) -> str:
    seen = informer.cache.get(key)
    return seen.meta.resourceVersion if seen is not None else ""


def _machine(seen: CachedObject) -> Iterable[str]:
    label = (seen.meta.labels or {}).get(MACHINE_LABEL)
    return (str(Key(seen.key.namespace, label)),) if label else ()


def _plugins(seen: CachedObject) -> frozenset[str] | None:
    return plugins.usable(orjson.loads(seen.raw))


def _refers(seen: CachedObject) -> Iterator[str]:
    vm = seen.read(targets.FRONTS)
    yield from dict.fromkeys(f"{target.qualified} {key}" for target, key in _referred(vm))


def _referred(vm: StakaterVirtualMachine) -> Iterator[tuple[Target[Any], Key]]:
    parameters, namespace, name = vm.spec.parameters, namespace_of(vm), vm.metadata.name
    yield targets.SOURCES, Key(parameters.dataSource.namespace, parameters.dataSource.name)
    yield targets.SERVICES, Key(namespace, names.service(name))
    for secret in (names.ssh_key_secret(name), names.cloud_init_secret(name), parameters.sshPublicKey.secretName):
        if secret:
            yield targets.SECRETS, Key(namespace, secret)
    for disk in (names.ROOT_DISK, *(each.name for each in parameters.additionalDisks)):
        place = Key(namespace, names.data_volume(name, disk))
        yield targets.DISKS, place
        yield targets.CLAIMS, place
    for network in parameters.networks or ():
        if network.multus is not None and network.multus.networkName:
            given = Key.of(network.multus.networkName)
            yield targets.DEFINITIONS, given if given.namespace else Key(namespace, given.name)


class ReconcilePass(msgspec.Struct):
    """One machine, and what the look has come to so far."""

    seen: CachedObject
    vm: StakaterVirtualMachine
    outcome: PassOutcome = PassOutcome()
    error: PaddockError | None = None
    # objects that are reconciled more often: something is being made or is going
    under_way: bool = False
    # how long the status may still wait for the next one
    rest: float = 0.0

    @property
    def key(self) -> Key:
        """The place of the machine."""
        return self.seen.key

    @property
    def about(self) -> InvolvedObject:
        """The machine, for events and as an owner."""
        return reference(targets.FRONTS, self.seen.meta)

    @property
    def root(self) -> str:
        """The DataVolume of its root disk."""
        return names.data_volume(self.key.name, names.ROOT_DISK)


class MachineObserver:
    """Reads the caches for one machine."""

    def __init__(self, caches: StakaterCaches, product: str) -> None:
        self._caches = caches
        self._product = product

    def machine(self, reconcile_pass: ReconcilePass) -> kubevirt.VirtualMachine | None:
        """The generated machine, when it belongs to this one."""
        seen = self._caches.machines.cache.get(reconcile_pass.key)
        return seen.read(targets.MACHINES) if seen is not None and is_owned(seen.meta, reconcile_pass.seen.meta.uid) else None

    def observe(self, reconcile_pass: ReconcilePass) -> StatusFacts:
        """Return the facts for the status."""
        service = names.service(reconcile_pass.key.name)
        found = self.machine(reconcile_pass)
        shown = self._caches.services.cache.get(Key(reconcile_pass.key.namespace, service))
        ours = shown is not None and is_owned(shown.meta, reconcile_pass.seen.meta.uid)
        instance = self._caches.instances.cache.get(reconcile_pass.key)
        return StatusFacts(
            vm=reconcile_pass.vm,
            product=self._product,
            machine=found,
            instance=instance.read(targets.INSTANCES) if instance is not None and found is not None else None,
            disks=tuple(self.disks(reconcile_pass.key.namespace, found)),
            service=shown.read(targets.SERVICES) if ours and shown is not None and not shown.meta.deleting else None,
            service_name=service,
        )

    def disks(self, namespace: str, machine: kubevirt.VirtualMachine | None) -> Iterator[PlannedDisk]:
        """The disks of the spec, and what there is of them."""
        for name, size in disks.wanted(machine) if machine is not None else ():
            yield self.disk(Key(namespace, name), size)

    def disk(self, key: Key, size: str = "0") -> PlannedDisk:
        return PlannedDisk(
            key.name,
            size,
            _read(self._caches.disks, targets.DISKS, key),
            _read(self._caches.claims, targets.CLAIMS, key),
        )

    def labelled(self, key: Key) -> list[tuple[CachedObject, DataVolume]]:
        """Every DataVolume that was made for a machine."""
        return [(seen, seen.read(targets.DISKS)) for seen in self._caches.disks.cache.by(MACHINE, str(key))]

    def sources(self, reconcile_pass: ReconcilePass) -> ReferencedObjects:
        """Return the objects that the machine refers to."""
        return ReferencedObjects(
            ObjectSet(self._referred(reconcile_pass), complete=True),
            lambda namespace, name: self._caches.secrets.cache.get(Key(namespace, name)) is not None,
            self._caches.overhead_of,
            not self._caches.definitions.absent,
        )

    def _referred(self, reconcile_pass: ReconcilePass) -> Iterable[Resource]:
        parameters = reconcile_pass.vm.spec.parameters
        source = _read(self._caches.sources, targets.SOURCES, Key(parameters.dataSource.namespace, parameters.dataSource.name))
        if source is not None:
            yield source
            content = (source.status.source if source.status is not None else None) or source.spec.source
            if content.pvc is not None:
                claim = _read(self._caches.claims, targets.CLAIMS, Key(content.pvc.namespace, content.pvc.name))
                if claim is not None:
                    yield claim
        for network in parameters.networks or ():
            given = Key.of((network.multus.networkName if network.multus is not None else None) or "")
            found = _read(self._caches.definitions, targets.DEFINITIONS, Key(given.namespace or reconcile_pass.key.namespace, given.name))
            if found is not None:
                yield found


def _read(informer: Informer, target: Target[T], key: Key) -> T | None:
    seen = informer.cache.get(key)
    return seen.read(target) if seen is not None else None
