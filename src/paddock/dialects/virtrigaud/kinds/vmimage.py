"""VirtRigaud's VMImage: what root disks are made from (docs/spec/virtrigaud.md section 1.3)."""

from typing import Annotated

from paddock.dialects.virtrigaud.kinds.shared import (
    CHECKSUM_TYPES,
    GROUP,
    IMAGE_FORMATS,
    NAME_MESSAGE,
    NAME_PATTERN,
    VERSIONS,
    Conditions,
    LocalObjectReference,
    ObservedGeneration,
    ProviderPart,
    Tags,
)
from paddock.dialects.virtrigaud.rules import vmimage as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

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


class ImportProgress(Object):
    """The progress of an import."""

    totalBytes: Annotated[int | None, Field("Bytes in all.")] = None
    transferredBytes: Annotated[int | None, Field("Bytes so far.")] = None
    percentage: Annotated[int | None, Field("Part that is done.", ge=0, le=100)] = None
    transferRate: Annotated[int | None, Field("Bytes in a second.")] = None
    eta: Annotated[str | None, Field("Time still needed.", format="duration")] = None
    startTime: Annotated[Time | None, Field("When it began.")] = None


class ProviderImage(ProviderPart):
    """The state of the image at one provider."""

    path: Annotated[str | None, Field("Where it lies there.")] = None
    size: Annotated[Quantity | None, Field("Its size there.")] = None
    reason: Annotated[str | None, Field("One word for programs: why the last attempt to prepare it failed.")] = None


class VMImageStatus(Object):
    """The observed state of an image."""

    ready: Annotated[bool | None, Field("Whether the image can be used.")] = None
    phase: Annotated[
        str | None,
        Field(
            "Where the preparation is.",
            enum=("Pending", "Downloading", "Importing", "Converting", "Optimizing", "Ready", "Failed"),
        ),
    ] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    availableOn: Annotated[list[str] | None, Field("Providers that have the image.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    lastPrepareTime: Annotated[Time | None, Field("When it was last prepared.")] = None
    prepareTaskRef: Annotated[str | None, Field("The provider's task that is under way.")] = None
    importProgress: Annotated[ImportProgress | None, Field("How far the import is.")] = None
    size: Annotated[Quantity | None, Field("Size of the image.")] = None
    checksum: Annotated[str | None, Field("Checksum of the image.")] = None
    format: Annotated[str | None, Field("Format of the image.", enum=IMAGE_FORMATS)] = None
    providerStatus: Annotated[dict[str, ProviderImage] | None, Field("How it stands at each provider.")] = None


class VMImage(Resource):
    """An image or a template that root disks are made from."""

    spec: Annotated[VMImageSpec, Field("Where it comes from.", required=True)] = VMImageSpec()
    status: Annotated[VMImageStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMImage",
        plural="vmimages",
        singular="vmimage",
        short_names=("vmimg",),
        cls=VMImage,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Ready", ".status.ready", "boolean"),
            Column("Phase", ".status.phase"),
            Column("Size", ".status.size"),
            Column("Providers", ".status.availableOn[*]"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
