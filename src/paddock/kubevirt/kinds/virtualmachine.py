"""`kubevirt.io/v1 VirtualMachine`: a machine that may be stopped, with the disks that belong to it."""

from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.schema.field import Field, Freeform, Object, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.instance import GROUP, VERSIONS, VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.status import ChangedBlockTracking, MigratedVolume
from paddock.kubevirt.kinds.volumes import ClaimVolume, DataVolumeVolume
from paddock.kubevirt.rules import machine as rules

RUN_STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted", "Once", "WaitAsReceiver")
FAILURE_POLICIES = ("Reject", "Ignore")
PRINTABLE_STATUSES = (
    "Stopped",
    "Provisioning",
    "Starting",
    "Running",
    "Paused",
    "Suspended",
    "Migrating",
    "Stopping",
    "Terminating",
    "CrashLoopBackOff",
    "Unknown",
    "WaitingForVolumeBinding",
    "WaitingForReceiver",
    "ErrorUnschedulable",
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrorPvcNotFound",
    "DataVolumeError",
)


class InstancetypeMatcher(Object):
    """The instancetype that gives the machine its size."""

    name: Annotated[str | None, Field("Name of the instancetype.")] = None
    kind: Annotated[str | None, Field("Its kind; default: VirtualMachineClusterInstancetype.")] = None
    revisionName: Annotated[str | None, Field("ControllerRevision with the instancetype as it was.")] = None
    inferFromVolume: Annotated[str | None, Field("Volume whose labels name the instancetype.")] = None
    inferFromVolumeFailurePolicy: Annotated[str | None, Field("What happens when they do not; default: Reject.", enum=FAILURE_POLICIES)] = (
        None
    )


class PreferenceMatcher(Object):
    """The preference that fills what the machine leaves open."""

    name: Annotated[str | None, Field("Name of the preference.")] = None
    kind: Annotated[str | None, Field("Its kind; default: VirtualMachineClusterPreference.")] = None
    revisionName: Annotated[str | None, Field("ControllerRevision with the preference as it was.")] = None
    inferFromVolume: Annotated[str | None, Field("Volume whose labels name the preference.")] = None
    inferFromVolumeFailurePolicy: Annotated[str | None, Field("What happens when they do not; default: Reject.", enum=FAILURE_POLICIES)] = (
        None
    )


class DataVolumeTemplateMeta(TemplateMeta):
    """Name, labels, annotations and finalizers of the DataVolume; everything else a user writes is kept."""

    OPEN = True

    finalizers: Annotated[list[str] | None, Field("Who has to agree before the DataVolume goes.")] = None


class DataVolumeTemplate(Object):
    """A DataVolume that belongs to the machine: made with it and deleted with it."""

    apiVersion: Annotated[str | None, Field("Has no meaning here.")] = None
    kind: Annotated[str | None, Field("Has no meaning here.")] = None
    metadata: Annotated[
        DataVolumeTemplateMeta | None, Field("Name, labels, annotations and finalizers of the DataVolume.", nullable=True)
    ] = None
    spec: Annotated[DataVolumeSpec, Field("What the DataVolume asks for.", required=True)] = DataVolumeSpec()
    status: Annotated[Freeform | None, Field("Has no meaning here.", nullable=True)] = None


class VirtualMachineSpec(Object):
    """The desired machine, and the times at which it runs."""

    runStrategy: Annotated[
        str | None,
        Field("When the machine runs.", enum=RUN_STRATEGIES, message="Invalid RunStrategy ({})"),
    ] = None
    running: Annotated[bool | None, Field("Whether the machine runs.", deprecated="use runStrategy")] = None
    template: Annotated[
        VirtualMachineInstanceTemplate,
        Field("What a running machine is made from.", required=True, needed="missing virtual machine template"),
    ] = VirtualMachineInstanceTemplate()
    dataVolumeTemplates: Annotated[list[DataVolumeTemplate] | None, Field("DataVolumes that belong to the machine.")] = None
    instancetype: Annotated[InstancetypeMatcher | None, Field("The instancetype that gives the machine its size.")] = None
    preference: Annotated[PreferenceMatcher | None, Field("The preference that fills what the machine leaves open.")] = None
    updateVolumesStrategy: Annotated[
        str | None, Field("How changed volumes of a running machine are treated.", enum=("Replacement", "Migration"))
    ] = None


class StateChangeRequest(Object):
    """A start or a stop that was asked for."""

    action: Annotated[str, Field("Start or Stop.", required=True, enum=("Start", "Stop"))] = ""
    data: Annotated[dict[str, str] | None, Field("Further arguments, such as paused.")] = None
    uid: Annotated[str | None, Field("UID of the running machine it is about.")] = None


class HotplugVolumeSource(Object):
    """A volume that can be plugged into a running machine."""

    dataVolume: Annotated[DataVolumeVolume | None, Field("The claim that a DataVolume fills.")] = None
    persistentVolumeClaim: Annotated[ClaimVolume | None, Field("A claim.")] = None


class AddVolumeOptions(Object):
    """A volume to plug in."""

    name: Annotated[str, Field("Name of the volume and of its disk.", required=True)] = ""
    disk: Annotated[Disk, Field("The disk.", required=True)] = Disk()
    volumeSource: Annotated[HotplugVolumeSource, Field("The volume.", required=True)] = HotplugVolumeSource()
    dryRun: Annotated[list[str] | None, Field("All: only check.")] = None


