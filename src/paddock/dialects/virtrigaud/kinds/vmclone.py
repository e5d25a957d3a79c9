"""VirtRigaud's VMClone (docs/spec/virtrigaud.md section 1.7)."""

from typing import Annotated

from paddock.contract.specs import NAME_MESSAGE, NAME_PATTERN, LocalObjectReference, Tags
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, UserData, VMNetworkRef
from paddock.dialects.virtrigaud.kinds.shared import (
    CLASS_DISK_TYPES,
    GROUP,
    VERSIONS,
    Conditions,
    Environment,
    ObjectRef,
    ObservedGeneration,
)
from paddock.dialects.virtrigaud.rules import vmclone as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

CLONE_TYPES = ("FullClone", "LinkedClone", "InstantClone")


class CloneSource(Object):
    """The source of a clone: exactly one of the four."""

    vmRef: Annotated[LocalObjectReference | None, Field("A VirtualMachine.")] = None
    snapshotRef: Annotated[LocalObjectReference | None, Field("A VMSnapshot.")] = None
    templateRef: Annotated[ObjectRef | None, Field("A template.")] = None
    imageRef: Annotated[ObjectRef | None, Field("A VMImage.")] = None


class CloneTarget(Object):
    """The new machine."""

    name: Annotated[str, Field("Name of the new machine.", required=True, pattern=NAME_PATTERN, max_length=253, message=NAME_MESSAGE)] = ""
    namespace: Annotated[
        str | None, Field("Its namespace; default: the clone's own.", pattern=NAME_PATTERN, max_length=63, message=NAME_MESSAGE)
    ] = None
    providerRef: Annotated[ObjectRef | None, Field("Its Provider; default: that of the source.")] = None
    classRef: Annotated[LocalObjectReference | None, Field("Its VMClass; default: that of the source.")] = None
    placementRef: Annotated[LocalObjectReference | None, Field("The VMPlacementPolicy that decides where it is put.")] = None
    networks: Annotated[list[VMNetworkRef] | None, Field("Its network cards.", max_items=10, keys=("name",))] = None
    disks: Annotated[list[DiskSpec] | None, Field("Its data disks.", max_items=20, keys=("name",))] = None
    labels: Annotated[dict[str, str] | None, Field("Its labels.", max_items=50, key_format="label-key")] = None
    annotations: Annotated[dict[str, str] | None, Field("Its annotations.", max_items=50, key_format="label-key")] = None


class CloneRetryPolicy(Object):
    """The retries of a failed clone."""

    maxRetries: Annotated[int, Field("Most retries.", ge=0, le=10)] = 3
    retryDelay: Annotated[str, Field("Time before the first retry.", format="duration")] = "5m"
    backoffMultiplier: Annotated[int, Field("Each wait is this many times the one before.", ge=1, bits=32)] = 2


class CloneStorage(Object):
    """The place and the format of the new disks."""

    preferThinProvisioning: Annotated[bool, Field("Thin disks where the provider has them.")] = True
    diskFormat: Annotated[str | None, Field("Provisioning or medium.", enum=CLASS_DISK_TYPES)] = None
    storageClass: Annotated[str | None, Field("Storage class.", max_length=253)] = None
    datastore: Annotated[str | None, Field("Datastore.", max_length=255)] = None
    folder: Annotated[str | None, Field("Folder.", max_length=255)] = None
    enableCompression: Annotated[bool, Field("Compress what is copied.")] = False


class ClonePerformance(Object):
    """The resources that the provider spends on the copy."""

    priority: Annotated[str, Field("Priority of the copy.", enum=("Low", "Normal", "High"))] = "Normal"
    ioThrottling: Annotated[bool, Field("Whether the copy is slowed down.")] = False
    maxIOPS: Annotated[int | None, Field("Most operations in a second.", ge=100, le=100000)] = None
    concurrentDisks: Annotated[int, Field("Disks that are copied at a time.", ge=1, le=10)] = 2


class CloneOptions(Object):
    """The options of the clone."""

    type: Annotated[str, Field("Kind of clone.", enum=CLONE_TYPES)] = "FullClone"
    powerOn: Annotated[bool, Field("Whether the new machine is started.")] = False
    includeSnapshots: Annotated[bool, Field("Whether snapshots are cloned, too.")] = False
    parallel: Annotated[bool, Field("Whether disks are copied at the same time.")] = False
    timeout: Annotated[str, Field("How long it may take.", format="duration")] = "30m"
    retryPolicy: Annotated[CloneRetryPolicy | None, Field("Retries.")] = None
    storage: Annotated[CloneStorage | None, Field("Where the new disks lie.")] = None
    performance: Annotated[ClonePerformance | None, Field("How hard the provider works on it.")] = None


