"""`kubevirt.io/v1 VirtualMachineInstance`: one run of a machine."""

from typing import Annotated

from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.meta.pods import Affinity, DNSConfig, Toleration, TopologySpreadConstraint
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.kind import AGE, Column, Kind, Version
from paddock.kubevirt.kinds.access import AccessCredential, Probe
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.networks import Network
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.kinds.volumes import UtilityVolume, Volume
from paddock.kubevirt.rules import instance as rules

EVICTION_STRATEGIES = ("None", "LiveMigrate", "LiveMigrateIfPossible", "External")
DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
ARCHITECTURES = ("amd64", "arm64", "s390x")
GROUP = "kubevirt.io"
# The label of a machine whose emulator is not the host's any more.
OUTDATED = "kubevirt.io/outdatedLauncherImage"
VERSIONS = (Version("v1"), Version("v1alpha3", storage=False, deprecated="kubevirt.io/v1alpha3 is deprecated; use kubevirt.io/v1"))


class ResourceClaimRequest(Object):
    """A resource claim (DRA) of the machine."""

    name: Annotated[str, Field("Name of the entry.", required=True)] = ""
    resourceClaimName: Annotated[str | None, Field("Name of a ResourceClaim.")] = None
    resourceClaimTemplateName: Annotated[str | None, Field("Name of a ResourceClaimTemplate.")] = None


class VirtualMachineInstanceSpec(Object):
    """The hardware of a machine and where it runs."""

    domain: Annotated[DomainSpec, Field("The virtual hardware.", required=True)] = DomainSpec()
    volumes: Annotated[
        list[Volume] | None, Field("Volumes.", max_items=256, keys=("name",), message="two volumes must not have the same Name")
    ] = None
    networks: Annotated[
        list[Network] | None, Field("Networks.", max_items=256, keys=("name",), message="two networks must not have the same name")
    ] = None
    hostname: Annotated[
        str | None, Field("Host name of the guest; default: the machine's name.", format="dns1123-label", empty_is_unset=True)
    ] = None
    subdomain: Annotated[
        str | None, Field("Domain of the guest within its namespace.", format="dns1123-subdomain", empty_is_unset=True)
    ] = None
    architecture: Annotated[
        str | None, Field("Architecture of the guest; default: the host's.", enum=ARCHITECTURES, empty_is_unset=True)
    ] = None
    terminationGracePeriodSeconds: Annotated[int | None, Field("Seconds for a clean shutdown before power is cut; default: 30.", ge=0)] = (
        None
    )
    evictionStrategy: Annotated[str | None, Field("What happens when the node is emptied.", enum=EVICTION_STRATEGIES)] = None
    startStrategy: Annotated[str | None, Field("Paused: start the machine paused.", enum=("Paused",))] = None
    accessCredentials: Annotated[list[AccessCredential] | None, Field("Who may log in.", max_items=256)] = None
    livenessProbe: Annotated[Probe | None, Field("Ends the machine when it fails.")] = None
    readinessProbe: Annotated[Probe | None, Field("Decides whether the machine is ready.")] = None
    nodeSelector: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]] | None,
        Field("Labels a node must have.", key_format="label-key"),
    ] = None
    affinity: Annotated[Affinity | None, Field("Where the machine should run.")] = None
    tolerations: Annotated[list[Toleration] | None, Field("Taints of nodes that are tolerated.")] = None
    topologySpreadConstraints: Annotated[
        list[TopologySpreadConstraint] | None,
        Field("How evenly machines are spread.", keys=("topologyKey", "whenUnsatisfiable")),
    ] = None
    priorityClassName: Annotated[str | None, Field("PriorityClass of the machine.")] = None
    schedulerName: Annotated[str | None, Field("Scheduler that chooses the node.")] = None
    serviceAccountName: Annotated[
        str | None, Field("Service account of the machine's process.", format="dns1123-subdomain", empty_is_unset=True)
    ] = None
    dnsPolicy: Annotated[str | None, Field("DNS settings of the guest; default: ClusterFirst.", enum=DNS_POLICIES, empty_is_unset=True)] = (
        None
    )
    dnsConfig: Annotated[DNSConfig | None, Field("Settings of DNS.")] = None
    resourceClaims: Annotated[
        list[ResourceClaimRequest] | None, Field("Resource claims.", keys=("name",), not_honoured="resource claims (DRA) are refused")
    ] = None
    utilityVolumes: Annotated[
        list[UtilityVolume] | None, Field("Claims beside the disks.", max_items=256, keys=("name",), not_honoured="nothing here uses them")
    ] = None


class VirtualMachineInstanceTemplate(Object):
    """The template of a running machine."""

    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations of the running machine.", nullable=True)] = None
    spec: Annotated[VirtualMachineInstanceSpec, Field("Its hardware and where it runs.", zero=True)] = VirtualMachineInstanceSpec()


class VirtualMachineInstance(Resource):
    """One run of a machine. It goes when the machine stops; VirtualMachine keeps what stays."""

    spec: Annotated[VirtualMachineInstanceSpec, Field("The hardware and where it runs.", required=True)] = VirtualMachineInstanceSpec()
    status: Annotated[VirtualMachineInstanceStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachineInstance",
        plural="virtualmachineinstances",
        singular="virtualmachineinstance",
        short_names=("vmi", "vmis"),
        categories=("all",),
        cls=VirtualMachineInstance,
        dialect="kubevirt",
        rewritten=True,
        versions=VERSIONS,
        # The status is written with the object: there is no subresource.
        status=False,
        columns=(
            AGE,
            Column("Phase", ".status.phase"),
            Column("IP", ".status.interfaces[0].ipAddress"),
            Column("NodeName", ".status.nodeName"),
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            Column("Live-Migratable", ".status.conditions[?(@.type=='LiveMigratable')].status", wide=True),
            Column("Paused", ".status.conditions[?(@.type=='Paused')].status", wide=True),
        ),
        rules=rules.RULES,
        transitions=rules.TRANSITIONS,
    ),
)
