"""The members of a machine (docs/spec/vitistack.md section 1.1), those of Vitistack's own form beside the document's.

What a template may give has no default here, not even where the documents name one: a default would look like an override
of the template. `effective` computes what a machine then has.
"""

from typing import Annotated

from paddock.dialects.vitistack.kinds.ownfields import CloudInitKey
from paddock.kubernetes.schema.field import Field, Object, Quantity

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")
VOLUME_MODES = ("Filesystem", "Block")
MODELS = ("virtio", "e1000", "rtl8139")
BOOT_CLASSES = ("disk", "network", "cdrom")
# KubeVirt takes 256 disks, and two of them may be ours: cloud-init and the installation CD-ROM.
MOST_DISKS = 254
MOST_NETWORKS = 36

BUSES = ("virtio", "sata", "scsi", "nvme")
ARCHITECTURES = ("amd64", "arm64", "x86_64")
_LABEL = "dns1123-label"
_INFORMATION = "it describes the guest and changes nothing"
_SUBDOMAIN = "dns1123-subdomain"


class MachineCpu(Object):
    """The processors; the guest sees the product of the three. What is left out comes from the template, else it is 1."""

    cores: Annotated[int | None, Field("Cores per socket; default: the template's, else 1.", ge=1, le=256)] = None
    threads: Annotated[int | None, Field("Threads per core; default: the template's, else 1.", ge=1, le=8)] = None
    sockets: Annotated[int | None, Field("Sockets; default: the template's, else 1.", ge=1, le=16)] = None


class MachineMemory(Object):
    """The memory."""

    size: Annotated[
        Quantity | None,
        Field("Memory the guest sees, such as 4Gi; default: the template's.", at_least="1Mi", whole=True),
    ] = None


class MachineResources(Object):
    """Processors and memory."""

    cpu: Annotated[MachineCpu | None, Field("The processors.")] = None
    memory: Annotated[MachineMemory | None, Field("The memory.")] = None


class TemplateDisk(Object):
    """A disk, kept in a claim of its own. What is left out comes from the template's disk of the same name."""

    name: Annotated[str, Field("Name of the disk, unique in the machine.", required=True, format=_LABEL)] = ""
    size: Annotated[Quantity | None, Field("Size of the disk; default: that of the template's disk.", positive=True)] = None
    storageClass: Annotated[
        str | None,
        Field("StorageClass of the claim; `default`, which is the default, means the cluster's.", format=_SUBDOMAIN, empty_is_unset=True),
    ] = None
    accessMode: Annotated[
        str | None,
        Field(
            "Access mode of the claim; default: ReadWriteOnce.",
            enum=ACCESS_MODES,
            hints={"RWO": "write ReadWriteOnce", "RWX": "write ReadWriteMany", "ROX": "write ReadOnlyMany"},
        ),
    ] = None
    volumeMode: Annotated[str | None, Field("Volume mode of the claim; Kubernetes' default: Filesystem.", enum=VOLUME_MODES)] = None


class MachineDisk(TemplateDisk):
    """A disk, kept in a claim of its own. What is left out comes from the template's disk of the same name."""

    sizeGB: Annotated[int | None, Field("Own form: size of the disk in Gi.", ge=1, le=65536)] = None
    type: Annotated[
        str | None,
        Field(
            "Own form: bus of the disk; default: virtio, which nvme means, too.",
            enum=BUSES,
            empty_is_unset=True,
        ),
    ] = None
    boot: Annotated[bool | None, Field("Own form: whether the machine boots from it; default: the disk root, else the first.")] = None
    device: Annotated[str | None, Field("Own form: device in the guest.", not_honoured="the guest names its devices")] = None
    encrypted: Annotated[bool | None, Field("Own form: whether the disk is encrypted; only false is taken.")] = None
    iops: Annotated[
        int | None, Field("Own form: operations a second.", ge=100, le=64000, not_honoured="KubeVirt has no limit of operations")
    ] = None
    throughput: Annotated[
        int | None, Field("Own form: MB a second.", ge=125, le=4000, not_honoured="KubeVirt has no limit of throughput")
    ] = None


Disks = Annotated[list[MachineDisk], Field("The disks; merged by name with the template's.", max_items=MOST_DISKS, keys=("name",))]


