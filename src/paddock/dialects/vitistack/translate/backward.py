"""From a KubeVirt machine to a Machine, its NetworkConfigurations and the Secret it refers to; and what does not fit.

The result is translated forward again and compared with the original. What the image lacks is a loss, thought of or not.
"""

from collections.abc import Iterator

import msgspec

from paddock.base import names
from paddock.dialects.vitistack.kinds import machinetemplate, marks
from paddock.dialects.vitistack.kinds.effective import root_index
from paddock.dialects.vitistack.kinds.fields import MachineCloudInit, MachineCpu, MachineMemory, MachineResources, OperatingSystem
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machinespec import MachineSpec
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.kinds.templates import MachineTemplateSpec
from paddock.dialects.vitistack.translate import cloudinit, domain, hardware, storage, wiring
from paddock.dialects.vitistack.translate.comparable import comparable, means_the_same, said_metadata
from paddock.dialects.vitistack.translate.devices import claim_name
from paddock.dialects.vitistack.translate.forward import to_kubevirt
from paddock.dialects.vitistack.translate.reasons import reason
from paddock.dialects.vitistack.translate.resolved import default_storage_class
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.meta.translated import Loss, LossCollector, Translated
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

_INSTANCE: Path = ("spec", "template", "spec")


def from_kubevirt(vm: VirtualMachine, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """The Machine that says the same, with what it refers to before it: Secrets, NetworkConfigurations, Machine."""
    reading = _Reading(vm, object_set, rendering)
    machine = reading.machine()
    networks, losses = wiring.networks(vm, reading.wired, object_set, reading.ledger)
    image = _image(reading, machine, networks)
    _compare(reading, image)
    claims = [loss for each in reading.disks for loss in _claim_losses(each, machine.metadata.name, image)]
    return Translated((*reading.secrets(), *networks, machine), (*reading.ledger.losses, *losses, *claims))


class _Reading:
    def __init__(self, vm: VirtualMachine, object_set: ObjectSet, rendering: Rendering) -> None:
        self.vm = vm
        self.object_set = object_set
        self.rendering = rendering
        self.ledger = LossCollector(f"VirtualMachine/{vm.metadata.name or vm.metadata.generateName}")
        self.instance = vm.spec.template.spec
        self.namespace = namespace_of(vm)
        self.name = _label(vm.metadata.name or vm.metadata.generateName or "machine")
        owners = vm.metadata.ownerReferences or ()
        self.uid = next((each.uid for each in owners if each.kind == "Machine" and each.apiVersion == marks.API_VERSION), None)
        self.disks = storage.DiskReader(vm, object_set, default_storage_class(object_set, rendering), self.ledger).read()
        self.wired = wiring.read(vm, self.uid or f"{self.namespace}/{self.name}", rendering.mac_set)
        self.iso = hardware.iso(vm)
        self.cloud_init = next((index for index, each in enumerate(self.instance.volumes or ()) if storage.is_cloud_init(each)), None)
        self.documents = self._documents()

    def machine(self) -> Machine:
        template, base = self._template()
        given = {disk.name: disk for disk in base.disks} if base else {}
        disks = [storage.over(each.disk, given.get(each.disk.name)) for each in self.disks]
        spec = MachineSpec(
            template=template,
            resources=self._resources(base),
            # A template's disk with nothing but defaults is there without an entry.
            disks=[disk for disk in disks if disk.name not in given or disk != type(disk)(name=disk.name)],
            networks=[each.network for each in self.wired],
            bootOrder=self._boot_order(),
            cloudInit=self.documents,
            domain=domain.read(self.instance.domain, (self.vm.metadata.annotations or {}).get(marks.REQUESTED_MACHINE_TYPE), self.ledger),
            os=OperatingSystem(imageID=self.iso.address) if self.iso else None,
        )
        return Machine(apiVersion=marks.API_VERSION, kind="Machine", metadata=self._metadata(), spec=spec)

    def secrets(self) -> Iterator[Secret]:
        """The Secret that the Machine refers to, as it would be written anew."""
        reference = self.documents.secretRef if self.documents else None
        found = self.object_set.get(Secret, self.namespace, reference.name) if reference else None
        if found is not None:
            metadata = said_metadata(found.metadata)
            kept = [each for each in metadata.ownerReferences or () if each.kind != "Machine"]
            yield msgspec.structs.replace(found, metadata=msgspec.structs.replace(metadata, ownerReferences=kept or None))

    def _template(self) -> tuple[str | None, MachineTemplateSpec | None]:
        """The template that the label names, when the disks begin with its disks."""
        name = (self.vm.metadata.labels or {}).get(marks.MACHINE_TEMPLATE)
        base = machinetemplate.find(name, self.namespace, self.object_set) if name else None
        if base is None or [each.name for each in base.disks] != [each.disk.name for each in self.disks[: len(base.disks)]]:
            return None, None
        return name, base

    def _resources(self, base: MachineTemplateSpec | None) -> MachineResources | None:
        cpu = hardware.cpu(self.instance.domain)
        memory = hardware.memory(self.instance.domain, self.ledger)
        given = (base.resources.cpu if base else None) or MachineCpu()
        own = MachineCpu(
            cores=None if base and cpu.cores == (given.cores or 1) else cpu.cores,
            threads=None if cpu.threads == (given.threads or 1) else cpu.threads,
            sockets=None if cpu.sockets == (given.sockets or 1) else cpu.sockets,
        )
        same = base is not None and base.resources.memory is not None and base.resources.memory.size == memory
        made = MachineResources(cpu=None if own == MachineCpu() else own, memory=None if same else MachineMemory(size=memory))
        return None if made == MachineResources() else made

    def _boot_order(self) -> list[str] | None:
        ranks: dict[str, int] = {}
        index = root_index(each.disk.name for each in self.disks)
        root = None if index is None else self.disks[index].device
        first = self.wired[0].interface if self.wired else next(iter(self.instance.domain.devices.interfaces or ()), None)
        for name, device in (("disk", root), ("network", first), ("cdrom", self.iso.device if self.iso else None)):
            if device is not None and device.bootOrder is not None:
                ranks[name] = device.bootOrder
        order = sorted(ranks, key=lambda name: ranks[name])
        if not self.disks and not order:
            # Nothing else can be booted, and a Machine without disks has to say so.
            return ["network"]
        return None if not order or (self.iso and order == ["disk", "cdrom"]) else order

    def _documents(self) -> MachineCloudInit | None:
        if self.cloud_init is None or not self.instance.volumes:
            return None
        path = (*_INSTANCE, "volumes", self.cloud_init)
        return cloudinit.read(
            cloudinit.CloudInitReader(self.instance.volumes[self.cloud_init], path, self.namespace, self.object_set, self.ledger)
        )

    def _metadata(self) -> ObjectMeta:
        written = said_metadata(self.vm.metadata)
        managed = (marks.MANAGED_BY, marks.MACHINE, marks.MACHINE_TEMPLATE)
        labels = {key: value for key, value in (written.labels or {}).items() if key not in managed}
        given = written.annotations or {}
        # What means something on a Machine is not taken over by chance.
        meant = (*marks.MEANT_ANNOTATIONS, marks.REQUESTED_MACHINE_TYPE)
        kept = {key: value for key, value in given.items() if key not in meant}
        root = next((each for each in self.disks if each.image), None)
        if root is not None:
            kept[marks.ROOT_IMAGE] = root.image
        if hardware.is_stopped(self.vm):
            kept[marks.POWER_STATE] = "stopped"
        if self.iso:
            kept |= self.iso.annotations
        return ObjectMeta(name=self.name, namespace=written.namespace, labels=labels or None, annotations=kept or None)


def _label(name: str) -> str:
    """The nearest DNS label."""
    return name if names.is_label(name) else name.replace(".", "-")[:63].strip("-")


def _image(reading: _Reading, machine: Machine, networks: list[NetworkConfiguration]) -> tuple[Resource, ...]:
    """Return the objects that the Machine becomes, under the identity that the original's Machine has."""
    probe = msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, uid=reading.uid))
    by_strategy = reading.vm.spec.running is None and reading.vm.spec.runStrategy in ("Always", "Halted")
    rendering = msgspec.structs.replace(reading.rendering, power_field="runStrategy" if by_strategy else "running")
    return to_kubevirt(probe, ObjectSet([*reading.object_set.all(Resource), *networks]), rendering).value


