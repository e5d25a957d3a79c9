"""`snapshot.kubevirt.io/v1beta1` VirtualMachineSnapshot and VirtualMachineSnapshotContent (docs/spec/kubevirt.md 7.1)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Freeform, Object, Quantity, Time
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Column, Kind, Version, rule, transition
from paddock.kubevirt.kinds.references import MACHINE, reference_findings
from paddock.kubevirt.kinds.unchangeable import differ, spec_is_immutable

VERSIONS = (Version("v1alpha1", storage=False), Version("v1beta1"))
_EXTERNAL = "overlays are kept beside the disk and need no volume of their own"


class SnapshotSpec(Object):
    """The machine to snapshot."""

    source: Annotated[TypedLocalReference, Field("The machine.", required=True)] = TypedLocalReference()
    deletionPolicy: Annotated[
        str | None,
        Field("What becomes of the content when the snapshot is deleted; default: Delete.", enum=("Delete", "Retain")),
    ] = None
    failureDeadline: Annotated[str | None, Field("When taking it is given up; default: 5m.", format="duration")] = None
    snapshotMode: Annotated[
        str | None,
        Field("How writes are held off meanwhile; default: Direct.", enum=("Direct", "External"), not_honoured=_EXTERNAL),
    ] = None
    overlayScratchSize: Annotated[
        Quantity | None, Field("Room for overlays with mode External.", positive=True, not_honoured=_EXTERNAL)
    ] = None


class SnapshotError(Object):
    """The last thing that went wrong."""

    time: Annotated[Time | None, Field("When.")] = None
    message: Annotated[str | None, Field("What.")] = None


class SourceIndication(Object):
    """A circumstance the snapshot was taken in."""

    indication: Annotated[
        str,
        Field("Online, Memory, GuestAgent, NoGuestAgent, QuiesceFailed, QuiesceTimeout, Paused or PartialSnapshot.", required=True),
    ] = ""
    message: Annotated[str, Field("What it means.", required=True)] = ""


class SnapshotVolumes(Object):
    """The volumes in the snapshot."""

    includedVolumes: Annotated[list[str] | None, Field("Volumes that are in it.")] = None
    excludedVolumes: Annotated[list[str] | None, Field("Volumes that are not.")] = None


class SnapshotStatus(Object):
    """The progress of the snapshot."""

    sourceUID: Annotated[str | None, Field("UID of the machine.")] = None
    virtualMachineSnapshotContentName: Annotated[str | None, Field("The object that holds the content.")] = None
    creationTime: Annotated[Time | None, Field("The moment it shows.", nullable=True)] = None
    phase: Annotated[str | None, Field("InProgress, Succeeded, Failed, Deleting or Unknown.")] = None
    readyToUse: Annotated[bool | None, Field("Whether it can be restored.")] = None
    error: Annotated[SnapshotError | None, Field("The last thing that went wrong.")] = None
    conditions: Annotated[list[Condition] | None, Field("Ready, Progressing, Failure.", keys=("type",))] = None
    indications: Annotated[list[str] | None, Field("Circumstances, in the older form.")] = None
    sourceIndications: Annotated[list[SourceIndication] | None, Field("Circumstances it was taken in.")] = None
    snapshotVolumes: Annotated[SnapshotVolumes | None, Field("Which volumes are in it.")] = None


class VirtualMachineSnapshot(Resource):
    """A request to keep a machine and its disks as they are at one moment."""

    spec: Annotated[SnapshotSpec, Field("What is snapshotted.", required=True)] = SnapshotSpec()
    status: Annotated[SnapshotStatus | None, Field("How far it has come.")] = None


class SnapshotSource(Object):
    """The state that the snapshot shows."""

    virtualMachine: Annotated[Freeform | None, Field("Metadata, spec and status of the machine at that moment.")] = None


class VolumeBackup(Object):
    """One volume of the snapshot."""

    volumeName: Annotated[str, Field("Name of the volume.", required=True)] = ""
    persistentVolumeClaim: Annotated[Freeform, Field("Metadata and spec of its claim at that moment.", required=True)] = {}
    volumeSnapshotName: Annotated[str | None, Field("The snapshot of the volume.")] = None


class SnapshotContentSpec(Object):
    """The machine and its volumes at one moment."""

    virtualMachineSnapshotName: Annotated[str | None, Field("The snapshot this belongs to.")] = None
    source: Annotated[SnapshotSource, Field("The machine.", required=True)] = SnapshotSource()
    volumeBackups: Annotated[list[VolumeBackup] | None, Field("The volumes.")] = None


class SnapshotVolumeStatus(Object):
    """The progress of a volume's snapshot."""

    volumeSnapshotName: Annotated[str, Field("Its name.", required=True)] = ""
    creationTime: Annotated[Time | None, Field("The moment it shows.", nullable=True)] = None
    readyToUse: Annotated[bool | None, Field("Whether it can be restored.")] = None
    error: Annotated[SnapshotError | None, Field("The last thing that went wrong.")] = None