class NetworkCustomization(Object):
    """The addresses of one card of the new machine."""

    name: Annotated[str, Field("Name of the card.", required=True, max_length=255)] = ""
    ipAddress: Annotated[str | None, Field("Static address.", format="ipv4")] = None
    subnetMask: Annotated[str | None, Field("Net mask.", format="ipv4")] = None
    gateway: Annotated[str | None, Field("Default gateway.", format="ipv4")] = None
    dns: Annotated[list[str] | None, Field("Name servers.", max_items=5)] = None
    macAddress: Annotated[str | None, Field("MAC address.", format="mac")] = None
    dhcp: Annotated[bool | None, Field("Whether the address comes from DHCP.")] = None


class Password(Object):
    """A password, here or in a Secret."""

    value: Annotated[str | None, Field("The password itself; better keep it in a Secret.", secret=True)] = None
    secretRef: Annotated[LocalObjectReference | None, Field("Secret with the password.")] = None
    secretKey: Annotated[str, Field("Key of the password.")] = "password"


class DomainJoin(Object):
    """The Windows domain the new machine joins."""

    domain: Annotated[str, Field("Domain.", required=True, max_length=255)] = ""
    username: Annotated[str, Field("User who may join machines.", required=True, max_length=255)] = ""
    password: Annotated[Password, Field("Password of the user.", required=True)] = Password()
    organizationalUnit: Annotated[str | None, Field("Organizational unit of the account.", max_length=500)] = None


class SysprepCustomization(Object):
    """Customization of Windows."""

    enabled: Annotated[bool, Field("Whether sysprep runs.")] = False
    productKey: Annotated[str | None, Field("Product key.", secret=True)] = None
    organization: Annotated[str | None, Field("Organization.", max_length=255)] = None
    owner: Annotated[str | None, Field("Owner.", max_length=255)] = None
    adminPassword: Annotated[Password | None, Field("Password of the administrator.")] = None
    joinDomain: Annotated[DomainJoin | None, Field("Domain to join.")] = None
    customCommands: Annotated[list[str] | None, Field("Commands to run.", max_items=20)] = None


class GuestCommand(Object):
    """A command that is run in the new machine."""

    command: Annotated[str, Field("Program.", required=True, max_length=1000)] = ""
    arguments: Annotated[list[str] | None, Field("Arguments.", max_items=20)] = None
    workingDirectory: Annotated[str | None, Field("Directory it starts in.", max_length=500)] = None
    runAsUser: Annotated[str | None, Field("User it runs as.", max_length=255)] = None
    timeout: Annotated[str, Field("How long it may take.", format="duration")] = "5m"
    stage: Annotated[str, Field("When it runs.", enum=("pre-customization", "post-customization", "first-boot"))] = "post-customization"


class Certificate(Object):
    """A certificate that the new machine trusts or has."""

    name: Annotated[str, Field("Name of the certificate.", required=True, max_length=255)] = ""
    data: Annotated[str | None, Field("The certificate itself, as PEM.")] = None
    secretRef: Annotated[LocalObjectReference | None, Field("Secret with the certificate.")] = None
    secretKey: Annotated[str, Field("Key of the certificate.")] = "tls.crt"
    store: Annotated[str, Field("Where the guest keeps it.", enum=("root", "ca", "my", "trust"))] = "root"


class Customization(Object):
    """The differences of the new machine."""

    hostname: Annotated[
        str | None,
        Field(
            "Host name.",
            max_length=255,
            pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9\-]*[a-zA-Z0-9])?$",
            message="must consist of letters, digits and '-', and start and end with a letter or a digit",
        ),
    ] = None
    domain: Annotated[str | None, Field("Domain name.", max_length=255)] = None
    timeZone: Annotated[str | None, Field("Time zone.", max_length=100)] = None
    networks: Annotated[list[NetworkCustomization] | None, Field("Addresses of its cards.", max_items=10, keys=("name",))] = None
    userData: Annotated[UserData | None, Field("First-boot configuration.")] = None
    sysprep: Annotated[SysprepCustomization | None, Field("Customization of Windows.")] = None
    tags: Annotated[list[str] | None, Field("More tags.", max_items=50)] = None
    guestCommands: Annotated[list[GuestCommand] | None, Field("Commands to run.", max_items=20)] = None
    certificates: Annotated[list[Certificate] | None, Field("Certificates to install.", max_items=10)] = None


