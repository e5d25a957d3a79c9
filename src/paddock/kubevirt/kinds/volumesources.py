"""`cdi.kubevirt.io/v1beta1` VolumeImportSource, VolumeUploadSource and VolumeCloneSource.

A claim that names one of them as its `dataSourceRef` is filled without a DataVolume.
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.schema.field import Empty, Field, Freeform, Object
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Kind, Transition, Version, rule
from paddock.kubevirt.kinds.datavolume import (
    CONTENT_TYPES,
    Checkpoint,
    GcsSource,
    HttpSource,
    ImageioSource,
    RegistrySource,
    S3Source,
    VddkSource,
)
from paddock.kubevirt.kinds.references import reference_findings
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable
from paddock.kubevirt.rules.datavolume import source_rules

ContentType = Annotated[str | None, Field("What the source holds; default: kubevirt, a disk.", enum=CONTENT_TYPES)]
Preallocation = Annotated[bool | None, Field("Allocate the whole disk at once.")]


class ImportSource(Object):
    """The source of the content; exactly one member."""

    http: Annotated[HttpSource | None, Field("An image behind a URL.")] = None
    registry: Annotated[RegistrySource | None, Field("An image in an OCI registry.")] = None
    s3: Annotated[S3Source | None, Field("An image in an S3 bucket.")] = None
    gcs: Annotated[GcsSource | None, Field("An image in Google Cloud Storage.")] = None
    imageio: Annotated[ImageioSource | None, Field("A disk of oVirt.")] = None
    vddk: Annotated[VddkSource | None, Field("A disk of VMware.")] = None
    blank: Annotated[Empty | None, Field("An empty disk.")] = None


_ONE = " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in ImportSource.__struct_fields__)


class VolumeImportSourceSpec(Object):
    """The source of an import."""

    source: Annotated[ImportSource, Field("Where the content comes from.", required=True)] = ImportSource()
    contentType: ContentType = None
    preallocation: Preallocation = None
    targetClaim: Annotated[str | None, Field("The claim of an import in several stages.")] = None
    checkpoints: Annotated[list[Checkpoint] | None, Field("Stages of an import in several stages.")] = None
    finalCheckpoint: Annotated[bool | None, Field("Whether the last stage is the final one.")] = None


class VolumeImportSource(Resource):
    """Content for a claim: an image."""

    spec: Annotated[VolumeImportSourceSpec, Field("What is imported.", required=True)] = VolumeImportSourceSpec()
    status: Annotated[Freeform | None, Field("Nothing is observed.")] = None


class VolumeUploadSourceSpec(Object):
    """The content of an upload."""

    contentType: ContentType = None
    preallocation: Preallocation = None


class VolumeUploadSource(Resource):
    """Content for a claim, from an upload."""

    spec: Annotated[VolumeUploadSourceSpec, Field("What is uploaded.", required=True)] = VolumeUploadSourceSpec()
    status: Annotated[Freeform | None, Field("Nothing is observed.")] = None


class VolumeCloneSourceSpec(Object):
    """The source of a copy."""

    source: Annotated[TypedLocalReference, Field("The claim or snapshot to copy.", required=True)] = TypedLocalReference()
    preallocation: Preallocation = None
    priorityClassName: Annotated[str | None, Field("PriorityClass of the copy.")] = None


class VolumeCloneSource(Resource):
    """Content for a claim: a copy of another claim or a snapshot."""

    spec: Annotated[VolumeCloneSourceSpec, Field("What is copied.", required=True)] = VolumeCloneSourceSpec()


@rule("kubevirt/import-source", Cel("spec.source", f"{_ONE} == 1", "exactly one source must be set"))
def one_source_is_set(volume: VolumeImportSource, settings: AdmissionSettings) -> Iterator[Finding]:
    """Exactly one source is set."""
    source, path = volume.spec.source, ("spec", "source")
    given = [name for name in ImportSource.__struct_fields__ if getattr(source, name) is not None]
    if len(given) != 1:
        yield Finding(path=path, message="Invalid value: exactly one source must be set", rule="kubevirt/import-source")


def _source(volume: VolumeImportSource) -> Iterator[tuple[Path, ImportSource]]:
    yield ("spec", "source"), volume.spec.source


@rule("kubevirt/clone-volume-source")
def source_can_be_copied(volume: VolumeCloneSource, settings: AdmissionSettings) -> Iterator[Finding]:
    """A claim or a snapshot of one is copied."""
    allowed = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
    yield from reference_findings(volume.spec.source, ("spec", "source"), allowed, "kubevirt/clone-volume-source")


_SPEC_STAYS: tuple[Transition, ...] = (spec_is_immutable("kubevirt/volume-source-change"),)
_V1BETA1 = (Version("v1beta1"),)

KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="VolumeImportSource",
        plural="volumeimportsources",
        singular="volumeimportsource",
        cls=VolumeImportSource,
        dialect="kubevirt",
        versions=_V1BETA1,
        columns=(AGE,),
        status=False,
        rules=(one_source_is_set, *source_rules(_source)),
        transitions=_SPEC_STAYS,
    ),
    Kind(
        group="cdi.kubevirt.io",
        kind="VolumeUploadSource",
        plural="volumeuploadsources",
        singular="volumeuploadsource",
        cls=VolumeUploadSource,
        dialect="kubevirt",
        versions=_V1BETA1,
        columns=(AGE,),
        status=False,
        transitions=_SPEC_STAYS,
    ),
    Kind(
        group="cdi.kubevirt.io",
        kind="VolumeCloneSource",
        plural="volumeclonesources",
        singular="volumeclonesource",
        cls=VolumeCloneSource,
        dialect="kubevirt",
        versions=_V1BETA1,
        columns=(AGE,),
        status=False,
        rules=(source_can_be_copied,),
        transitions=_SPEC_STAYS,
    ),
)
