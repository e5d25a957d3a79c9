"""The disks of a machine: the root disk from its image, and blank data disks."""

import dataclasses
from collections.abc import Iterator

from paddock.base import names, quantity
from paddock.contract import specs
from paddock.contract.specs import ImageSource
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, ImportedDiskRef
from paddock.dialects.virtrigaud.kinds.vmclass import DiskDefaults
from paddock.dialects.virtrigaud.translate import fetching, marks
from paddock.dialects.virtrigaud.translate.account import Account
from paddock.dialects.virtrigaud.translate.errors import NothingToBoot
from paddock.dialects.virtrigaud.translate.fetching import FetchedSource
from paddock.dialects.virtrigaud.translate.resolved import VirtrigaudInputs
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.storage import ResourceRequirements, StorageSpec
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.field import Empty, Quantity
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec, HttpSource, NamespacedReference, SourceReference
from paddock.kubevirt.kinds.devices import Disk, DiskTarget
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, DataVolumeTemplateMeta
from paddock.kubevirt.kinds.volumes import ClaimVolume, DataVolumeVolume, Volume

ROOT = "rootdisk"
CLOUD_INIT = "cloudinitdisk"
ROOT_SIZE = "40Gi"
_LEAST = "1Mi"
_ALLOCATED = ("thick", "eagerzeroedthick")
_MEDIA = ("ssd", "hdd", "nvme")
_CLAIM_SOURCES = ("dataVolume",)


@dataclasses.dataclass(frozen=True)
class AttachedDisk:
    """A disk with its volume, and what fills it. `source` is the block of the image that counted."""

    disk: Disk
    volume: Volume
    template: DataVolumeTemplate | None = None
    secrets: tuple[Secret, ...] = ()
    source: str = ""


def root(resolved: VirtrigaudInputs) -> AttachedDisk:
    """The disk that the machine boots from. Raises `NothingToBoot`."""
    spec = resolved.vm.spec
    name = marks.free(ROOT, {disk.name for disk in spec.disks or ()})
    disk = Disk(name=name, disk=DiskTarget(bus="virtio"), bootOrder=1)
    if spec.importedDisk is not None:
        volume = Volume(name=name, persistentVolumeClaim=ClaimVolume(claimName=_claim(resolved, spec.importedDisk)))
        _defaults(resolved, imported=True)
        return AttachedDisk(disk, volume)
    if spec.imageRef is None:
        raise NothingToBoot(resolved.name)
    resolved.account.took("imageRef", "namespace")
    resolved.account.took("imageRef", "name")
    defaults = _defaults(resolved, imported=False)
    block, filled, secrets = _filled(resolved)
    copies = filled.sourceRef is not None or block in _CLAIM_SOURCES
    # What copies a claim takes over its size unless another one is asked for.
    size = _size(resolved, defaults.size) if resolved.vmclass.spec.diskDefaults is not None or not copies else None
    template = DataVolumeTemplate(
        metadata=DataVolumeTemplateMeta(name=marks.data_volume(resolved.name, name), annotations=_about(resolved)),
        spec=DataVolumeSpec(
            source=filled.source,
            sourceRef=filled.sourceRef,
            storage=_storage(size, _class(resolved.class_account, ("diskDefaults", "storageClass"), defaults.storageClass)),
            preallocation=_allocated(resolved.class_account, ("diskDefaults", "type"), defaults.type),
        ),
    )
    return AttachedDisk(disk, _volume(name, template), template, secrets, block)


def _size(resolved: VirtrigaudInputs, asked: Quantity) -> Quantity:
    if quantity.parse(asked) >= quantity.parse(_LEAST):
        return asked
    resolved.class_account.lose(("diskDefaults", "size"), asked, f"a disk has at least {_LEAST}", f"the root disk has {_LEAST}")
    return _LEAST


def _defaults(resolved: VirtrigaudInputs, *, imported: bool) -> DiskDefaults:
    """Return the class's defaults for the root disk."""
    given, account = resolved.vmclass.spec.diskDefaults, resolved.class_account
    if given is None:
        return DiskDefaults(size=ROOT_SIZE)
    if not imported:
        account.took("diskDefaults", "size")
        return given
    for member in ("size", "type"):
        value = getattr(given, member)
        if value != getattr(DiskDefaults(), member):
            account.lose(("diskDefaults", member), value, "the root disk is there already", "the claim counts as it is")
    return given