class RemoveVolumeOptions(Object):
    """A volume to unplug."""

    name: Annotated[str, Field("Name of the volume.", required=True)] = ""
    dryRun: Annotated[list[str] | None, Field("All: only check.")] = None


class VolumeRequest(Object):
    """A volume to plug in or unplug."""

    addVolumeOptions: Annotated[AddVolumeOptions | None, Field("Plug in.")] = None
    removeVolumeOptions: Annotated[RemoveVolumeOptions | None, Field("Unplug.")] = None


class VolumeSnapshotSupport(Object):
    """The ability of a volume to be part of a snapshot."""

    name: Annotated[str, Field("Name of the volume.", required=True)] = ""
    enabled: Annotated[bool, Field("Whether it can.", required=True)] = False
    reason: Annotated[str | None, Field("Why it cannot.")] = None


class StartFailure(Object):
    """Starts that failed one after the other."""

    consecutiveFailCount: Annotated[int | None, Field("How many.")] = None
    lastFailedVMIUID: Annotated[str | None, Field("UID of the last one.")] = None
    retryAfterTimestamp: Annotated[Time | None, Field("When the next one is tried.")] = None


class MemoryDumpRequest(Object):
    """A memory dump that was asked for."""

    claimName: Annotated[str, Field("Claim it is written to.", required=True)] = ""
    phase: Annotated[str, Field("How far it is.", required=True)] = ""
    remove: Annotated[bool | None, Field("Whether it shall be taken away again.")] = None
    startTimestamp: Annotated[Time | None, Field("When it began.")] = None
    endTimestamp: Annotated[Time | None, Field("When it ended.")] = None
    fileName: Annotated[str | None, Field("Name of its file.")] = None
    message: Annotated[str | None, Field("Why it failed.")] = None


class VolumeMigrationState(Object):
    """Volumes that move."""

    migratedVolumes: Annotated[list[MigratedVolume] | None, Field("The volumes.")] = None


class VolumeUpdateState(Object):
    """A change of the volumes of a running machine."""

    volumeMigrationState: Annotated[VolumeMigrationState | None, Field("Volumes that move.")] = None


class ControllerRevisionRef(Object):
    """A ControllerRevision."""

    name: Annotated[str | None, Field("Its name.")] = None


class InstancetypeStatusRef(Object):
    """The instancetype or preference as it was when the machine was made."""

    name: Annotated[str | None, Field("Its name.")] = None
    kind: Annotated[str | None, Field("Its kind.")] = None
    controllerRevisionRef: Annotated[ControllerRevisionRef | None, Field("The copy that was kept.")] = None
    inferFromVolume: Annotated[str | None, Field("Volume whose labels named it.")] = None
    inferFromVolumeFailurePolicy: Annotated[str | None, Field("What happens when they do not.")] = None


class VirtualMachineStatus(Object):
    """The observed state of a machine."""

    printableStatus: Annotated[str, Field("Status in one word.", enum=PRINTABLE_STATUSES)] = "Stopped"
    created: Annotated[bool | None, Field("Whether a running machine exists.")] = None
    ready: Annotated[bool | None, Field("Whether it is running and ready.")] = None
    runStrategy: Annotated[str | None, Field("The last run strategy that was carried out.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the machine.")] = None
    stateChangeRequests: Annotated[list[StateChangeRequest] | None, Field("Starts and stops that were asked for.")] = None
    volumeRequests: Annotated[list[VolumeRequest] | None, Field("Volumes to plug in or unplug.")] = None
    volumeSnapshotStatuses: Annotated[list[VolumeSnapshotSupport] | None, Field("Which volumes can be part of a snapshot.")] = None
    startFailure: Annotated[StartFailure | None, Field("Starts that failed one after the other.", nullable=True)] = None
    memoryDumpRequest: Annotated[MemoryDumpRequest | None, Field("A memory dump that was asked for.", nullable=True)] = None
    snapshotInProgress: Annotated[str | None, Field("Name of the snapshot that is being taken.")] = None
    restoreInProgress: Annotated[str | None, Field("Name of the restore that runs.")] = None
    observedGeneration: Annotated[int | None, Field("The generation the running machine was made from.")] = None
    desiredGeneration: Annotated[int | None, Field("The generation it should be made from.")] = None
    volumeUpdateState: Annotated[VolumeUpdateState | None, Field("A change of the volumes of the running machine.")] = None
    changedBlockTracking: Annotated[ChangedBlockTracking | None, Field("Tracking of changed blocks.", nullable=True)] = None
    instancetypeRef: Annotated[InstancetypeStatusRef | None, Field("The instancetype as it was.", nullable=True)] = None
    preferenceRef: Annotated[InstancetypeStatusRef | None, Field("The preference as it was.", nullable=True)] = None


class VirtualMachine(Resource):
    """A machine that may be stopped and started, with the disks that belong to it."""

    spec: Annotated[VirtualMachineSpec, Field("What the machine should be, and when it runs.", required=True)] = VirtualMachineSpec()
    status: Annotated[VirtualMachineStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachine",
        plural="virtualmachines",
        singular="virtualmachine",
        short_names=("vm", "vms"),
        categories=("all",),
        cls=VirtualMachine,
        dialect="kubevirt",
        rewritten=True,
        versions=VERSIONS,
        columns=(
            AGE,
            Column("Status", ".status.printableStatus"),
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
        ),
        rules=rules.RULES,
        transitions=rules.TRANSITIONS,
    ),
)
