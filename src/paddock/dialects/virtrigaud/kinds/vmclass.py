"""VirtRigaud's VMClass: the size and the hardware of machines (docs/spec/virtrigaud.md section 1.2)."""

from typing import Annotated

from paddock.dialects.virtrigaud.kinds.shared import CLASS_DISK_TYPES, GROUP, KEY_PROVIDERS, VERSIONS, Conditions, ObservedGeneration
from paddock.dialects.virtrigaud.rules import vmclass as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Quantity, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind


class DiskDefaults(Object):
    """The defaults for the disks of a machine."""

    STRANGERS = {"sizeGiB": 'write size as a quantity, such as size: "40Gi"'}

    type: Annotated[str, Field("Provisioning or medium.", enum=CLASS_DISK_TYPES)] = "thin"
    size: Annotated[Quantity, Field("Size of the root disk.", positive=True)] = "40Gi"
    iops: Annotated[int | None, Field("Most input and output operations of each disk in a second.", ge=100, le=100000)] = None
    storageClass: Annotated[str | None, Field("Storage class of the disks of a machine that names no place.", max_length=253)] = None


class VMResourceLimits(Object):
    """The limits and the reservations of a machine on a host."""

    cpuLimit: Annotated[int | None, Field("Most processor time, in MHz.", ge=100, le=100000)] = None
    cpuReservation: Annotated[int | None, Field("Promised processor time, in MHz.", ge=0, le=100000)] = None
    cpuShares: Annotated[int | None, Field("Weight against other machines.", ge=1, le=1000000)] = None
    memoryLimit: Annotated[Quantity | None, Field("Most memory of the host.")] = None
    memoryReservation: Annotated[Quantity | None, Field("Promised memory of the host.")] = None


class PerformanceProfile(Object):
    """The share of the processors, and the hardware that may be added while the machine runs."""

    latencySensitivity: Annotated[str, Field("How much the machine minds waiting.", enum=("low", "normal", "high"))] = "normal"
    cpuHotAddEnabled: Annotated[bool, Field("Whether CPUs may be added while the machine runs.")] = False
    memoryHotAddEnabled: Annotated[bool, Field("Whether memory may be added while the machine runs.")] = False
    virtualizationBasedSecurity: Annotated[bool, Field("Whether the guest gets what Windows needs for it.")] = False
    nestedVirtualization: Annotated[bool, Field("Whether the guest may run machines of its own.")] = False
    hyperThreadingPolicy: Annotated[str, Field("What to make of hyper-threads.", enum=("auto", "prefer", "avoid", "require"))] = "auto"


class EncryptionPolicy(Object):
    """Encryption of the machine's files."""

    enabled: Annotated[bool, Field("Whether the machine is encrypted.")] = False
    keyProvider: Annotated[str | None, Field("Where the keys are kept.", enum=KEY_PROVIDERS)] = None
    requireEncryption: Annotated[bool, Field("Whether a machine that cannot be encrypted is refused.")] = False


class SecurityProfile(Object):
    """The protection of the machine."""

    secureBoot: Annotated[bool, Field("Boot signed programs only.")] = False
    tpmEnabled: Annotated[bool, Field("Give the machine a TPM.")] = False
    tpmVersion: Annotated[str | None, Field("Version of the TPM.", enum=("1.2", "2.0"))] = None
    vtdEnabled: Annotated[bool, Field("Give the guest an IOMMU (VT-d, AMD-Vi).")] = False
    encryptionPolicy: Annotated[EncryptionPolicy | None, Field("Encryption of the machine's files.")] = None


class VMClassSpec(Object):
    """The properties of the machines of a class."""

    STRANGERS = {
        "memoryMiB": 'write memory as a quantity, such as memory: "4Gi"',
        "cpus": "write cpu",
        "disks": "write diskDefaults for the root disk; other disks belong to the VirtualMachine",
    }

    cpu: Annotated[int, Field("Number of virtual CPUs.", required=True, ge=1, le=128)] = 0
    memory: Annotated[Quantity, Field("Memory of the guest.", required=True, positive=True)] = "0"
    firmware: Annotated[str, Field("Firmware; EFI means UEFI.", enum=("BIOS", "UEFI", "EFI"))] = "BIOS"
    diskDefaults: Annotated[DiskDefaults | None, Field("Defaults of disks.")] = None
    guestToolsPolicy: Annotated[
        str,
        Field(
            "What to do about guest tools. `install` gives the machine the channel of its agent; the image brings the agent.",
            enum=("install", "skip", "upgrade", "uninstall"),
        ),
    ] = "install"
    resourceLimits: Annotated[VMResourceLimits | None, Field("Limits and promises.")] = None
    performanceProfile: Annotated[PerformanceProfile | None, Field("Performance.")] = None
    securityProfile: Annotated[SecurityProfile | None, Field("Security.")] = None
    extraConfig: Annotated[dict[str, str] | None, Field("Settings of one provider, such as vsphere.hardwareVersion.", max_items=50)] = None


class ClassValidation(Object):
    """The ability of a provider to make machines of the class."""

    valid: Annotated[bool, Field("Whether it can.", required=True)] = False
    message: Annotated[str | None, Field("Why, or why not.")] = None
    warnings: Annotated[list[str] | None, Field("What it does in another way.")] = None
    lastValidated: Annotated[Time | None, Field("When it was asked.")] = None


class VMClassStatus(Object):
    """The observed state of a class."""

    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    usedByVMs: Annotated[int | None, Field("Number of machines of the class.", ge=0, bits=32)] = None
    supportedProviders: Annotated[list[str] | None, Field("Providers that can make such machines.")] = None
    validationResults: Annotated[dict[str, ClassValidation] | None, Field("What each provider says.")] = None


class VMClass(Resource):
    """A size and a hardware profile that machines share."""

    spec: Annotated[VMClassSpec, Field("What machines of the class are like.", required=True)] = VMClassSpec()
    status: Annotated[VMClassStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMClass",
        plural="vmclasses",
        singular="vmclass",
        short_names=("vmclass",),
        cls=VMClass,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("CPU", ".spec.cpu", "integer"),
            Column("Memory", ".spec.memory"),
            Column("Firmware", ".spec.firmware"),
            Column("Used By", ".status.usedByVMs", "integer"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
