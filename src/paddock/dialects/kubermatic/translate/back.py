"""KubeVirt's machines and pools as Kubermatic's: the identity, with resolved sources named again (docs/spec/kubermatic.md section 2).

A source that was taken from a DataSource goes back to one: the DataSource that the annotation names, or one of the world with the
same address. The result is translated forward again and compared, so that nothing is lost without a loss in the report.
"""

from collections.abc import Iterator

import msgspec

from paddock.base.errors import PaddockError
from paddock.dialects.kubermatic.translate.forward import ALIAS_VERSION, finder, to_kubevirt
from paddock.dialects.kubermatic.translate.sources import CA_KEY, Resolver
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.meta.objects import ObjectMeta, Resource, TemplateMeta
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.translated import LossCollector, Translated
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubevirt.kinds import poolform
from paddock.kubevirt.kinds.datasource import CDI_SOURCES, SOURCES, DataSource, DataSourceSource, DataSourceSpec
from paddock.kubevirt.kinds.datavolume import CDI_GROUP, CertConfig, DataVolumeSource, HttpSource, SourceReference
from paddock.kubevirt.kinds.extendedsources import DATA_SOURCE, IMMEDIATE, MANAGED_BY, is_extended
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine

# What a DataSource can say of a DataVolume's source.
_IMPORTS = tuple(name for name in SOURCES if name not in CDI_SOURCES)
# The rest is written by servers.
_SAID_OF_METADATA = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")


