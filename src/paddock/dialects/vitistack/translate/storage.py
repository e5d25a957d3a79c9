"""The disks of a KubeVirt machine as a Machine says them."""

import msgspec

from paddock.base import quantity
from paddock.dialects.vitistack.kinds.effective import DEFAULT_ACCESS_MODE
from paddock.dialects.vitistack.kinds.fields import MOST_DISKS, MachineDisk, TemplateDisk
from paddock.dialects.vitistack.kinds.marks import DEFAULT_CLASS, IMAGE_SCHEMES, RESERVED_DISKS, ROOT_DISK
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.storage import StorageSpec
from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.devices import Disk as Device
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.kinds.volumes import Volume

INSTANCE: Path = ("spec", "template", "spec")
# The root disk of the smallest template: for disks whose size is not in the input.
ASSUMED_SIZE = "20Gi"


class BackingStore(msgspec.Struct, frozen=True, kw_only=True):
    """The storage behind a volume: the requested claim, and the object that requests it. `content` fills it."""

    spec: StorageSpec
    origin: PersistentVolumeClaim | DataVolume | None = None
    content: DataVolumeSpec | None = None


class DiskReading(msgspec.Struct, frozen=True):
    """A disk of the original: the device at its place, and what a Machine says for it."""

    index: int
    device: Device
    disk: MachineDisk
    store: BackingStore
    # the address of an image that a root disk can start with
    image: str = ""


def is_cloud_init(volume: Volume | None) -> bool:
    """Return whether a volume carries cloud-init documents."""
    return volume is not None and (volume.cloudInitNoCloud or volume.cloudInitConfigDrive) is not None


def all_devices(vm: VirtualMachine) -> list[Device]:
    """The disks, with those that KubeVirt adds for volumes that have none."""
    instance = vm.spec.template.spec
    listed = list(instance.domain.devices.disks or ())
    taken = {device.name for device in listed} | {each.name for each in instance.domain.devices.filesystems or ()}
    return listed + [Device(name=each.name) for each in instance.volumes or () if each.name not in taken and each.memoryDump is None]


class DiskReader:
    """Reads the disks of one machine."""

    def __init__(self, vm: VirtualMachine, object_set: ObjectSet, default_class: str | None, ledger: LossCollector) -> None:
        self.vm = vm
        self.object_set = object_set
        self.default_class = default_class
        self.ledger = ledger
        self.volumes = {volume.name: volume for volume in vm.spec.template.spec.volumes or ()}
        self.templates = {each.metadata.name: each for each in vm.spec.dataVolumeTemplates or () if each.metadata}

    def read(self) -> list[DiskReading]:
        """The disks that a Machine can have, the root disk first among them unless it is called root."""
        found = [read for index, device in enumerate(all_devices(self.vm)) if (read := self._read(index, device)) is not None]
        root = _root(found)
        kept = [read for read in found if read is root or not self._is_container(read)][:MOST_DISKS]
        if root is None or root is kept[0] or root.disk.name == ROOT_DISK:
            return [self._rooted(read, is_root=read is root) for read in kept]
        path = (*INSTANCE, "domain", "devices", "disks", root.index)
        why = "a Machine boots from its disk called root, else from its first"
        self.ledger.lose(path, root.disk.name, why, "the disk stands first")
        return [self._rooted(root, is_root=True), *(self._rooted(read, is_root=False) for read in kept if read is not root)]

    def _is_container(self, read: DiskReading) -> bool:
        return self.volumes[read.device.name].containerDisk is not None

    def _rooted(self, read: DiskReading, *, is_root: bool) -> DiskReading:
        if not is_root:
            return msgspec.structs.replace(read, image="")
        writable = DEFAULT_ACCESS_MODE if read.disk.accessMode == "ReadOnlyMany" else read.disk.accessMode
        return msgspec.structs.replace(read, disk=msgspec.structs.replace(read.disk, accessMode=writable))

    def _read(self, index: int, device: Device) -> DiskReading | None:
        volume = self.volumes.get(device.name)
        if volume is None or device.cdrom is not None or device.name in RESERVED_DISKS:
            return None
        store = self._store(volume)
        if store is None:
            return None
        disk = MachineDisk(
            name=device.name,
            size=self._size(store.spec, volume),
            storageClass=self._class(store.spec.storageClassName),
            accessMode=_mode(store.spec.accessModes),
            volumeMode=store.spec.volumeMode,
        )
        return DiskReading(index, device, disk, store, _image(volume, store.content))

    def _class(self, name: str | None) -> str:
        return DEFAULT_CLASS if not name or name == self.default_class else name

    def _store(self, volume: Volume) -> BackingStore | None:
        """The storage of a volume; None for those that are no disk with content of its own."""
        if volume.dataVolume is not None:
            return self._of_data_volume(volume.dataVolume.name)
        if volume.persistentVolumeClaim is not None:
            return self._of_data_volume(volume.persistentVolumeClaim.claimName)
        if volume.containerDisk is not None or volume.emptyDisk is not None:
            return BackingStore(spec=StorageSpec())
        if volume.hostDisk is not None and volume.hostDisk.capacity is not None:
            return BackingStore(spec=StorageSpec())
        return None

    def _of_data_volume(self, name: str) -> BackingStore:
        namespace = namespace_of(self.vm)
        template = self.templates.get(name)
        if template is not None:
            return BackingStore(spec=template.spec.pvc or template.spec.storage or StorageSpec(), content=template.spec)
        volume = self.object_set.get(DataVolume, namespace, name)
        if volume is not None:
            return BackingStore(spec=volume.spec.pvc or volume.spec.storage or StorageSpec(), origin=volume, content=volume.spec)
        claim = self.object_set.get(PersistentVolumeClaim, namespace, name)
        return BackingStore(spec=(claim and claim.spec) or StorageSpec(), origin=claim)

    def _size(self, spec: StorageSpec, volume: Volume) -> int | str:
        given = (spec.resources.requests or {}).get("storage") if spec.resources else None
        if volume.emptyDisk is not None:
            given = volume.emptyDisk.capacity
        elif volume.hostDisk is not None:
            given = volume.hostDisk.capacity
        if given is not None and quantity.parse(given) > 0:
            return given
        path = (*INSTANCE, "volumes", list(self.volumes).index(volume.name))
        self.ledger.lose(path, volume.name, "nothing in the input says how large the disk is", f"the disk has {ASSUMED_SIZE}")
        return ASSUMED_SIZE


