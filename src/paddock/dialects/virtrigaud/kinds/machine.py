"""The spec of a VirtRigaud machine and its parts (docs/spec/virtrigaud.md section 1.1). Sets, clones and migrations use them, too."""

from typing import Annotated

from paddock.contract.specs import NAME_MESSAGE, NAME_PATTERN, LocalObjectReference
from paddock.dialects.virtrigaud.kinds.shared import DISK_TYPES, ObjectRef
from paddock.kubernetes.schema.field import Field, Object

POWER_STATES = ("On", "Off", "OffGraceful")
IMPORTED_FORMATS = ("qcow2", "vmdk", "raw", "vdi", "vhdx")


class ImportedDiskRef(Object):
    """A root disk that is already at the provider: of an adopted, cloned or migrated machine."""

    diskID: Annotated[str, Field("The provider's identifier of the disk.", required=True, min_length=1, max_length=253)] = ""
    path: Annotated[str | None, Field("Where the disk lies at the provider.")] = None
    format: Annotated[str, Field("Format of the disk.", enum=IMPORTED_FORMATS)] = "qcow2"
    source: Annotated[
        str | None,
        Field("Where the disk comes from, for people: it changes nothing.", enum=("migration", "clone", "import", "snapshot", "manual")),
    ] = None
    sizeGiB: Annotated[int | None, Field("Expected size in GiB; another one is named by the condition ImportedDisk.", ge=1, bits=32)] = None
    migrationRef: Annotated[LocalObjectReference | None, Field("The VMMigration that brought the disk.")] = None


class VMNetworkRef(Object):
    """A network card and the VMNetworkAttachment it is connected to."""

    STRANGERS = {
        "ipPolicy": "write ipAllocation.type in the VMNetworkAttachment, or ipAddress here",
    }

    name: Annotated[
        str,
        Field("Name of the card, unique in the machine.", required=True, pattern=NAME_PATTERN, max_length=63, message=NAME_MESSAGE),
    ] = ""
    networkRef: Annotated[ObjectRef | None, Field("The VMNetworkAttachment; default: the default network of the Provider.")] = None
    ipAddress: Annotated[str | None, Field("Static IPv4 address of the guest.", format="ipv4")] = None
    macAddress: Annotated[str | None, Field("Static MAC address.", format="mac")] = None
    prefix: Annotated[int | None, Field("Length of the network prefix of ipAddress.", ge=1, le=32)] = None
    gateway: Annotated[str | None, Field("Default gateway of the guest.", format="ipv4")] = None
    dns: Annotated[str | None, Field("Name servers of the guest, separated by commas.")] = None


class SCSIControllerSpec(Object):
    """The SCSI controller of a disk; only vSphere knows one."""

    controller: Annotated[int | None, Field("Number of the controller.", ge=0, le=3)] = None
    sharedBus: Annotated[str, Field("Whether machines share the bus.", enum=("noSharing", "virtualSharing", "physicalSharing"))] = (
        "noSharing"
    )
    controllerType: Annotated[str, Field("Model of the controller.", enum=("lsilogic", "buslogic", "lsilogic-sas", "pvscsi"))] = "pvscsi"


class DiskSpec(Object):
    """A data disk."""

    name: Annotated[
        str,
        Field("Name of the disk, unique in the machine.", required=True, pattern=NAME_PATTERN, max_length=63, message=NAME_MESSAGE),
    ] = ""
    sizeGiB: Annotated[int, Field("Size in GiB. A disk may grow, never shrink.", required=True, ge=1, le=65536)] = 0
    type: Annotated[str, Field("Provisioning or medium.", enum=DISK_TYPES)] = "thin"
    expandPolicy: Annotated[str, Field("Whether the disk may grow while the machine runs.", enum=("Online", "Offline"))] = "Offline"
    storageClass: Annotated[str | None, Field("Storage class of this disk.")] = None
    scsi: Annotated[SCSIControllerSpec | None, Field("SCSI controller (vSphere only).")] = None