class MachineNetwork(Object):
    """A network card and the NetworkConfiguration that it is connected to."""

    name: Annotated[
        str,
        Field(
            "Name of the card, such as eth0, unique in the machine.",
            required=True,
            max_length=63,
            pattern="^[A-Za-z0-9_-]+$",
            message="must consist of letters, digits, '-' and '_'",
        ),
    ] = ""
    networkName: Annotated[
        str,
        Field(
            "Name of a NetworkConfiguration in the same namespace.",
            required=True,
            needed="name of a NetworkConfiguration",
            format=_SUBDOMAIN,
        ),
    ] = ""
    model: Annotated[str, Field("Model of the card.", enum=MODELS)] = "virtio"
    macAddress: Annotated[
        str | None,
        Field("Address of the card, six pairs joined by `:` or `-`; default: derived from the machine's UID.", format="mac"),
    ] = None


class SecretRef(Object):
    """A Secret of the same namespace with user data, and perhaps network data under the key `networkdata`."""

    name: Annotated[str, Field("Name of the Secret.", required=True, format=_SUBDOMAIN)] = ""
    key: Annotated[str, Field("Key of the user data.", format="data-key")] = "userdata"


class MachineCloudInit(Object):
    """The configuration of the guest's first boot."""

    userData: Annotated[str | None, Field("User data; wins over secretRef.", secret=True)] = None
    networkData: Annotated[str | None, Field("Network configuration, version 1 or 2.")] = None
    secretRef: Annotated[SecretRef | None, Field("Secret with the user data.")] = None
    type: Annotated[
        str | None, Field("Own form: kind of the cloud-init disk; default: noCloud.", enum=("noCloud", "configDrive"), empty_is_unset=True)
    ] = None
    userDataBase64: Annotated[str | None, Field("Own form: user data in base64.", secret=True)] = None
    networkDataBase64: Annotated[str | None, Field("Own form: network configuration in base64.")] = None
    userDataSecretRef: Annotated[CloudInitKey | None, Field("Own form: Secret with the user data.")] = None
    networkDataSecretRef: Annotated[CloudInitKey | None, Field("Own form: Secret with the network configuration.")] = None
    userDataConfigMapRef: Annotated[CloudInitKey | None, Field("Own form: ConfigMap with the user data.")] = None
    networkDataConfigMapRef: Annotated[CloudInitKey | None, Field("Own form: ConfigMap with the network configuration.")] = None


class MachineType(Object):
    """The virtual mainboard."""

    type: Annotated[
        str | None,
        Field("pc-q35, pc-i440fx, a versioned name that starts with one of them, q35 or pc; default: the backend's.", max_length=63),
    ] = None


class MachineFeatures(Object):
    """The features of the mainboard and the processors."""

    acpi: Annotated[bool, Field("ACPI.")] = True
    apic: Annotated[bool | None, Field("APIC; default: the backend's.")] = None
    hyperv: Annotated[bool, Field("Hyper-V enlightenments, for Windows guests.")] = False


class MachineBootloader(Object):
    """The firmware of the machine."""

    efi: Annotated[bool, Field("Boot with EFI instead of BIOS.")] = False
    secureBoot: Annotated[bool, Field("Secure Boot, which needs efi.")] = False


class MachineFirmware(Object):
    """The firmware."""

    bootloader: Annotated[MachineBootloader | None, Field("What the machine boots with.")] = None


class Domain(Object):
    """Mainboard, features and firmware."""

    machine: Annotated[MachineType | None, Field("The virtual mainboard.")] = None
    features: Annotated[MachineFeatures | None, Field("Features.")] = None
    firmware: Annotated[MachineFirmware | None, Field("The firmware.")] = None


class OperatingSystem(Object):
    """The image to install from, and what the guest is."""

    imageID: Annotated[
        str | None,
        Field(
            "Address of an installation image; used when the annotation kubevirt.io/boot-source is datavolume.",
            min_length=1,
            max_length=2048,
        ),
    ] = None
    isoUri: Annotated[
        str | None, Field("Own form: address of an installation image, with or without annotations.", min_length=1, max_length=2048)
    ] = None
    architecture: Annotated[
        str | None, Field("Own form: architecture of the guest; default: the host's.", enum=ARCHITECTURES, empty_is_unset=True)
    ] = None
    family: Annotated[str | None, Field("Own form: family of the operating system.", not_honoured=_INFORMATION)] = None
    distribution: Annotated[str | None, Field("Own form: its distribution.", not_honoured=_INFORMATION)] = None
    version: Annotated[str | None, Field("Own form: its version.", not_honoured=_INFORMATION)] = None
    imageFamily: Annotated[
        str | None, Field("Own form: family of images.", not_honoured="the provider kubevirt has no families of images")
    ] = None
