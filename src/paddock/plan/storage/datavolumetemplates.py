"""The DataVolumes that a machine's templates become, and the claim of each (docs/spec/kubermatic.md 2.1 and 2.5). Pure."""

import msgspec

from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.dialects.kubevirt.virtualmachine import DataVolumeTemplateMeta, VirtualMachine
from paddock.meta.objects import ObjectMeta, Resource, TemplateMeta, owned_by
from paddock.meta.world import namespace_of


def data_volumes(machine: VirtualMachine) -> tuple[DataVolume, ...]:
    """One DataVolume for each template, of the template's name, in the machine's namespace, and owned by the machine."""
    return tuple(
        DataVolume(
            apiVersion="cdi.kubevirt.io/v1beta1",
            kind="DataVolume",
            metadata=_of_template(template.metadata or DataVolumeTemplateMeta(), machine),
            spec=template.spec,
        )
        for template in machine.spec.dataVolumeTemplates or ()
    )


def claim(volume: DataVolume) -> PersistentVolumeClaim | None:
    """The claim of a DataVolume that names it literally; `storage` needs the profile of a StorageClass first."""
    if volume.spec.pvc is None:
        return None
    return PersistentVolumeClaim(
        apiVersion="v1",
        kind="PersistentVolumeClaim",
        metadata=_metadata(TemplateMeta(name=volume.metadata.name), volume),
        spec=volume.spec.pvc,
    )


def _of_template(given: DataVolumeTemplateMeta, machine: VirtualMachine) -> ObjectMeta:
    return msgspec.structs.replace(_metadata(given, machine), finalizers=given.finalizers)


def _metadata(given: TemplateMeta, owner: Resource) -> ObjectMeta:
    return ObjectMeta(
        name=given.name or "",
        namespace=namespace_of(owner),
        labels=given.labels,
        annotations=given.annotations,
        ownerReferences=owned_by(owner),
    )
