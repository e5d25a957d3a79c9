"""VirtRigaud's Provider: a hypervisor and the program that speaks with it (docs/spec/virtrigaud.md section 1.5)."""

from typing import Annotated

from paddock.dialects.virtrigaud.kinds.shared import GROUP, PROVIDER_TYPES, VERSIONS, Conditions, ObjectRef, ObservedGeneration, SecretName
from paddock.dialects.virtrigaud.rules import provider as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.pods import Affinity, EnvVar, Toleration
from paddock.kubernetes.meta.storage import ResourceRequirements
from paddock.kubernetes.schema.field import Field, Freeform, Object, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

_HOST = r"([a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])"
ENDPOINT_PATTERN = (
    rf"^(https?://{_HOST}(:[0-9]+)?(/.*)?|(tcp|grpc)://{_HOST}:[0-9]+(/.*)?"
    rf"|qemu(\+ssh|\+tcp|\+tls)?://([a-zA-Z0-9_.-]+@)?({_HOST})?(:[0-9]+)?/.*)$"
)
# A registry with a port is a registry, too.
IMAGE_PATTERN = r"^[a-zA-Z0-9._/-]+(:[0-9]+/[a-zA-Z0-9._/-]+)?(:[a-zA-Z0-9._-]+)?(@[a-zA-Z0-9]+:[a-fA-F0-9]{64})?$"
CAPABILITIES = (
    "VirtualMachines",
    "Snapshots",
    "Cloning",
    "LiveMigration",
    "ConsoleAccess",
    "DiskManagement",
    "NetworkManagement",
    "GPUPassthrough",
    "HighAvailability",
    "Backup",
    "Templates",
)


class ProviderDefaults(Object):
    """The default place of machines."""

    STRANGERS = {
        "datacenter": "write VSPHERE_DATACENTER in runtime.env",
        "storagePool": "write datastore, which is a pool of libvirt; a cluster of datastores is storagePod",
    }

    datastore: Annotated[str | None, Field("Datastore; not together with storagePod.", max_length=255)] = None
    storagePod: Annotated[
        str | None,
        Field("Datastore cluster of which the member with most free space is taken; not together with datastore.", max_length=255),
    ] = None
    cluster: Annotated[str | None, Field("Compute cluster.", max_length=255)] = None
    folder: Annotated[str | None, Field("Folder.", max_length=255)] = None
    resourcePool: Annotated[str | None, Field("Resource pool.", max_length=255)] = None
    network: Annotated[str | None, Field("Network.", max_length=255)] = None


class RateLimit(Object):
    """The limit of calls to the provider."""

    qps: Annotated[int, Field("Calls in a second.", ge=1, le=1000)] = 10
    burst: Annotated[int, Field("Calls at a time.", ge=1, le=2000)] = 20


class ServiceTLS(Object):
    """Transport security between Paddock and the provider."""

    enabled: Annotated[bool, Field("Whether the transport is encrypted.")] = True
    secretRef: Annotated[SecretName | None, Field("Secret with tls.crt, tls.key and ca.crt; default: certificates are managed.")] = None
    insecureSkipVerify: Annotated[bool, Field("Do not verify the other side (development only).")] = False


class ProviderService(Object):
    """The gRPC service of the provider."""

    port: Annotated[int, Field("Port.", ge=1024, le=65535)] = 9443
    tls: Annotated[ServiceTLS | None, Field("Transport security; default: encrypted with managed certificates.")] = None


class ProviderRuntime(Object):
    """The program of the provider."""

    STRANGERS = {
        "version": "write it as the tag of image",
        "tls": "write service.tls",
    }

    mode: Annotated[str, Field("Where it runs.", enum=("Remote",))] = "Remote"
    image: Annotated[
        str,
        Field("Container image of the program.", required=True, pattern=IMAGE_PATTERN, message="must be a container image reference"),
    ] = ""
    imagePullPolicy: Annotated[str, Field("When the image is pulled.", enum=("Always", "Never", "IfNotPresent"))] = "IfNotPresent"
    imagePullSecrets: Annotated[list[SecretName] | None, Field("Secrets to pull it with.", max_items=10)] = None
    replicas: Annotated[int, Field("Number of instances.", ge=1, le=10)] = 1
    service: Annotated[ProviderService | None, Field("Its gRPC service.")] = None
    resources: Annotated[ResourceRequirements | None, Field("Resources of its pods.")] = None
    nodeSelector: Annotated[dict[str, str] | None, Field("Labels of the nodes it may run on.", key_format="label-key")] = None
    tolerations: Annotated[list[Toleration] | None, Field("Taints of nodes it tolerates.", max_items=20)] = None
    affinity: Annotated[Affinity | None, Field("Nodes it prefers or avoids.")] = None
    securityContext: Annotated[Freeform | None, Field("Security context of its pods.")] = None
    logLevel: Annotated[str, Field("How much it logs.", enum=("debug", "info", "warn", "error"))] = "info"
    logFormat: Annotated[str, Field("Form of its log.", enum=("text", "json"))] = "text"
    env: Annotated[list[EnvVar] | None, Field("More environment variables.", max_items=50)] = None
    livenessProbe: Annotated[Freeform | None, Field("Probe that restarts it.")] = None
    readinessProbe: Annotated[Freeform | None, Field("Probe that says it can be called.")] = None