class CloudInitUserData(Object):
    """Cloud-init user data, written here, in a Secret, or in both (then they are merged)."""

    inline: Annotated[str | None, Field("The document itself.", secret=True)] = None
    secretRef: Annotated[
        LocalObjectReference | None,
        Field("Secret with the document under userdata, user-data, cloud-init or cloud-config."),
    ] = None


class Ignition(Object):
    """An Ignition configuration."""

    inline: Annotated[str | None, Field("The document itself.", secret=True)] = None
    secretRef: Annotated[LocalObjectReference | None, Field("Secret with the document.")] = None


class UserData(Object):
    """The configuration of the guest's first boot: cloud-init or Ignition, not both."""

    cloudInit: Annotated[CloudInitUserData | None, Field("Cloud-init user data.")] = None
    ignition: Annotated[Ignition | None, Field("Ignition configuration.")] = None


class CloudInitMetaData(Object):
    """Cloud-init metadata, written here, in a Secret, or in both (then one follows the other)."""

    inline: Annotated[str | None, Field("The YAML text itself.", secret=True)] = None
    secretRef: Annotated[LocalObjectReference | None, Field("Secret with the text under metadata, meta-data or meta_data.")] = None


class MetaData(Object):
    """Metadata of the guest, delivered also without user data."""

    STRANGERS = {
        "inline": "metadata stands one level deeper: write metaData.cloudInit.inline",
        "secretRef": "metadata stands one level deeper: write metaData.cloudInit.secretRef",
    }

    cloudInit: Annotated[CloudInitMetaData | None, Field("Cloud-init metadata.")] = None


class ProviderPlacement(Object):
    """The place of the machine at the provider. Fields that are left out come from the Provider's defaults."""

    STRANGERS = {
        "datacenter": "leave it out: a Provider has one datacenter",
    }

    cluster: Annotated[str | None, Field("Compute cluster.")] = None
    host: Annotated[str | None, Field("Host the machine is pinned to.")] = None
    datastore: Annotated[str | None, Field("Datastore; not together with storagePod.")] = None
    storagePod: Annotated[
        str | None, Field("Datastore cluster of which the member with most free space is taken; not together with datastore.")
    ] = None
    folder: Annotated[str | None, Field("Path of the folder.")] = None
    resourcePool: Annotated[str | None, Field("Resource pool.")] = None


class GPUConfig(Object):
    """Graphics processors."""

    count: Annotated[int, Field("Number of processors.", required=True, ge=1, le=8)] = 0
    type: Annotated[
        str | None,
        Field("Model of the processors.", pattern="^[a-zA-Z0-9_-]+$", message="must consist of letters, digits, '-' and '_'"),
    ] = None
    memory: Annotated[int | None, Field("Memory of each processor in MiB.", ge=512)] = None


class VirtualMachineResources(Object):
    """Processors and memory of this machine, in place of what its class says."""

    STRANGERS = {
        "memory": "write memoryMiB, a number such as 4096",
        "cpus": "write cpu",
    }

    cpu: Annotated[int | None, Field("Number of virtual CPUs.", ge=1, le=128)] = None
    memoryMiB: Annotated[int | None, Field("Memory in MiB.", ge=128, le=1048576)] = None
    gpu: Annotated[GPUConfig | None, Field("Graphics processors.")] = None


class CurrentResources(Object):
    """Processors and memory that the provider has confirmed. A class may ask for less than `spec.resources` can."""

    cpu: Annotated[int | None, Field("Number of virtual CPUs.", ge=0)] = None
    memoryMiB: Annotated[int | None, Field("Memory in MiB.", ge=0)] = None
    gpu: Annotated[GPUConfig | None, Field("Graphics processors.")] = None


class VMSnapshotOperation(Object):
    """An operation on snapshots of the machine."""

    revertToRef: Annotated[
        LocalObjectReference | None, Field("A ready VMSnapshot of this machine to go back to, once for each snapshot named.")
    ] = None


