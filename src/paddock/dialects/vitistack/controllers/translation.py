"""A machine as the objects that it becomes: everything it refers to out of the caches, translated once as long as none of it changes."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.controllers.reader import VitistackCaches, brief, referred
from paddock.dialects.vitistack.kinds import boot, machinetemplate
from paddock.dialects.vitistack.kinds.effective import effective
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.plan.claims import ExistingClaim, decided_classes, with_decided_default, without_image
from paddock.dialects.vitistack.translate import to_kubevirt
from paddock.dialects.vitistack.translate.devices import claim_name
from paddock.dialects.vitistack.translate.resolved import expanded
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss, Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.memo import StateMemo


class WantedObjects(msgspec.Struct, frozen=True):
    """The objects of a machine by what is done with them."""

    attachments: tuple[NetworkAttachmentDefinition, ...]
    secrets: tuple[Data, ...]
    # PersistentVolumeClaims and DataVolumes
    disks: tuple[Data, ...]
    vm: Data
    losses: tuple[Loss, ...] = ()


class Translation:
    def __init__(self, caches: VitistackCaches, rendering: Rendering) -> None:
        self._caches = caches
        self._rendering = rendering
        self._kept: StateMemo[Any, WantedObjects] = StateMemo(caches.machines)

    def of(self, seen: CachedObject, machine: Machine, claims: Mapping[str, ExistingClaim]) -> WantedObjects:
        """The objects of a machine, whose claims are those given; raises an `Unmet` when it cannot have them."""
        inputs = (
            machine.metadata.uid,
            machine.spec,
            machine.metadata.labels,
            machine.metadata.annotations,
            tuple(each.meta.resourceVersion if each else None for _, _, each in self._referred(seen)),
            self._caches.classes_revision,
            {name: each.spec for name, each in claims.items()},
        )
        kept = self._kept.get(seen.key, inputs)
        return kept if kept is not None else self._kept.put(seen.key, inputs, self._translated(seen, machine, claims))

    def _translated(self, seen: CachedObject, machine: Machine, claims: Mapping[str, ExistingClaim]) -> WantedObjects:
        key, resources = seen.key, list(self._resources(seen))
        known = ObjectSet(resources)
        spec = expanded(machine, known).spec
        merged = effective(spec.resources, spec.disks, self._template(machine, known, key.namespace))
        names = {disk.name: claim_name(key.name, disk.name) for disk in merged.disks}
        found = {disk: claims[name] for disk, name in names.items() if name in claims}
        root = names[merged.root.name] if merged.root is not None else ""
        if boot.root_image(machine) and root in claims and self._caches.volumes.cache.get(Key(key.namespace, root)) is None:
            machine = self._as_it_is(key, machine, root)
        # What is there goes before what is assumed: an assumed class is nobody's default.
        object_set = ObjectSet([*decided_classes(merged, found), *resources], complete=True)
        rendering = with_decided_default(self._rendering, merged, found)
        return _sorted(to_kubevirt(machine, object_set, rendering))

    def _as_it_is(self, key: Key, machine: Machine, root: str) -> Machine:
        """A claim without a DataVolume was blank, unless the VirtualMachine knows of one, which is collected when it is done."""
        vm = self._caches.vms.cache.get(key)
        volumes = vm.read(targets.VMS).spec.template.spec.volumes if vm is not None else None
        imported = any(each.dataVolume is not None and each.dataVolume.name == root for each in volumes or ())
        return machine if imported else without_image(machine)

    @staticmethod
    def _template(machine: Machine, object_set: ObjectSet, namespace: str) -> Any:
        return machinetemplate.find(machine.spec.template, namespace, object_set) if machine.spec.template else None

    def _referred(self, seen: CachedObject) -> Iterator[tuple[str, Key, CachedObject | None]]:
        for target, key in referred(brief(seen).spec, seen.key.namespace):
            yield target.plural, key, self._caches.by_plural[target.plural].cache.get(key)

    def _resources(self, seen: CachedObject) -> Iterator[Resource]:
        caches = self._caches
        for plural, key, _ in self._referred(seen):
            found = caches.readers[plural].get(key)
            if found is not None:
                yield found
        for each in caches.classes.cache:
            found_class = caches.read_class.get(each.key)
            if found_class is not None:
                yield found_class


def _sorted(translated: Translated[tuple[Resource, ...]]) -> WantedObjects:
    of: dict[str, list[Data]] = {"Secret": [], "PersistentVolumeClaim": [], "DataVolume": [], "VirtualMachine": []}
    attachments = []
    for each in translated.value:
        if isinstance(each, NetworkAttachmentDefinition):
            attachments.append(each)
        else:
            of[each.kind].append(to_data(each))
    disks = (*of["PersistentVolumeClaim"], *of["DataVolume"])
    return WantedObjects(tuple(attachments), tuple(of["Secret"]), disks, of["VirtualMachine"][0], translated.losses)
