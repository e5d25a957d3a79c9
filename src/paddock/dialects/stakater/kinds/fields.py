"""The parameters of a Stakater machine (docs/spec/stakater.md section 1)."""

from typing import Annotated

import msgspec

from paddock.kubernetes.schema.field import Field, Object, Quantity

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")
_CLASS = Field("StorageClass; empty means none is chosen here.", format="dns1123-subdomain", empty_is_unset=True)


class ImageReference(Object):
    """The image the root disk is cloned from."""

    name: Annotated[str, Field("Name of the DataSource.", format="dns1123-subdomain")] = "rhel9"
    namespace: Annotated[str, Field("Namespace of the DataSource.", format="dns1123-label")] = "openshift-virtualization-os-images"


class StorageParameters(Object):
    """The root disk."""

    size: Annotated[Quantity, Field("Size of the root disk.", positive=True, whole=True)] = "30Gi"
    storageClassName: Annotated[str | None, _CLASS] = None


class PvcSource(Object):
    """A claim to copy."""

    name: Annotated[str, Field("Name of the claim.", required=True, format="dns1123-subdomain")] = ""
    namespace: Annotated[str | None, Field("Namespace of the claim; default: the machine's own.", format="dns1123-label")] = None


class HttpImageSource(Object):
    """An image behind a URL."""

    url: Annotated[
        str,
        Field("Address of the image.", required=True, pattern="^https?://[^/]", message="must be an http or https URL"),
    ] = ""
    secretRef: Annotated[
        str | None, Field("Secret with accessKeyId and secretKey for basic authentication.", format="dns1123-subdomain")
    ] = None
    certConfigMap: Annotated[str | None, Field("ConfigMap with the certificate authorities to trust.", format="dns1123-subdomain")] = None
    checksum: Annotated[
        str | None,
        Field(
            "Checksum of the download, such as sha256:...",
            pattern="^(md5:[0-9a-fA-F]{32}|sha1:[0-9a-fA-F]{40}|sha256:[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$",
            message="must be md5, sha1, sha256 or sha512, a colon and as many hexadecimal digits as that sum has",
        ),
    ] = None


class RegistryDisk(Object):
    """An image in an OCI registry."""

    url: Annotated[
        str,
        Field(
            "Address of the image.",
            required=True,
            pattern="^(docker|oci-archive)://[^/]",
            message="must start with docker:// or oci-archive://",
        ),
    ] = ""
    secretRef: Annotated[str | None, Field("Secret with accessKeyId and secretKey.", format="dns1123-subdomain")] = None
    certConfigMap: Annotated[str | None, Field("ConfigMap with the certificate authorities to trust.", format="dns1123-subdomain")] = None


class DiskSource(Object):
    """The source of the content of an additional disk; the member named by sourceType."""

    pvc: Annotated[PvcSource | None, Field("A claim to copy.")] = None
    http: Annotated[HttpImageSource | None, Field("An image behind a URL.")] = None
    registry: Annotated[RegistryDisk | None, Field("An image in an OCI registry.")] = None


class AdditionalDisk(Object):
    """A disk besides the root disk."""

    name: Annotated[str, Field("Name of the disk, unique in the machine.", required=True, format="dns1123-label")] = ""
    size: Annotated[Quantity, Field("Size of the disk.", required=True, positive=True, whole=True)] = "0"
    storageClassName: Annotated[str | None, _CLASS] = None
    accessModes: Annotated[
        list[Annotated[str, Field(enum=ACCESS_MODES)]], Field("Access modes of the claim.", min_items=1, unique=True)
    ] = msgspec.field(default_factory=lambda: ["ReadWriteMany"])
    volumeMode: Annotated[str, Field("Volume mode of the claim.", enum=("Block", "Filesystem"))] = "Block"
    bus: Annotated[str, Field("Bus of the disk.", enum=("virtio", "sata", "scsi", "usb"), hints={"ide": "use sata"})] = "virtio"
    sourceType: Annotated[str, Field("Kind of the disk's source.", enum=("blank", "pvc", "http", "registry"))] = "blank"
    source: Annotated[DiskSource | None, Field("The source, for every type but blank.")] = None


class CpuTopology(Object):
    """The processors; the guest sees the product of the three."""

    cores: Annotated[int, Field("Number of CPU cores per socket.", ge=1)] = 1
    sockets: Annotated[int, Field("Number of CPU sockets.", ge=1)] = 1
    threads: Annotated[int, Field("Threads per core.", ge=1)] = 1


class MemoryParameters(Object):
    """The memory."""

    guest: Annotated[Quantity, Field("Memory the guest sees, such as 4Gi.", at_least="1Mi", whole=True)] = "2Gi"


