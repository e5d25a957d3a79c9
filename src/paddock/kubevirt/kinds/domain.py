"""The virtual hardware of a machine: processors, memory, firmware, devices, clock."""

from typing import Annotated

from paddock.kubernetes.schema.field import Empty, Field, Object, Quantity
from paddock.kubevirt.kinds.devices import Devices
from paddock.kubevirt.kinds.features import Features, GuestClock
from paddock.kubevirt.kinds.firmware import Chassis, Firmware

FEATURE_POLICIES = ("force", "require", "optional", "disable", "forbid", "")
_HARDWARE = Field("Guest policy flags.")


class CPUFeature(Object):
    """A feature of the processor."""

    name: Annotated[
        str,
        Field(
            "Name of the feature.",
            required=True,
            pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
            message="must be the name of a processor feature such as aes",
        ),
    ] = ""
    policy: Annotated[str | None, Field("Whether the guest has it; default: require.", enum=FEATURE_POLICIES)] = None


class NUMA(Object):
    """The guest's NUMA topology."""

    guestMappingPassthrough: Annotated[Empty | None, Field("The topology of the host's processors the machine is pinned to.")] = None


class Realtime(Object):
    """Tuning for real-time work."""

    mask: Annotated[str | None, Field("The vCPUs it is for, such as 0-3,^1; default: all.")] = None


class CPU(Object):
    """The processors; the guest sees the product of sockets, cores and threads."""

    cores: Annotated[int | None, Field("Cores per socket; 0 means none given.", ge=0, bits=32)] = None
    sockets: Annotated[int | None, Field("Sockets; 0 means none given.", ge=0, bits=32)] = None
    maxSockets: Annotated[
        int | None, Field("Sockets that can be reached while the machine runs; default: four times sockets.", ge=0, bits=32)
    ] = None
    threads: Annotated[int | None, Field("Threads per core; 0 means none given.", ge=0, bits=32)] = None
    model: Annotated[str | None, Field("Model: host-model (the default), host-passthrough or a named one.")] = None
    features: Annotated[list[CPUFeature] | None, Field("Features of the processor.")] = None
    dedicatedCpuPlacement: Annotated[bool | None, Field("Pin every vCPU to a processor of its own.")] = None
    isolateEmulatorThread: Annotated[bool | None, Field("One more processor for the emulator's other threads.")] = None
    numa: Annotated[NUMA | None, Field("The guest's NUMA topology.")] = None
    realtime: Annotated[Realtime | None, Field("Tuning for real-time work.")] = None


class Hugepages(Object):
    """Memory in huge pages."""

    pageSize: Annotated[str | None, Field("Size of a page: 2Mi or 1Gi on amd64.")] = None


class ReservedOverhead(Object):
    """Memory that is set aside besides the guest's."""

    addedOverhead: Annotated[Quantity | None, Field("How much.")] = None
    memLock: Annotated[str | None, Field("Whether all memory has to stay locked.", enum=("NotRequired", "Required"))] = None


class Memory(Object):
    """The memory."""

    guest: Annotated[Quantity | None, Field("Memory the guest sees, such as 4Gi.")] = None
    maxGuest: Annotated[Quantity | None, Field("Memory that can be reached while the machine runs; default: four times guest.")] = None
    hugepages: Annotated[Hugepages | None, Field("Memory in huge pages.")] = None
    reservedOverhead: Annotated[ReservedOverhead | None, Field("Memory that is set aside besides the guest's.")] = None


class Resources(Object):
    """The resources that the machine takes from the host; keys are cpu and memory."""

    requests: Annotated[dict[str, Quantity] | None, Field("At least this much.")] = None
    limits: Annotated[dict[str, Quantity] | None, Field("At most this much.")] = None
    overcommitGuestOverhead: Annotated[bool | None, Field("Do not count the emulator's own memory.")] = None


class MachineChipset(Object):
    """The chipset."""

    type: Annotated[str | None, Field("Machine type, such as q35; default: by architecture.")] = None


class IOThreads(Object):
    """Threads for I/O."""

    supplementalPoolThreadCount: Annotated[int | None, Field("Threads of the policy supplementalPool.", le=4096, bits=32)] = None


class SEVPolicy(Object):
    """Flags of AMD SEV."""

    encryptedState: Annotated[bool | None, Field("SEV-ES is needed.")] = None


class SEV(Object):
    """AMD SEV."""

    policy: Annotated[SEVPolicy | None, _HARDWARE] = None
    attestation: Annotated[Empty | None, Field("Run the attestation.")] = None
    session: Annotated[str | None, Field("Session blob in base64.", secret=True)] = None
    dhCert: Annotated[str | None, Field("Diffie-Hellman key of the guest's owner in base64.", secret=True)] = None


class LaunchSecurity(Object):
    """Memory that the host cannot read."""

    sev: Annotated[SEV | None, Field("AMD SEV.")] = None
    snp: Annotated[Empty | None, Field("AMD SEV-SNP.")] = None
    tdx: Annotated[Empty | None, Field("Intel TDX.")] = None


class DomainSpec(Object):
    """The virtual hardware of a machine."""

    cpu: Annotated[CPU | None, Field("Processors.")] = None
    memory: Annotated[Memory | None, Field("Memory.")] = None
    resources: Annotated[Resources | None, Field("What the machine takes from the host.")] = None
    machine: Annotated[MachineChipset | None, Field("Chipset.")] = None
    firmware: Annotated[Firmware | None, Field("Firmware and identity.")] = None
    clock: Annotated[GuestClock | None, Field("Clock and timers.")] = None
    features: Annotated[Features | None, Field("Features of the hardware.")] = None
    devices: Annotated[Devices, Field("Devices.", required=True)] = Devices()
    ioThreadsPolicy: Annotated[
        str | None, Field("How disks share I/O threads; absent: none.", enum=("shared", "auto", "supplementalPool"))
    ] = None
    ioThreads: Annotated[IOThreads | None, Field("I/O threads.")] = None
    chassis: Annotated[Chassis | None, Field("What SMBIOS says of the case.")] = None
    launchSecurity: Annotated[LaunchSecurity | None, Field("Memory that the host cannot read.")] = None
    rebootPolicy: Annotated[str | None, Field("What a reboot by the guest means; default: Reboot.", enum=("Reboot", "Terminate"))] = None