class GuestExecAction(Object):
    """A command in the guest, run by the guest agent without a shell."""

    command: Annotated[list[str], Field("Program and arguments.", required=True, min_items=1)] = []


class GuestHTTPGetAction(Object):
    """An HTTP request to the guest; any answer from 200 to 399 is success."""

    path: Annotated[str | None, Field("Path of the request.")] = None
    port: Annotated[int, Field("Port of the request.", required=True, ge=1, le=65535)] = 0
    host: Annotated[str | None, Field("Host of the request; default: the address of the machine.")] = None
    scheme: Annotated[str, Field("Scheme of the request.", enum=("HTTP", "HTTPS"))] = "HTTP"


class SnapshotAction(Object):
    """A snapshot of the machine."""

    name: Annotated[str, Field("Name of the snapshot.", required=True, min_length=1)] = ""
    includeMemory: Annotated[bool | None, Field("Whether the memory goes with it.")] = None
    description: Annotated[str | None, Field("What the snapshot is for.")] = None


class LifecycleHandler(Object):
    """An action at a point of the machine's life: exactly one."""

    exec: Annotated[GuestExecAction | None, Field("Run a command in the guest.")] = None
    httpGet: Annotated[GuestHTTPGetAction | None, Field("Send an HTTP request.")] = None
    snapshot: Annotated[SnapshotAction | None, Field("Take a snapshot.")] = None


class VirtualMachineLifecycle(Object):
    """The actions around power changes."""

    preStop: Annotated[LifecycleHandler | None, Field("Before the machine is powered off or deleted.")] = None
    postStart: Annotated[LifecycleHandler | None, Field("After the machine was seen running.")] = None
    gracefulShutdownTimeout: Annotated[str, Field("How long a guest has to shut down before power is cut.", format="duration")] = "60s"


class VirtrigaudMachineSpec(Object):
    """The desired machine."""

    STRANGERS = {
        "vmClassRef": "write classRef",
        "vmImageRef": "write imageRef",
        "networkAttachments": "write networks",
        "networkAttachmentRef": "write networks, a list of name and networkRef",
        "cloneType": "leave it out: a VMClone has options.type",
    }

    providerRef: Annotated[ObjectRef, Field("The Provider that runs the machine.", required=True)] = ObjectRef()
    classRef: Annotated[ObjectRef, Field("The VMClass that says how large it is.", required=True)] = ObjectRef()
    imageRef: Annotated[ObjectRef | None, Field("The VMImage it is made from; not together with importedDisk.")] = None
    importedDisk: Annotated[ImportedDiskRef | None, Field("An existing root disk; not together with imageRef.")] = None
    networks: Annotated[list[VMNetworkRef] | None, Field("Network cards.", max_items=10, keys=("name",))] = None
    disks: Annotated[list[DiskSpec] | None, Field("Data disks.", max_items=20, keys=("name",))] = None
    userData: Annotated[UserData | None, Field("First-boot configuration.")] = None
    metaData: Annotated[MetaData | None, Field("Metadata of the guest.")] = None
    placement: Annotated[ProviderPlacement | None, Field("Where the machine is put.")] = None
    placementRef: Annotated[LocalObjectReference | None, Field("The VMPlacementPolicy that decides where the machine may be put.")] = None
    powerState: Annotated[
        str | None,
        Field("Whether the machine runs; default: On. OffGraceful asks the guest first.", enum=POWER_STATES),
    ] = None
    resources: Annotated[VirtualMachineResources | None, Field("Sizes of this machine in place of its class's.")] = None
    tags: Annotated[list[str] | None, Field("Tags of the machine at the provider.", max_items=50)] = None
    snapshot: Annotated[VMSnapshotOperation | None, Field("An operation on its snapshots.")] = None
    lifecycle: Annotated[VirtualMachineLifecycle | None, Field("What is done around power changes.")] = None
