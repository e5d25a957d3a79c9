"""The DataVolumes that a machine's templates become, and the claim of each (docs/spec/kubermatic.md 2.1 and 2.5). Pure."""

import msgspec

from paddock.kubernetes.meta.objects import ObjectMeta, Resource, TemplateMeta, owned_by
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplateMeta, VirtualMachine


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


def _of_template(data_volume_template_meta: DataVolumeTemplateMeta, machine: VirtualMachine) -> ObjectMeta:
    return msgspec.structs.replace(_metadata(data_volume_template_meta, machine), finalizers=data_volume_template_meta.finalizers)


def _metadata(template_meta: TemplateMeta, owner: Resource) -> ObjectMeta:
    return ObjectMeta(
        name=template_meta.name or "",
        namespace=namespace_of(owner),
        labels=template_meta.labels,
        annotations=template_meta.annotations,
        ownerReferences=owned_by(owner),
    )
