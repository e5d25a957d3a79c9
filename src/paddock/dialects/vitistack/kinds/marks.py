"""Labels, annotations and the finalizer of the dialect: the words that live in metadata."""

API_VERSION = "vitistack.io/v1alpha1"

# Labels of generated objects.
MANAGED_BY = "vitistack.io/managed-by"
OPERATOR = "kubevirt-operator"
MACHINE = "vitistack.io/machine"
NETWORK_CONFIGURATION = "vitistack.io/network-configuration"

# Labels that a user writes. The first is copied to what is generated; on generated objects the second is `spec.template`.
CLUSTER_NAME = "cluster.vitistack.io/cluster-name"
MACHINE_TEMPLATE = "vitistack.io/machine-template"

# Annotations that a user writes.
ROOT_IMAGE = "vitistack.io/root-image"
POWER_STATE = "vitistack.io/power-state"
# Any change of its value makes a Failed machine start again.
RETRY = "vitistack.io/retry"
BOOT_SOURCE = "kubevirt.io/boot-source"
BOOT_SOURCE_TYPE = "kubevirt.io/boot-source-type"
# The size of the image in bytes, where somebody knows it.
BOOT_SOURCE_SIZE = "vitistack.io/boot-source-size"
OS_INSTALLED = "vitistack.io/os-installed"
CDROM_EJECTED = "vitistack.io/cdrom-ejected"

# What `spec` and metadata say together; the rest of the annotations is the user's own.
MEANT_ANNOTATIONS = (
    ROOT_IMAGE,
    POWER_STATE,
    RETRY,
    BOOT_SOURCE,
    BOOT_SOURCE_TYPE,
    BOOT_SOURCE_SIZE,
    OS_INSTALLED,
    CDROM_EJECTED,
)

# Annotation of a generated machine: the machine type as it was asked for, where another word had to be sent.
REQUESTED_MACHINE_TYPE = "vitistack.io/requested-machine-type"

FINALIZER = "machine.vitistack.io/cleanup"

# Disks that the translation makes.
CLOUD_INIT_DISK = "cloudinitdisk"
ISO_DISK = "cdrom-iso"
RESERVED_DISKS = (CLOUD_INIT_DISK, ISO_DISK)
ROOT_DISK = "root"

DEFAULT_CLASS = "default"
DATA_VOLUME = "datavolume"
BOOT_SOURCE_TYPES = ("http", "https", "registry")
POWER_STATES = ("running", "stopped")
IMAGE_SCHEMES = ("http://", "https://", "docker://")
