"""`snapshot.storage.k8s.io/v1` VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass: what a claim held at one moment."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Freeform, Object, Quantity, Time
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, rule, transition

GROUP = "snapshot.storage.k8s.io"
_POLICIES = ("Delete", "Retain")


class VolumeSnapshotSource(Object):
    """The source of a snapshot: a claim, or a content that exists."""

    persistentVolumeClaimName: Annotated[str | None, Field("The claim.")] = None
    volumeSnapshotContentName: Annotated[str | None, Field("A content that exists.")] = None


class VolumeSnapshotSpec(Object):
    """The source and the class of a snapshot."""

    source: Annotated[VolumeSnapshotSource, Field("What is kept.", required=True)] = VolumeSnapshotSource()
    volumeSnapshotClassName: Annotated[str | None, Field("The class; default: the default class.")] = None


class VolumeSnapshotError(Object):
    """The last thing that went wrong."""

    time: Annotated[Time | None, Field("When.")] = None
    message: Annotated[str | None, Field("What.")] = None


class VolumeSnapshotStatus(Object):
    """The progress of a snapshot."""

    boundVolumeSnapshotContentName: Annotated[str | None, Field("The content.")] = None
    creationTime: Annotated[Time | None, Field("The moment it shows.")] = None
    readyToUse: Annotated[bool | None, Field("Whether a claim can be filled from it.")] = None
    restoreSize: Annotated[Quantity | None, Field("The least size of a claim that is filled from it.")] = None
    error: Annotated[VolumeSnapshotError | None, Field("The last thing that went wrong.")] = None
    volumeGroupSnapshotName: Annotated[str | None, Field("The group it was made with.")] = None


class VolumeSnapshot(Resource):
    """A request to keep what a claim holds."""

    spec: Annotated[VolumeSnapshotSpec, Field("What is kept.", required=True)] = VolumeSnapshotSpec()
    status: Annotated[VolumeSnapshotStatus | None, Field("How far it has come.")] = None


class VolumeSnapshotContentSpec(Object):
    """The place of a snapshot's content."""

    deletionPolicy: Annotated[str, Field("What becomes of it when the snapshot is deleted.", required=True, enum=_POLICIES)] = "Delete"
    driver: Annotated[str, Field("Who keeps it.", required=True)] = ""
    source: Annotated[Freeform, Field("The volume, or the handle of a snapshot that exists.", required=True)] = {}
    sourceVolumeMode: Annotated[str | None, Field("Mode of the volume.")] = None
    volumeSnapshotClassName: Annotated[str | None, Field("The class.")] = None
    volumeSnapshotRef: Annotated[Freeform, Field("The snapshot it belongs to.", required=True)] = {}


class VolumeSnapshotContentStatus(Object):
    """The progress of the content."""

    creationTime: Annotated[int | None, Field("The moment it shows, in nanoseconds since the epoch.")] = None
    error: Annotated[VolumeSnapshotError | None, Field("The last thing that went wrong.")] = None
    readyToUse: Annotated[bool | None, Field("Whether it can be used.")] = None
    restoreSize: Annotated[int | None, Field("The least size in bytes of a volume made from it.", ge=0)] = None
    snapshotHandle: Annotated[str | None, Field("Its name where it is kept.")] = None
    volumeGroupSnapshotHandle: Annotated[str | None, Field("The group it was made with.")] = None


class VolumeSnapshotContent(Resource):
    """The content of a volume snapshot."""

    spec: Annotated[VolumeSnapshotContentSpec, Field("Where it is.", required=True)] = VolumeSnapshotContentSpec()
    status: Annotated[VolumeSnapshotContentStatus | None, Field("How far it has come.")] = None


class VolumeSnapshotClass(Resource):
    """The driver of volume snapshots, and the deletion policy of their content."""

    driver: Annotated[str, Field("Who keeps it.", required=True)] = ""
    parameters: Annotated[dict[str, str] | None, Field("Settings for the driver.")] = None
    deletionPolicy: Annotated[str, Field("What becomes of it when the snapshot is deleted.", required=True, enum=_POLICIES)] = "Delete"


@rule(
    "core/volume-snapshot-source",
    Cel(
        "spec.source",
        "has(self.persistentVolumeClaimName) != has(self.volumeSnapshotContentName)",
        "exactly one of persistentVolumeClaimName and volumeSnapshotContentName must be set",
    ),
)
def one_source(snapshot: VolumeSnapshot, settings: AdmissionSettings) -> Iterator[Finding]:
    """A snapshot is of a claim, or of a content that exists."""
    source = snapshot.spec.source
    if (source.persistentVolumeClaimName is None) == (source.volumeSnapshotContentName is None):
        what = "exactly one of persistentVolumeClaimName and volumeSnapshotContentName must be set"
        yield finding.invalid(("spec", "source"), "", what, "core/volume-snapshot-source")


@transition("core/volume-snapshot-change", Cel("spec.source", "self == oldSelf", "field is immutable"))
def source_stays(old: VolumeSnapshot, new: VolumeSnapshot, settings: AdmissionSettings) -> Iterator[Finding]:
    """The source of a snapshot is immutable."""
    if old.spec.source != new.spec.source:
        yield Finding(path=("spec", "source"), message="Invalid value: field is immutable", rule="core/volume-snapshot-change")


KINDS = (
    Kind(
        group=GROUP,
        kind="VolumeSnapshot",
        plural="volumesnapshots",
        singular="volumesnapshot",
        short_names=("vs",),
        cls=VolumeSnapshot,
        dialect="core",
        columns=(
            Column("ReadyToUse", ".status.readyToUse", "boolean"),
            Column("SourcePVC", ".spec.source.persistentVolumeClaimName"),
            Column("SourceSnapshotContent", ".spec.source.volumeSnapshotContentName"),
            Column("RestoreSize", ".status.restoreSize"),
            Column("SnapshotClass", ".spec.volumeSnapshotClassName"),
            Column("SnapshotContent", ".status.boundVolumeSnapshotContentName"),
            Column("CreationTime", ".status.creationTime", "date"),
            AGE,
        ),
        rules=(one_source,),
        transitions=(source_stays,),
    ),
    Kind(
        group=GROUP,
        kind="VolumeSnapshotContent",
        plural="volumesnapshotcontents",
        singular="volumesnapshotcontent",
        short_names=("vsc", "vscs"),
        namespaced=False,
        cls=VolumeSnapshotContent,
        dialect="core",
        columns=(
            Column("ReadyToUse", ".status.readyToUse", "boolean"),
            Column("RestoreSize", ".status.restoreSize", "integer"),
            Column("DeletionPolicy", ".spec.deletionPolicy"),
            Column("Driver", ".spec.driver"),
            Column("VolumeSnapshotClass", ".spec.volumeSnapshotClassName"),
            Column("VolumeSnapshot", ".spec.volumeSnapshotRef.name"),
            AGE,
        ),
    ),
    Kind(
        group=GROUP,
        kind="VolumeSnapshotClass",
        plural="volumesnapshotclasses",
        singular="volumesnapshotclass",
        short_names=("vsclass", "vsclasses"),
        namespaced=False,
        cls=VolumeSnapshotClass,
        dialect="core",
        columns=(Column("Driver", ".driver"), Column("DeletionPolicy", ".deletionPolicy"), AGE),
        status=False,
    ),
)
