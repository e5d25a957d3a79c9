"""VirtRigaud's VMSnapshot (docs/spec/virtrigaud.md section 1.6)."""

from typing import Annotated

from paddock.contract.specs import LocalObjectReference, Tags
from paddock.dialects.virtrigaud.kinds.shared import (
    GROUP,
    KEY_PROVIDERS,
    VERSIONS,
    Conditions,
    Environment,
    ObservedGeneration,
    ProviderPart,
)
from paddock.dialects.virtrigaud.rules import vmsnapshot as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

# Whether it is a schedule is decided by a parser; this keeps out what cannot be one.
_CRON = r"^(@[a-z]+( [0-9a-zµ.]+)?|[-0-9A-Za-z*,/? ]+)$"


class SnapshotEncryption(Object):
    """Encryption of the snapshot."""

    enabled: Annotated[bool, Field("Whether it is encrypted.")] = False
    keyProvider: Annotated[str | None, Field("Where the keys are kept.", enum=KEY_PROVIDERS)] = None
    keyRef: Annotated[LocalObjectReference | None, Field("Secret with the keys.")] = None


class SnapshotConfig(Object):
    """The options of the snapshot."""

    name: Annotated[
        str | None,
        Field(
            "Name at the provider; default: the name of this object.",
            max_length=255,
            pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9\-_]*[a-zA-Z0-9])?$",
            message="must consist of letters, digits, '-' and '_', and start and end with a letter or a digit",
        ),
    ] = None
    description: Annotated[str | None, Field("What the snapshot is for.", max_length=1024)] = None
    includeMemory: Annotated[bool, Field("Whether the memory goes with it.")] = False
    quiesce: Annotated[bool, Field("Whether the filesystems of the guest are quiesced first.")] = True
    type: Annotated[str, Field("Kind of snapshot.", enum=("Standard", "Crash", "Application"))] = "Standard"
    compression: Annotated[bool, Field("Whether it is compressed.")] = False
    encryption: Annotated[SnapshotEncryption | None, Field("Encryption.")] = None
    consistencyLevel: Annotated[
        str,
        Field("What the snapshot promises.", enum=("CrashConsistent", "FilesystemConsistent", "ApplicationConsistent")),
    ] = "FilesystemConsistent"


class RetentionPolicy(Object):
    """The retention of the snapshot."""

    maxAge: Annotated[str | None, Field("Age at which it expires.", format="duration")] = None
    maxCount: Annotated[int | None, Field("Most snapshots of the machine; the oldest go first.", ge=1, le=100)] = None
    deleteOnVMDelete: Annotated[bool, Field("Whether it goes with the machine.")] = True
    preservePinned: Annotated[bool, Field("Whether pinned snapshots are never removed by themselves.")] = True
    gracePeriod: Annotated[str, Field("How long an expired snapshot is kept.", format="duration")] = "24h"


class SnapshotSchedule(Object):
    """Snapshots that are taken again and again; this object is then their template."""

    enabled: Annotated[bool, Field("Whether the schedule runs.")] = False
    cronSpec: Annotated[
        str | None,
        Field(
            "When: five cron fields (six with seconds, seven with years), @hourly and the like, or @every 6h.",
            pattern=_CRON,
            max_length=255,
            message="must be a cron expression such as 0 3 * * *, a word such as @daily, or @every 6h",
        ),
    ] = None
    timezone: Annotated[
        str,
        Field(
            "Time zone of the schedule.",
            pattern="^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$",
            message="must be the name of a time zone such as Europe/Oslo",
        ),
    ] = "UTC"
    suspend: Annotated[bool, Field("Whether it is held for now.")] = False
    concurrencyPolicy: Annotated[
        str, Field("What to do when the one before is still being taken.", enum=("Allow", "Forbid", "Replace"))
    ] = "Forbid"
    successfulJobsHistoryLimit: Annotated[int, Field("Good snapshots that are kept.", ge=0, le=100)] = 3
    failedJobsHistoryLimit: Annotated[int, Field("Failed snapshots that are kept.", ge=0, le=100)] = 1