class HealthCheck(Object):
    """The health checks of the provider."""

    enabled: Annotated[bool, Field("Whether it is watched.")] = True
    interval: Annotated[str, Field("Time between two checks.", format="duration")] = "30s"
    timeout: Annotated[str, Field("How long a check may take.", format="duration")] = "10s"
    failureThreshold: Annotated[int, Field("Failures in a row that make it unhealthy.", ge=1, le=10)] = 3
    successThreshold: Annotated[int, Field("Successes in a row that make it healthy.", ge=1, le=10)] = 1


class ConnectionPooling(Object):
    """Connections to the provider."""

    maxConnections: Annotated[int, Field("Most connections.", ge=1, le=100)] = 10
    maxIdleConnections: Annotated[int, Field("Most connections that wait.", ge=1, bits=32)] = 5
    connectionTimeout: Annotated[str, Field("How long connecting may take.", format="duration")] = "30s"
    idleTimeout: Annotated[str, Field("How long a connection may wait.", format="duration")] = "5m"


class ProviderSpec(Object):
    """A hypervisor and how to reach it."""

    type: Annotated[str, Field("Kind of hypervisor.", required=True, enum=PROVIDER_TYPES)] = ""
    endpoint: Annotated[
        str,
        Field(
            "Address of the hypervisor.",
            required=True,
            pattern=ENDPOINT_PATTERN,
            message="must be http(s)://host, tcp://host:port, grpc://host:port, or qemu://host/path with +ssh, +tcp or +tls and a user",
        ),
    ] = ""
    credentialSecretRef: Annotated[ObjectRef, Field("Secret with the credentials, in the Provider's own namespace.", required=True)] = (
        ObjectRef()
    )
    insecureSkipVerify: Annotated[bool, Field("Do not verify the hypervisor's certificate (development only).")] = False
    defaults: Annotated[ProviderDefaults | None, Field("Where machines are put that do not say it.")] = None
    rateLimit: Annotated[RateLimit | None, Field("How often it may be called.")] = None
    runtime: Annotated[
        ProviderRuntime,
        Field(
            "How the program of the provider runs.",
            required=True,
            needed='the provider always runs by itself; give its image, or "none:1" where it runs on this server',
        ),
    ] = ProviderRuntime()
    healthCheck: Annotated[HealthCheck | None, Field("How its health is watched.")] = None
    connectionPooling: Annotated[ConnectionPooling | None, Field("Connections to it.")] = None


class ReportedCapabilities(Object):
    """The abilities that the provider reports."""

    supportsReconfigureOnline: Annotated[bool | None, Field("Change CPU and memory of a running machine.")] = None
    supportsDiskExpansionOnline: Annotated[bool | None, Field("Grow a disk of a running machine.")] = None
    supportsSnapshots: Annotated[bool | None, Field("Snapshots.")] = None
    supportsMemorySnapshots: Annotated[bool | None, Field("Snapshots with memory.")] = None
    supportsLinkedClones: Annotated[bool | None, Field("Linked clones.")] = None
    supportsImageImport: Annotated[bool | None, Field("Import of images.")] = None
    supportsDiskExport: Annotated[bool | None, Field("Export of disks.")] = None
    supportsDiskImport: Annotated[bool | None, Field("Import of disks.")] = None
    supportsExportCompression: Annotated[bool | None, Field("Compressed exports.")] = None
    supportedDiskTypes: Annotated[list[str] | None, Field("Disk types.")] = None
    supportedNetworkTypes: Annotated[list[str] | None, Field("Network types.")] = None
    supportedExportFormats: Annotated[list[str] | None, Field("Formats of exported disks.")] = None
    supportedImportFormats: Annotated[list[str] | None, Field("Formats of imported disks.")] = None
    supportedExportBackends: Annotated[list[str] | None, Field("Storage it can export to.")] = None
    supportedImportBackends: Annotated[list[str] | None, Field("Storage it can import from.")] = None
    supportedTransferModes: Annotated[list[str] | None, Field("Ways of moving data.")] = None
    features: Annotated[list[str] | None, Field("What it can do beyond upstream's contract; none for upstream's providers.")] = None


