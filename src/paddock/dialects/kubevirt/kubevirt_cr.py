"""`kubevirt.io/v1 KubeVirt`: the installation and its configuration (docs/spec/kubevirt.md 1.1, 2.8, 2.9, 7.5).

Paddock has one object of it, `kubevirt/kubevirt`. Manifests of an installation are kept whole; what has no meaning on one host
says so.
"""

from typing import Annotated

from paddock.dialects.kubevirt.instance import EVICTION_STRATEGIES, GROUP, VERSIONS
from paddock.meta.conditions import Condition
from paddock.meta.objects import LocalReference, Resource
from paddock.schema.field import Field, Freeform, Object, Quantity
from paddock.schema.kind import AGE, Column, Kind

_NOT_INSTALLED = "there is no installation to manage"
_NO_CLUSTER = "has no meaning on one host"


class DeveloperConfiguration(Object):
    """Switches."""

    OPEN = True

    featureGates: Annotated[list[str] | None, Field("Features that are switched on.", max_items=256)] = None
    disabledFeatureGates: Annotated[list[str] | None, Field("Features that are switched off.", max_items=256)] = None
    useEmulation: Annotated[bool | None, Field("Run without hardware acceleration when there is none.")] = None
    cpuAllocationRatio: Annotated[int | None, Field("vCPUs for one processor that is asked for; default: 10.", ge=1)] = None
    memoryOvercommit: Annotated[int | None, Field("Percent of the memory that is asked for; default: 100.", ge=1)] = None


class LiveUpdateConfiguration(Object):
    """Room for growing while a machine runs."""

    maxHotplugRatio: Annotated[int | None, Field("How much more than at start; default: 4.", ge=1)] = None
    maxCpuSockets: Annotated[int | None, Field("Most sockets of a machine.", ge=1)] = None
    maxGuest: Annotated[Quantity | None, Field("Most memory of a machine.")] = None


class DefaultNetworkConfiguration(Object):
    """The default network of machines."""

    OPEN = True

    defaultNetworkInterface: Annotated[str | None, Field("Binding of the default network.", enum=("bridge", "masquerade"))] = None
    permitBridgeInterfaceOnPodNetwork: Annotated[bool | None, Field("Whether a bridge binding may be on the pod network.")] = None


class InstancetypeConfiguration(Object):
    """The way machines keep their instancetype."""

    referencePolicy: Annotated[
        str | None,
        Field("Whether a machine keeps a reference or the values; default: reference.", enum=("reference", "expand", "expandAll")),
    ] = None


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
    vmStateStorageClass: Annotated[str | None, Field("Class of the claims for TPM and EFI state.")] = None
    permittedHostDevices: Annotated[Freeform | None, Field("Devices of the host that machines may have.")] = None
    migrations: Annotated[Freeform | None, Field("How machines migrate.", not_honoured=_NO_CLUSTER)] = None
    apiConfiguration: Annotated[Freeform | None, Field("Limits of the API servers' clients.", not_honoured=_NO_CLUSTER)] = None
    webhookConfiguration: Annotated[Freeform | None, Field("Limits of the webhooks' clients.", not_honoured=_NO_CLUSTER)] = None
    controllerConfiguration: Annotated[Freeform | None, Field("Limits of the controllers' clients.", not_honoured=_NO_CLUSTER)] = None
    handlerConfiguration: Annotated[Freeform | None, Field("Limits of the handlers' clients.", not_honoured=_NO_CLUSTER)] = None
    selinuxLauncherType: Annotated[str | None, Field("SELinux type of launchers.", not_honoured=_NO_CLUSTER)] = None
    ksmConfiguration: Annotated[Freeform | None, Field("Nodes that merge equal memory.", not_honoured=_NO_CLUSTER)] = None


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
