"""`kubevirt.io/v1 KubeVirt`: the installation and its configuration (docs/spec/kubevirt.md 1.1, 2.8, 2.9, 7.5).

Paddock has one object of it, `kubevirt/kubevirt`. Manifests of an installation are kept whole; what has no meaning on one host
says so.
"""

from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import LocalReference, Resource
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema.field import Field, Freeform, Object, Quantity
from paddock.kubernetes.schema.kind import AGE, Column, Kind
from paddock.kubevirt.kinds.instance import EVICTION_STRATEGIES, GROUP, VERSIONS

_NOT_INSTALLED = "there is no installation to manage"
_NO_CLUSTER = "has no meaning on one host"
_NO_LAUNCHER = "concerns KubeVirt's launcher Pods, which are views here"
_NO_HARDWARE = "devices of the host are not passed on"
_OWN_CHOICE = "the engine chooses by what the host has"


class DeveloperConfiguration(Object):
    """Switches."""

    OPEN = True

    featureGates: Annotated[list[str] | None, Field("Features that are switched on.", max_items=256)] = None
    disabledFeatureGates: Annotated[list[str] | None, Field("Features that are switched off.", max_items=256)] = None
    useEmulation: Annotated[
        bool | None,
        Field("Run without hardware acceleration when there is none.", not_honoured="guests are emulated where KVM cannot run them"),
    ] = None
    cpuAllocationRatio: Annotated[
        int | None, Field("vCPUs for one processor that is asked for; default: 10.", ge=1, not_honoured="it is 10")
    ] = None
    memoryOvercommit: Annotated[
        int | None,
        Field("Percent of the memory that is asked for; default: 100.", ge=1, not_honoured="`paddock up --memory-overcommit` decides"),
    ] = None
    pvcTolerateLessSpaceUpToPercent: Annotated[int | None, Field("Room that a host disk may lack.", not_honoured=_NO_LAUNCHER)] = None
    minimumReservePVCBytes: Annotated[int | None, Field("Room that host disks leave.", not_honoured=_NO_LAUNCHER)] = None
    nodeSelectors: Annotated[dict[str, str] | None, Field("Nodes of all machines.", not_honoured=_NO_CLUSTER)] = None
    minimumClusterTSCFrequency: Annotated[int | None, Field("Frequency of the time stamp counter.", not_honoured=_NO_CLUSTER)] = None
    diskVerification: Annotated[Freeform | None, Field("Memory to look at a container disk with.", not_honoured=_NO_LAUNCHER)] = None
    logVerbosity: Annotated[Freeform | None, Field("How much components log.", not_honoured="`--log-level` decides")] = None
    clusterProfiler: Annotated[bool | None, Field("Profiles of the components.", not_honoured=_NOT_INSTALLED)] = None


class LiveUpdateConfiguration(Object):
    """Room for growing while a machine runs."""

    maxHotplugRatio: Annotated[int | None, Field("How much more than at start; default: 4.", ge=1)] = None
    maxCpuSockets: Annotated[int | None, Field("Most sockets of a machine.", ge=1)] = None
    maxGuest: Annotated[Quantity | None, Field("Most memory of a machine.")] = None


class DefaultNetworkConfiguration(Object):
    """The default network of machines."""

    OPEN = True

    defaultNetworkInterface: Annotated[str | None, Field("Binding of the default network.", enum=("bridge", "masquerade"))] = None
    permitBridgeInterfaceOnPodNetwork: Annotated[
        bool | None, Field("Whether a bridge binding may be on the pod network.", not_honoured="it may")
    ] = None
    permitSlirpInterface: Annotated[
        bool | None, Field("Whether a slirp binding is permitted.", not_honoured="KubeVirt has no such binding any more")
    ] = None


class InstancetypeConfiguration(Object):
    """The way machines keep their instancetype."""

    referencePolicy: Annotated[
        str | None,
        Field("Whether a machine keeps a reference or the values; default: reference.", enum=("reference", "expand", "expandAll")),
    ] = None


class ChangedBlockTrackingSelectors(Object):
    """The machines whose changed blocks are followed; one of the two is enough."""

    namespaceLabelSelector: Annotated[LabelSelector | None, Field("All machines of namespaces with these labels.")] = None
    virtualMachineLabelSelector: Annotated[LabelSelector | None, Field("Machines with these labels.")] = None