class SnapshotContentStatus(Object):
    """The progress of the content."""

    creationTime: Annotated[Time | None, Field("The moment it shows.", nullable=True)] = None
    readyToUse: Annotated[bool | None, Field("Whether it can be restored.")] = None
    error: Annotated[SnapshotError | None, Field("The last thing that went wrong.")] = None
    volumeSnapshotStatus: Annotated[list[SnapshotVolumeStatus] | None, Field("The volumes.")] = None
    snapshotMode: Annotated[str | None, Field("How writes were held off.")] = None


class VirtualMachineSnapshotContent(Resource):
    """The content of a snapshot. Written by Paddock, read by a restore."""

    spec: Annotated[SnapshotContentSpec, Field("The machine and its volumes.", required=True)] = SnapshotContentSpec()
    status: Annotated[SnapshotContentStatus | None, Field("How far it has come.")] = None


@rule(
    "kubevirt/snapshot-source",
    Cel("spec.source", "self.kind == 'VirtualMachine'", "must be a VirtualMachine", ".kind", "FieldValueNotSupported"),
    Cel("spec.source", "has(self.apiGroup) && self.apiGroup == 'kubevirt.io'", "must be kubevirt.io", ".apiGroup"),
)
def source_is_a_machine(snapshot: VirtualMachineSnapshot, settings: AdmissionSettings) -> Iterator[Finding]:
    """A snapshot is taken of a `VirtualMachine` of the group `kubevirt.io`."""
    yield from reference_findings(snapshot.spec.source, ("spec", "source"), (MACHINE,), "kubevirt/snapshot-source")


@rule(
    "kubevirt/snapshot-scratch",
    Cel(
        "spec",
        "!has(self.overlayScratchSize) || (has(self.snapshotMode) && self.snapshotMode == 'External')",
        "only with snapshotMode External",
        ".overlayScratchSize",
        "FieldValueForbidden",
    ),
)
def scratch_is_for_external(snapshot: VirtualMachineSnapshot, settings: AdmissionSettings) -> Iterator[Finding]:
    """Room for overlays is for the mode External only."""
    if snapshot.spec.overlayScratchSize is not None and snapshot.spec.snapshotMode != "External":
        yield finding.forbidden(("spec", "overlayScratchSize"), "only with snapshotMode External", "kubevirt/snapshot-scratch")


@transition("kubevirt/content-change", Cel("spec.source", "self == oldSelf", "field is immutable"))
def content_stays(old: VirtualMachineSnapshotContent, new: VirtualMachineSnapshotContent, settings: AdmissionSettings) -> Iterator[Finding]:
    """The state in a snapshot is immutable; its volumes are filled in while it is taken."""
    if differ(old.spec.source, new.spec.source):
        yield Finding(path=("spec", "source"), message="Invalid value: field is immutable", rule="kubevirt/content-change")


KINDS = (
    Kind(
        group="snapshot.kubevirt.io",
        kind="VirtualMachineSnapshot",
        plural="virtualmachinesnapshots",
        singular="virtualmachinesnapshot",
        short_names=("vmsnapshot", "vmsnapshots"),
        categories=("all",),
        cls=VirtualMachineSnapshot,
        dialect="kubevirt",
        versions=VERSIONS,
        columns=(
            Column("SourceKind", ".spec.source.kind"),
            Column("SourceName", ".spec.source.name"),
            Column("Phase", ".status.phase"),
            Column("ReadyToUse", ".status.readyToUse", "boolean"),
            Column("CreationTime", ".status.creationTime", "date"),
            Column("Error", ".status.error.message"),
        ),
        rules=(source_is_a_machine, scratch_is_for_external),
        transitions=(spec_is_immutable("kubevirt/snapshot-change"),),
    ),
    Kind(
        group="snapshot.kubevirt.io",
        kind="VirtualMachineSnapshotContent",
        plural="virtualmachinesnapshotcontents",
        singular="virtualmachinesnapshotcontent",
        short_names=("vmsnapshotcontent", "vmsnapshotcontents"),
        categories=("all",),
        cls=VirtualMachineSnapshotContent,
        dialect="kubevirt",
        versions=VERSIONS,
        columns=(
            Column("ReadyToUse", ".status.readyToUse", "boolean"),
            Column("CreationTime", ".status.creationTime", "date"),
            Column("Error", ".status.error.message"),
        ),
        transitions=(content_stays,),
    ),
)
