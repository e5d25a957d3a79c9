"""`backup.kubevirt.io/v1alpha1` VirtualMachineBackup and VirtualMachineBackupTracker (docs/spec/kubevirt.md 7.6)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.references import BACKUP, MACHINE, GroupKind, reference_findings
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable

TRACKER: GroupKind = (BACKUP, "VirtualMachineBackupTracker")
_IMMUTABLE = "spec is immutable after creation"
_PULL_ALONE = "it is about mode Pull"


class BackupVolume(Object):
    """A volume of a backup."""

    volumeName: Annotated[str, Field("Name of the volume.", required=True)] = ""
    diskTarget: Annotated[str | None, Field("Device of the disk when the backup was taken.")] = None
    dataEndpoint: Annotated[str | None, Field("Where its data is read, in mode Pull.")] = None
    mapEndpoint: Annotated[str | None, Field("Where the map of its data is read, in mode Pull.")] = None


class BackupCheckpoint(Object):
    """The moment of a backup, since which changes are followed."""

    name: Annotated[str | None, Field("Name of the checkpoint.")] = None
    creationTime: Annotated[Time | None, Field("When the backup was asked for.")] = None
    volumes: Annotated[list[BackupVolume] | None, Field("Volumes that it has.")] = None


class BackupSpec(Object):
    """The machine, and where its backup goes."""

    source: Annotated[
        TypedLocalReference, Field("A machine, or a tracker, with which the next backup has only what changed.", required=True)
    ] = TypedLocalReference()
    mode: Annotated[str | None, Field("How the backup leaves; default: Push, into a claim.", enum=("Push", "Pull"))] = None
    pvcName: Annotated[
        str | None, Field("The claim that the backup is written into; required.", format="dns1123-subdomain", max_length=253)
    ] = None
    skipQuiesce: Annotated[bool | None, Field("Leave the guest's file systems as they are.")] = None
    forceFullBackup: Annotated[bool | None, Field("Take all of it, also if only changes are needed.")] = None
    tokenSecretRef: Annotated[
        str | None,
        Field("Secret that opens the download in mode Pull.", format="dns1123-subdomain", max_length=253, not_honoured=_PULL_ALONE),
    ] = None
    ttlDuration: Annotated[
        str | None, Field("When a backup in mode Pull counts as complete.", format="duration", not_honoured=_PULL_ALONE)
    ] = None


class BackupStatus(Object):
    """The progress of a backup."""

    type: Annotated[str | None, Field("Full or Incremental.")] = None
    conditions: Annotated[list[Condition] | None, Field("Progressing, Complete, Failed, Quiesced.", keys=("type",))] = None
    checkpointName: Annotated[str | None, Field("The checkpoint that begins with this backup.")] = None
    endpointCert: Annotated[str | None, Field("Certificates of the download in mode Pull, PEM.")] = None
    includedVolumes: Annotated[list[BackupVolume] | None, Field("Volumes that are in it.")] = None
    exportUID: Annotated[str | None, Field("UID of the export in mode Pull.")] = None


class VirtualMachineBackup(Resource):
    """A request to copy the disks of a running machine into a claim."""

    spec: Annotated[BackupSpec, Field("What is backed up to where.", required=True)] = BackupSpec()
    status: Annotated[BackupStatus | None, Field("How far it has come.")] = None


class TrackerSpec(Object):
    """The machine whose backups belong together."""

    source: Annotated[TypedLocalReference, Field("The machine.", required=True)] = TypedLocalReference()


class TrackerStatus(Object):
    """The last backup of a chain."""

    latestCheckpoint: Annotated[BackupCheckpoint | None, Field("The checkpoint of the last backup.")] = None
    checkpointRedefinitionRequired: Annotated[bool | None, Field("Whether the checkpoint has to be found again after a restart.")] = None


class VirtualMachineBackupTracker(Resource):
    """A chain of backups: each after the first has what changed since the one before."""

    spec: Annotated[TrackerSpec, Field("The machine.", required=True)] = TrackerSpec()
    status: Annotated[TrackerStatus | None, Field("Where the chain is.")] = None


@rule(
    "kubevirt/backup-source",
    Cel("spec.source", "has(self.apiGroup)", "apiGroup is required"),
    Cel(
        "spec.source",
        "!has(self.apiGroup) || self.apiGroup == 'kubevirt.io' || self.apiGroup == 'backup.kubevirt.io'",
        "apiGroup must be kubevirt.io or backup.kubevirt.io",
    ),
    Cel(
        "spec.source",
        "!has(self.apiGroup) || (self.apiGroup == 'kubevirt.io' && self.kind == 'VirtualMachine') || "
        "(self.apiGroup == 'backup.kubevirt.io' && self.kind == 'VirtualMachineBackupTracker')",
        "kind must be VirtualMachine for kubevirt.io or VirtualMachineBackupTracker for backup.kubevirt.io",
    ),
)
def source_can_be_backed_up(backup: VirtualMachineBackup, settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine or a tracker is backed up, and the reference says its group."""
    yield from reference_findings(backup.spec.source, ("spec", "source"), (MACHINE, TRACKER), "kubevirt/backup-source")