class KubeVirtConfiguration(Object):
    """The settings for all machines. Further fields are kept."""

    OPEN = True

    developerConfiguration: Annotated[DeveloperConfiguration | None, Field("Switches.")] = None
    cpuModel: Annotated[str | None, Field("Processor model of machines that name none; default: host-model.")] = None
    machineType: Annotated[str | None, Field("Machine type of machines that name none.")] = None
    evictionStrategy: Annotated[str | None, Field("Of machines that name none; default: None.", enum=EVICTION_STRATEGIES)] = None
    imagePullPolicy: Annotated[
        str | None, Field("When container disks are pulled that do not say it.", enum=("Always", "IfNotPresent", "Never"))
    ] = None
    vmRolloutStrategy: Annotated[
        str | None, Field("Whether changes reach running machines; default: LiveUpdate.", enum=("Stage", "LiveUpdate"))
    ] = None
    liveUpdateConfiguration: Annotated[LiveUpdateConfiguration | None, Field("Room for growing while a machine runs.")] = None
    network: Annotated[DefaultNetworkConfiguration | None, Field("How machines are connected that do not say it.")] = None
    instancetype: Annotated[InstancetypeConfiguration | None, Field("How machines keep their instancetype.")] = None
    vmStateStorageClass: Annotated[
        str | None, Field("Class of the claims for TPM and EFI state.", not_honoured="the engine keeps it with the machine")
    ] = None
    permittedHostDevices: Annotated[Freeform | None, Field("Devices of the host that machines may have.", not_honoured=_NO_HARDWARE)] = None
    migrations: Annotated[Freeform | None, Field("How machines migrate.", not_honoured=_NO_CLUSTER)] = None
    apiConfiguration: Annotated[Freeform | None, Field("Limits of the API servers' clients.", not_honoured=_NO_CLUSTER)] = None
    webhookConfiguration: Annotated[Freeform | None, Field("Limits of the webhooks' clients.", not_honoured=_NO_CLUSTER)] = None
    controllerConfiguration: Annotated[Freeform | None, Field("Limits of the controllers' clients.", not_honoured=_NO_CLUSTER)] = None
    handlerConfiguration: Annotated[Freeform | None, Field("Limits of the handlers' clients.", not_honoured=_NO_CLUSTER)] = None
    selinuxLauncherType: Annotated[str | None, Field("SELinux type of launchers.", not_honoured=_NO_CLUSTER)] = None
    ksmConfiguration: Annotated[Freeform | None, Field("Nodes that merge equal memory.", not_honoured=_NO_CLUSTER)] = None
    cpuRequest: Annotated[Quantity | None, Field("Processors that launchers request.", not_honoured=_NO_LAUNCHER)] = None
    defaultRuntimeClass: Annotated[str | None, Field("Runtime class of launchers.", not_honoured=_NO_LAUNCHER)] = None
    supportContainerResources: Annotated[
        list[Freeform] | None, Field("Resources of containers beside a guest.", not_honoured=_NO_LAUNCHER)
    ] = None
    additionalGuestMemoryOverheadRatio: Annotated[
        str | None, Field("Factor of the memory that a launcher requests beside the guest's.", not_honoured=_NO_LAUNCHER)
    ] = None
    autoCPULimitNamespaceLabelSelector: Annotated[
        Freeform | None, Field("Namespaces whose launchers get a limit of processors.", not_honoured=_NO_LAUNCHER)
    ] = None
    seccompConfiguration: Annotated[Freeform | None, Field("System calls of launchers.", not_honoured=_NO_LAUNCHER)] = None
    emulatedMachines: Annotated[list[str] | None, Field("Machine types that are permitted.", not_honoured=_OWN_CHOICE)] = None
    architectureConfiguration: Annotated[Freeform | None, Field("Machine types by architecture.", not_honoured=_OWN_CHOICE)] = None
    ovmfPath: Annotated[str | None, Field("Directory of the firmware.", not_honoured=_OWN_CHOICE)] = None
    minCPUModel: Annotated[str | None, Field("Least processor model of nodes.", not_honoured=_NO_CLUSTER)] = None
    obsoleteCPUModels: Annotated[Freeform | None, Field("Processor models that nodes do not offer.", not_honoured=_NO_CLUSTER)] = None
    virtualMachineInstancesPerNode: Annotated[
        int | None, Field("Most machines of a node.", not_honoured="a ResourceQuota limits machines")
    ] = None
    smbios: Annotated[
        Freeform | None, Field("What guests read of their maker.", not_honoured="guests read what each machine and KubeVirt's defaults say")
    ] = None
    supportedGuestAgentVersions: Annotated[
        list[str] | None, Field("Versions of guest agents.", not_honoured="the agent's commands decide")
    ] = None
    memBalloonStatsPeriod: Annotated[
        int | None, Field("Seconds between reports of a guest's memory.", not_honoured="reports come when they are read")
    ] = None
    mediatedDevicesConfiguration: Annotated[Freeform | None, Field("Virtual devices of GPUs.", not_honoured=_NO_HARDWARE)] = None
    persistentReservationConfiguration: Annotated[Freeform | None, Field("Reservations of SCSI disks.", not_honoured=_NO_HARDWARE)] = None
    confidentialCompute: Annotated[Freeform | None, Field("Encrypted memory of guests.", not_honoured=_NO_HARDWARE)] = None
    tlsConfiguration: Annotated[Freeform | None, Field("TLS of KubeVirt's servers.", not_honoured=_NOT_INSTALLED)] = None
    commonInstancetypesDeployment: Annotated[
        Freeform | None, Field("Whether the common instancetypes are installed.", not_honoured=_NOT_INSTALLED)
    ] = None
    virtTemplateDeployment: Annotated[Freeform | None, Field("Whether templates are installed.", not_honoured=_NOT_INSTALLED)] = None
    roleAggregationStrategy: Annotated[str | None, Field("Whether roles are aggregated.", not_honoured="they are")] = None
    hypervisors: Annotated[list[Freeform] | None, Field("Hypervisors of nodes.", not_honoured=_NO_CLUSTER)] = None
    virtualMachineOptions: Annotated[
        Freeform | None, Field("Features that all machines lack.", not_honoured="each machine says what it has")
    ] = None
    changedBlockTrackingLabelSelectors: Annotated[
        ChangedBlockTrackingSelectors | None, Field("Machines that have increments of backups.", nullable=True)
    ] = None


