"""The specs that travel whole inside messages: that of an image in `ImagePrepare`, a network's firewall and isolation in its payload.

They are the declarations of VirtRigaud's kinds (docs/spec/virtrigaud.md section 1), which have them from here.

Of an image, one block counts. A block belongs to one type of provider, and blocks are never mixed (ruling 0.18). A provider without a block
of its own takes `http` or `registry`, which every provider understands. A Provider of type qemu, which has no block, downloads the file of
the URL in libvirt's block: both run it with QEMU.
"""

from typing import Annotated

from paddock.kubernetes.schema.field import Field, Object

NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
NAME_MESSAGE = "must consist of lower-case letters, digits and '-', and start and end with a letter or a digit"

IMAGE_FORMATS = ("qcow2", "raw", "vmdk", "vhd", "vhdx", "iso", "ova", "ovf")
CHECKSUM_TYPES = ("md5", "sha1", "sha256", "sha512")

Tags = Annotated[dict[str, str] | None, Field("Key and value pairs to sort by.", max_items=50)]


class LocalObjectReference(Object):
    """The name of an object in the same namespace."""

    name: Annotated[str, Field("Name of the object.", required=True, pattern=NAME_PATTERN, max_length=253, message=NAME_MESSAGE)] = ""


# --- images ---------------------------------------------------------------------------------------------------------------

# For everybody, in order of preference.
_COMMON = ("http", "registry", "dataVolume")
# Of providers that share the kind of host with those that have no block of their own come first.
PROVIDER_BLOCKS = ("libvirt", "proxmox", "vsphere")
_QEMU = "qemu"

Checksum = Annotated[str | None, Field("Expected checksum, in hexadecimal digits.")]
ChecksumType = Annotated[str, Field("How the checksum was made.", enum=CHECKSUM_TYPES)]
ImageFormat = Annotated[str, Field("Format of the image.", enum=IMAGE_FORMATS)]
HttpUrl = Annotated[str, Field("Address of the image.", required=True, pattern="^https?://.*", message="must be an http or https URL")]
# A registry with a port and a digest instead of a tag are ordinary references, too.
REFERENCE_PATTERN = (
    "^[a-zA-Z0-9][a-zA-Z0-9._/-]*(:[0-9]+/[a-zA-Z0-9][a-zA-Z0-9._/-]*)?(:[a-zA-Z0-9._-]+(@sha256:[a-f0-9]{64})?|@sha256:[a-f0-9]{64})$"
)


class ContentLibraryRef(Object):
    """An item of a vSphere content library."""

    library: Annotated[str, Field("Name of the library.", required=True, max_length=255)] = ""
    item: Annotated[str, Field("Name of the item.", required=True, max_length=255)] = ""
    version: Annotated[str | None, Field("Version of the item.")] = None


class VSphereImageSource(Object):
    """The image for providers of type vsphere."""

    STRANGERS = {
        "datacenter": "leave it out: a Provider has one datacenter",
    }

    templateName: Annotated[str | None, Field("Existing template.", max_length=255)] = None
    contentLibrary: Annotated[ContentLibraryRef | None, Field("Item of a content library.")] = None
    ovaURL: Annotated[
        str | None,
        Field(
            "Address of an OVA to import.", pattern=r"^https?://.*\.(ova|ovf)$", message="must be an http or https URL of an .ova or .ovf"
        ),
    ] = None
    checksum: Checksum = None
    checksumType: ChecksumType = "sha256"
    providerRef: Annotated[LocalObjectReference | None, Field("Provider that imports the image.")] = None


class LibvirtImageSource(Object):
    """The image for providers of type libvirt."""

    path: Annotated[str | None, Field("File on the host.")] = None
    url: Annotated[
        str | None,
        Field("Address to download from.", pattern="^(https?|ftp)://.*", message="must be an http, https or ftp URL"),
    ] = None
    format: ImageFormat = "qcow2"
    checksum: Checksum = None
    checksumType: ChecksumType = "sha256"
    storagePool: Annotated[str | None, Field("Storage pool of libvirt.", max_length=255)] = None


