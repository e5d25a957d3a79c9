"""A Machine of the document's form in Vitistack's own, and what that form has no word for."""

from collections.abc import Iterator

import msgspec

from paddock.base import quantity
from paddock.dialects.vitistack.kinds import boot, machinetemplate, ownform, templates
from paddock.dialects.vitistack.kinds.effective import Effective, EffectiveDisk, effective
from paddock.dialects.vitistack.kinds.fields import MachineCloudInit, MachineDisk, OperatingSystem
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machinespec import MachineSpec
from paddock.dialects.vitistack.kinds.marks import DEFAULT_CLASS
from paddock.dialects.vitistack.kinds.ownfields import PROVIDER, CloudInitKey, OwnCpu, OwnNetwork
from paddock.dialects.vitistack.translate.documents import NETWORK_DATA_KEY
from paddock.dialects.vitistack.translate.errors import TemplateNotFound
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.fieldrecord import FieldRecord, Reasons
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.world import ObjectSet, namespace_of

_GIB = 2**30
_EFI = ("a machine in Vitistack's own form boots with EFI, without Secure Boot", "it boots with EFI")
_REASONS: Reasons = (
    (("spec", "networks"), ("Vitistack's own form has one virtio card, and its address is derived", "left out")),
    (("spec", "bootOrder"), ("Vitistack's own form boots from the root disk, then from the CD-ROM or the network", "it does")),
    (("spec", "domain", "firmware"), _EFI),
    (("spec", "domain"), ("Vitistack's own form has no mainboard and no features", "the backend chooses")),
)


def is_own(value: object) -> bool:
    """Return whether an object is a Machine in Vitistack's own form."""
    return isinstance(value, Machine) and ownform.is_own(value.spec)


def to_own(machine: Machine, object_set: ObjectSet) -> Translated[Machine]:
    """The machine in Vitistack's own form, with every size written out. Raises `TemplateNotFound`."""
    record = FieldRecord(machine, _REASONS)
    spec = record.view.spec
    base = machinetemplate.find(spec.template, namespace_of(machine), object_set) if spec.template else None
    if spec.template and base is None:
        raise TemplateNotFound(spec.template, templates.choices())
    merged = effective(spec.resources, spec.disks, base)
    made = MachineSpec(
        provider=PROVIDER,
        cpu=OwnCpu(cores=merged.cores, threadsPerCore=merged.threads, sockets=merged.sockets),
        memory=quantity.whole(merged.memory or 0),
        disks=list(_disks(record, merged)),
        network=OwnNetwork(networkNamespaceName=spec.networks[0].networkName) if spec.networks else None,
        cloudInit=_cloud_init(spec.cloudInit, machine, object_set),
        os=OperatingSystem(imageID=spec.os.imageID) if spec.os else None,
    )
    _tell(record, machine, merged)
    return Translated(msgspec.structs.replace(machine, spec=made, status=None), record.settle())


def _disks(record: FieldRecord[Machine], merged: Effective) -> Iterator[MachineDisk]:
    own = {disk.name: index for index, disk in enumerate(record.resource.spec.disks)}
    for disk in merged.disks:
        path = ("spec", "disks", own[disk.name]) if disk.name in own else ("spec", "template")
        for member, why in _lost(disk):
            record.lose((*path, member) if disk.name in own else path, getattr(disk, member), why, "the default is used")
        size = quantity.whole(disk.size or 0)
        if size % _GIB:
            record.lose((*path, "size") if disk.name in own else path, disk.size, "sizes are in whole Gi", f"{-(-size // _GIB)}Gi")
        yield MachineDisk(name=disk.name, sizeGB=max(1, -(-size // _GIB)), boot=True if disk == merged.root else None)


def _lost(disk: EffectiveDisk) -> Iterator[tuple[str, str]]:
    if disk.storageClass != DEFAULT_CLASS:
        yield "storageClass", "a disk is on the default class"
    if disk.accessMode != "ReadWriteOnce":
        yield "accessMode", "a disk is ReadWriteOnce"
    if disk.volumeMode == "Block":
        yield "volumeMode", "a disk has the volume mode of its class"


def _cloud_init(machine_cloud_init: MachineCloudInit | None, machine: Machine, object_set: ObjectSet) -> MachineCloudInit | None:
    if machine_cloud_init is None:
        return None
    reference = None if machine_cloud_init.userData else machine_cloud_init.secretRef
    secret = object_set.get(Secret, namespace_of(machine), reference.name) if reference else None
    also = reference is not None and not machine_cloud_init.networkData and secret is not None and NETWORK_DATA_KEY in decoded(secret)
    return MachineCloudInit(
        userData=machine_cloud_init.userData,
        networkData=machine_cloud_init.networkData,
        userDataSecretRef=CloudInitKey(name=reference.name, key=reference.key) if reference else None,
        networkDataSecretRef=CloudInitKey(name=reference.name, key=NETWORK_DATA_KEY) if reference and also else None,
    )


def _tell(record: FieldRecord[Machine], machine: Machine, merged: Effective) -> None:
    """Note what comes out the same, and firmware that the form decides by itself."""
    spec = machine.spec
    if spec.bootOrder == ["disk", "cdrom" if boot.iso_url(machine) else "network"]:
        record.take_whole("spec", "bootOrder")
    loader = spec.domain.firmware.bootloader if spec.domain and spec.domain.firmware else None
    if loader is None or not loader.efi:
        record.lose(("spec", "domain"), None, *_EFI)
    elif not loader.secureBoot:
        record.take_whole("spec", "domain", "firmware")
    for index, network in enumerate(spec.networks[:1]):
        if network.model == "virtio":
            record.take("spec", "networks", index, "model")
        record.take("spec", "networks", index, "name")