class KubeVirtSpec(Object):
    """The installation and what holds for all machines."""

    configuration: Annotated[KubeVirtConfiguration | None, Field("What holds for all machines.")] = None
    certificateRotateStrategy: Annotated[Freeform | None, Field("How long certificates last.", not_honoured=_NOT_INSTALLED)] = None
    customizeComponents: Annotated[Freeform | None, Field("Patches of the installation.", not_honoured=_NOT_INSTALLED)] = None
    imagePullPolicy: Annotated[str | None, Field("When images are pulled.", not_honoured=_NOT_INSTALLED)] = None
    imagePullSecrets: Annotated[list[LocalReference] | None, Field("Secrets for images.", not_honoured=_NOT_INSTALLED)] = None
    imageRegistry: Annotated[str | None, Field("Registry of the installation.", not_honoured=_NOT_INSTALLED)] = None
    imageTag: Annotated[str | None, Field("Version of the installation.", not_honoured=_NOT_INSTALLED)] = None
    infra: Annotated[Freeform | None, Field("Where controllers run.", not_honoured=_NOT_INSTALLED)] = None
    workloads: Annotated[Freeform | None, Field("Where machines run.", not_honoured=_NOT_INSTALLED)] = None
    monitorNamespace: Annotated[str | None, Field("Namespace of the monitoring.", not_honoured=_NOT_INSTALLED)] = None
    monitorAccount: Annotated[str | None, Field("Account of the monitoring.", not_honoured=_NOT_INSTALLED)] = None
    serviceMonitorNamespace: Annotated[str | None, Field("Namespace of the monitors.", not_honoured=_NOT_INSTALLED)] = None
    productName: Annotated[str | None, Field("Label of what is installed.", not_honoured=_NOT_INSTALLED)] = None
    productVersion: Annotated[str | None, Field("Label of what is installed.", not_honoured=_NOT_INSTALLED)] = None
    productComponent: Annotated[str | None, Field("Label of what is installed.", not_honoured=_NOT_INSTALLED)] = None
    synchronizationPort: Annotated[str | None, Field("Port between clusters.", not_honoured=_NOT_INSTALLED)] = None
    uninstallStrategy: Annotated[
        str | None,
        Field(
            "What happens on removal.",
            enum=("RemoveWorkloads", "BlockUninstallIfWorkloadsExist"),
            not_honoured=_NOT_INSTALLED,
        ),
    ] = None
    workloadUpdateStrategy: Annotated[Freeform | None, Field("How machines get a new version.", not_honoured=_NOT_INSTALLED)] = None


class KubeVirtStatus(Object):
    """The observed state. Further fields are kept."""

    OPEN = True

    phase: Annotated[str | None, Field("Deploying, Deployed, Deleting or Deleted.")] = None
    conditions: Annotated[list[Condition] | None, Field("Available, Progressing, Degraded, Created.", keys=("type",))] = None
    operatorVersion: Annotated[str | None, Field("Version of the operator.")] = None
    targetKubeVirtVersion: Annotated[str | None, Field("Version that is wanted.")] = None
    observedKubeVirtVersion: Annotated[str | None, Field("Version that is there.")] = None
    observedGeneration: Annotated[int | None, Field("The generation that was last applied.")] = None
    defaultArchitecture: Annotated[str | None, Field("Architecture of machines that name none.")] = None
    synchronizationAddresses: Annotated[list[str] | None, Field("Where other servers hand running guests over.")] = None


class KubeVirt(Resource):
    """The installation and what holds for all machines. There is one, `kubevirt` in the namespace `kubevirt`."""

    spec: Annotated[KubeVirtSpec, Field("The installation and its configuration.", required=True)] = KubeVirtSpec()
    status: Annotated[KubeVirtStatus | None, Field("What is there.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="KubeVirt",
        plural="kubevirts",
        singular="kubevirt",
        short_names=("kv", "kvs"),
        categories=("all",),
        cls=KubeVirt,
        dialect="kubevirt",
        versions=VERSIONS,
        columns=(AGE, Column("Phase", ".status.phase")),
    ),
)
