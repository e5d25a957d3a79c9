"""Kubermatic's machines, pools, DataSources and DataVolumes to what KubeVirt and CDI take (docs/spec/kubermatic.md section 2).

Nearly everything is the identity. What is Kubermatic's own becomes KubeVirt's: sources are resolved, a flat pool is folded, and
machines in Kubermatic's form are marked. A machine that uses nothing of Kubermatic's is KubeVirt's, and is left unmarked.
"""

from functools import singledispatch

import msgspec

from paddock.dialects.kubermatic.translate import cluster
from paddock.dialects.kubermatic.translate.golden import asked_of, golden_volume
from paddock.dialects.kubermatic.translate.sources import Resolver
from paddock.kubernetes.meta.objects import ObjectMeta, Resource, TemplateMeta
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import LossCollector, Translated
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds import poolform
from paddock.kubevirt.kinds.datasource import CDI_SOURCES, DataSource, source_type
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import DATA_SOURCE, IMMEDIATE, MANAGED_BY, Find, is_address, is_cached, is_extended, with_class
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine

POOL_VERSION = "pool.kubevirt.io/v1beta1"
ALIAS_VERSION = "kubevirt.io/v1alpha1"
_TEMPLATES: Path = ("spec", "dataVolumeTemplates")


@singledispatch
def to_kubevirt(source: Resource, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """The objects for a KubeVirt cluster, in the order to apply them."""
    return Translated((source,))


@to_kubevirt.register
def _machine(source: VirtualMachine, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    ledger = LossCollector(f"VirtualMachine/{source.metadata.name}")
    marked = is_extended(source.spec.dataVolumeTemplates, namespace_of(source), finder(object_set))
    resolver = Resolver(namespace_of(source), object_set, rendering)
    templates, objects = _templates(source.spec.dataVolumeTemplates, _TEMPLATES, resolver)
    hardware = cluster.hardware(source.spec.template.spec, ("spec", "template", "spec"), ledger)
    template = msgspec.structs.replace(source.spec.template, spec=hardware)
    spec = msgspec.structs.replace(source.spec, template=template, dataVolumeTemplates=templates)
    metadata = _said(source, in_namespace=marked)
    machine = msgspec.structs.replace(source, apiVersion="kubevirt.io/v1", metadata=metadata, spec=spec, status=None)
    return Translated((*objects, mark_machine(machine, rendering) if marked else machine), (*ledger.losses, *resolver.losses()))


def mark_machine(machine: VirtualMachine, rendering: Rendering) -> VirtualMachine:
    """A machine with the marks of Kubermatic's form."""
    metadata = machine.metadata
    labels = {**(metadata.labels or {}), MANAGED_BY: rendering.product}
    metadata = msgspec.structs.replace(metadata, labels=labels, annotations=_waiting(metadata.annotations))
    return msgspec.structs.replace(machine, metadata=metadata)


@to_kubevirt.register
def _pool(source: VirtualMachinePool, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    ledger = LossCollector(f"VirtualMachinePool/{source.metadata.name}")
    folded = poolform.fold(source)
    given = folded.spec.virtualMachineTemplate
    own_form = source.apiVersion == ALIAS_VERSION or folded is not source
    marked = own_form or is_extended(given.spec.dataVolumeTemplates, namespace_of(source), finder(object_set))
    resolver = Resolver(namespace_of(source), object_set, rendering)
    templates, objects = _templates(given.spec.dataVolumeTemplates, (*poolform.MACHINE, "dataVolumeTemplates"), resolver)
    machine = msgspec.structs.replace(given.spec, dataVolumeTemplates=templates)
    if machine.template is not None:
        hardware = cluster.hardware(machine.template.spec, poolform.hardware_path(source), ledger)
        machine = msgspec.structs.replace(machine, template=msgspec.structs.replace(machine.template, spec=hardware))
    metadata = _said(source, in_namespace=marked)
    spec = msgspec.structs.replace(source.spec, virtualMachineTemplate=msgspec.structs.replace(given, spec=machine))
    pool = msgspec.structs.replace(source, apiVersion=POOL_VERSION, metadata=metadata, spec=spec, status=None)
    return Translated((*objects, mark_pool(pool, rendering) if marked else pool), (*ledger.losses, *resolver.losses()))


def mark_pool(pool: VirtualMachinePool, rendering: Rendering) -> VirtualMachinePool:
    """A pool with the marks of Kubermatic's form: its own, and those of its machines."""
    given = pool.spec.virtualMachineTemplate
    around = given.metadata or TemplateMeta()
    around = msgspec.structs.replace(around, annotations=_waiting(around.annotations))
    spec = msgspec.structs.replace(pool.spec, virtualMachineTemplate=msgspec.structs.replace(given, metadata=around))
    metadata = msgspec.structs.replace(pool.metadata, labels={**(pool.metadata.labels or {}), MANAGED_BY: rendering.product})
    return msgspec.structs.replace(pool, metadata=metadata, spec=spec)


@to_kubevirt.register
def _data_source(source: DataSource, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """One that CDI knows is taken verbatim. Of an address nothing is made here: whoever refers to it gets it."""
    if not is_address(source, finder(object_set)):
        return Translated((msgspec.structs.replace(source, metadata=_said(source), status=None),))
    namespace, name = namespace_of(source), source.metadata.name
    consumers = asked_of(source, object_set)
    if not consumers:
        ledger = LossCollector(f"DataSource/{name}")
        why = f"CDI's DataSource knows {', '.join(CDI_SOURCES)} only, and no machine in the input refers to this one"
        ledger.lose(("spec", "source"), source_type(source.spec.source), why, "nothing is made of it")
        return Translated((), ledger.losses)
    if not is_cached(source) or source.spec.source.dataSource is not None:
        # What another DataSource stands for is cached where its address is.
        return Translated(())
    resolver = Resolver(namespace, object_set, rendering)
    resolved = resolver.golden(source)
    return Translated((*resolved.objects, golden_volume(source, resolved.source, consumers, rendering)), resolver.losses())


@to_kubevirt.register
def _data_volume(source: DataVolume, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    resolver = Resolver(namespace_of(source), object_set, rendering)
    spec, name, objects = _resolved(source.spec, source.metadata.name, ("spec",), resolver)
    metadata = _said(source, in_namespace=bool(name))
    if name:
        metadata = msgspec.structs.replace(metadata, annotations={**(metadata.annotations or {}), DATA_SOURCE: name})
    made = msgspec.structs.replace(source, metadata=metadata, spec=spec, status=None)
    return Translated((*objects, made), resolver.losses())


def finder(object_set: ObjectSet) -> Find:
    """The DataSources of a world."""
    return lambda namespace, name: object_set.get(DataSource, namespace, name)


def _said(source: Resource, *, in_namespace: bool = False) -> ObjectMeta:
    """The metadata that a user writes; what servers write is left to them."""
    given = source.metadata
    return ObjectMeta(
        name=given.name,
        generateName=given.generateName,
        namespace=namespace_of(source) if in_namespace else given.namespace,
        labels=given.labels,
        annotations=given.annotations,
        ownerReferences=given.ownerReferences,
        finalizers=given.finalizers,
    )


def _waiting(annotations: dict[str, str] | None) -> dict[str, str]:
    """DataVolumes are made when the machine is started, unless the user says otherwise."""
    return {**(annotations or {}), IMMEDIATE: (annotations or {}).get(IMMEDIATE, "false")}


def _templates(
    templates: list[DataVolumeTemplate] | None, path: Path, resolver: Resolver
) -> tuple[list[DataVolumeTemplate] | None, tuple[Resource, ...]]:
    """The DataVolumes of a machine with their sources resolved, and the objects that these need."""
    if templates is None:
        return None, ()
    made, objects = [], dict[str, Resource]()
    for index, template in enumerate(templates):
        metadata = template.metadata or TemplateMeta()
        spec, name, needed = _resolved(template.spec, metadata.name or "", (*path, index, "spec"), resolver)
        if name:
            metadata = msgspec.structs.replace(metadata, annotations={**(metadata.annotations or {}), DATA_SOURCE: name})
            template = msgspec.structs.replace(template, metadata=metadata)
        made.append(msgspec.structs.replace(template, spec=spec))
        objects.update((each.metadata.name, each) for each in needed)
    return made, tuple(objects.values())


def _resolved(spec: DataVolumeSpec, name: str, path: Path, resolver: Resolver) -> tuple[DataVolumeSpec, str, tuple[Resource, ...]]:
    """A spec that CDI takes, the DataSource it was resolved from, and the objects that it needs."""
    spec = with_class(spec)
    if spec.sourceRef is not None:
        found = resolver.reference(spec.sourceRef, (*path, "sourceRef"))
        if found is None:
            return msgspec.structs.replace(spec, sourceRef=msgspec.structs.replace(spec.sourceRef, apiGroup=None)), "", ()
        return msgspec.structs.replace(spec, sourceRef=None, source=found.source), found.name, found.objects
    if spec.source is not None:
        inline = resolver.inline(spec.source, name, (*path, "source", "http", "certConfig"))
        if inline is not None:
            return msgspec.structs.replace(spec, source=inline.source), "", inline.objects
    return spec, "", ()
