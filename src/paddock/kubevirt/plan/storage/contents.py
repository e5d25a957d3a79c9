"""The content of a claim, and its origin (docs/spec/kubevirt.md 5.3 and 5.5). Pure.

The object that a claim's `dataSourceRef` names comes first, then its DataVolume, then the annotations of old. A claim with none of them
gets an empty disk.
"""

from collections.abc import Callable

import msgspec

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.storage import StorageSpec, TypedReference
from paddock.kubernetes.schema.field import Object
from paddock.kubevirt.kinds.datasource import DataSource, DataSourceSource, source_type
from paddock.kubevirt.kinds.datavolume import DATA_SOURCES, DataVolumeSpec, HttpSource, RegistrySource, S3Source
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import golden_name, is_cached, needs_secret
from paddock.kubevirt.kinds.volumesources import VolumeCloneSource, VolumeImportSource, VolumeUploadSource

CDI = "cdi.kubevirt.io"
SNAPSHOTS = "snapshot.storage.k8s.io"
# Of a claim that a DataVolume made: the name of the DataVolume.
POPULATED_FOR = f"{CDI}/storage.populatedFor"
# Of a DataVolume whose claim somebody else makes and fills.
PREPOPULATED = f"{CDI}/storage.prePopulated"
IMPORT_ENDPOINT = f"{CDI}/storage.import.endpoint"
UPLOAD_TARGET = f"{CDI}/storage.upload.target"
CONTENT_TYPE = f"{CDI}/storage.contentType"
# The reason of a reference that leads to another namespace.
CROSS_NAMESPACE = "CrossNamespaceReference"
_IMPORT = f"{CDI}/storage.import"
_IMPORTS = ("http", "registry", "s3", "gcs", "imageio", "vddk")


class VolumeContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a volume. `kind` is a member of DataVolumeSource."""

    kind: str
    # of an import: the member itself
    source: Object | None = None
    # of an import from an address: where its Secrets and ConfigMaps are, when that is not where the claim is
    home: str = ""
    # of a copy: where what is copied is
    namespace: str = ""
    name: str = ""
    archive: bool = False
    preallocate: bool = False
    # the DataVolume whose maker must be allowed to copy from another namespace; None: nobody asked in his own name
    asker: DataVolume | None = None


class UnclearContent(msgspec.Struct, frozen=True):
    """It is not known yet what goes into a volume, or nothing can. `foreign`: it is somebody else's matter."""

    reason: str
    message: str
    foreign: bool = False


class Lookup(msgspec.Struct, frozen=True):
    """Objects by namespace and name; None: not there."""

    data_volume: Callable[[str, str], DataVolume | None]
    data_source: Callable[[str, str], DataSource | None]
    import_source: Callable[[str, str], VolumeImportSource | None]
    upload_source: Callable[[str, str], VolumeUploadSource | None]
    clone_source: Callable[[str, str], VolumeCloneSource | None]


BLANK = VolumeContent(kind="blank")


def of_claim(claim: PersistentVolumeClaim, lookup: Lookup) -> VolumeContent | UnclearContent:
    """Return the content of a claim."""
    namespace, notes = claim.metadata.namespace or "", claim.metadata.annotations or {}
    if (reference := _reference(claim.spec)) is not None:
        # Also where a DataVolume has it by now: a claim that was restored has the data of its snapshot, and not of that one's source.
        return _referred(claim, reference, lookup)
    for owner in claim.metadata.ownerReferences or ():
        if owner.kind == "DataVolume" and owner.apiVersion.startswith(f"{CDI}/"):
            volume = lookup.data_volume(namespace, owner.name)
            if volume is not None and volume.metadata.uid == owner.uid:
                return of_data_volume(volume, lookup)
    if POPULATED_FOR in notes:
        text = f"DataVolume {notes[POPULATED_FOR]}, which says what goes into this claim, is gone"
        return UnclearContent("NotFound", f"{text}; delete the claim, or take the annotation {POPULATED_FOR} off for an empty disk")
    if IMPORT_ENDPOINT in notes:
        return _annotated(notes)
    if UPLOAD_TARGET in notes:
        return VolumeContent(kind="upload", archive=notes.get(CONTENT_TYPE) == "archive")
    return BLANK


