"""The limits of a machine, each with a name. No field of a manifest is ignored in silence.

A limit either keeps the machine from being placed (`UNSCHEDULABLE`: it may be placed when the host changes), ends its start
(`START_FAILED`: somebody has to change the manifest), or is reported beside the start (`NOTE`: an event).
"""

from enum import Enum

import msgspec

from paddock.kubernetes.schema.finding import Path, format_path


class Weight(Enum):
    """The consequence of a limit for the machine."""

    UNSCHEDULABLE = "Unschedulable"
    START_FAILED = "StartFailed"
    NOTE = "Note"


class Code(Enum):
    """The name of a limit, what it means for the machine, and what is generally told about it."""

    # the value of each is (weight, sentence)
    ARCHITECTURE_MISSING = (Weight.UNSCHEDULABLE, "no QEMU for this architecture is installed on the host")
    DEVICE_MISSING = (Weight.UNSCHEDULABLE, "the host has no free device of this name that machines may use")
    SRIOV_MISSING = (Weight.UNSCHEDULABLE, "the host has no free virtual function for this network card")
    VSOCK_MISSING = (Weight.UNSCHEDULABLE, "the host has no VSOCK (/dev/vhost-vsock)")
    CONFIDENTIAL_MISSING = (Weight.UNSCHEDULABLE, "the host cannot hide a guest's memory from itself")
    REALTIME_MISSING = (Weight.UNSCHEDULABLE, "real-time priority is not given to machines on this host")
    NUMA_MISSING = (Weight.UNSCHEDULABLE, "the topology of a host with several NUMA nodes cannot be passed on")
    CPUS_MISSING = (Weight.UNSCHEDULABLE, "no CPUs of its own were given to the machine")
    INSUFFICIENT_CPUS = (Weight.UNSCHEDULABLE, "Insufficient cpu: no QEMU here starts a machine with so many processors")
    VOLUME_FAILED = (Weight.START_FAILED, "the volume cannot be used")
    CARD_FAILED = (Weight.START_FAILED, "the network card cannot be connected")
    MACHINE_TYPE_UNKNOWN = (Weight.START_FAILED, "the installed QEMU has no machine type of this name")
    CPU_MODEL_UNKNOWN = (Weight.START_FAILED, "the installed QEMU has no processor model of this name")
    CPU_MODEL_TOO_OLD = (Weight.START_FAILED, "this processor has no interrupt controller of its own, which the machine type needs")
    CPU_FEATURE_UNKNOWN = (Weight.START_FAILED, "the installed QEMU has no processor feature of this name")
    CPU_FEATURE_MISSING = (Weight.START_FAILED, "emulated processors do not have this feature; use the policy optional, or a host with KVM")
    PROCESSORS_TOO_MANY = (Weight.START_FAILED, "the installed QEMU starts no machine with so many processors")
    MACHINE_TYPE_TOO_OLD = (Weight.START_FAILED, "this machine type is older than the devices that the machine has")
    TIMEZONE_UNKNOWN = (Weight.START_FAILED, "the host does not know this time zone")
    OFFSET_TOO_LARGE = (Weight.START_FAILED, "an offset of the clock has to be less than a day")
    SERIAL_TOO_LONG = (Weight.START_FAILED, "a disk on the SCSI bus takes a serial number of at most 36 characters")
    UUID_UNREADABLE = (Weight.START_FAILED, "this is no UUID; write one such as 5d307ca9-b3ef-428c-8861-06e72d69f223")
    KERNEL_MISSING = (Weight.START_FAILED, "the image with the kernel is not there")
    TABLE_MISSING = (Weight.START_FAILED, "the volume with the ACPI table is not there")
    STATE_MISSING = (Weight.START_FAILED, "there is no place where this state is kept")
    CLAIM_REFUSED = (Weight.START_FAILED, "resource claims (DRA) are not supported")
    WATCHDOG_MISSING = (Weight.START_FAILED, "this watchdog exists on s390x only")
    CONTAINER_PATH_REFUSED = (Weight.START_FAILED, "there is no launcher container whose directories could be shared")
    MEMORY_FIXED = (Weight.NOTE, "this machine's memory cannot grow to maxGuest while it runs")
    SOCKETS_CUT = (Weight.NOTE, "the installed QEMU takes fewer processors: sockets can be added up to that")
    CDROM_IS_DISK = (Weight.NOTE, "virtio has no CD-ROM drive: the guest sees a disk that it cannot write")
    IO_URING_MISSING = (Weight.NOTE, "the host's kernel does not let QEMU use io_uring: threads are used")
    LUN_IS_DISK = (Weight.NOTE, "the volume is no block device: the guest sees a plain SCSI disk")
    RESERVATION_MISSING = (Weight.NOTE, "persistent reservations are not passed on")
    SERIAL_CUT = (Weight.NOTE, "the guest sees the first 20 characters of the serial number")
    HYPERV_NEEDS_KVM = (Weight.NOTE, "these Hyper-V features need KVM; the emulated guest does not get them")
    FEATURE_NEEDS_KVM = (Weight.NOTE, "this needs KVM; it means nothing to an emulated guest")
    TIMER_UNCHANGED = (Weight.NOTE, "this setting of the timer has no effect here")
    TRACKING_MISSING = (Weight.NOTE, "changed blocks are followed of disks on claims that this machine alone writes")
    QUEUES_MISSING = (Weight.NOTE, "this network card has one queue: its backend takes no more")
    RESOLVER_OPTIONS = (Weight.NOTE, "DHCP has no word for options of the resolver: the guest does not get them, as on a cluster")
    METRICS_MISSING = (Weight.NOTE, "metrics of the host are not handed to guests")
    DISPLAY_MISSING = (Weight.NOTE, "the display of a passed-through GPU is not shown")
    UTILITY_IGNORED = (Weight.NOTE, "nothing here uses utility volumes")
    FIELD_UNREAD = (Weight.NOTE, "no part of the engine reads this field; the machine starts without it")

    @property
    def weight(self) -> Weight:
        """The consequence for the machine."""
        return self.value[0]

    @property
    def sentence(self) -> str:
        return self.value[1]

    @property
    def reason(self) -> str:
        """The name as conditions and events write it."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class Limit(msgspec.Struct, frozen=True):
    """One thing that cannot be done. `path` leads to the field in the instance."""

    code: Code
    path: Path
    detail: str = ""

    @property
    def message(self) -> str:
        """The sentence for people."""
        text = f"{format_path(self.path)}: {self.code.sentence}"
        return f"{text} ({self.detail})" if self.detail else text


class LimitCollector:
    """Collects the limits of one machine."""

    def __init__(self) -> None:
        self._found: list[Limit] = []

    def add(self, code: Code, *path: str | int, detail: str = "") -> None:
        self._found.append(Limit(code, path, detail))

    @property
    def found(self) -> tuple[Limit, ...]:
        """Everything so far, in order."""
        return tuple(self._found)