class ProxmoxImageSource(Object):
    """The image for providers of type proxmox."""

    templateID: Annotated[int | None, Field("Number of an existing template.", ge=100, le=999999999)] = None
    templateName: Annotated[str | None, Field("Name of an existing template.", max_length=255)] = None
    storage: Annotated[str | None, Field("Storage of the new disk.", max_length=255)] = None
    node: Annotated[str | None, Field("Node that has the template.", max_length=255)] = None
    format: Annotated[str, Field("Format of the new disk.", enum=("raw", "qcow2", "vmdk"))] = "qcow2"
    fullClone: Annotated[bool, Field("Copy the template; otherwise the new disk stands on top of it.")] = True


class BasicAuth(Object):
    """A user name and a password."""

    secretRef: Annotated[LocalObjectReference, Field("Secret with both.", required=True)] = LocalObjectReference()
    usernameKey: Annotated[str, Field("Key of the user name.")] = "username"
    passwordKey: Annotated[str, Field("Key of the password.")] = "password"


class BearerToken(Object):
    """A bearer token."""

    secretRef: Annotated[LocalObjectReference, Field("Secret with the token.", required=True)] = LocalObjectReference()
    tokenKey: Annotated[str, Field("Key of the token.")] = "token"


class ClientCert(Object):
    """A client certificate."""

    secretRef: Annotated[LocalObjectReference, Field("Secret with certificate and key.", required=True)] = LocalObjectReference()
    certKey: Annotated[str, Field("Key of the certificate.")] = "tls.crt"
    keyKey: Annotated[str, Field("Key of the private key.")] = "tls.key"


class HTTPAuthentication(Object):
    """The credentials for the image's address: one of the three."""

    basicAuth: Annotated[BasicAuth | None, Field("User name and password.")] = None
    bearer: Annotated[BearerToken | None, Field("A token.")] = None
    clientCert: Annotated[ClientCert | None, Field("A client certificate.")] = None


class HTTPImageSource(Object):
    """An image behind a URL, for providers without a source of their own here."""

    url: HttpUrl = ""
    headers: Annotated[dict[str, str] | None, Field("Headers of the request.", max_items=20, secret=True)] = None
    checksum: Checksum = None
    checksumType: ChecksumType = "sha256"
    timeout: Annotated[str, Field("How long the download may take.", format="duration")] = "30m"
    authentication: Annotated[HTTPAuthentication | None, Field("How to log in.")] = None


class RegistryImageSource(Object):
    """An image in an OCI registry, for providers without a source of their own here."""

    image: Annotated[
        str,
        Field(
            "Reference of the image, with tag or digest.",
            required=True,
            pattern=REFERENCE_PATTERN,
            message="must be an image reference with a tag or a digest, such as quay.io/org/image:v1",
        ),
    ] = ""
    pullSecretRef: Annotated[LocalObjectReference | None, Field("Secret to pull it with.")] = None
    format: ImageFormat = "qcow2"


class DataVolumeImageSource(Object):
    """A DataVolume to copy."""

    name: Annotated[str, Field("Name of the DataVolume.", required=True, pattern=NAME_PATTERN, max_length=253, message=NAME_MESSAGE)] = ""
    namespace: Annotated[
        str | None,
        Field("Its namespace; default: the image's own.", pattern=NAME_PATTERN, max_length=63, message=NAME_MESSAGE),
    ] = None


class ImageSource(Object):
    """The source of the image: a block for each type of provider, and http or registry for all others."""

    vsphere: Annotated[VSphereImageSource | None, Field("For providers of type vsphere.")] = None
    libvirt: Annotated[LibvirtImageSource | None, Field("For providers of type libvirt.")] = None
    proxmox: Annotated[ProxmoxImageSource | None, Field("For providers of type proxmox.")] = None
    http: Annotated[HTTPImageSource | None, Field("An image behind a URL.")] = None
    registry: Annotated[RegistryImageSource | None, Field("An image in an OCI registry.")] = None
    dataVolume: Annotated[DataVolumeImageSource | None, Field("A DataVolume to copy.")] = None