def has_reference(spec: DataVolumeSpec) -> bool:
    """Return whether the claim of a DataVolume names its own source."""
    return _reference(spec.pvc or spec.storage) is not None


def _reference(spec: StorageSpec | None) -> TypedReference | None:
    if spec is None:
        return None
    if spec.dataSourceRef is not None:
        return spec.dataSourceRef
    local = spec.dataSource
    return TypedReference(apiGroup=local.apiGroup, kind=local.kind, name=local.name) if local is not None else None


def of_data_volume(volume: DataVolume, lookup: Lookup) -> VolumeContent | UnclearContent:
    """Return the content of a DataVolume."""
    spec, namespace = volume.spec, volume.metadata.namespace or ""
    found: VolumeContent | UnclearContent
    if spec.source is not None:
        kind = next((name for name in DATA_SOURCES if getattr(spec.source, name) is not None), "")
        found = _of_member(kind, getattr(spec.source, kind) if kind else None, namespace)
    elif spec.sourceRef is not None:
        found = of_data_source(spec.sourceRef.namespace or namespace, spec.sourceRef.name, lookup, asked_in=namespace)
    else:
        return UnclearContent("External", "the claim names what fills it", foreign=True)
    if isinstance(found, UnclearContent):
        return found
    archive, preallocate = spec.contentType == "archive", bool(spec.preallocation)
    return msgspec.structs.replace(found, archive=archive, preallocate=preallocate, asker=volume)


def of_data_source(namespace: str, name: str, lookup: Lookup, *, asked_in: str) -> VolumeContent | UnclearContent:
    """Return the content of a DataSource; another DataSource is followed once. One that needs a Secret is for its own namespace only."""
    found = lookup.data_source(namespace, name)
    if found is None:
        return UnclearContent("NotFound", f"DataSource {namespace}/{name} is not there")
    source = resolved(found, lookup)
    if isinstance(source, UnclearContent):
        return source
    if asked_in != namespace and needs_secret(source):
        return UnclearContent("CrossNamespaceSecret", f"DataSource {namespace}/{name} needs a Secret and is for its own namespace only")
    kind = source_type(source)
    if asked_in == namespace and kind in _IMPORTS and found.spec.source.dataSource is None and is_cached(found):
        return VolumeContent(kind="pvc", namespace=namespace, name=golden_name(found))
    content = _of_member(kind, getattr(source, kind), namespace)
    return content if isinstance(content, UnclearContent) else msgspec.structs.replace(content, home=namespace)


def resolved(source: DataSource, lookup: Lookup) -> DataSourceSource | UnclearContent:
    """The source that a DataSource stands for, which is no DataSource."""
    namespace = source.metadata.namespace or ""
    given, kind = source.spec.source, source_type(source.spec.source)
    if not kind:
        return UnclearContent("NoSource", "No source PVC set")
    other = given.dataSource
    if other is None:
        return given
    if other.namespace and other.namespace != namespace:
        why = f"DataSource {source.metadata.name} names DataSource {other.namespace}/{other.name}, which is in another namespace"
        return UnclearContent(CROSS_NAMESPACE, f"{why}; name one in {namespace}")
    if other.name == source.metadata.name:
        return UnclearContent("SelfReference", "the DataSource names itself")
    followed = lookup.data_source(namespace, other.name)
    if followed is None:
        return UnclearContent("NotFound", f"DataSource {namespace}/{other.name} is not there")
    if not source_type(followed.spec.source):
        return UnclearContent("NoSource", f"DataSource {namespace}/{other.name} has no source")
    if followed.spec.source.dataSource is not None:
        return UnclearContent("MaxReferenceDepthReached", f"DataSource {namespace}/{other.name} names yet another DataSource")
    return followed.spec.source