def _compare(reading: _Reading, image: tuple[Resource, ...]) -> None:
    (after,) = (each for each in image if isinstance(each, VirtualMachine))
    documents = next((each for each in after.spec.template.spec.volumes or () if each.name == marks.CLOUD_INIT_DISK), None)
    named = reading.instance.volumes[reading.cloud_init].name if reading.cloud_init is not None and reading.instance.volumes else ""
    # An object that is one loss as a whole is none member by member.
    whole = [loss.path for loss in reading.ledger.losses if isinstance(loss.value, dict)]
    for path, value in residue(comparable(reading.vm, documents, named), after):
        is_lost = any(path[: len(each)] == each for each in whole)
        if not is_lost and not means_the_same(path, value):
            reading.ledger.lose(path, value, *reason(path))


def _claim_losses(read: storage.DiskReading, machine: str, image: tuple[Resource, ...]) -> Iterator[Loss]:
    """Yield the losses of the claim or the DataVolume behind a disk."""
    origin = read.store.origin
    if origin is None:
        return
    name = claim_name(machine, read.disk.name)
    after = next(each for each in image if isinstance(each, PersistentVolumeClaim | DataVolume) and each.metadata.name == name)
    asked = after.spec if isinstance(after, PersistentVolumeClaim) else after.spec.pvc
    before = PersistentVolumeClaimSpec(**msgspec.structs.asdict(read.store.spec))
    start: Path = ("spec",)
    if isinstance(origin, DataVolume):
        start = ("spec", "pvc" if origin.spec.pvc else "storage")
        filled = after.spec if isinstance(after, DataVolume) else DataVolumeSpec()
        for path, value in residue(_content(origin.spec), _content(filled)):
            yield _claim_loss(origin, ("spec", *path), value)
    for path, value in residue(before, asked or PersistentVolumeClaimSpec()):
        # A claim that keeps its name keeps its volume.
        if path != ("volumeName",) or origin.metadata.name != name:
            yield _claim_loss(origin, (*start, *path), value)


def _content(spec: DataVolumeSpec) -> DataVolumeSpec:
    return msgspec.structs.replace(spec, pvc=None, storage=None)


def _claim_loss(origin: Resource, path: Path, value: object) -> Loss:
    why = "a Machine asks for size, class, one access mode and the volume mode of a disk, and fills the root disk from an address"
    instead = "the new claim goes without it; content is not moved"
    return Loss(of=f"{origin.kind}/{origin.metadata.name}", path=path, value=value, why=why, instead=instead)
