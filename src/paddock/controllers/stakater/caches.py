"""What the controller reads: informers, and which machines a change of something else concerns."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from paddock.client.target import Key, Target
from paddock.controllers.stakater import kinds
from paddock.dialects.kubevirt.cdiconfig import FilesystemOverhead
from paddock.dialects.stakater.rules import MACHINE_LABEL
from paddock.dialects.stakater.virtualmachine import StakaterVirtualMachine
from paddock.meta.world import namespace_of
from paddock.plan.storage import claimsizes
from paddock.runtime.cache import CacheChange, CachedObject
from paddock.runtime.controller import Keys, own_key, there
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers
from paddock.translate.stakater import names

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
        self.fronts = informers.of(kinds.FRONTS)
        self.machines = informers.of(kinds.MACHINES)
        self.instances = informers.of(kinds.INSTANCES)
        self.services = informers.of(kinds.SERVICES)
        self.secrets = informers.of(kinds.SECRETS)
        self.disks = informers.of(kinds.DISKS)
        self.claims = informers.of(kinds.CLAIMS)
        self.classes = informers.of(kinds.CLASSES)
        self.sources = informers.of(kinds.SOURCES)
        self.definitions = informers.of(kinds.DEFINITIONS, optional=True)
        self.installations = informers.of(kinds.INSTALLATIONS, optional=True)
        self.configs = informers.of(kinds.CONFIGS, optional=True)
        self._referred = {_place(each): each for each in (self.services, self.secrets, self.disks, self.claims, self.sources)}
        self._referred[_place(self.definitions)] = self.definitions
        self.fronts.cache.index(REFERS, _refers)
        self.fronts.cache.index(IMAGES, lambda seen: images(seen.read(kinds.FRONTS)))
        for informer in (self.disks, self.claims):
            informer.cache.index(MACHINE, _machine)
        self._refers: dict[Key, tuple[str, list[tuple[Informer, Key]]]] = {}

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """What else is listened to, and how its changes lead to machines."""
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
        before, after = (_plugins(seen) if seen is not None else frozenset() for seen in (change.old, change.new))
        return [seen.key for seen in self.fronts.cache] if before != after else ()

    # --- looking ----------------------------------------------------------------------------------------------------------

    def plugins(self) -> frozenset[str]:
        """The binding plug-ins that are registered."""
        return frozenset[str]().union(*(_plugins(seen) for seen in self.installations.cache))

    def overhead(self) -> FilesystemOverhead | None:
        """What is set aside for filesystems."""
        seen = self.configs.cache.get(_CONFIG)
        status = seen.read(kinds.CONFIGS).status if seen is not None else None
        return status.filesystemOverhead if status is not None else None

    def overhead_of(self, storage_class: str) -> str:
        """The same, of one class."""
        return claimsizes.overhead_of(self.overhead(), storage_class)

    def state(self, key: Key) -> State:
        """What a look at a machine depends on: as long as it is the same, so is what comes of the look."""
        found = [_revision(each, key) for each in (self.fronts, self.machines, self.instances)]
        found += [_revision(informer, place) for informer, place in self._references(key)]
        found += [seen.meta.resourceVersion for informer in (self.disks, self.claims) for seen in informer.cache.by(MACHINE, str(key))]
        found += [seen.meta.resourceVersion for seen in self.installations.cache]
        return tuple(found)

    def _references(self, key: Key) -> list[tuple[Informer, Key]]:
        seen = self.fronts.cache.get(key)
        if seen is None:
            self._refers.pop(key, None)
            return []
        known = self._refers.get(key)
        if known is None or known[0] != seen.meta.resourceVersion:
            parts = (each.partition(" ") for each in _refers(seen))
            known = (seen.meta.resourceVersion, [(self._referred[place], Key.of(name)) for place, _, name in parts])
            self._refers[key] = known
        return known[1]


def images(vm: StakaterVirtualMachine) -> Iterable[str]:
    """Where the image of a machine is, and where from there it is copied to."""
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


def _plugins(seen: CachedObject) -> frozenset[str]:
    spec = orjson.loads(seen.raw).get("spec") or {}
    network = (spec.get("configuration") or {}).get("network") or {}
    return frozenset(network.get("binding") or ())


def _refers(seen: CachedObject) -> Iterator[str]:
    vm = seen.read(kinds.FRONTS)
    yield from dict.fromkeys(f"{target.qualified} {key}" for target, key in _referred(vm))


def _referred(vm: StakaterVirtualMachine) -> Iterator[tuple[Target[Any], Key]]:
    parameters, namespace, name = vm.spec.parameters, namespace_of(vm), vm.metadata.name
    yield kinds.SOURCES, Key(parameters.dataSource.namespace, parameters.dataSource.name)
    yield kinds.SERVICES, Key(namespace, names.service(name))
    for secret in (names.ssh_key_secret(name), names.cloud_init_secret(name), parameters.sshPublicKey.secretName):
        if secret:
            yield kinds.SECRETS, Key(namespace, secret)
    for disk in (names.ROOT_DISK, *(each.name for each in parameters.additionalDisks)):
        place = Key(namespace, names.data_volume(name, disk))
        yield kinds.DISKS, place
        yield kinds.CLAIMS, place
    for network in parameters.networks or ():
        if network.multus is not None and network.multus.networkName:
            given = Key.of(network.multus.networkName)
            yield kinds.DEFINITIONS, given if given.namespace else Key(namespace, given.name)