def _root(disk_readings: list[DiskReading]) -> DiskReading | None:
    """The disk that becomes the root disk: the one called root, else the first in boot order, else the first."""
    named = (read for read in disk_readings if read.disk.name == ROOT_DISK)
    ordered = sorted((read for read in disk_readings if read.device.bootOrder is not None), key=lambda read: read.device.bootOrder or 0)
    return next(iter((*named, *ordered, *disk_readings)), None)


def _mode(modes: list[str] | None) -> str:
    """One access mode for several: the widest that can be written."""
    preferred = ("ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany")
    return next((mode for mode in preferred if mode in (modes or ())), DEFAULT_ACCESS_MODE)


def _image(volume: Volume, content: DataVolumeSpec | None) -> str:
    """The address of an image, where it is all that the source says."""
    if volume.containerDisk is not None:
        return f"docker://{volume.containerDisk.image}"
    return address(content.source if content else None)


def address(source: DataVolumeSource | None) -> str:
    """The address of an image that is fetched by http or from a registry; empty for other sources."""
    found = ""
    if source is not None and source.http is not None:
        found = source.http.url
    elif source is not None and source.registry is not None:
        found = source.registry.url or ""
    return found if found.startswith(IMAGE_SCHEMES) else ""


def over(disk: MachineDisk, base: TemplateDisk | None) -> MachineDisk:
    """Return the Machine's fields of a disk on top of the template's."""
    if base is None:
        return msgspec.structs.replace(
            disk,
            storageClass=None if disk.storageClass == DEFAULT_CLASS else disk.storageClass,
            accessMode=None if disk.accessMode == DEFAULT_ACCESS_MODE else disk.accessMode,
        )
    given = MachineDisk(
        size=base.size,
        storageClass=base.storageClass or DEFAULT_CLASS,
        accessMode=base.accessMode or DEFAULT_ACCESS_MODE,
        volumeMode=base.volumeMode,
    )
    # None would leave the template's mode in force.
    wanted = disk if disk.volumeMode or not base.volumeMode else msgspec.structs.replace(disk, volumeMode="Filesystem")
    same = {name: None for name in ("size", "storageClass", "accessMode", "volumeMode") if getattr(given, name) == getattr(wanted, name)}
    return msgspec.structs.replace(wanted, **same)
