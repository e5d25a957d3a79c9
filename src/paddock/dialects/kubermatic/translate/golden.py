"""The one copy of a cached DataSource, which all consumers clone (docs/spec/kubermatic.md 2.2)."""

from collections.abc import Iterator, Sequence

from paddock.base import quantity
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import BIND_NOW, DATA_SOURCE, MANAGED_BY, golden_name, with_class
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine


def golden_volume(source: DataSource, content: DataVolumeSource, consumers: Sequence[DataVolumeSpec], rendering: Rendering) -> DataVolume:
    """The copy, as large as the smallest of its consumers, so that all can clone it."""
    smallest = min(consumers, key=_size)
    namespace = namespace_of(source)
    metadata = ObjectMeta(
        name=golden_name(source),
        namespace=namespace,
        labels={MANAGED_BY: rendering.product},
        # Nobody runs on it, so a class that waits for its first consumer would wait for ever.
        annotations={DATA_SOURCE: f"{namespace}/{source.metadata.name}", BIND_NOW: ""},
    )
    spec = DataVolumeSpec(source=content, pvc=smallest.pvc, storage=smallest.storage)
    return DataVolume(apiVersion="cdi.kubevirt.io/v1beta1", kind="DataVolume", metadata=metadata, spec=spec)


def asked_of(source: DataSource, object_set: ObjectSet) -> list[DataVolumeSpec]:
    """Return the requests to a DataSource, in the order of the world."""
    return list(_asked_of(source, object_set))


def _asked_of(source: DataSource, object_set: ObjectSet) -> Iterator[DataVolumeSpec]:
    namespace, name = namespace_of(source), source.metadata.name
    wanted = {(namespace, name)}
    for other in object_set.all(DataSource):
        to = other.spec.source.dataSource
        if to is not None and (to.namespace, to.name) == (namespace, name):
            wanted.add((namespace_of(other), other.metadata.name))
    for machine in object_set.all(VirtualMachine):
        yield from _asking(machine.spec.dataVolumeTemplates, machine, wanted)
    for pool in object_set.all(VirtualMachinePool):
        yield from _asking(pool.spec.virtualMachineTemplate.spec.dataVolumeTemplates, pool, wanted)
    for volume in object_set.all(DataVolume):
        yield from _asking([DataVolumeTemplate(spec=volume.spec)], volume, wanted)


def _asking(templates: list[DataVolumeTemplate] | None, owner: Resource, names: set[tuple[str, str]]) -> Iterator[DataVolumeSpec]:
    for template in templates or ():
        reference = template.spec.sourceRef
        if reference is not None and (reference.namespace or namespace_of(owner), reference.name) in names:
            yield with_class(template.spec)


def _size(spec: DataVolumeSpec) -> int:
    """Return the size that a consumer requests; one that leaves it to its source requests the most."""
    claim = spec.pvc or spec.storage
    requests = claim.resources.requests if claim is not None and claim.resources is not None else None
    size = (requests or {}).get("storage")
    return quantity.parse("1Ei") if size is None else quantity.parse(size)