def _claim(resolved: VirtrigaudInputs, imported_disk_ref: ImportedDiskRef) -> str:
    """The claim that is the disk: the provider's name of a disk is the name of a claim here."""
    path = ("importedDisk", "diskID")
    if names.is_subdomain(imported_disk_ref.diskID):
        resolved.account.took(*path)
        return imported_disk_ref.diskID
    made = "".join(char if char.isalnum() else "-" for char in imported_disk_ref.diskID.lower() if char.isascii()).strip("-")
    name = marks.cut(made, 253) or "disk"
    resolved.account.lose(path, imported_disk_ref.diskID, "it cannot be the name of a claim", f"the claim has to be called {name}")
    return name


def data(resolved: VirtrigaudInputs) -> Iterator[AttachedDisk]:
    """The data disks; each begins blank."""
    for index, disk in enumerate(resolved.vm.spec.disks or ()):
        yield _data(resolved, disk, ("disks", index))


def _data(resolved: VirtrigaudInputs, disk_spec: DiskSpec, path: Path) -> AttachedDisk:
    account = resolved.account
    for member in ("name", "sizeGiB"):
        account.took(*path, member)
    shared = disk_spec.scsi is not None and disk_spec.scsi.sharedBus != "noSharing"
    storage_class = _class(account, (*path, "storageClass"), disk_spec.storageClass)
    if storage_class is None and resolved.vmclass.spec.diskDefaults is not None:
        asked = resolved.vmclass.spec.diskDefaults.storageClass
        storage_class = _class(resolved.class_account, ("diskDefaults", "storageClass"), asked)
    if disk_spec.expandPolicy == "Online":
        why = "KubeVirt grows a disk as soon as its claim has grown"
        account.lose((*path, "expandPolicy"), disk_spec.expandPolicy, why, "the disk may grow while the machine runs, as asked")
    template = DataVolumeTemplate(
        metadata=DataVolumeTemplateMeta(name=marks.data_volume(resolved.name, disk_spec.name)),
        spec=DataVolumeSpec(
            source=DataVolumeSource(blank=Empty()),
            storage=_storage(f"{disk_spec.sizeGiB}Gi", storage_class, shared=shared),
            preallocation=_allocated(account, (*path, "type"), disk_spec.type),
        ),
    )
    disk = Disk(name=disk_spec.name, disk=DiskTarget(bus=_bus(account, disk_spec, path)), shareable=True if shared else None)
    return AttachedDisk(disk, _volume(disk_spec.name, template), template)


def _bus(account: Account, disk: DiskSpec, path: Path) -> str:
    """A disk with a SCSI controller is a SCSI disk; KubeVirt has one controller, of one model."""
    if disk.scsi is None:
        return "virtio"
    why = "KubeVirt has one SCSI controller, virtio-scsi"
    for member, default in (("controller", None), ("controllerType", "pvscsi")):
        value = getattr(disk.scsi, member)
        if value != default:
            account.lose((*path, "scsi", member), value, why, "the disk is on that controller")
    if disk.scsi.sharedBus == "physicalSharing":
        shared = "disks are shared by claims, not by hosts"
        account.lose(
            (*path, "scsi", "sharedBus"), disk.scsi.sharedBus, shared, "all machines with the claim may write, as with virtualSharing"
        )
    account.took(*path, "scsi", "sharedBus")
    return "scsi"


def _allocated(account: Account, path: Path, kind: str) -> bool | None:
    """Return whether all of a disk is allocated at once."""
    if kind == "eagerzeroedthick":
        account.lose(path, kind, "KubeVirt allocates a disk at once or as it is written", "the disk is allocated at once, as with thick")
    elif kind in _MEDIA:
        why = "what a disk lies on is a property of its StorageClass"
        account.lose(path, kind, why, "name a StorageClass of that kind")
    else:
        account.took(*path)
    return True if kind in _ALLOCATED else None


def _class(account: Account, path: Path, asked: str | None) -> str | None:
    """A StorageClass, if it can be one."""
    if not asked:
        return None
    if not names.is_subdomain(asked):
        account.lose(path, asked, "it cannot be the name of a StorageClass", "the default is taken")
        return None
    account.took(*path)
    return asked


