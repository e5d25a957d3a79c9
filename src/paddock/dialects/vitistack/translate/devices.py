"""Disks and network cards: the claims, the volumes, the cards, and what is booted first."""

from collections.abc import Iterator

import msgspec

from paddock.dialects.vitistack.kinds import boot, macs
from paddock.dialects.vitistack.kinds.effective import EffectiveDisk
from paddock.dialects.vitistack.kinds.marks import DEFAULT_CLASS, ISO_DISK
from paddock.dialects.vitistack.translate.resolved import VitistackInputs
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec, ResourceRequirements, StorageSpec
from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec, HttpSource, RegistrySource
from paddock.kubevirt.kinds.devices import CDRomTarget, DiskTarget
from paddock.kubevirt.kinds.devices import Disk as Device
from paddock.kubevirt.kinds.networks import Interface, MultusNetwork, PodNetwork
from paddock.kubevirt.kinds.networks import Network as Attached
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, DataVolumeTemplateMeta
from paddock.kubevirt.kinds.volumes import ClaimVolume, DataVolumeVolume, Volume

POD_CARD = "default"


def claim_name(machine_name: str, disk_name: str) -> str:
    """The claim of a disk."""
    return f"{machine_name}-{disk_name}"


def iso_name(machine_name: str) -> str:
    """The DataVolume of the installation image."""
    return f"{machine_name}-iso"


class BootOrder(msgspec.Struct, frozen=True):
    """Ranks of the first disk, card and CD-ROM; None for what has none."""

    disk: int | None = None
    network: int | None = None
    cdrom: int | None = None


def boot_order(resolved: VitistackInputs, ledger: LossCollector) -> BootOrder:
    """Return the boot order: one rank per class that is there, so that no number is left out."""
    machine = resolved.machine
    there = {"disk": bool(resolved.effective.disks), "network": True, "cdrom": bool(boot.iso_url(machine))}
    # An installation starts from the CD-ROM because the root disk is still blank, and later no more.
    wanted = machine.spec.bootOrder or (["disk", "cdrom"] if there["cdrom"] else [])
    for index, name in enumerate(machine.spec.bootOrder or ()):
        if not there[name]:
            ledger.lose(("spec", "bootOrder", index), name, f"the machine has no {name}", "the others are tried in their order")
    return BootOrder(**{name: rank for rank, name in enumerate((name for name in wanted if there[name]), start=1)})


def claims(resolved: VitistackInputs) -> Iterator[tuple[EffectiveDisk, PersistentVolumeClaimSpec]]:
    """Yield the claim of each disk."""
    for disk in resolved.effective.disks:
        assert disk.size is not None
        yield (
            disk,
            PersistentVolumeClaimSpec(
                storageClassName=resolved.classes[disk.storageClass],
                accessModes=[disk.accessMode],
                volumeMode=disk.volumeMode,
                resources=ResourceRequirements(requests={"storage": disk.size}),
            ),
        )


def image_source(address: str) -> DataVolumeSource:
    """Return the source of an image, by its address."""
    if address.startswith(("http://", "https://")):
        return DataVolumeSource(http=HttpSource(url=address))
    return DataVolumeSource(registry=RegistrySource(url=address))


def is_imported(resolved: VitistackInputs, disk: EffectiveDisk) -> bool:
    """Return whether the disk starts with an image instead of blank."""
    return disk == resolved.effective.root and bool(boot.root_image(resolved.machine))


def claim(resolved: VitistackInputs, disk: EffectiveDisk, spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaim:
    """The claim of a blank disk."""
    metadata = resolved.metadata(claim_name(resolved.name, disk.name))
    return PersistentVolumeClaim(apiVersion="v1", kind="PersistentVolumeClaim", metadata=metadata, spec=spec)


def imported(resolved: VitistackInputs, spec: PersistentVolumeClaimSpec) -> DataVolumeSpec:
    """Return the DataVolume of the root disk."""
    return DataVolumeSpec(source=image_source(boot.root_image(resolved.machine)), pvc=spec)


def disks(resolved: VitistackInputs, order: BootOrder) -> tuple[list[Device], list[Volume]]:
    """The disks of the machine and, name by name, their volumes."""
    devices, volumes = [], []
    for disk in resolved.effective.disks:
        target = DiskTarget(bus=disk.bus, readonly=True if disk.accessMode == "ReadOnlyMany" else None)
        rank = order.disk if disk == resolved.effective.root else None
        devices.append(Device(name=disk.name, disk=target, bootOrder=rank))
        name = claim_name(resolved.name, disk.name)
        if is_imported(resolved, disk):
            volumes.append(Volume(name=disk.name, dataVolume=DataVolumeVolume(name=name)))
        else:
            volumes.append(Volume(name=disk.name, persistentVolumeClaim=ClaimVolume(claimName=name)))
    if boot.iso_url(resolved.machine):
        devices.append(Device(name=ISO_DISK, cdrom=CDRomTarget(bus="sata"), bootOrder=order.cdrom))
        volumes.append(Volume(name=ISO_DISK, dataVolume=DataVolumeVolume(name=iso_name(resolved.name))))
    return devices, volumes


def iso_template(resolved: VitistackInputs) -> DataVolumeTemplate | None:
    """The DataVolume of the installation image, which goes with the virtual machine."""
    address = boot.iso_url(resolved.machine)
    if not address:
        return None
    storage = StorageSpec(
        accessModes=["ReadWriteOnce"],
        volumeMode="Filesystem",
        storageClassName=resolved.classes[DEFAULT_CLASS],
        resources=ResourceRequirements(requests={"storage": boot.iso_size(resolved.machine)}),
    )
    metadata = DataVolumeTemplateMeta(name=iso_name(resolved.name), labels=resolved.labels)
    # Only images of registries are named without a scheme.
    fetched = address if "://" in address else f"docker://{address}"
    return DataVolumeTemplate(metadata=metadata, spec=DataVolumeSpec(source=image_source(fetched), storage=storage))


def identity(resolved: VitistackInputs) -> str:
    """Return the identity from which addresses are derived: the machine's UID, or its name without one."""
    metadata = resolved.machine.metadata
    return metadata.uid or f"{namespace_of(resolved.machine)}/{metadata.name}"


def cards(resolved: VitistackInputs, order: BootOrder) -> tuple[list[Interface], list[Attached]]:
    """The cards of the machine and the networks they are connected to."""
    interfaces, networks = [], []
    for index, network in enumerate(resolved.machine.spec.networks):
        interface = Interface(
            name=network.name,
            model=network.model,
            bridge=Empty(),
            macAddress=_address(resolved, index, network.macAddress),
            bootOrder=order.network if index == 0 else None,
        )
        interfaces.append(interface)
        networks.append(Attached(name=network.name, multus=MultusNetwork(networkName=network.networkName)))
    if not interfaces:
        address = _address(resolved, 0, None)
        interfaces = [Interface(name=POD_CARD, model="virtio", masquerade=Empty(), macAddress=address, bootOrder=order.network)]
        networks = [Attached(name=POD_CARD, pod=PodNetwork())]
    return interfaces, networks


def _address(resolved: VitistackInputs, index: int, given: str | None) -> str:
    # Without a fixed address the guest would get another one on every start.
    return macs.normal(given) if given else macs.derived(identity(resolved), resolved.rendering.mac_set, index)
