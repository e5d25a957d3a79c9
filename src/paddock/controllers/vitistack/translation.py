"""A machine as the objects that it becomes: everything it refers to out of the caches, translated once as long as none of it changes."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from paddock.client.target import Data, Key
from paddock.controllers.vitistack import targets
from paddock.controllers.vitistack.reader import VitistackCaches
from paddock.dialects.core.networkattachment import NetworkAttachmentDefinition
from paddock.dialects.vitistack import boot, machinetemplate
from paddock.dialects.vitistack.effective import effective
from paddock.dialects.vitistack.machine import Machine
from paddock.meta.objects import Resource
from paddock.meta.rendering import Rendering
from paddock.meta.translated import Loss, Translated
from paddock.meta.wire import to_data
from paddock.meta.world import ObjectSet
from paddock.plan.vitistack.claims import ExistingClaim, decided_classes, with_decided_default, without_image
from paddock.runtime.cache import CachedObject
from paddock.runtime.informer import Informer
from paddock.runtime.memo import StateMemo
from paddock.translate.vitistack import to_kubevirt
from paddock.translate.vitistack.devices import claim_name


class WantedObjects(msgspec.Struct, frozen=True):
    """The objects of a machine by what is done with them."""

    attachments: tuple[NetworkAttachmentDefinition, ...]
    secrets: tuple[Data, ...]
    # PersistentVolumeClaims and DataVolumes
    disks: tuple[Data, ...]
    vm: Data
    losses: tuple[Loss, ...] = ()


class Translation:
    """Translates machines."""

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
            tuple(seen.meta.resourceVersion if seen else None for seen in self._referred(seen.key, machine)),
            self._caches.classes_revision,
            {name: each.spec for name, each in claims.items()},
        )
        kept = self._kept.get(seen.key, inputs)
        return kept if kept is not None else self._kept.put(seen.key, inputs, self._translated(seen.key, machine, claims))

    def _translated(self, key: Key, machine: Machine, claims: Mapping[str, ExistingClaim]) -> WantedObjects:
        resources = list(self._resources(key, machine))
        merged = effective(machine.spec.resources, machine.spec.disks, self._template(machine, ObjectSet(resources), key.namespace))
        names = {disk.name: claim_name(key.name, disk.name) for disk in merged.disks}
        found = {disk: claims[name] for disk, name in names.items() if name in claims}
        root = names[merged.root.name] if merged.root is not None else ""
        if boot.root_image(machine) and root in claims and self._caches.volumes.cache.get(Key(key.namespace, root)) is None:
            machine = self._as_it_is(key, machine, root)
        # What is there goes before what is assumed: an assumed class is nobody's default.
        world = ObjectSet([*decided_classes(merged, found), *resources], complete=True)
        rendering = with_decided_default(self._rendering, merged, found)
        return _sorted(to_kubevirt(machine, world, rendering))

    def _as_it_is(self, key: Key, machine: Machine, root: str) -> Machine:
        """A claim without a DataVolume was blank, unless the VirtualMachine knows of one, which is collected when it is done."""
        vm = self._caches.vms.cache.get(key)
        volumes = vm.read(targets.VMS).spec.template.spec.volumes if vm is not None else None
        imported = any(each.dataVolume is not None and each.dataVolume.name == root for each in volumes or ())
        return machine if imported else without_image(machine)

    @staticmethod
    def _template(machine: Machine, world: ObjectSet, namespace: str) -> Any:
        return machinetemplate.find(machine.spec.template, namespace, world) if machine.spec.template else None

    def _referred(self, key: Key, machine: Machine) -> Iterator[CachedObject | None]:
        for informer, name in self._references(machine):
            yield informer.cache.get(Key(key.namespace, name))

    def _references(self, machine: Machine) -> Iterator[tuple[Informer, str]]:
        caches, spec = self._caches, machine.spec
        if spec.template:
            yield caches.templates, spec.template
        for network in spec.networks:
            yield caches.networks, network.networkName
            yield caches.attachments, network.networkName
        if spec.cloudInit is not None and spec.cloudInit.secretRef is not None:
            yield caches.secrets, spec.cloudInit.secretRef.name

    def _resources(self, key: Key, machine: Machine) -> Iterator[Resource]:
        caches = self._caches
        readers = {each.informer: each for each in (caches.read_template, caches.read_network, caches.read_attachment, caches.read_secret)}
        for informer, name in self._references(machine):
            found = readers[informer].get(Key(key.namespace, name))
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
