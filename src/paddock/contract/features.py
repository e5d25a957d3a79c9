"""Names of what a provider can do beyond `provider.v1`: calls of the extension service, and members of payloads that it takes.

A name stands for all that begins with it and a dot: a provider with `class` takes every member of a class. A provider that reports nothing
has none of them, as all of upstream's.
"""

from collections.abc import Iterable

# Calls.
EXEC = "exec"
IMAGE_DELETE = "image-delete"
TRANSFER_DELETE = "transfer-delete"
DATASTORES = "datastores"

# All members of a class, or of a disk.
CLASS = "class"
DISKS = "disks"

# What GetCapabilities says of hosts, as a Provider's status keeps it: machines are addressed on their hosts.
CLUSTERING = "clustering"

# Members that only Paddock sends.
RESOURCE_POOL = "placement.resourcePool"
STORAGE_CLASS = "disks.storageClass"
SCSI = "disks.scsi"
# A disk of a create is an imported one.
IMPORTED_DISKS = "disks.path"
# A clone of a machine as it was in a snapshot.
CLONE_SNAPSHOT = "clone.snapshotId"
GPU = "class.gpu"
NETWORK_QOS = "networks.qos"
NETWORK_SECURITY = "networks.security"
# Members of the manifest's classes and networks, below the names that they have there.
DISK_IOPS = "class.diskDefaults.iops"
DISK_STORAGE = "class.diskDefaults.storageClass"
NETWORK_MTU = "networks.mtu"
NETWORK_FIREWALL = "networks.firewall"
NETWORK_RATE = "networks.rateLimit"
NETWORK_DRIVER = "networks.driver"
NETWORK_FILTER = "networks.filterRef"
NETWORK_SWITCH = "networks.distributedSwitch"
NETWORK_VLANS = "networks.vlan"
NETWORK_SHAPING = "networks.trafficShaping"
NETWORK_ROUTES = "networks.routes"
NETWORK_SEARCH = "networks.searchDomains"
FULL_CLONE = "image.fullClone"
IMAGE_NODE = "image.node"
# The credentials of an image's source, which a manager sends to nobody else.
IMAGE_CREDENTIALS = "image.credentials"
# What an image's `prepare` says of storage and optimization.
IMAGE_PREPARE = "image.prepare"

# ListVMs tells the power of all machines at little cost, so that it may be called every few seconds.
LISTED_POWER = "list.power"

# Members of upstream's contract, which a provider may take and not obey.
GUEST_TOOLS = "class.guestToolsPolicy"
RESOURCE_LIMITS = "class.resourceLimits"
PERFORMANCE = "class.performanceProfile"
SECURITY = "class.securityProfile"

CALLS = (EXEC, IMAGE_DELETE, TRANSFER_DELETE, DATASTORES)
MEMBERS = (
    RESOURCE_POOL,
    STORAGE_CLASS,
    SCSI,
    IMPORTED_DISKS,
    CLONE_SNAPSHOT,
    GPU,
    NETWORK_QOS,
    NETWORK_SECURITY,
    DISK_IOPS,
    DISK_STORAGE,
    NETWORK_MTU,
    NETWORK_FIREWALL,
    NETWORK_RATE,
    NETWORK_DRIVER,
    NETWORK_FILTER,
    NETWORK_SWITCH,
    NETWORK_VLANS,
    NETWORK_SHAPING,
    NETWORK_ROUTES,
    NETWORK_SEARCH,
    FULL_CLONE,
    IMAGE_NODE,
    IMAGE_CREDENTIALS,
    IMAGE_PREPARE,
    GUEST_TOOLS,
    RESOURCE_LIMITS,
    PERFORMANCE,
    SECURITY,
)


def has(reported: Iterable[str] | None, feature: str) -> bool:
    """Return whether a feature is among those that were reported, by its own name or by one that stands for it."""
    return any(feature == each or feature.startswith(f"{each}.") for each in reported or ())
