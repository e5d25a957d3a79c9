"""A KubeVirt machine in the words that ours would have, so that only what is really lost differs.

Disks, DataVolumes and cards get the names that follow from a VirtRigaud machine, each new name with a note; forms that mean the
same become one form, silently.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from paddock.dialects.virtrigaud.translate import addresses, marks, read_class
from paddock.dialects.virtrigaud.translate.reading import MachineReader, claim_of, documents_of, template_name
from paddock.kubernetes.meta.storage import StorageSpec
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.domain import Resources
from paddock.kubevirt.kinds.features import Features
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.networks import Interface, MultusNetwork, Network
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine
from paddock.kubevirt.kinds.volumes import ClaimVolume, CloudInitSource, Volume

_INSTANCE: Path = ("spec", "template", "spec")
T = TypeVar("T")


def comparable(reading: MachineReader, image: VirtualMachine, cards: dict[str, str]) -> VirtualMachine:
    """The machine with the words of its image; `cards` are the names that its cards have there."""
    return _Renaming(reading, image, cards).machine()


class _Renaming:
    """The names of one machine, old and new."""

    def __init__(self, reading: MachineReader, image: VirtualMachine, cards: dict[str, str]) -> None:
        self.reading = reading
        self.image = image
        self.cards = cards
        made = image.spec.template.spec
        named = {disk.name for disk in made.domain.devices.disks or ()}
        self.cloud_init = next((volume for volume in made.volumes or () if documents_of(volume) is not None), None)
        self.disks = {disk.name: disk.name for disk in reading.disks if disk.name in named}
        if reading.root is not None:
            boot = next((disk.name for disk in made.domain.devices.disks or () if disk.bootOrder == 1), reading.root.name)
            self.disks[reading.root.name] = boot
        if reading.cloud_init is not None and self.cloud_init is not None:
            volume = (reading.instance.volumes or [])[reading.cloud_init[0]]
            self.disks[volume.name] = self.cloud_init.name
        self.networks = {network.name: network for network in made.networks or ()}

    def machine(self) -> VirtualMachine:
        reading = self.reading
        devices = msgspec.structs.replace(
            reading.instance.domain.devices,
            disks=_each(reading.instance.domain.devices.disks, self._disk),
            interfaces=_each(reading.instance.domain.devices.interfaces, self._interface),
        )
        instance = msgspec.structs.replace(
            self._sized(),
            volumes=_each(reading.instance.volumes, self._volume),
            networks=_each(reading.instance.networks, self._network),
        )
        domain = msgspec.structs.replace(instance.domain, devices=devices, features=self._features())
        running = msgspec.structs.replace(reading.vm.spec.template, spec=msgspec.structs.replace(instance, domain=domain))
        spec = msgspec.structs.replace(
            reading.vm.spec, template=running, dataVolumeTemplates=_each(reading.vm.spec.dataVolumeTemplates, self._template)
        )
        return msgspec.structs.replace(reading.vm, spec=spec)

    def _sized(self) -> VirtualMachineInstanceSpec:
        """Memory that is only requested is the guest's memory."""
        instance = self.reading.instance
        if not read_class.asks_for_memory_only(self.reading) or instance.domain.resources is None:
            return instance
        requests = {name: amount for name, amount in (instance.domain.resources.requests or {}).items() if name != "memory"}
        left = msgspec.structs.replace(instance.domain.resources, requests=requests or None)
        resources = None if left == Resources() else left
        return msgspec.structs.replace(instance, domain=msgspec.structs.replace(instance.domain, resources=resources))

    def _features(self) -> Features | None:
        """ACPI is on unless it is switched off."""
        features = self.reading.instance.domain.features
        if features is None or features.acpi is None or features.acpi.enabled is False:
            return features
        return msgspec.structs.replace(features, acpi=None)

    def _renamed(self, path: Path, old: str, new: str) -> str:
        if old != new:
            self.reading.lose(path, old, "the names of generated objects follow from the machine's", f"it is called {new}")
        return new

    def _disk(self, index: int, disk: Disk) -> Disk:
        return msgspec.structs.replace(disk, name=self.disks.get(disk.name, disk.name))

    def _volume(self, index: int, volume: Volume) -> Volume:
        path = (*_INSTANCE, "volumes", index)
        name = self._renamed((*path, "name"), volume.name, self.disks.get(volume.name, volume.name))
        changed = msgspec.structs.replace(volume, name=name)
        if documents_of(volume) is not None:
            return self._documents(changed)
        claim = claim_of(volume)
        if volume.dataVolume is None or claim is None:
            return changed
        if claim in self.reading.templates and self._is_made(self._template_name(claim)):
            return msgspec.structs.replace(changed, dataVolume=msgspec.structs.replace(volume.dataVolume, name=self._template_name(claim)))
        # The DataVolume is somebody else's in the image, and its claim is the same.
        hot = volume.dataVolume.hotpluggable
        return msgspec.structs.replace(changed, dataVolume=None, persistentVolumeClaim=ClaimVolume(claimName=claim, hotpluggable=hot))

    def _documents(self, volume: Volume) -> Volume:
        """Documents that the image has in another form are the same; network data is compared by its meaning."""
        made = documents_of(self.cloud_init) if self.cloud_init is not None else None
        given = documents_of(volume)
        if made is None or given is None:
            return volume
        network = self._network_data(given, made)
        content = CloudInitSource(
            userData=made.userData,
            secretRef=made.secretRef,
            networkData=network.networkData,
            networkDataBase64=network.networkDataBase64,
            networkDataSecretRef=network.networkDataSecretRef,
        )
        kind = "cloudInitNoCloud" if volume.cloudInitNoCloud is not None else "cloudInitConfigDrive"
        return msgspec.structs.replace(volume, **{kind: content})

    def _network_data(self, cloud_init_source: CloudInitSource, made: CloudInitSource) -> CloudInitSource:
        there = addresses.load(cloud_init_source.networkData)
        if there is not None and there == addresses.load(made.networkData):
            return made
        # Long data of ours is in a Secret, under the name that it has there.
        return (
            made
            if cloud_init_source.networkDataSecretRef is not None and cloud_init_source.networkDataSecretRef == made.networkDataSecretRef
            else cloud_init_source
        )

    def _template_name(self, old: str) -> str:
        """The DataVolume's new name: that of the disk it fills."""
        for volume in self.reading.instance.volumes or ():
            if claim_of(volume) == old and volume.name in self.disks:
                return marks.data_volume(self.reading.name, self.disks[volume.name])
        return old

    def _template(self, index: int, template: DataVolumeTemplate) -> DataVolumeTemplate:
        old = template_name(template)
        path: Path = ("spec", "dataVolumeTemplates", index, "metadata", "name")
        new = self._template_name(old) if self._is_made(self._template_name(old)) else old
        new = self._renamed(path, old, new)
        spec = template.spec
        if spec.pvc is not None and spec.storage is None:
            claim = {name: getattr(spec.pvc, name) for name in StorageSpec.__struct_fields__}
            spec = msgspec.structs.replace(spec, pvc=None, storage=StorageSpec(**claim))
        metadata = None if template.metadata is None else msgspec.structs.replace(template.metadata, name=new)
        return msgspec.structs.replace(template, metadata=metadata, spec=spec, apiVersion=None, kind=None, status=None)

    def _is_made(self, name: str) -> bool:
        return any(template_name(template) == name for template in self.image.spec.dataVolumeTemplates or ())

    def _interface(self, index: int, interface: Interface) -> Interface:
        return msgspec.structs.replace(interface, name=self.cards.get(interface.name, interface.name))

    def _network(self, index: int, network: Network) -> Network:
        path = (*_INSTANCE, "networks", index)
        name = self._renamed((*path, "name"), network.name, self.cards.get(network.name, network.name))
        made = self.networks.get(name)
        changed = msgspec.structs.replace(network, name=name)
        if network.multus is None or made is None or made.multus is None:
            return changed
        target = self._renamed((*path, "multus", "networkName"), network.multus.networkName, made.multus.networkName)
        return msgspec.structs.replace(changed, multus=MultusNetwork(networkName=target, default=network.multus.default))


def _each(values: list[T] | None, change: Callable[[int, T], T]) -> list[T] | None:
    return None if values is None else [change(index, value) for index, value in enumerate(values)]
