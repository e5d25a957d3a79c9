"""One look: a machine with everything that was made of it and everything it refers to, out of the caches."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from paddock.base.errors import PaddockError
from paddock.client.target import Key, Target
from paddock.controllers.stakater import kinds
from paddock.controllers.stakater.caches import MACHINE, StakaterCaches
from paddock.dialects.kubevirt import virtualmachine as kubevirt
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.dialects.stakater.virtualmachine import StakaterVirtualMachine
from paddock.meta.objects import Resource
from paddock.meta.world import ObjectSet
from paddock.plan.stakater import disks
from paddock.plan.stakater.disks import PlannedDisk
from paddock.plan.stakater.holds import ReferencedObjects
from paddock.plan.stakater.status import PassOutcome, StatusFacts
from paddock.runtime.cache import CachedObject
from paddock.runtime.informer import Informer
from paddock.runtime.reference import InvolvedObject, is_owned, reference
from paddock.translate.stakater import names

T = TypeVar("T")


class ReconcilePass(msgspec.Struct):
    """One machine, and what the look has come to so far."""

    seen: CachedObject
    vm: StakaterVirtualMachine
    came: PassOutcome = PassOutcome()
    error: PaddockError | None = None
    # what is looked at more often: something is being made or going
    under_way: bool = False

    @property
    def key(self) -> Key:
        """The place of the machine."""
        return self.seen.key

    @property
    def about(self) -> InvolvedObject:
        """The machine, for events and as an owner."""
        return reference(kinds.FRONTS, self.seen.meta)

    @property
    def root(self) -> str:
        """The DataVolume of its root disk."""
        return names.data_volume(self.key.name, names.ROOT_DISK)


class MachineObserver:
    """Reads the caches for one machine."""

    def __init__(self, caches: StakaterCaches, product: str) -> None:
        self._caches = caches
        self._product = product

    def machine(self, look: ReconcilePass) -> kubevirt.VirtualMachine | None:
        """The generated machine, when it belongs to this one."""
        seen = self._caches.machines.cache.get(look.key)
        return seen.read(kinds.MACHINES) if seen is not None and is_owned(seen.meta, look.seen.meta.uid) else None

    def sight(self, look: ReconcilePass) -> StatusFacts:
        """What the status is made from."""
        service = names.service(look.key.name)
        found = self.machine(look)
        shown = self._caches.services.cache.get(Key(look.key.namespace, service))
        ours = shown is not None and is_owned(shown.meta, look.seen.meta.uid)
        instance = self._caches.instances.cache.get(look.key)
        return StatusFacts(
            vm=look.vm,
            product=self._product,
            machine=found,
            instance=instance.read(kinds.INSTANCES) if instance is not None and found is not None else None,
            disks=tuple(self.disks(look.key.namespace, found)),
            service=shown.read(kinds.SERVICES) if ours and shown is not None and not shown.meta.going else None,
            service_name=service,
        )

    def disks(self, namespace: str, machine: kubevirt.VirtualMachine | None) -> Iterator[PlannedDisk]:
        """The disks of the spec, and what there is of them."""
        for name, size in disks.wanted(machine) if machine is not None else ():
            yield self.disk(Key(namespace, name), size)

    def disk(self, key: Key, size: str = "0") -> PlannedDisk:
        """One disk."""
        return PlannedDisk(
            key.name,
            size,
            _read(self._caches.disks, kinds.DISKS, key),
            _read(self._caches.claims, kinds.CLAIMS, key),
        )

    def labelled(self, key: Key) -> list[tuple[CachedObject, DataVolume]]:
        """Every DataVolume that was made for a machine."""
        return [(seen, seen.read(kinds.DISKS)) for seen in self._caches.disks.cache.by(MACHINE, str(key))]

    def sources(self, look: ReconcilePass) -> ReferencedObjects:
        """What the machine refers to."""
        return ReferencedObjects(
            ObjectSet(self._referred(look), complete=True),
            lambda namespace, name: self._caches.secrets.cache.get(Key(namespace, name)) is not None,
            self._caches.overhead_of,
            not self._caches.definitions.absent,
        )

    def _referred(self, look: ReconcilePass) -> Iterable[Resource]:
        parameters = look.vm.spec.parameters
        source = _read(self._caches.sources, kinds.SOURCES, Key(parameters.dataSource.namespace, parameters.dataSource.name))
        if source is not None:
            yield source
            content = (source.status.source if source.status is not None else None) or source.spec.source
            if content.pvc is not None:
                claim = _read(self._caches.claims, kinds.CLAIMS, Key(content.pvc.namespace, content.pvc.name))
                if claim is not None:
                    yield claim
        for network in parameters.networks or ():
            given = Key.of((network.multus.networkName if network.multus is not None else None) or "")
            found = _read(self._caches.definitions, kinds.DEFINITIONS, Key(given.namespace or look.key.namespace, given.name))
            if found is not None:
                yield found


def _read(informer: Informer, target: Target[T], key: Key) -> T | None:
    seen = informer.cache.get(key)
    return seen.read(target) if seen is not None else None