class VSphereStorage(Object):
    """The place of the prepared image in vSphere."""

    datastore: Annotated[str | None, Field("Datastore.", max_length=255)] = None
    folder: Annotated[str | None, Field("Folder.", max_length=255)] = None
    thinProvisioned: Annotated[bool | None, Field("Whether disks are thin.")] = None
    diskType: Annotated[str | None, Field("Provisioning of the disks.", enum=("thin", "thick", "eagerzeroedthick"))] = None


class LibvirtStorage(Object):
    """The place of the prepared image in libvirt."""

    storagePool: Annotated[str | None, Field("Storage pool.", max_length=255)] = None
    allocationPolicy: Annotated[str | None, Field("When space is taken.", enum=("eager", "lazy"))] = None
    preallocation: Annotated[str | None, Field("What is taken in advance.", enum=("off", "metadata", "falloc", "full"))] = None


class PrepareStorage(Object):
    """The place and the format of the prepared image."""

    vsphere: Annotated[VSphereStorage | None, Field("For providers of type vsphere.")] = None
    libvirt: Annotated[LibvirtStorage | None, Field("For providers of type libvirt.")] = None
    preferredFormat: Annotated[str | None, Field("Format to keep it in.", enum=IMAGE_FORMATS)] = None
    compression: Annotated[bool, Field("Whether it is compressed.")] = False


class ImageOptimization(Object):
    """The optimization of the image once it is there."""

    enableCompression: Annotated[bool, Field("Compress it.")] = False
    removeUnusedSpace: Annotated[bool, Field("Give back unused space.")] = False
    convertFormat: Annotated[str | None, Field("Convert it.", enum=IMAGE_FORMATS)] = None
    enableDeltaSync: Annotated[bool, Field("Transfer differences only.")] = False


class ImagePrepare(Object):
    """The preparation of the image at a provider that does not have it."""

    STRANGERS = {
        "importIfMissing": "write onMissing: Import",
        "customization": "leave it out: userData of the VirtualMachine sets the guest up",
    }

    onMissing: Annotated[str, Field("What to do when a provider lacks the image.", enum=("Import", "Fail", "Wait"))] = "Import"
    validateChecksum: Annotated[bool, Field("Whether the checksum is compared.")] = True
    timeout: Annotated[str, Field("How long it may take.", format="duration")] = "30m"
    retries: Annotated[int, Field("How often a failure is tried again.", ge=0, le=10)] = 3
    force: Annotated[bool | None, Field("Import also what is already there.")] = None
    storage: Annotated[PrepareStorage | None, Field("Where and how it is kept.")] = None
    optimization: Annotated[ImageOptimization | None, Field("What is done to it.")] = None


class ImageMetadata(Object):
    """Information about the image for people and programs."""

    displayName: Annotated[str | None, Field("Name for people.", max_length=255)] = None
    description: Annotated[str | None, Field("What it is.", max_length=1024)] = None
    version: Annotated[str | None, Field("Version.", max_length=100)] = None
    architecture: Annotated[str, Field("Processor architecture.", enum=("amd64", "arm64", "x86_64", "aarch64"))] = "amd64"
    tags: Tags = None
    annotations: Annotated[dict[str, str] | None, Field("Notes.", max_items=50)] = None


class KernelInfo(Object):
    """The kernel of the image."""

    version: Annotated[str | None, Field("Version.")] = None
    type: Annotated[str | None, Field("Kind of kernel.", enum=("linux", "windows", "freebsd", "other"))] = None