def _of_member(kind: str, source: Object | None, namespace: str) -> VolumeContent | UnclearContent:
    if kind in _IMPORTS:
        return VolumeContent(kind=kind, source=source)
    if kind in ("pvc", "snapshot"):
        return VolumeContent(
            kind=kind, source=source, namespace=getattr(source, "namespace", "") or namespace, name=str(getattr(source, "name", ""))
        )
    if kind in ("upload", "blank"):
        return VolumeContent(kind=kind)
    return UnclearContent("NoSource", "no source is given")


def _referred(claim: PersistentVolumeClaim, reference: TypedReference, lookup: Lookup) -> VolumeContent | UnclearContent:
    """Return the content of the object in a claim's `dataSourceRef`."""
    namespace = reference.namespace or claim.metadata.namespace or ""
    place = f"{reference.kind} {namespace}/{reference.name}"
    if namespace != claim.metadata.namespace:
        return UnclearContent(CROSS_NAMESPACE, f"{place} is in another namespace; name one in the namespace of the claim")
    known = (reference.apiGroup or "", reference.kind)
    if known == ("", "PersistentVolumeClaim"):
        return VolumeContent(kind="pvc", namespace=namespace, name=reference.name)
    if known == (SNAPSHOTS, "VolumeSnapshot"):
        return VolumeContent(kind="snapshot", namespace=namespace, name=reference.name)
    if known == (CDI, "VolumeImportSource"):
        return _imported(lookup.import_source(namespace, reference.name), place)
    if known == (CDI, "VolumeUploadSource"):
        upload = lookup.upload_source(namespace, reference.name)
        if upload is None:
            return UnclearContent("NotFound", f"{place} is not there")
        return VolumeContent(kind="upload", archive=upload.spec.contentType == "archive", preallocate=bool(upload.spec.preallocation))
    if known == (CDI, "VolumeCloneSource"):
        return _cloned(lookup.clone_source(namespace, reference.name), namespace, place)
    return UnclearContent("External", f"waiting for {place}, which nothing here knows, to be what fills the claim", foreign=True)


def _imported(volume_import_source: VolumeImportSource | None, place: str) -> VolumeContent | UnclearContent:
    if volume_import_source is None:
        return UnclearContent("NotFound", f"{place} is not there")
    source = volume_import_source.spec.source
    kind = next((name for name in source.__struct_fields__ if getattr(source, name) is not None), "")
    content = _of_member(kind, getattr(source, kind) if kind else None, volume_import_source.metadata.namespace or "")
    if isinstance(content, UnclearContent):
        return content
    return msgspec.structs.replace(
        content, archive=volume_import_source.spec.contentType == "archive", preallocate=bool(volume_import_source.spec.preallocation)
    )


def _cloned(volume_clone_source: VolumeCloneSource | None, namespace: str, place: str) -> VolumeContent | UnclearContent:
    if volume_clone_source is None:
        return UnclearContent("NotFound", f"{place} is not there")
    kind = "pvc" if volume_clone_source.spec.source.kind == "PersistentVolumeClaim" else "snapshot"
    return VolumeContent(
        kind=kind, namespace=namespace, name=volume_clone_source.spec.source.name, preallocate=bool(volume_clone_source.spec.preallocation)
    )


def _annotated(notes: dict[str, str]) -> VolumeContent | UnclearContent:
    """A claim that says by annotations what goes into it."""
    url, secret = notes[IMPORT_ENDPOINT], notes.get(f"{_IMPORT}.secretName") or None
    certificates = notes.get(f"{_IMPORT}.certConfigMap") or None
    archive, kind = notes.get(CONTENT_TYPE) == "archive", notes.get(f"{_IMPORT}.source", "http")
    source: Object
    if kind == "none":
        return BLANK
    if kind == "http":
        source = HttpSource(url=url, secretRef=secret, certConfigMap=certificates)
    elif kind == "registry":
        source = RegistrySource(url=url, secretRef=secret, certConfigMap=certificates)
    elif kind == "s3":
        source = S3Source(url=url, secretRef=secret, certConfigMap=certificates)
    else:
        return UnclearContent("NoSource", f"the annotation {_IMPORT}.source says {kind}; http, registry, s3 and none are known")
    return VolumeContent(kind=kind, source=source, archive=archive)
