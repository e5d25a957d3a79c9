"""The observed state of a machine. An `Observation` is replaced as a whole; a holder keeps the state of one moment."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

Phase = Literal["defined", "queued", "starting", "running", "stopping", "suspended", "ended"]
# "" runs; "io-error": a disk could not be written and QEMU waits; "start": started paused
Paused = Literal["", "user", "io-error", "start", "watchdog"]
EndReason = Literal[
    "guest-shutdown",  # the guest powered itself off, asked to or not
    "guest-reboot",  # the guest rebooted, and a reboot ends this machine
    "killed",  # it did not stop in time, or something on the host ended it
    "crashed",  # QEMU ended without a word
    "panicked",  # the guest said so
    "watchdog",  # the guest did not feed its watchdog
    "internal-error",  # the processor got into a state that the accelerator cannot handle
    "never-started",  # QEMU refused its command line, or ended before the guest ran
    "host-reboot",  # the host went down under it
    "saved",  # its state is in a file, or went on elsewhere
    "discarded",  # it was suspended, and its state was thrown away
]


class RunEnd(Struct, frozen=True):
    """The end of a machine's run."""

    reason: EndReason
    # the last lines of QEMU's log, where they tell more than the reason
    text: str = ""
    # seconds since the epoch
    at: float = 0.0
    # Paddock stopped it
    asked: bool = False


class SuspendedState(Struct, frozen=True):
    """The guest's memory and devices on disk."""

    # seconds since the epoch
    at: float
    # bytes
    size: int


class DiskState(Struct, frozen=True):
    """A disk as QEMU has it."""

    state: Literal["plugged", "unplugging"] = "plugged"
    # what the guest sees, in bytes
    size: int = 0
    # why it cannot be unplugged, when that was tried
    error: str = ""


class NicState(Struct, frozen=True):
    """A network card as QEMU has it."""

    state: Literal["plugged", "unplugging"] = "plugged"
    link_up: bool = True
    error: str = ""


class JobState(Struct, frozen=True):
    """Something long that QEMU does to a disk, by the disk's name."""

    kind: str
    # "ready": all is copied, and what the guest writes goes to both places
    state: Literal["running", "ready", "failed"] = "running"
    done: int = 0
    total: int = 0
    error: str = ""


class GuestFault(Struct, frozen=True):
    """The reason why a guest cannot be used although its process lives."""

    reason: Literal["ProcessStopped", "MonitorUnresponsive", "GuestRebootLoop", "MachineUnmanaged"]
    # a sentence for people
    message: str

    @property
    def silent(self) -> bool:
        """QEMU does not answer."""
        return self.reason != "GuestRebootLoop"

    @property
    def unmanaged(self) -> bool:
        """Paddock can do nothing with the machine, not even end it."""
        return self.reason == "MachineUnmanaged"


class Observation(Struct, frozen=True):
    """A machine as it is seen."""

    phase: Phase = "defined"
    paused: Paused = ""
    # the engine lets the guest stand still for a moment: nobody paused it
    still: bool = False
    pid: int = 0
    # rises with every start
    run: int = 0
    # of the last run
    end: RunEnd | None = None
    # "kvm" or "tcg" while it runs
    accelerator: str = ""
    # an agent in the guest has its channel open
    agent: bool = False
    # phase or milestone (queued, started, running, agent, stopping, ended) -> seconds since the epoch, of the current or last run
    times: Mapping[str, float] = field(default_factory=dict)
    disks: Mapping[str, DiskState] = field(default_factory=dict)
    nics: Mapping[str, NicState] = field(default_factory=dict)
    # processor sockets and bytes of memory that the guest has now
    sockets: int = 0
    memory: int = 0
    # disk -> what its last failed access said: "enospc" or words; emptied when the guest goes on
    disk_errors: Mapping[str, str] = field(default_factory=dict)
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    # times the guest was reset, by itself or by us, in this run
    resets: int = 0
    # when a stop ends with force, in seconds since the epoch; 0: no stop is under way
    deadline: float = 0.0
    # None: nothing is known to be wrong
    fault: GuestFault | None = None
    # a sentence for people, when something needs their attention
    detail: str = ""
    # of a suspended machine; the text of `end` tells why its last resume failed
    suspended: SuspendedState | None = None
    # its guest was handed over to another host: "offered" until that says whether it has it
    handed: Literal["", "offered", "decided"] = ""

    @property
    def live(self) -> bool:
        """A QEMU process exists or will in a moment."""
        return self.phase in ("queued", "starting", "running", "stopping")

    @property
    def stands_still(self) -> bool:
        """The guest runs nothing, whatever the reason."""
        return self.still or bool(self.paused)

    @property
    def holds_disks(self) -> bool:
        """Its disks belong to it: a process has them open, or a guest goes on with them that is saved, or that may come back."""
        return self.live or self.phase == "suspended" or self.handed == "offered"


class DiskStatistics(Struct, frozen=True):
    """Counters of a disk since QEMU started."""

    reads: int = 0
    writes: int = 0
    flushes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    read_seconds: float = 0.0
    write_seconds: float = 0.0
    flush_seconds: float = 0.0


class NicStatistics(Struct, frozen=True):
    """Counters of a network card, as the guest sees them: received is what the guest received."""

    received_bytes: int = 0
    received_packets: int = 0
    received_errors: int = 0
    received_dropped: int = 0
    sent_bytes: int = 0
    sent_packets: int = 0
    sent_errors: int = 0
    sent_dropped: int = 0


class VcpuStatistics(Struct, frozen=True):
    """A virtual processor: seconds it ran, was ready to and did not, and waited for disks."""

    number: int
    seconds: float = 0.0
    delay_seconds: float = 0.0
    wait_seconds: float = 0.0
    state: Literal["OFFLINE", "RUNNING", "BLOCKED"] = "RUNNING"


class MemoryStatistics(Struct, frozen=True):
    """Bytes, and counts of pages' faults. None: the guest does not say (its balloon driver tells)."""

    domain: int = 0
    balloon: int = 0
    resident: int = 0
    available: int | None = None
    usable: int | None = None
    unused: int | None = None
    cached: int | None = None
    swap_in: int | None = None
    swap_out: int | None = None
    major_faults: int | None = None
    minor_faults: int | None = None


class Statistics(Struct, frozen=True):
    """The usage of a machine up to now."""

    cpu_user_seconds: float = 0.0
    cpu_system_seconds: float = 0.0
    vcpus: tuple[VcpuStatistics, ...] = ()
    memory: MemoryStatistics = MemoryStatistics()
    disks: Mapping[str, DiskStatistics] = field(default_factory=dict)
    nics: Mapping[str, NicStatistics] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        """Of all threads of the process."""
        return self.cpu_user_seconds + self.cpu_system_seconds


class RenewalResult(Struct, frozen=True):
    """A move into a new QEMU: the guest stood still for `pause` of the `seconds` that it took."""

    seconds: float
    pause: float
    # versions of QEMU, as it says them
    before: str
    after: str