class RuntimeStatus(Object):
    """The observed state of the provider's program."""

    mode: Annotated[str | None, Field("Where it runs.")] = None
    endpoint: Annotated[str | None, Field("Where it listens.")] = None
    serviceRef: Annotated[SecretName | None, Field("Its Service.")] = None
    phase: Annotated[str | None, Field("Where it is in its life.", enum=("Pending", "Starting", "Running", "Stopping", "Failed"))] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    readyReplicas: Annotated[int | None, Field("Instances that are ready.", bits=32)] = None
    availableReplicas: Annotated[int | None, Field("Instances that are available.", bits=32)] = None


class UsageQuantity(Object):
    """The usage of a resource."""

    total: Annotated[int | None, Field("All of it.")] = None
    used: Annotated[int | None, Field("What is used.")] = None
    available: Annotated[int | None, Field("What is left.")] = None
    usagePercent: Annotated[int | None, Field("Part that is used.", bits=32)] = None


class NetworkUsage(Object):
    """The traffic over the network."""

    bytesReceived: Annotated[int | None, Field("Bytes received.")] = None
    bytesSent: Annotated[int | None, Field("Bytes sent.")] = None
    packetsReceived: Annotated[int | None, Field("Packets received.")] = None
    packetsSent: Annotated[int | None, Field("Packets sent.")] = None


class ResourceUsage(Object):
    """The usage of the hypervisor."""

    cpu: Annotated[UsageQuantity | None, Field("Processors.")] = None
    memory: Annotated[UsageQuantity | None, Field("Memory.")] = None
    storage: Annotated[UsageQuantity | None, Field("Storage.")] = None
    network: Annotated[NetworkUsage | None, Field("Network.")] = None


class AdoptionStatus(Object):
    """The machines that were found at the provider, and their adoption."""

    lastDiscoveryTime: Annotated[Time | None, Field("When it was last looked.")] = None
    discoveredVMs: Annotated[int | None, Field("Machines that were found.", bits=32)] = None
    adoptedVMs: Annotated[int | None, Field("Machines that were adopted.", bits=32)] = None
    failedAdoptions: Annotated[int | None, Field("Machines that could not be adopted.", bits=32)] = None
    message: Annotated[str | None, Field("More about it.")] = None


class ProviderStatus(Object):
    """The observed state of a provider."""

    healthy: Annotated[bool | None, Field("Whether it answers.")] = None
    lastHealthCheck: Annotated[Time | None, Field("When it was last asked.")] = None
    runtime: Annotated[RuntimeStatus | None, Field("How its program is.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    version: Annotated[str | None, Field("Version of the provider.")] = None
    connectedVMs: Annotated[int | None, Field("Number of machines that name it.", ge=0, bits=32)] = None
    capabilities: Annotated[list[Annotated[str, Field(enum=CAPABILITIES)]] | None, Field("What it can do, in words.")] = None
    reportedCapabilities: Annotated[ReportedCapabilities | None, Field("What it says it can do.")] = None
    resourceUsage: Annotated[ResourceUsage | None, Field("How much of the hypervisor is used.")] = None
    adoption: Annotated[AdoptionStatus | None, Field("Adoption of machines that were found.")] = None


class Provider(Resource):
    """A hypervisor, and the program that speaks with it."""

    spec: Annotated[ProviderSpec, Field("The hypervisor and how to reach it.", required=True)] = ProviderSpec()
    status: Annotated[ProviderStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="Provider",
        plural="providers",
        singular="provider",
        short_names=("prov",),
        cls=Provider,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Type", ".spec.type"),
            Column("Endpoint", ".spec.endpoint"),
            Column("Healthy", ".status.healthy", "boolean"),
            Column("Connected VMs", ".status.connectedVMs", "integer"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