class CloneMetadata(Object):
    """Information about the clone for people and programs."""

    purpose: Annotated[
        str | None,
        Field("What it is for.", enum=("backup", "testing", "migration", "development", "production", "staging")),
    ] = None
    createdBy: Annotated[str | None, Field("Who made it.", max_length=255)] = None
    project: Annotated[str | None, Field("Project it belongs to.", max_length=255)] = None
    environment: Environment = None
    tags: Tags = None


class VMCloneSpec(Object):
    """The source of a clone, the new machine, and the options."""

    STRANGERS = {
        "sourceRef": "write source.vmRef",
        "linked": "write options.type: LinkedClone",
        "powerOn": "write options.powerOn",
    }

    source: Annotated[CloneSource, Field("What is cloned.", required=True)] = CloneSource()
    target: Annotated[CloneTarget, Field("The new machine.", required=True)] = CloneTarget()
    options: Annotated[CloneOptions | None, Field("How it is made.")] = None
    customization: Annotated[Customization | None, Field("What is different in it.")] = None
    metadata: Annotated[CloneMetadata | None, Field("About the clone.")] = None


class DiskProgress(Object):
    """The progress of the copy of a disk."""

    name: Annotated[str, Field("Name of the disk.", required=True)] = ""
    totalBytes: Annotated[int | None, Field("Bytes in all.")] = None
    completedBytes: Annotated[int | None, Field("Bytes so far.")] = None
    percentage: Annotated[int | None, Field("Part that is done.", ge=0, le=100)] = None
    transferRate: Annotated[int | None, Field("Bytes in a second.")] = None


class CloneProgress(Object):
    """The progress of the clone."""

    totalDisks: Annotated[int | None, Field("Disks in all.")] = None
    completedDisks: Annotated[int | None, Field("Disks so far.")] = None
    currentDisk: Annotated[DiskProgress | None, Field("The disk under way.")] = None
    overallPercentage: Annotated[int | None, Field("Part that is done.", ge=0, le=100)] = None
    eta: Annotated[str | None, Field("Time still needed.", format="duration")] = None


class CustomizationStatus(Object):
    """The progress of the customization."""

    started: Annotated[bool | None, Field("Whether it has begun.")] = None
    completed: Annotated[bool | None, Field("Whether it is complete.")] = None
    completedSteps: Annotated[list[str] | None, Field("Steps that are done.")] = None
    failedSteps: Annotated[list[str] | None, Field("Steps that failed.")] = None
    currentStep: Annotated[str | None, Field("The step under way.")] = None
    message: Annotated[str | None, Field("More about it.")] = None


class VMCloneStatus(Object):
    """The observed state of a clone."""

    targetRef: Annotated[LocalObjectReference | None, Field("The new VirtualMachine.")] = None
    targetVMID: Annotated[str | None, Field("The provider's identifier of the new machine.")] = None
    phase: Annotated[
        str | None,
        Field("How far it is.", enum=("Pending", "Preparing", "Cloning", "Customizing", "Powering-On", "Ready", "Failed")),
    ] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    taskRef: Annotated[str | None, Field("The provider's task that is under way.")] = None
    startTime: Annotated[Time | None, Field("When it began.")] = None
    completionTime: Annotated[Time | None, Field("When it ended.")] = None
    actualCloneType: Annotated[str | None, Field("Kind of clone that was made.", enum=CLONE_TYPES)] = None
    progress: Annotated[CloneProgress | None, Field("How far it is.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    retryCount: Annotated[int | None, Field("Retries so far.", bits=32)] = None
    lastRetryTime: Annotated[Time | None, Field("When it was last tried again.")] = None
    customizationStatus: Annotated[CustomizationStatus | None, Field("How far the customization is.")] = None


class VMClone(Resource):
    """A copy of a machine, a snapshot, a template or an image as a new machine."""

    spec: Annotated[VMCloneSpec, Field("What is cloned, and what becomes of it.", required=True)] = VMCloneSpec()
    status: Annotated[VMCloneStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMClone",
        plural="vmclones",
        singular="vmclone",
        short_names=("vmclone",),
        cls=VMClone,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Source", ".spec.source.vmRef.name"),
            Column("Target", ".spec.target.name"),
            Column("Phase", ".status.phase"),
            Column("Clone Type", ".status.actualCloneType"),
            Column("Progress", ".status.progress.overallPercentage"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