def from_kubevirt(vm: VirtualMachine | VirtualMachinePool, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """The machine or pool in Kubermatic's form, after the DataSources it refers to that are not there yet."""
    ledger = LossCollector(f"{vm.kind}/{vm.metadata.name}")
    reading = _Reading(namespace_of(vm), object_set, rendering)
    front = reading.pool(vm) if isinstance(vm, VirtualMachinePool) else reading.machine(vm)
    # Both are compared as a cluster gets them: what the way forward changes by itself is no loss of the way back.
    seen = reading.seen()
    before, after = (to_kubevirt(each, seen, rendering).value[-1] for each in (vm, front))
    for path, value in residue(before, after):
        ledger.lose(path, value, "Kubermatic's form does not say it", "the machine is made without it")
    return Translated((*reading.sources.values(), front), ledger.losses)


class _Reading:
    """One machine or pool being read, and the DataSources that it refers to in the end."""

    def __init__(self, namespace: str, object_set: ObjectSet, rendering: Rendering) -> None:
        self.namespace = namespace
        self.object_set = object_set
        self.rendering = rendering
        # by namespace and name
        self.sources: dict[tuple[str, str], DataSource] = {}

    def seen(self, *more: DataSource) -> ObjectSet:
        """The world with the DataSources that are made here."""
        return ObjectSet([*self.object_set.everything(), *self.sources.values(), *more])

    def machine(self, vm: VirtualMachine) -> VirtualMachine:
        templates = self._templates(vm.spec.dataVolumeTemplates)
        # The marks come back by themselves when the machine is translated forward, if it is in Kubermatic's form.
        marked = is_extended(templates, self.namespace, finder(self.seen()))
        metadata = _unmarked(vm.metadata, self.rendering) if marked else _said(vm.metadata)
        spec = msgspec.structs.replace(vm.spec, dataVolumeTemplates=templates)
        return msgspec.structs.replace(vm, metadata=metadata, spec=spec, status=None)

    def pool(self, vm: VirtualMachinePool) -> VirtualMachinePool:
        given = poolform.fold(vm).spec.virtualMachineTemplate
        around = given.metadata
        if around is not None:
            around = msgspec.structs.replace(around, annotations=_without(around.annotations, IMMEDIATE, "false"))
        machine = msgspec.structs.replace(given.spec, dataVolumeTemplates=self._templates(given.spec.dataVolumeTemplates))
        template = msgspec.structs.replace(given, metadata=around, spec=machine)
        spec = msgspec.structs.replace(vm.spec, virtualMachineTemplate=template)
        metadata = _unmarked(vm.metadata, self.rendering)
        return poolform.unfold(msgspec.structs.replace(vm, apiVersion=ALIAS_VERSION, metadata=metadata, spec=spec, status=None))

    def _templates(self, templates: list[DataVolumeTemplate] | None) -> list[DataVolumeTemplate] | None:
        return None if templates is None else [self._template(template) for template in templates]

    def _template(self, template: DataVolumeTemplate) -> DataVolumeTemplate:
        source = template.spec.source
        if source is None:
            return template
        metadata = template.metadata or TemplateMeta()
        annotated = (metadata.annotations or {}).get(DATA_SOURCE)
        for candidate in self._named(annotated, source) if annotated else self._own():
            if self._matches(candidate, source):
                return self._referring(template, metadata, candidate, annotated)
        return template

    def _referring(
        self, template: DataVolumeTemplate, metadata: TemplateMeta, source: DataSource, annotated: str | None
    ) -> DataVolumeTemplate:
        namespace, name = namespace_of(source), source.metadata.name
        self.sources[namespace, name] = source
        there = None if namespace == self.namespace else namespace
        reference = SourceReference(kind="DataSource", name=name, namespace=there, apiGroup=CDI_GROUP)
        spec = msgspec.structs.replace(template.spec, source=None, sourceRef=reference)
        annotations = _without(metadata.annotations, DATA_SOURCE, annotated)
        return msgspec.structs.replace(template, metadata=msgspec.structs.replace(metadata, annotations=annotations), spec=spec)

    def _matches(self, candidate: DataSource, source: DataVolumeSource) -> bool:
        """Return whether a reference to the candidate becomes exactly this source."""
        reference = SourceReference(kind="DataSource", name=candidate.metadata.name, namespace=namespace_of(candidate))
        try:
            resolved = Resolver(self.namespace, self.seen(candidate), self.rendering).reference(reference, ())
        except PaddockError:
            return False
        return resolved is not None and resolved.source == source

    def _named(self, annotated: str, source: DataVolumeSource) -> Iterator[DataSource]:
        """The DataSource that the annotation names: the one that is there, else one made of the source."""
        namespace, _, name = annotated.rpartition("/")
        namespace = namespace or self.namespace
        known = self.sources.get((namespace, name)) or self.object_set.get(DataSource, namespace, name)
        member = next((kind for kind in _IMPORTS if getattr(source, kind) is not None), None)
        if known is not None:
            yield known
        elif member is not None:
            value = getattr(source, member)
            if isinstance(value, HttpSource):
                value = self._with_authorities(value, name)
            yield DataSource(
                apiVersion="cdi.kubevirt.io/v1beta1",
                kind="DataSource",
                metadata=ObjectMeta(name=name, namespace=namespace),
                spec=DataSourceSpec(source=DataSourceSource(**{member: value})),
            )

    def _with_authorities(self, http: HttpSource, name: str) -> HttpSource:
        """The certificate authorities that were put beside the DataVolume, back in the DataSource."""
        if http.certConfigMap != f"{name}-ca":
            return http
        config_map = self.object_set.get(ConfigMap, self.namespace, http.certConfigMap)
        bundle = (config_map.data or {}).get(CA_KEY) if config_map is not None else None
        if not bundle:
            return http
        return msgspec.structs.replace(http, certConfigMap=None, certConfig=CertConfig(caBundle=bundle))

    def _own(self) -> Iterator[DataSource]:
        """The DataSources of the machine's own namespace: its author may not know those of others."""
        for found in self.object_set.all(DataSource):
            if namespace_of(found) == self.namespace:
                yield found


def _said(metadata: ObjectMeta) -> ObjectMeta:
    """The metadata without what servers write."""
    return ObjectMeta(**{name: getattr(metadata, name) for name in _SAID_OF_METADATA})


def _unmarked(metadata: ObjectMeta, rendering: Rendering) -> ObjectMeta:
    """The metadata without what the way forward adds again."""
    labels = _without(metadata.labels, MANAGED_BY, rendering.product)
    annotations = _without(metadata.annotations, IMMEDIATE, "false")
    return msgspec.structs.replace(_said(metadata), labels=labels, annotations=annotations)


def _without(members: dict[str, str] | None, key: str, value: str | None) -> dict[str, str] | None:
    """A map without one member, if it has that value; a map that becomes empty is none."""
    if members is None or key not in members or members[key] != value:
        return members
    return {name: member for name, member in members.items() if name != key} or None