class Multus(Object):
    """A network of the cluster's own."""

    networkName: Annotated[
        str | None, Field("Name of the NetworkAttachmentDefinition: name or namespace/name.", format="namespaced-name")
    ] = None


class NetworkParameters(Object):
    """A network card and what it is connected to."""

    name: Annotated[
        str,
        Field(
            "Name of the network, unique in the machine.",
            required=True,
            max_length=63,
            pattern="^[A-Za-z0-9_-]+$",
            message="must consist of letters, digits, '-' and '_'",
        ),
    ] = ""
    type: Annotated[
        str | None,
        Field("Kind of network; default: multus when multus.networkName is set, else pod.", enum=("pod", "multus")),
    ] = None
    interfaceModel: Annotated[
        str, Field("Model of the card.", enum=("virtio", "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139"))
    ] = "virtio"
    bindingName: Annotated[
        str,
        Field(
            "How the card is bound: bridge, masquerade, sriov or the name of a binding plugin.",
            format="dns1123-subdomain",
        ),
    ] = "l2bridge"
    multus: Annotated[Multus | None, Field("The network of type multus.")] = None


class CloudInitParameters(Object):
    """The configuration of the guest's first boot."""

    user: Annotated[str, Field("Default user.", pattern="^[a-z_][a-z0-9_-]{0,31}$", message="not a Linux user name")] = "cloud-user"
    password: Annotated[
        str | None,
        Field(
            "Password of the default user.",
            min_length=1,
            pattern=r"^[^\r\n]*$",
            message="must be one line",
            secret=True,
        ),
    ] = None
    passwordExpire: Annotated[bool, Field("Whether the password has to be changed at the first login.")] = False
    userData: Annotated[str | None, Field("Own user data; replaces user and password wholly.", secret=True)] = None


class SSHKeySecret(Object):
    """The public keys that may log in."""

    data: Annotated[str | None, Field("Public keys, raw or base64; a Secret is made of them.", secret=True)] = None
    secretName: Annotated[str | None, Field("Existing Secret with the public keys.", format="dns1123-subdomain")] = None
    propagationMethod: Annotated[str, Field("How the keys reach the guest.", enum=("noCloud", "configDrive", "qemuGuestAgent"))] = "noCloud"


class FirmwareParameters(Object):
    """The firmware of the machine."""

    efi: Annotated[bool, Field("Boot with EFI.")] = True
    secureBoot: Annotated[bool | None, Field("Secure Boot, which needs EFI and SMM; default: the value of efi.")] = None


class ServiceParameters(Object):
    """Access from outside."""

    enabled: Annotated[bool, Field("Make a LoadBalancer Service.")] = False
    port: Annotated[int, Field("Port of the Service.", ge=1, le=65535)] = 22000
    targetPort: Annotated[int, Field("Port of the guest.", ge=1, le=65535)] = 22


class Parameters(Object):
    """All fields of a machine."""

    dataSource: Annotated[ImageReference, Field("The image of the root disk.")] = ImageReference()
    storage: Annotated[StorageParameters, Field("The root disk.")] = StorageParameters()
    additionalDisks: Annotated[list[AdditionalDisk], Field("More disks.", max_items=64, keys=("name",))] = []
    cpu: Annotated[CpuTopology, Field("The processors.")] = CpuTopology()
    memory: Annotated[MemoryParameters, Field("The memory.")] = MemoryParameters()
    networks: Annotated[
        list[NetworkParameters] | None,
        Field("The networks; default: one pod network; an empty list means no card.", max_items=36, keys=("name",)),
    ] = None
    cloudInit: Annotated[CloudInitParameters, Field("First-boot configuration.")] = CloudInitParameters()
    sshPublicKey: Annotated[SSHKeySecret, Field("SSH access.")] = SSHKeySecret()
    runStrategy: Annotated[str, Field("When the machine runs.", enum=("Always", "RerunOnFailure", "Manual", "Halted"))] = "RerunOnFailure"
    terminationGracePeriodSeconds: Annotated[int, Field("Seconds for a clean shutdown before power is cut.", ge=0)] = 180
    enableDynamicCredentials: Annotated[bool, Field("Let credentials be changed while the machine runs.")] = False
    firmware: Annotated[FirmwareParameters, Field("The firmware.")] = FirmwareParameters()
    service: Annotated[ServiceParameters, Field("Access from outside.")] = ServiceParameters()
    nodeSelector: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]],
        Field("Labels a node must have.", key_format="label-key"),
    ] = {}
    additionalLabels: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]],
        Field("Labels for the generated machine.", key_format="label-key"),
    ] = {}
    additionalAnnotations: Annotated[dict[str, str], Field("Annotations for the generated machine.", key_format="label-key")] = {}
