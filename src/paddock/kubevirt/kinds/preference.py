"""`instancetype.kubevirt.io/v1beta1` VirtualMachinePreference and VirtualMachineClusterPreference (docs/spec/kubevirt.md 7.5).

A preference fills what a machine leaves open; it never conflicts with what a machine says.
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Annotations, Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Empty, Field, Object, Quantity
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Kind, Version, rule
from paddock.kubevirt.kinds.devices import CACHE_MODES, DISK_BUSES, IO_MODES, TPM, BlockSize, VGPUOptions
from paddock.kubevirt.kinds.domain import CPUFeature
from paddock.kubevirt.kinds.features import APIC, KVM, TIMEZONE, ClockUTC, FeatureState, HyperV, Timer
from paddock.kubevirt.kinds.firmware import EFI
from paddock.kubevirt.kinds.instance import ARCHITECTURES
from paddock.kubevirt.kinds.networks import MODELS

GROUP = "instancetype.kubevirt.io"
# The newer words, and the ones they took the place of.
TOPOLOGIES = ("cores", "sockets", "threads", "spread", "any", "preferCores", "preferSockets", "preferThreads", "preferSpread", "preferAny")
SPREADS = ("SocketsCoresThreads", "SocketsCores", "CoresThreads")
_BUS = Field("Bus of such devices.", enum=DISK_BUSES)


class ClockOffset(Object):
    """The start value of the clock; one of the two."""

    utc: Annotated[ClockUTC | None, Field("The clock starts with UTC.")] = None
    timezone: Annotated[str | None, TIMEZONE] = None


class ClockPreferences(Object):
    """The clock."""

    preferredClockOffset: Annotated[ClockOffset | None, Field("What the clock starts with.")] = None
    preferredTimer: Annotated[Timer | None, Field("The timers.")] = None


class SpreadOptions(Object):
    """The spread of vCPUs."""

    across: Annotated[str | None, Field("Over what; default: SocketsCores.", enum=SPREADS)] = None
    ratio: Annotated[int | None, Field("In which ratio; default: 2.", ge=1, bits=32)] = None


class CPUPreferences(Object):
    """The arrangement of vCPUs."""

    preferredCPUTopology: Annotated[str | None, Field("What the vCPUs are to the guest; default: sockets.", enum=TOPOLOGIES)] = None
    spreadOptions: Annotated[SpreadOptions | None, Field("How vCPUs are spread.")] = None
    preferredCPUFeatures: Annotated[list[CPUFeature] | None, Field("Features of the processor.", max_items=256)] = None


class DevicePreferences(Object):
    """The devices."""

    preferredAutoattachGraphicsDevice: Annotated[bool | None, Field("Attach a graphics card.")] = None
    preferredAutoattachMemBalloon: Annotated[bool | None, Field("Attach a memory balloon.")] = None
    preferredAutoattachPodInterface: Annotated[bool | None, Field("Attach the default network.")] = None
    preferredAutoattachSerialConsole: Annotated[bool | None, Field("Attach a serial console.")] = None
    preferredAutoattachInputDevice: Annotated[bool | None, Field("Attach an input device.")] = None
    preferredDisableHotplug: Annotated[bool | None, Field("No room for devices that are plugged in later.")] = None
    preferredVirtualGPUOptions: Annotated[VGPUOptions | None, Field("Settings of virtual GPUs.")] = None
    preferredSoundModel: Annotated[str | None, Field("Model of sound cards.", enum=("ich9", "ac97"))] = None
    preferredUseVirtioTransitional: Annotated[bool | None, Field("Virtio that old guests understand.")] = None
    preferredInputBus: Annotated[str | None, Field("Bus of input devices.", enum=("virtio", "usb"))] = None
    preferredInputType: Annotated[str | None, Field("Type of input devices.", enum=("tablet",))] = None
    preferredDiskBus: Annotated[str | None, _BUS] = None
    preferredLunBus: Annotated[str | None, _BUS] = None
    preferredCdromBus: Annotated[str | None, _BUS] = None
    preferredDiskDedicatedIoThread: Annotated[bool | None, Field("An I/O thread for each disk; virtio only.")] = None
    preferredDiskCache: Annotated[str | None, Field("How the host caches.", enum=CACHE_MODES)] = None
    preferredDiskIO: Annotated[str | None, Field("How the host reads and writes.", enum=IO_MODES)] = None
    preferredDiskBlockSize: Annotated[BlockSize | None, Field("Block sizes.")] = None
    preferredInterfaceModel: Annotated[str | None, Field("Model of network cards.", enum=MODELS)] = None
    preferredInterfaceMasquerade: Annotated[Empty | None, Field("Bind network cards by masquerade.")] = None
    preferredRng: Annotated[Empty | None, Field("Random numbers from the host.")] = None
    preferredBlockMultiQueue: Annotated[bool | None, Field("Several queues for virtio disks.")] = None
    preferredNetworkInterfaceMultiQueue: Annotated[bool | None, Field("Several queues for virtio cards.")] = None
    preferredTPM: Annotated[TPM | None, Field("Trusted platform module.")] = None
    preferredPanicDeviceModel: Annotated[str | None, Field("Model of panic devices.", enum=("isa", "hyperv", "pvpanic"))] = None
    preferredVideoType: Annotated[str | None, Field("Type of the graphics card.")] = None


class FeaturePreferences(Object):
    """Features of the hardware."""

    preferredAcpi: Annotated[FeatureState | None, Field("ACPI.")] = None
    preferredApic: Annotated[APIC | None, Field("Interrupt controller.")] = None
    preferredHyperv: Annotated[HyperV | None, Field("Enlightenments for Windows.")] = None
    preferredKvm: Annotated[KVM | None, Field("How the guest sees KVM.")] = None
    preferredPvspinlock: Annotated[FeatureState | None, Field("Paravirtual spinlocks.")] = None
    preferredSmm: Annotated[FeatureState | None, Field("System Management Mode.")] = None


class FirmwarePreferences(Object):
    """The firmware."""

    preferredUseBios: Annotated[bool | None, Field("Boot with BIOS.")] = None
    preferredUseBiosSerial: Annotated[bool | None, Field("Send the output of the BIOS to the serial console.")] = None
    preferredEfi: Annotated[EFI | None, Field("Boot with EFI, like this.")] = None
    preferredUseEfi: Annotated[bool | None, Field("Boot with EFI.", deprecated="use preferredEfi")] = None
    preferredUseSecureBoot: Annotated[bool | None, Field("Boot with Secure Boot.", deprecated="use preferredEfi")] = None


class MachinePreferences(Object):
    """The chipset."""

    preferredMachineType: Annotated[str | None, Field("Machine type, such as q35.")] = None


class VolumePreferences(Object):
    """The disks."""

    preferredStorageClassName: Annotated[str | None, Field("StorageClass of DataVolumes that name none.", format="dns1123-subdomain")] = (
        None
    )


class CPURequirement(Object):
    """The least processors."""

    guest: Annotated[int, Field("Least number of vCPUs.", required=True, ge=0, bits=32)] = 0


class MemoryRequirement(Object):
    """The least memory."""

    guest: Annotated[Quantity, Field("Least memory.", required=True)] = "0"


class PreferenceRequirements(Object):
    """The least that a machine must have for this preference."""

    cpu: Annotated[CPURequirement | None, Field("The least processors.")] = None
    memory: Annotated[MemoryRequirement | None, Field("The least memory.")] = None
    architecture: Annotated[str | None, Field("The architecture.", enum=ARCHITECTURES)] = None


class PreferenceSpec(Object):
    """The defaults for fields that a machine leaves out."""

    clock: Annotated[ClockPreferences | None, Field("The clock.")] = None
    cpu: Annotated[CPUPreferences | None, Field("How vCPUs are arranged.")] = None
    devices: Annotated[DevicePreferences | None, Field("The devices.")] = None
    features: Annotated[FeaturePreferences | None, Field("Features of the hardware.")] = None
    firmware: Annotated[FirmwarePreferences | None, Field("The firmware.")] = None
    machine: Annotated[MachinePreferences | None, Field("The chipset.")] = None
    volumes: Annotated[VolumePreferences | None, Field("The disks.")] = None
    preferredSubdomain: Annotated[str | None, Field("Domain of the guest.", format="dns1123-subdomain")] = None
    preferredTerminationGracePeriodSeconds: Annotated[int | None, Field("Seconds for a clean shutdown.", ge=0)] = None
    preferredArchitecture: Annotated[str | None, Field("Architecture of the guest.", enum=ARCHITECTURES)] = None
    requirements: Annotated[PreferenceRequirements | None, Field("What a machine must have at least.")] = None
    annotations: Annotations = None
    preferSpreadSocketToCoreRatio: Annotated[
        int | None, Field("Ratio of sockets to cores.", ge=0, bits=32, deprecated="use cpu.spreadOptions.ratio")
    ] = None


class VirtualMachinePreference(Resource):
    """The defaults for machines of one namespace."""

    spec: Annotated[PreferenceSpec, Field("What machines get.", required=True)] = PreferenceSpec()


class VirtualMachineClusterPreference(Resource):
    """The defaults for machines everywhere."""

    spec: Annotated[PreferenceSpec, Field("What machines get.", required=True)] = PreferenceSpec()


@rule("kubevirt/preference-spread")
def spread_is_possible(preference: VirtualMachinePreference, settings: AdmissionSettings) -> Iterator[Finding]:
    """Cores are spread over threads in the ratio of two only."""
    cpu = preference.spec.cpu
    options = cpu.spreadOptions if cpu is not None and cpu.preferredCPUTopology in ("spread", "preferSpread") else None
    if options is None or options.across != "CoresThreads":
        return
    ratio = options.ratio or preference.spec.preferSpreadSocketToCoreRatio or 2
    if ratio != 2:
        path = ("spec", "cpu", "spreadOptions", "ratio")
        yield finding.invalid(path, ratio, "only a ratio of 2 is allowed for CoresThreads", "kubevirt/preference-spread")


# What preferredEfi takes the place of.
_OLDER = ("preferredUseEfi", "preferredUseSecureBoot")


@rule(
    "kubevirt/preference-firmware",
    *(
        Cel(
            "spec.firmware",
            f"!has(self.preferredEfi) || !has(self.{old})",
            "preferredEfi is set too",
            f".{old}",
            "FieldValueForbidden",
        )
        for old in _OLDER
    ),
    Cel(
        "spec.firmware",
        "!has(self.preferredUseBios) || !self.preferredUseBios || "
        "(!has(self.preferredEfi) && !(has(self.preferredUseEfi) && self.preferredUseEfi))",
        "EFI is preferred too",
        ".preferredUseBios",
        "FieldValueForbidden",
    ),
)
def efi_is_said_once(preference: VirtualMachinePreference, settings: AdmissionSettings) -> Iterator[Finding]:
    """EFI is asked for in the newer or in the older way, and not together with BIOS."""
    firmware = preference.spec.firmware
    if firmware is None:
        return
    path, name = ("spec", "firmware"), "kubevirt/preference-firmware"
    for old in _OLDER:
        if firmware.preferredEfi is not None and getattr(firmware, old) is not None:
            yield finding.forbidden((*path, old), "preferredEfi is set too", name)
    if firmware.preferredUseBios and (firmware.preferredEfi is not None or firmware.preferredUseEfi):
        yield finding.forbidden((*path, "preferredUseBios"), "EFI is preferred too", name)


_RULES = (spread_is_possible, efi_is_said_once)

KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachinePreference",
        plural="virtualmachinepreferences",
        singular="virtualmachinepreference",
        short_names=("vmpref", "vmprefs", "vmp", "vmps"),
        categories=("all",),
        cls=VirtualMachinePreference,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE,),
        status=False,
        rules=_RULES,
    ),
    Kind(
        group=GROUP,
        kind="VirtualMachineClusterPreference",
        plural="virtualmachineclusterpreferences",
        singular="virtualmachineclusterpreference",
        short_names=("vmcp", "vmcps"),
        categories=("all",),
        namespaced=False,
        cls=VirtualMachineClusterPreference,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE,),
        status=False,
        rules=_RULES,
    ),
)
