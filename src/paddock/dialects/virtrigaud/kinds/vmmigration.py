"""VirtRigaud's VMMigration (docs/spec/virtrigaud.md section 1.8)."""

from typing import Annotated

from paddock.contract.specs import NAME_MESSAGE, NAME_PATTERN, LocalObjectReference, Tags
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, VMNetworkRef
from paddock.dialects.virtrigaud.kinds.shared import GROUP, VERSIONS, Conditions, Environment, ObjectRef, ObservedGeneration
from paddock.dialects.virtrigaud.rules import vmmigration as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

PHASES = (
    "Pending",
    "Validating",
    "Snapshotting",
    "Exporting",
    "Transferring",
    "Converting",
    "Importing",
    "Creating",
    "Validating-Target",
    "Ready",
    "Failed",
)


class MachineMigrationSource(Object):
    """The machine that moves."""

    vmRef: Annotated[LocalObjectReference, Field("The VirtualMachine, in the same namespace.", required=True)] = LocalObjectReference()
    providerRef: Annotated[ObjectRef | None, Field("Its Provider; default: the one the machine names.")] = None
    snapshotRef: Annotated[LocalObjectReference | None, Field("A VMSnapshot to move instead of the present state.")] = None
    createSnapshot: Annotated[bool, Field("Whether a snapshot is taken and moved.")] = True
    powerOffBeforeMigration: Annotated[bool, Field("Whether the machine is powered off first.")] = False
    deleteAfterMigration: Annotated[bool, Field("Whether it is deleted once the new machine is good.")] = False


class MigrationTarget(Object):
    """The machine it becomes."""

    name: Annotated[str, Field("Name of the new machine.", required=True, pattern=NAME_PATTERN, max_length=253, message=NAME_MESSAGE)] = ""
    providerRef: Annotated[ObjectRef, Field("Its Provider.", required=True)] = ObjectRef()
    namespace: Annotated[
        str | None, Field("Its namespace; default: the migration's own.", pattern=NAME_PATTERN, max_length=63, message=NAME_MESSAGE)
    ] = None
    classRef: Annotated[LocalObjectReference | None, Field("Its VMClass.")] = None
    imageRef: Annotated[LocalObjectReference | None, Field("Its VMImage.")] = None
    networks: Annotated[list[VMNetworkRef] | None, Field("Its network cards.", max_items=10, keys=("name",))] = None
    disks: Annotated[list[DiskSpec] | None, Field("Its data disks.", max_items=20, keys=("name",))] = None
    placementRef: Annotated[LocalObjectReference | None, Field("The VMPlacementPolicy that decides where it is put.")] = None
    powerOn: Annotated[bool, Field("Whether it is started.")] = False
    labels: Annotated[dict[str, str] | None, Field("Its labels.", max_items=50, key_format="label-key")] = None
    annotations: Annotated[dict[str, str] | None, Field("Its annotations.", max_items=50, key_format="label-key")] = None


class MigrationRetryPolicy(Object):
    """The retries of a failed migration."""

    maxRetries: Annotated[int, Field("Most retries.", ge=0, le=10)] = 3
    retryDelay: Annotated[str, Field("Time before the first retry.", format="duration")] = "5m"
    backoffMultiplier: Annotated[int, Field("Each wait is this many times the one before.", ge=1, le=10)] = 2


class ValidationChecks(Object):
    """The checks to pass before the migration counts as done."""

    checkDiskSize: Annotated[bool, Field("The sizes of the disks.")] = True
    checkChecksum: Annotated[bool, Field("The checksums of the disks.")] = True
    checkBoot: Annotated[bool, Field("That the new machine starts.")] = False
    checkConnectivity: Annotated[bool, Field("That the new machine can be reached.")] = False


class MigrationOptions(Object):
    """The options of the migration."""

    diskFormat: Annotated[str | None, Field("Format of the disks on the way.", enum=("qcow2", "vmdk", "raw"))] = None
    compress: Annotated[bool, Field("Compress the disks on the way.")] = False
    verifyChecksums: Annotated[bool, Field("Compare checksums.")] = True
    timeout: Annotated[str, Field("How long all of it may take.", format="duration")] = "4h"
    retryPolicy: Annotated[MigrationRetryPolicy | None, Field("Retries; none without it.")] = None
    cleanupPolicy: Annotated[str, Field("When what was made on the way is removed.", enum=("Always", "OnSuccess", "Never"))] = "OnSuccess"
    validationChecks: Annotated[ValidationChecks | None, Field("What has to be good at the end.")] = None


