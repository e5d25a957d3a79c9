"""The observed state of one machine from the caches, and the machines that a change of another object concerns."""

from collections.abc import Iterable, Iterator

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject, Meta
from paddock.kubernetes.runtime.controller import Keys
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubevirt.controllers.virtualmachine import targets
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import references
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.machine import instancetypes
from paddock.kubevirt.plan.machine.instances import FOREGROUND, GENERATION
from paddock.kubevirt.plan.machine.printable import ClaimedDisk
from paddock.kubevirt.plan.machine.runstrategy import life_of
from paddock.kubevirt.plan.machine.volumemigration import ClaimFinder
from paddock.kubevirt.plan.storage import sourcerefs

BY_CLAIM = "claims of machines"
BY_SOURCE = "sources of machines"
BY_SIZE = "sizes of machines"


class _Named(msgspec.Struct):
    name: str = ""


class _Template(msgspec.Struct):
    metadata: _Named | None = None


class _Instance(msgspec.Struct):
    volumes: list[Volume] | None = None


class _Of(msgspec.Struct):
    spec: _Instance = msgspec.field(default_factory=_Instance)


class _Spec(msgspec.Struct):
    template: _Of = msgspec.field(default_factory=_Of)
    dataVolumeTemplates: list[_Template] | None = None


class _Disks(msgspec.Struct):
    """As much of a machine as names its disks: it is read at every change."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


_DISKS = msgspec.json.Decoder(_Disks)


class ObservedVirtualMachine(msgspec.Struct):
    """One machine and everything around it at one moment."""

    seen: CachedObject
    machine: VirtualMachine
    data: Data
    instance: VirtualMachineInstance | None
    instance_data: Data | None
    disks: list[ClaimedDisk]

    @property
    def meta(self) -> Meta:
        """The metadata of the machine."""
        return self.seen.meta

    @property
    def key(self) -> Key:
        """The place of the machine, and of its instance."""
        return self.meta.key

    @property
    def about(self) -> InvolvedObject:
        return reference(targets.MACHINES, self.meta)

    @property
    def is_ours(self) -> bool:
        """True when the instance belongs to this machine: one that a user made may have its name."""
        if self.instance is None:
            return True
        owners = self.instance.metadata.ownerReferences or ()
        return any(each.uid == self.meta.uid and each.controller for each in owners)

    @property
    def is_behind(self) -> bool:
        """True when the machine has an instance that runs on and is of an earlier generation."""
        instance = self.instance
        if instance is None or not self.is_ours or life_of(instance).final or instance.metadata.deletionTimestamp:
            return False
        return (instance.metadata.annotations or {}).get(GENERATION, "") != str(self.meta.generation or 1)

    @property
    def is_about_to_go(self) -> bool:
        """True when the instance has ended, and nobody but the controller of instances holds it."""
        instance = self.instance
        return instance is not None and life_of(instance).final and set(instance.metadata.finalizers or ()) <= {FOREGROUND}

    @property
    def is_restored(self) -> bool:
        """True while a restore is under way: until it ends, the machine's disks are neither made nor used."""
        return self.machine.status is not None and bool(self.machine.status.restoreInProgress)


