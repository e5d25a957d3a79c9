"""Sources of disks in Kubermatic's forms, for the engine and for a cluster alike (docs/spec/kubermatic.md 2.1 to 2.3).

The caller finds a DataSource by namespace and name: in a world of documents, or in a cache.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from paddock.kubernetes.meta.world import namespace_of
from paddock.kubevirt.kinds.datasource import CDI_SOURCES, DataSource, DataSourceSource, source_type
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec, HttpSource, SourceReference
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate

# Labels and annotations (docs/spec/kubermatic.md 2.1 to 2.3).
MANAGED_BY = "app.kubernetes.io/managed-by"
# On a DataVolume whose source was taken from a DataSource: <namespace>/<name> of that DataSource.
DATA_SOURCE = "virtualization.k8c.io/data-source"
# On a DataSource: import its image once, and copy it from then on.
CACHE = "virtualization.k8c.io/cache"
# On a machine: "false" lets its DataVolumes wait until the machine is started.
IMMEDIATE = "kubevirt.io/immediate-data-volume-creation"
# CDI's, on a DataVolume: do not wait for a machine that uses it.
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
# On a machine: whether its sources are known (docs/spec/kubermatic.md section 3).
RESOLVED = "DataSourceResolved"

Find = Callable[[str, str], DataSource | None]


def is_cached(source: DataSource) -> bool:
    """Return whether the image of a DataSource, which has an address, is imported once and copied from then on."""
    return (source.metadata.annotations or {}).get(CACHE) == "true"


def golden_name(source: DataSource) -> str:
    """The DataVolume that holds the one copy of a cached DataSource."""
    return f"{source.metadata.name}-golden"


def needs_secret(source: DataSourceSource) -> bool:
    """Return whether a source cannot be read without a Secret, so that it is for its own namespace only."""
    member: Any = getattr(source, source_type(source), None)
    config = getattr(member, "certConfig", None)
    return bool(
        getattr(member, "secretRef", None)
        or getattr(member, "secretExtraHeaders", None)
        or (config is not None and (config.secretRef or config.cert or config.key))
    )


def names_read(http: HttpSource | None) -> frozenset[str]:
    """The names of the Secrets and ConfigMaps that an http source reads."""
    if http is None:
        return frozenset()
    config = http.certConfig
    parts = (config.cert, config.key) if config is not None else ()
    named = [config.secretRef if config is not None else None, *(each.secretRef for each in parts if each is not None)]
    names = (http.secretRef, http.certConfigMap, *(http.secretExtraHeaders or ()), *(each.name for each in named if each is not None))
    return frozenset(name for name in names if name)


def references(templates: Iterable[DataVolumeTemplate] | None) -> Iterator[SourceReference]:
    """Yield the source references of a machine's DataVolumes."""
    for template in templates or ():
        if template.spec.sourceRef is not None:
            yield template.spec.sourceRef


def is_extended(templates: Iterable[DataVolumeTemplate] | None, namespace: str, find: Find) -> bool:
    """Return whether a machine uses Kubermatic's own forms: a group in a sourceRef, or a source that is an address."""
    return any(each.apiGroup or _is_import(each, namespace, find) for each in references(templates))


def is_address(source: DataSource, find: Find) -> bool:
    """Return whether CDI cannot hold a DataSource: it has an address, or names one that has."""
    to = source.spec.source.dataSource
    if to is not None and to.name != source.metadata.name:
        named = find(to.namespace or namespace_of(source), to.name)
        return named is not None and source_type(named.spec.source) not in CDI_SOURCES
    return source_type(source.spec.source) not in CDI_SOURCES


def _is_import(reference: SourceReference, namespace: str, find: Find) -> bool:
    if reference.kind == "Image":
        return True
    found = find(reference.namespace or namespace, reference.name)
    return found is not None and is_address(found, find)


def with_class(spec: DataVolumeSpec) -> DataVolumeSpec:
    """The class of a claim where CDI looks for it."""
    if spec.storageClassName is None:
        return spec
    name = "pvc" if spec.pvc is not None else "storage"
    claim = getattr(spec, name)
    if claim is None:
        return spec
    moved = msgspec.structs.replace(claim, storageClassName=spec.storageClassName)
    return msgspec.structs.replace(spec, storageClassName=None, **{name: moved})