class DistributionInfo(Object):
    """The operating system of the image."""

    name: Annotated[
        str | None,
        Field(
            "Distribution.",
            enum=("ubuntu", "centos", "rhel", "fedora", "debian", "suse", "windows", "freebsd", "coreos", "other"),
        ),
    ] = None
    version: Annotated[str | None, Field("Version.", max_length=100)] = None
    variant: Annotated[str | None, Field("Variant, such as server.", max_length=100)] = None
    family: Annotated[str | None, Field("Family.", enum=("linux", "windows", "bsd", "other"))] = None
    kernel: Annotated[KernelInfo | None, Field("Kernel.")] = None


class VMImageSpec(Object):
    """The source of an image, and its preparation."""

    STRANGERS = {
        "vsphere": "write source.vsphere",
        "libvirt": "write source.libvirt",
        "proxmox": "write source.proxmox",
        "http": "write source.http",
        "registry": "write source.registry",
        "description": "write metadata.description",
        "storageClass": "write prepare.storage",
    }

    source: Annotated[ImageSource, Field("Where the image is.", required=True)] = ImageSource()
    prepare: Annotated[ImagePrepare | None, Field("How it comes to a provider.")] = None
    metadata: Annotated[ImageMetadata | None, Field("About the image, for people: it changes no machine.")] = None
    distribution: Annotated[DistributionInfo | None, Field("Its operating system, for people: it changes no machine.")] = None


def image_blocks(source: ImageSource, provider_type: str) -> tuple[str, ...]:
    """The blocks that are given, the provider's own first, then those for everybody, then those of other providers."""
    order = [name for name in (provider_type,) if name in PROVIDER_BLOCKS]
    order += [*_COMMON, *(name for name in PROVIDER_BLOCKS if name != provider_type)]
    return tuple(name for name in order if getattr(source, name) is not None)


def image_block(source: ImageSource, provider_type: str) -> str | None:
    """The block that counts for a provider; None when no block is for it."""
    blocks = image_blocks(source, provider_type)
    found = next((name for name in blocks if name == provider_type or name in _COMMON), None)
    if found is None and provider_type == _QEMU and source.libvirt is not None and (source.libvirt.url or "").startswith("http"):
        return "libvirt"
    return found


# --- firewalls ------------------------------------------------------------------------------------------------------------

POLICIES = ("ACCEPT", "DROP", "REJECT")


class FirewallPortRange(Object):
    """Ports from start to end."""

    start: Annotated[int, Field("First port.", required=True, ge=1, le=65535)] = 0
    end: Annotated[int | None, Field("Last port; default: the first.", ge=1, le=65535)] = None


class FirewallRule(Object):
    """One rule of a firewall."""

    name: Annotated[str, Field("Name of the rule.", required=True, max_length=255)] = ""
    action: Annotated[str, Field("What happens to a packet.", required=True, enum=POLICIES)] = ""
    direction: Annotated[str, Field("Which way the packet goes.", required=True, enum=("in", "out", "inout"))] = ""
    protocol: Annotated[str | None, Field("Protocol.", enum=("tcp", "udp", "icmp", "all"))] = None
    sourceCIDR: Annotated[str | None, Field("Network it comes from.")] = None
    destinationCIDR: Annotated[str | None, Field("Network it goes to.")] = None
    ports: Annotated[FirewallPortRange | None, Field("Ports it goes to.")] = None
    priority: Annotated[int | None, Field("Order of the rule.", ge=1, le=1000)] = None


class FirewallConfig(Object):
    """A firewall in front of the card."""

    enabled: Annotated[bool, Field("Whether it is there.")] = False
    defaultPolicy: Annotated[str, Field("What happens to packets without a rule.", enum=POLICIES)] = "ACCEPT"
    rules: Annotated[list[FirewallRule] | None, Field("Rules.", max_items=100)] = None


class NetworkIsolation(Object):
    """The networks that the machine can talk to."""

    mode: Annotated[str | None, Field("How strict it is.", enum=("none", "strict", "custom"))] = None
    allowedNetworks: Annotated[list[str] | None, Field("Networks it may talk to.", max_items=50)] = None
    deniedNetworks: Annotated[list[str] | None, Field("Networks it may not talk to.", max_items=50)] = None