@rule("kubevirt/backup-target", Cel("spec", 'has(self.pvcName) && self.pvcName != ""', "pvcName is required"))
def target_is_named(backup: VirtualMachineBackup, settings: AdmissionSettings) -> Iterator[Finding]:
    """A backup names the claim that it is written into."""
    if not backup.spec.pvcName:
        yield finding.required(("spec", "pvcName"), "kubevirt/backup-target", "a claim with a file system that holds no disk")


@rule(
    "kubevirt/backup-token",
    Cel(
        "spec",
        "!has(self.mode) || self.mode != 'Pull' || (has(self.tokenSecretRef) && self.tokenSecretRef != \"\")",
        "tokenSecretRef is required when mode is Pull",
    ),
    given=("spec.mode",),
)
def pull_has_a_token(backup: VirtualMachineBackup, settings: AdmissionSettings) -> Iterator[Finding]:
    """A backup in mode Pull names the Secret that opens its download."""
    if backup.spec.mode == "Pull" and not backup.spec.tokenSecretRef:
        yield finding.required(("spec", "tokenSecretRef"), "kubevirt/backup-token", "required when mode is Pull")


@rule(
    "kubevirt/tracker-source",
    Cel("spec.source", "has(self.apiGroup) && self.apiGroup == 'kubevirt.io'", "apiGroup must be kubevirt.io"),
    Cel("spec.source", "self.kind == 'VirtualMachine'", "kind must be VirtualMachine"),
)
def tracker_follows_a_machine(tracker: VirtualMachineBackupTracker, settings: AdmissionSettings) -> Iterator[Finding]:
    """A tracker follows a `VirtualMachine` of the group `kubevirt.io`."""
    yield from reference_findings(tracker.spec.source, ("spec", "source"), (MACHINE,), "kubevirt/tracker-source")


KINDS = (
    Kind(
        group=BACKUP,
        kind="VirtualMachineBackup",
        plural="virtualmachinebackups",
        singular="virtualmachinebackup",
        short_names=("vmbackup", "vmbackups"),
        categories=("all",),
        cls=VirtualMachineBackup,
        dialect="kubevirt",
        versions=(Version("v1alpha1"),),
        columns=(
            Column("SourceKind", ".spec.source.kind"),
            Column("SourceName", ".spec.source.name"),
            Column("Type", ".status.type"),
            Column("CheckpointName", ".status.checkpointName"),
        ),
        rules=(source_can_be_backed_up, target_is_named, pull_has_a_token),
        transitions=(spec_is_immutable("kubevirt/backup-change", _IMMUTABLE),),
    ),
    Kind(
        group=BACKUP,
        kind="VirtualMachineBackupTracker",
        plural="virtualmachinebackuptrackers",
        singular="virtualmachinebackuptracker",
        short_names=("vmbackuptracker", "vmbackuptrackers"),
        categories=("all",),
        cls=VirtualMachineBackupTracker,
        dialect="kubevirt",
        versions=(Version("v1alpha1"),),
        columns=(
            Column("SourceKind", ".spec.source.kind"),
            Column("SourceName", ".spec.source.name"),
            Column("LatestCheckpoint", ".status.latestCheckpoint.name"),
            Column("CheckpointTime", ".status.latestCheckpoint.creationTime", "date"),
        ),
        rules=(tracker_follows_a_machine,),
        transitions=(spec_is_immutable("kubevirt/tracker-change", _IMMUTABLE),),
    ),
)