def _storage(size: Quantity | None, storage_class: str | None, *, shared: bool = False) -> StorageSpec:
    return StorageSpec(
        # Several machines write to a shared disk, which a filesystem would not survive.
        accessModes=["ReadWriteMany"] if shared else None,
        volumeMode="Block" if shared else None,
        resources=None if size is None else ResourceRequirements(requests={"storage": size}),
        storageClassName=storage_class,
    )


def _volume(name: str, template: DataVolumeTemplate) -> Volume:
    return Volume(name=name, dataVolume=DataVolumeVolume(name=(template.metadata and template.metadata.name) or ""))


def _about(resolved: VirtrigaudInputs) -> dict[str, str] | None:
    """Return the description of the image, for people and for reading it back."""
    if resolved.image is None or resolved.image_account is None:
        return None
    spec, about = resolved.image.spec, {}
    for member, value in (("metadata", spec.metadata), ("distribution", spec.distribution)):
        if value is not None:
            resolved.image_account.took_whole(member)
            about[member] = to_data(value)
    return {marks.ABOUT: marks.as_json(about)} if about else None


def _filled(resolved: VirtrigaudInputs) -> tuple[str, DataVolumeSpec, tuple[Secret, ...]]:
    """Return the source of the root disk: the block that counts, the DataVolume's spec, and Secrets."""
    ref, account = resolved.vm.spec.imageRef, resolved.image_account
    assert ref is not None
    if resolved.image is None or account is None:
        namespace = ref.namespace or resolved.namespace
        why = f'VMImage "{ref.name}" is not among the objects'
        instead = f"the root disk is a clone of DataSource {namespace}/{ref.name}, which has to be there"
        resolved.account.lose(("imageRef", "name"), ref.name, why, instead)
        return "", DataVolumeSpec(sourceRef=_data_source(resolved, namespace, ref.name)), ()
    source = resolved.image.spec.source
    for block in specs.image_blocks(source, resolved.provider_type):
        fetched = _fetched(resolved, account, block, source)
        if fetched is not None:
            return block, DataVolumeSpec(source=fetched.source), fetched.secrets
    namespace = namespace_of(resolved.image)
    instead = f"the root disk is a clone of DataSource {namespace}/{ref.name}, which has to be made of the same content"
    if not specs.image_blocks(source, resolved.provider_type):
        account.lose(("source",), {}, "the image has no source", instead)
    for block in specs.image_blocks(source, resolved.provider_type):
        account.lose(("source", block), to_data(getattr(source, block)), "it is at another hypervisor, out of KubeVirt's reach", instead)
    return "", DataVolumeSpec(sourceRef=_data_source(resolved, namespace, ref.name)), ()


def _data_source(resolved: VirtrigaudInputs, namespace: str, name: str) -> SourceReference:
    return SourceReference(kind="DataSource", name=name, namespace=None if namespace == resolved.namespace else namespace)


def _fetched(resolved: VirtrigaudInputs, account: Account, block: str, source: ImageSource) -> FetchedSource | None:
    """The source that a block stands for, or None when KubeVirt cannot reach what it names."""
    if block == "http" and source.http is not None:
        return fetching.by_http(resolved, account, source.http)
    if block == "registry" and source.registry is not None:
        return fetching.by_registry(resolved, account, source.registry)
    if block == "dataVolume" and source.dataVolume is not None and resolved.image is not None:
        account.took("source", block, "namespace")
        account.took("source", block, "name")
        claim = NamespacedReference(name=source.dataVolume.name, namespace=source.dataVolume.namespace or namespace_of(resolved.image))
        return FetchedSource(DataVolumeSource(pvc=claim))
    libvirt = source.libvirt
    if block == "libvirt" and libvirt is not None and libvirt.url and libvirt.url.startswith(("http://", "https://")):
        path = ("source", block)
        account.took(*path, "url")
        sum_ = fetching.checksum(resolved, account, (*path, "checksum"), libvirt.checksum, libvirt.checksumType)
        return FetchedSource(DataVolumeSource(http=HttpSource(url=libvirt.url, checksum=sum_)))
    return None
