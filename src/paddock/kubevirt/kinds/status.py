"""The observed state of a running machine. Written by controllers, read by people, dashboards and `virtctl`."""

from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.storage import AccessModes, VolumeMode
from paddock.kubernetes.schema.field import Field, Freeform, Object, Quantity, Time
from paddock.kubevirt.kinds.domain import MachineChipset

PHASES = ("", "Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed", "WaitingForSync", "Unknown")


class PhaseTransition(Object):
    """The start of a phase."""

    phase: Annotated[str | None, Field("The phase.")] = None
    phaseTransitionTimestamp: Annotated[Time | None, Field("When it began.")] = None


class InterfaceStatus(Object):
    """A card as it is seen from outside and by the guest."""

    name: Annotated[str | None, Field("Name of the card in the spec.")] = None
    ipAddress: Annotated[str | None, Field("The first address.")] = None
    ipAddresses: Annotated[list[str] | None, Field("All addresses.")] = None
    mac: Annotated[str | None, Field("Hardware address.")] = None
    interfaceName: Annotated[str | None, Field("Name inside the guest.")] = None
    podInterfaceName: Annotated[str | None, Field("Name on the host.")] = None
    infoSource: Annotated[str | None, Field("Who said so: domain, guest-agent, multus-status.")] = None
    queueCount: Annotated[int | None, Field("Number of queues.", bits=32)] = None
    linkState: Annotated[str | None, Field("Link state: up or down.")] = None


class GuestOSInfo(Object):
    """The operating system, as the guest agent tells it."""

    name: Annotated[str | None, Field("Name.")] = None
    kernelRelease: Annotated[str | None, Field("Release of the kernel.")] = None
    version: Annotated[str | None, Field("Version.")] = None
    prettyName: Annotated[str | None, Field("Name for people.")] = None
    versionId: Annotated[str | None, Field("Version, short.")] = None
    kernelVersion: Annotated[str | None, Field("Version of the kernel.")] = None
    machine: Annotated[str | None, Field("Type of the machine.")] = None
    id: Annotated[str | None, Field("Name for programs.")] = None


class MigrationState(Object):
    """A live migration."""

    startTimestamp: Annotated[Time | None, Field("When it began.", nullable=True)] = None
    endTimestamp: Annotated[Time | None, Field("When it ended.", nullable=True)] = None
    targetNodeDomainReadyTimestamp: Annotated[Time | None, Field("When the target was ready.")] = None
    targetNodeDomainDetected: Annotated[bool | None, Field("Whether the target has started.")] = None
    targetNodeAddress: Annotated[str | None, Field("Address of the target.")] = None
    targetDirectMigrationNodePorts: Annotated[dict[str, int] | None, Field("Ports of the target.")] = None
    targetNode: Annotated[str | None, Field("Node of the target.")] = None
    targetPod: Annotated[str | None, Field("Pod of the target.")] = None
    targetAttachmentPodUID: Annotated[str | None, Field("Pod that attaches volumes to the target.")] = None
    sourceNode: Annotated[str | None, Field("Node of the source.")] = None
    sourcePod: Annotated[str | None, Field("Pod of the source.")] = None
    completed: Annotated[bool | None, Field("Whether it is over.")] = None
    failed: Annotated[bool | None, Field("Whether it failed.")] = None
    abortRequested: Annotated[bool | None, Field("Whether it shall be aborted.")] = None
    abortStatus: Annotated[str | None, Field("What became of the abort.")] = None
    failureReason: Annotated[str | None, Field("Why it failed.")] = None
    migrationUid: Annotated[str | None, Field("UID of the migration object.")] = None
    mode: Annotated[str | None, Field("PreCopy, PostCopy or Paused.")] = None
    migrationPolicyName: Annotated[str | None, Field("The policy that was used.")] = None
    migrationConfiguration: Annotated[Freeform | None, Field("The settings that were used.")] = None
    targetCPUSet: Annotated[list[int] | None, Field("Processors of the target.")] = None
    targetNodeTopology: Annotated[str | None, Field("Topology of the target.")] = None
    sourcePersistentStatePVCName: Annotated[str | None, Field("Claim with the persistent state of the source.")] = None
    targetPersistentStatePVCName: Annotated[str | None, Field("Claim with the persistent state of the target.")] = None
    sourceState: Annotated[Freeform | None, Field("Facts of the source.")] = None
    targetState: Annotated[Freeform | None, Field("Facts of the target.")] = None
    migrationNetworkType: Annotated[str | None, Field("Network of the migration.")] = None
    targetMemoryOverhead: Annotated[Quantity | None, Field("Memory overhead of the target.")] = None


class ClaimInfo(Object):
    """A claim as the machine uses it."""

    claimName: Annotated[str | None, Field("Name of the claim.")] = None
    accessModes: AccessModes = None
    volumeMode: VolumeMode = None
    capacity: Annotated[dict[str, Quantity] | None, Field("Size of the volume.")] = None
    requests: Annotated[dict[str, Quantity] | None, Field("Size that was asked for.")] = None
    preallocated: Annotated[bool | None, Field("Whether it is allocated as a whole.")] = None
    filesystemOverhead: Annotated[str | None, Field("Part of the volume that the file system takes.")] = None


class HotplugVolumeStatus(Object):
    """The pod that attached a volume."""

    attachPodName: Annotated[str | None, Field("Name of the pod.")] = None
    attachPodUID: Annotated[str | None, Field("UID of the pod.")] = None


class MemoryDumpInfo(Object):
    """A memory dump."""

    startTimestamp: Annotated[Time | None, Field("When it began.")] = None
    endTimestamp: Annotated[Time | None, Field("When it ended.")] = None
    claimName: Annotated[str | None, Field("Claim it is written to.")] = None
    targetFileName: Annotated[str | None, Field("Name of its file.")] = None