class SnapshotMetadata(Object):
    """Information about the snapshot for people and programs."""

    tags: Tags = None
    pinned: Annotated[bool, Field("Whether it is protected from being removed by itself.")] = False
    application: Annotated[str | None, Field("The application that asked for it.", max_length=255)] = None
    purpose: Annotated[
        str | None, Field("What it is for.", enum=("backup", "testing", "migration", "restore-point", "update", "other"))
    ] = None
    environment: Environment = None


class VMSnapshotSpec(Object):
    """Of which machine, how, and how long."""

    STRANGERS = {
        "nameHint": "write snapshotConfig.name",
        "memory": "write snapshotConfig.includeMemory",
        "includeMemory": "write snapshotConfig.includeMemory",
        "description": "write snapshotConfig.description",
    }

    vmRef: Annotated[LocalObjectReference, Field("The VirtualMachine, in the same namespace.", required=True)] = LocalObjectReference()
    snapshotConfig: Annotated[SnapshotConfig | None, Field("How it is taken.")] = None
    retentionPolicy: Annotated[RetentionPolicy | None, Field("How long it is kept.")] = None
    schedule: Annotated[SnapshotSchedule | None, Field("When more of them are taken.")] = None
    metadata: Annotated[SnapshotMetadata | None, Field("About the snapshot.")] = None


class SnapshotProgress(Object):
    """The progress of the snapshot."""

    totalBytes: Annotated[int | None, Field("Bytes in all.")] = None
    completedBytes: Annotated[int | None, Field("Bytes so far.")] = None
    percentage: Annotated[int | None, Field("Part that is done.", ge=0, le=100)] = None
    startTime: Annotated[Time | None, Field("When it began.")] = None
    eta: Annotated[str | None, Field("Time still needed.", format="duration")] = None


class ProviderSnapshot(ProviderPart):
    """The state of the snapshot at one provider."""

    path: Annotated[str | None, Field("Where it lies there.")] = None
    state: Annotated[str | None, Field("Its state there.")] = None


class SnapshotRef(Object):
    """Another snapshot of the same tree."""

    name: Annotated[str, Field("Name.", required=True)] = ""
    namespace: Annotated[str | None, Field("Namespace.")] = None
    uid: Annotated[str | None, Field("UID.")] = None


class VMSnapshotStatus(Object):
    """The observed state of a snapshot."""

    snapshotID: Annotated[str | None, Field("The provider's identifier.")] = None
    phase: Annotated[
        str | None,
        Field("Where the snapshot is in its life.", enum=("Pending", "Creating", "Ready", "Deleting", "Failed", "Expired")),
    ] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    creationTime: Annotated[Time | None, Field("When it was begun.")] = None
    completionTime: Annotated[Time | None, Field("When it was complete.")] = None
    expiryTime: Annotated[Time | None, Field("When it expires.")] = None
    size: Annotated[Quantity | None, Field("Space it takes.")] = None
    virtualSize: Annotated[Quantity | None, Field("Size of what it holds.")] = None
    taskRef: Annotated[str | None, Field("The provider's task that is under way.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    progress: Annotated[SnapshotProgress | None, Field("How far it is.")] = None
    providerStatus: Annotated[dict[str, ProviderSnapshot] | None, Field("How it stands at each provider.")] = None
    parent: Annotated[SnapshotRef | None, Field("The snapshot it builds on.")] = None
    children: Annotated[list[SnapshotRef] | None, Field("Snapshots that build on it.")] = None


class VMSnapshot(Resource):
    """A point in time of a machine that can be gone back to."""

    spec: Annotated[VMSnapshotSpec, Field("Of which machine, and how.", required=True)] = VMSnapshotSpec()
    status: Annotated[VMSnapshotStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMSnapshot",
        plural="vmsnapshots",
        singular="vmsnapshot",
        short_names=("vmsnap",),
        cls=VMSnapshot,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("VM", ".spec.vmRef.name"),
            Column("Phase", ".status.phase"),
            Column("Size", ".status.size"),
            Column("Created", ".status.creationTime", "date"),
            Column("Expires", ".status.expiryTime", "date"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