class PVCStorage(Object):
    """A volume of the cluster that both providers mount."""

    name: Annotated[str | None, Field("Existing claim; default: one is made.")] = None
    storageClassName: Annotated[str | None, Field("StorageClass of a new claim.")] = None
    size: Annotated[
        str | None,
        Field(
            "Size of a new claim.",
            pattern=r"^[0-9]+(\.[0-9]+)?(Ei?|Pi?|Ti?|Gi?|Mi?|Ki?)$",
            message="must be a number with a unit, such as 100Gi",
        ),
    ] = None
    accessMode: Annotated[str, Field("Access mode of a new claim.", enum=("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"))] = (
        "ReadWriteMany"
    )
    mountPath: Annotated[str, Field("Where the providers mount it.")] = rules.DEFAULT_MOUNT


class NFSStorage(Object):
    """An NFS export that both providers reach."""

    server: Annotated[str, Field("Host name or address of the server.", required=True, min_length=1, max_length=253)] = ""
    export: Annotated[str, Field("Exported path.", required=True, min_length=1, max_length=4096)] = ""
    path: Annotated[str | None, Field("Directory below the export.", max_length=4096)] = None
    readOnly: Annotated[bool, Field("Mount it read-only.")] = False
    uid: Annotated[int | None, Field("User the files belong to.", ge=0, le=4294967295)] = None
    gid: Annotated[int | None, Field("Group the files belong to.", ge=0, le=4294967295)] = None


class S3Storage(Object):
    """A bucket that both providers reach."""

    bucket: Annotated[str, Field("Name of the bucket.", required=True, min_length=1)] = ""
    endpoint: Annotated[str | None, Field("Address of the service; default: that of the region.", max_length=263)] = None
    region: Annotated[str | None, Field("Region.")] = None
    prefix: Annotated[str | None, Field("Prefix of the objects.")] = None
    credentialsSecretRef: Annotated[
        ObjectRef, Field("Secret with accessKeyID, secretAccessKey and perhaps sessionToken.", required=True)
    ] = ObjectRef()
    usePathStyle: Annotated[bool, Field("Name the bucket in the path and not in the host.")] = False


class MigrationStorage(Object):
    """The storage between the two providers."""

    type: Annotated[str, Field("Kind of storage; the block of this name tells more.", enum=("pvc", "nfs", "s3"))] = "pvc"
    transferMode: Annotated[str, Field("Whether the providers' own hosts move the data.", enum=("auto", "relay", "direct"))] = "auto"
    pvc: Annotated[PVCStorage | None, Field("A volume of the cluster.")] = None
    nfs: Annotated[NFSStorage | None, Field("An NFS export.")] = None
    s3: Annotated[S3Storage | None, Field("A bucket.")] = None


class MigrationMetadata(Object):
    """Information about the migration for people and programs."""

    purpose: Annotated[
        str | None,
        Field("What it is for.", enum=("disaster-recovery", "cloud-migration", "provider-change", "testing", "maintenance")),
    ] = None
    createdBy: Annotated[str | None, Field("Who made it.", max_length=255)] = None
    project: Annotated[str | None, Field("Project it belongs to.", max_length=255)] = None
    environment: Environment = None
    tags: Tags = None


class VMMigrationSpec(Object):
    """The machine to migrate, its target, and the options."""

    source: Annotated[MachineMigrationSource, Field("The machine that moves.", required=True)] = MachineMigrationSource()
    target: Annotated[MigrationTarget, Field("The machine it becomes.", required=True)] = MigrationTarget()
    options: Annotated[MigrationOptions | None, Field("How it is moved.")] = None
    storage: Annotated[MigrationStorage | None, Field("What lies between the two providers.")] = None
    metadata: Annotated[MigrationMetadata | None, Field("About the migration.")] = None


class MigrationProgress(Object):
    """The progress of the migration."""

    currentPhase: Annotated[str | None, Field("Phase it is in.", enum=PHASES)] = None
    totalBytes: Annotated[int | None, Field("Bytes in all.")] = None
    transferredBytes: Annotated[int | None, Field("Bytes so far.")] = None
    percentage: Annotated[int | None, Field("Part that is done.", ge=0, le=100)] = None
    eta: Annotated[str | None, Field("Time still needed.", format="duration")] = None
    transferRate: Annotated[int | None, Field("Bytes in a second.")] = None
    phaseStartTime: Annotated[Time | None, Field("When the phase began.")] = None


class DiskInfo(Object):
    """The disk on both sides."""

    sourceDiskID: Annotated[str | None, Field("Identifier at the source.")] = None
    sourceFormat: Annotated[str | None, Field("Format at the source.")] = None
    sourceSize: Annotated[Quantity | None, Field("Size at the source.")] = None
    targetDiskID: Annotated[str | None, Field("Identifier at the target.")] = None
    targetFormat: Annotated[str | None, Field("Format at the target.")] = None
    targetPath: Annotated[str | None, Field("Where it lies at the target.")] = None
    targetSize: Annotated[Quantity | None, Field("Size at the target.")] = None
    checksum: Annotated[str | None, Field("SHA-256 on the way.")] = None
    sourceChecksum: Annotated[str | None, Field("SHA-256 at the source.")] = None
    targetChecksum: Annotated[str | None, Field("SHA-256 at the target.")] = None