class VirtualMachineCaches:
    """The informers that the controller reads."""

    def __init__(self, informers: Informers) -> None:
        self.machines = informers.of(targets.MACHINES)
        self.instances = informers.of(targets.INSTANCES)
        self.disks = informers.of(targets.DISKS)
        self.claims = informers.of(targets.CLAIMS)
        self.installations = informers.of(targets.INSTALLATIONS)
        self.sources = informers.of(targets.DATA_SOURCES)
        self.sizes = {
            kind: informers.of(targets.sizing(instancetypes.resource_of(kind))) for kinds in instancetypes.KINDS.values() for kind in kinds
        }
        self.machines.cache.index(BY_CLAIM, _claims)
        self.machines.cache.index(BY_SOURCE, _sources)
        self.machines.cache.index(BY_SIZE, _sizes)

    def observe(self, seen: CachedObject) -> ObservedVirtualMachine:
        """Return a machine with its instance and its disks."""
        key = seen.key
        machine, data = seen.read(targets.MACHINES), orjson.loads(seen.raw)
        # One that was created a moment ago may not be in the cache.
        started = self.instances.expectations.latest(key)
        instance, instance_data = (started.read(targets.INSTANCES), orjson.loads(started.raw)) if started is not None else (None, None)
        return ObservedVirtualMachine(seen, machine, data, instance, instance_data, list(self._disks(machine, key)))

    def _disks(self, machine: VirtualMachine, key: Key) -> Iterator[ClaimedDisk]:
        templates = tuple(template_names(machine))
        wanted = not sourcerefs.is_lazy(machine, self.source)
        for name in dict.fromkeys((*templates, *claims_of(machine.spec.template.spec.volumes or ()))):
            place = Key(key.namespace, name)
            if name in templates and self._is_leaving(place, machine.metadata.uid or ""):
                # It is there and of no use; the machine's own comes when it is gone.
                yield ClaimedDisk(name, "", expected=wanted)
            else:
                yield self._disk(place, expected=name in templates and wanted)

    def _is_leaving(self, key: Key, uid: str) -> bool:
        """Return whether a disk of this name is deleted, or will be, with a machine of this name that is gone."""
        disk, claim = self.disks.cache.get(key), self.claims.cache.get(key)
        if disk is not None:
            owner = disk.meta.owner
            return disk.meta.deleting or (owner is not None and owner.kind == targets.MACHINES.kind and owner.uid != uid)
        if claim is None:
            return False
        owner = claim.meta.owner
        return claim.meta.deleting or (owner is not None and owner.kind == targets.DISKS.kind)

    def _disk(self, key: Key, *, expected: bool) -> ClaimedDisk:
        claim = self.claims.cache.get(key)
        phase = None
        if claim is not None:
            status = claim.read(targets.CLAIMS).status
            phase = (status.phase if status is not None else None) or "Pending"
        seen = self.disks.cache.get(key)
        if seen is None:
            return ClaimedDisk(key.name, claim=phase, expected=expected)
        status_ = seen.read(targets.DISKS).status
        conditions = tuple((status_.conditions if status_ is not None else None) or ())
        return ClaimedDisk(key.name, (status_.phase if status_ is not None else None) or "", conditions, phase, expected)

    def source(self, namespace: str, name: str) -> DataSource | None:
        seen = self.sources.cache.get(Key(namespace, name))
        return None if seen is None else seen.read(targets.DATA_SOURCES)

    def claims_in(self, namespace: str) -> ClaimFinder:
        """Find claims and DataVolumes of a namespace."""

        def claim(name: str) -> PersistentVolumeClaim | None:
            seen = self.claims.cache.get(Key(namespace, name))
            return None if seen is None else seen.read(targets.CLAIMS)

        def data_volume(name: str) -> DataVolume | None:
            seen = self.disks.cache.get(Key(namespace, name))
            return None if seen is None else seen.read(targets.DISKS)

        return ClaimFinder(claim, data_volume)

    def users_of_source(self, change: CacheChange) -> Iterable[Key]:
        """The machines that name the DataSource that changed."""
        return [seen.key for seen in self.machines.cache.by(BY_SOURCE, str(change.seen.key))]

    def users_of_size(self, kind: str) -> Keys:
        """Return what maps an instancetype or a preference that appears to the machines that name it."""

        def keys(change: CacheChange) -> Iterable[Key]:
            return [seen.key for seen in self.machines.cache.by(BY_SIZE, _size(kind, change.seen.key))] if change.old is None else ()

        return keys

    def users_of_claim(self, change: CacheChange) -> Iterable[Key]:
        """The machines that have the claim, or the DataVolume, that changed."""
        key = change.seen.key
        return [seen.key for seen in self.machines.cache.by(BY_CLAIM, str(key))]


def template_names(machine: VirtualMachine) -> Iterator[str]:
    """The names of the DataVolumes that belong to a machine."""
    for template in machine.spec.dataVolumeTemplates or ():
        if template.metadata is not None and template.metadata.name:
            yield template.metadata.name


def claims_of(volumes: Iterable[Volume]) -> Iterator[str]:
    """The names of the claims that volumes lie on."""
    for volume in volumes:
        if volume.dataVolume is not None:
            yield volume.dataVolume.name
        elif volume.persistentVolumeClaim is not None:
            yield volume.persistentVolumeClaim.claimName


def _claims(seen: CachedObject) -> Iterable[str]:
    """The claims of a machine as `namespace/name`; those of its templates, too."""
    spec, place = _DISKS.decode(seen.raw).spec, seen.meta.namespace or ""
    names = [each.metadata.name for each in spec.dataVolumeTemplates or () if each.metadata is not None]
    names += claims_of(spec.template.spec.volumes or ())
    return [str(Key(place, name)) for name in dict.fromkeys(names) if name]


def _size(kind: str, key: Key) -> str:
    return f"{kind} {key}"


def _sizes(seen: CachedObject) -> Iterable[str]:
    """The instancetype and the preference that a machine names, with their kinds."""
    if b'"instancetype"' not in seen.raw and b'"preference"' not in seen.raw:
        return
    spec = seen.read(targets.MACHINES).spec
    for member, matcher in ((instancetypes.INSTANCETYPE, spec.instancetype), (instancetypes.PREFERENCE, spec.preference)):
        kind = instancetypes.kind_of(member, matcher.kind) if matcher is not None else None
        if matcher is not None and matcher.name and kind is not None:
            namespace = "" if kind == instancetypes.KINDS[member][0] else seen.meta.namespace or ""
            yield _size(kind, Key(namespace, matcher.name))


def _sources(seen: CachedObject) -> Iterable[str]:
    """The DataSources that the templates of a machine name, as `namespace/name`."""
    if b'"sourceRef"' not in seen.raw:
        return ()
    templates = seen.read(targets.MACHINES).spec.dataVolumeTemplates
    place = seen.meta.namespace or ""
    return dict.fromkeys(str(Key(each.namespace or place, each.name)) for each in references(templates))