class Checksum(Object):
    """The checksum of a file."""

    checksum: Annotated[int | None, Field("Its checksum.", ge=0, le=4294967295)] = None


class VolumeStatus(Object):
    """A volume as it is attached."""

    name: Annotated[str, Field("Name of the volume.", required=True)] = ""
    target: Annotated[str, Field("Name of the device, such as vda.", required=True)] = ""
    phase: Annotated[str | None, Field("How far it is: Pending, Bound, Ready ...")] = None
    reason: Annotated[str | None, Field("Why, in one word.")] = None
    message: Annotated[str | None, Field("Why, in a sentence.")] = None
    size: Annotated[int | None, Field("Its size in bytes.")] = None
    persistentVolumeClaimInfo: Annotated[ClaimInfo | None, Field("Its claim.")] = None
    hotplugVolume: Annotated[HotplugVolumeStatus | None, Field("Who attached it to the running machine.")] = None
    memoryDumpVolume: Annotated[MemoryDumpInfo | None, Field("The memory dump on it.")] = None
    containerDiskVolume: Annotated[Checksum | None, Field("The image of a container disk.")] = None


class KernelBootStatus(Object):
    """The kernel that was booted."""

    kernelInfo: Annotated[Checksum | None, Field("The kernel.")] = None
    initrdInfo: Annotated[Checksum | None, Field("The initial RAM disk.")] = None


class TopologyHints(Object):
    """The requirements of the machine for its node."""

    tscFrequency: Annotated[int | None, Field("Frequency of the time stamp counter.")] = None


class CPUTopology(Object):
    """The processors the guest has now."""

    cores: Annotated[int | None, Field("Cores per socket.", bits=32)] = None
    sockets: Annotated[int | None, Field("Sockets.", bits=32)] = None
    threads: Annotated[int | None, Field("Threads per core.", bits=32)] = None


class MemoryStatus(Object):
    """The memory the guest has now."""

    guestAtBoot: Annotated[Quantity | None, Field("When it started.")] = None
    guestCurrent: Annotated[Quantity | None, Field("Now.")] = None
    guestRequested: Annotated[Quantity | None, Field("What was asked for last.")] = None
    memoryOverhead: Annotated[Quantity | None, Field("What the emulator takes besides.")] = None


class MigratedVolume(Object):
    """A volume that moves to another claim."""

    volumeName: Annotated[str, Field("Name of the volume.", required=True)] = ""
    sourcePVCInfo: Annotated[ClaimInfo | None, Field("The claim it comes from.")] = None
    destinationPVCInfo: Annotated[ClaimInfo | None, Field("The claim it goes to.")] = None


class ChangedBlockTracking(Object):
    """The progress of the tracking of changed blocks."""

    state: Annotated[str, Field("State of the tracking.", required=True)] = ""
    backupStatus: Annotated[Freeform | None, Field("The backup that runs.", nullable=True)] = None


class VirtualMachineInstanceStatus(Object):
    """The observed state of a running machine."""

    phase: Annotated[str | None, Field("How far the machine is.", enum=PHASES)] = None
    phaseTransitionTimestamps: Annotated[list[PhaseTransition] | None, Field("When each phase began.")] = None
    reason: Annotated[str | None, Field("Why, in one word.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the machine.")] = None
    nodeName: Annotated[str | None, Field("Node the machine runs on.")] = None
    interfaces: Annotated[list[InterfaceStatus] | None, Field("Cards and their addresses.")] = None
    volumeStatus: Annotated[list[VolumeStatus] | None, Field("Volumes as they are attached.")] = None
    guestOSInfo: Annotated[GuestOSInfo | None, Field("The operating system, as the guest agent tells it.")] = None
    machine: Annotated[MachineChipset | None, Field("The machine type that was chosen.")] = None
    currentCPUTopology: Annotated[CPUTopology | None, Field("The processors the guest has now.")] = None
    memory: Annotated[MemoryStatus | None, Field("The memory the guest has now.")] = None
    kernelBootStatus: Annotated[KernelBootStatus | None, Field("The kernel that was booted.")] = None
    fsFreezeStatus: Annotated[str | None, Field("frozen while the file systems are.")] = None
    migrationState: Annotated[MigrationState | None, Field("The last live migration.")] = None
    migrationMethod: Annotated[str | None, Field("How the machine could migrate.")] = None
    migrationTransport: Annotated[str | None, Field("Transport of a migration.")] = None
    migratedVolumes: Annotated[list[MigratedVolume] | None, Field("Volumes that move.")] = None
    qosClass: Annotated[str | None, Field("Class of service.")] = None
    launcherContainerImageVersion: Annotated[str | None, Field("Version of the launcher.")] = None
    evacuationNodeName: Annotated[str | None, Field("Node that is being emptied.")] = None
    activePods: Annotated[dict[str, str] | None, Field("Node of each running process, by UID.")] = None
    topologyHints: Annotated[TopologyHints | None, Field("What the machine needs of its node.")] = None
    virtualMachineRevisionName: Annotated[str | None, Field("ControllerRevision of the spec that was started.")] = None
    runtimeUser: Annotated[int | None, Field("User id of the process.", ge=0)] = None
    VSOCKCID: Annotated[int | None, Field("VSOCK address.", ge=0, le=4294967295)] = None
    selinuxContext: Annotated[str | None, Field("SELinux context of the process.")] = None
    changedBlockTracking: Annotated[ChangedBlockTracking | None, Field("Tracking of changed blocks.", nullable=True)] = None