class StorageInfo(Object):
    """The present storage between the two providers."""

    url: Annotated[str | None, Field("Where it is.")] = None
    size: Annotated[Quantity | None, Field("How large it is.")] = None
    uploadedAt: Annotated[Time | None, Field("When it was there.")] = None
    cleanedUp: Annotated[bool | None, Field("Whether it was removed.")] = None


class ValidationResults(Object):
    """The results of the checks at the end."""

    diskSizeMatch: Annotated[bool | None, Field("The sizes of the disks.")] = None
    checksumMatch: Annotated[bool | None, Field("The checksums of the disks.")] = None
    bootSuccess: Annotated[bool | None, Field("That the new machine starts.")] = None
    connectivitySuccess: Annotated[bool | None, Field("That it can be reached.")] = None
    validationErrors: Annotated[list[str] | None, Field("What was wrong.")] = None


class MigratedDisk(Object):
    """One disk on its way: what is recorded here is not done again after a restart."""

    name: Annotated[str, Field("Name of the disk; root is the one that the machine boots from.", required=True)] = ""
    sourceDiskID: Annotated[str | None, Field("Identifier at the source.")] = None
    sizeBytes: Annotated[int | None, Field("Size that a guest sees, at the source.")] = None
    targetSizeBytes: Annotated[int | None, Field("Size that a guest sees, at the target.")] = None
    attempt: Annotated[int | None, Field("How often it was exported again.", bits=32)] = None
    restarts: Annotated[int | None, Field("How often a lost task was begun again.", bits=32)] = None
    format: Annotated[str | None, Field("Format of the export.")] = None
    url: Annotated[str | None, Field("Where its export is.")] = None
    exportID: Annotated[str | None, Field("Identifier of the export.")] = None
    exportTask: Annotated[str | None, Field("The source's task that exports it.")] = None
    exported: Annotated[bool | None, Field("Whether the export is complete.")] = None
    exportedBytes: Annotated[int | None, Field("Size of the export.")] = None
    checksum: Annotated[str | None, Field("SHA-256 of the export.")] = None
    importID: Annotated[str | None, Field("Identifier at the target.")] = None
    targetPath: Annotated[str | None, Field("Where it is at the target.")] = None
    importTask: Annotated[str | None, Field("The target's task that imports it.")] = None
    imported: Annotated[bool | None, Field("Whether the import is complete.")] = None
    targetChecksum: Annotated[str | None, Field("SHA-256 of what the target read.")] = None


class VMMigrationStatus(Object):
    """The observed state of a migration."""

    phase: Annotated[str | None, Field("Where the migration is.", enum=PHASES)] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    targetVMRef: Annotated[LocalObjectReference | None, Field("The new VirtualMachine.")] = None
    snapshotRef: Annotated[str | None, Field("The snapshot that is moved.")] = None
    snapshotID: Annotated[str | None, Field("The provider's identifier of the snapshot.")] = None
    exportID: Annotated[str | None, Field("Identifier of the export.")] = None
    importID: Annotated[str | None, Field("Identifier of the import.")] = None
    taskRef: Annotated[str | None, Field("The provider's task that is under way.")] = None
    targetVMID: Annotated[str | None, Field("The provider's identifier of the new machine.")] = None
    startTime: Annotated[Time | None, Field("When it began.")] = None
    completionTime: Annotated[Time | None, Field("When it ended.")] = None
    progress: Annotated[MigrationProgress | None, Field("How far it is.")] = None
    diskInfo: Annotated[DiskInfo | None, Field("The first disk on both sides.")] = None
    disks: Annotated[list[MigratedDisk] | None, Field("Every disk, the first one first.", max_items=32, keys=("name",))] = None
    storageInfo: Annotated[StorageInfo | None, Field("What lies between.")] = None
    storagePVCName: Annotated[str | None, Field("Claim between the providers.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    retryCount: Annotated[int | None, Field("Retries so far.", bits=32)] = None
    lastRetryTime: Annotated[Time | None, Field("When it was last tried again.")] = None
    validationResults: Annotated[ValidationResults | None, Field("What the checks said.")] = None


class VMMigration(Resource):
    """A move of a machine to another provider."""

    spec: Annotated[VMMigrationSpec, Field("Which machine moves where.", required=True)] = VMMigrationSpec()
    status: Annotated[VMMigrationStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMMigration",
        plural="vmmigrations",
        singular="vmmigration",
        short_names=("vmmig",),
        cls=VMMigration,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Source", ".spec.source.vmRef.name"),
            Column("Target", ".spec.target.name"),
            Column("Phase", ".status.phase"),
            Column("Progress", ".status.progress.percentage"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
