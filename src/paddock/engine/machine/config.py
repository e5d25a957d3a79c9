"""A machine as data. `argv` turns it into a command line, and nothing else may.

Everything here is decided: names are resolved to paths, defaults are filled in, and no value needs the host to be understood. Values
of a user (names, serials, kernel arguments) may stand in any field of type `str`; the code that writes them into a command line
or a QMP command escapes them.

A config is kept in a machine's directory as JSON; a new field has a default, so that older files are still readable.
"""

from pathlib import Path
from typing import Literal

from msgspec import Struct, field

Bus = Literal["virtio", "sata", "scsi", "usb", "ide"]
Format = Literal["raw", "qcow2"]
Role = Literal["disk", "cdrom", "lun"]


class DiskLayer(Struct, frozen=True):
    """A file that holds a disk, and what it is laid over."""

    path: Path
    format: Format
    # read-only layers below; the format is given, never probed
    backing: "DiskLayer | None" = None


class Forwarded(Struct, frozen=True):
    """A port of the host that leads to a guest on QEMU's own network."""

    protocol: Literal["tcp", "udp"]
    address: str
    outside: int
    inside: int


class DiskConfig(Struct, frozen=True):
    """A disk of a machine. `name` is its name in the machine, and unique."""

    name: str
    # None: a drive without a medium
    layer: DiskLayer | None
    bus: Bus = "virtio"
    role: Role = "disk"
    readonly: bool = False
    boot_order: int | None = None
    serial: str = ""
    # "" leaves the choice to the host: none where O_DIRECT works, else writethrough
    cache: Literal["", "none", "writethrough", "writeback"] = ""
    io: Literal["", "native", "threads", "io_uring"] = ""
    shareable: bool = False
    error_policy: Literal["stop", "ignore", "report", "enospc"] = "stop"
    logical_block: int | None = None
    physical_block: int | None = None
    discard_granularity: int | None = None
    # an I/O thread by its number; None: QEMU's main loop
    iothread: int | None = None
    queues: int | None = None
    pci_address: str = ""
    # plugged while the machine runs, and to be plugged again when it is started anew from this config
    hotplugged: bool = False
    # which blocks change is followed, for backups
    tracked: bool = False


class Tap(Struct, frozen=True, tag="tap"):
    """A tap device that exists; QEMU gets its file descriptor."""

    device: str
    queues: int = 1


class UserNetwork(Struct, frozen=True, tag="user"):
    """QEMU's own user-mode network."""

    network: str
    gateway: str
    address: str
    dns: str
    hostname: str = ""
    domain: str = ""
    search: tuple[str, ...] = ()
    # (protocol, address on the host, port on the host, port in the guest)
    forwards: tuple[tuple[str, str, int, int], ...] = ()
    # the guest reaches nothing but what is forwarded to it
    isolated: bool = False
    # of 64 bits, from which the guest makes its address; "" without IPv6
    network6: str = ""
    gateway6: str = ""
    dns6: str = ""


class StreamNetwork(Struct, frozen=True, tag="stream"):
    """A UNIX socket that another process (passt) listens at."""

    path: Path


class Nic(Struct, frozen=True):
    name: str
    mac: str
    backend: Tap | UserNetwork | StreamNetwork
    model: str = "virtio"
    boot_order: int | None = None
    pci_address: str = ""
    acpi_index: int | None = None
    link_up: bool = True
    mtu: int | None = None


class CpuConfig(Struct, frozen=True):
    """Processors. `sockets` are there at boot, up to `max_sockets` can be plugged."""

    sockets: int = 1
    cores: int = 1
    threads: int = 1
    max_sockets: int = 1
    # "host" becomes "max" where the guest is emulated
    model: str = "host"
    # (name, True: on, False: off)
    features: tuple[tuple[str, bool], ...] = ()
    # properties of Hyper-V enlightenments, such as ("hv-relaxed", "on")
    hyperv: tuple[tuple[str, str], ...] = ()
    kvm_hidden: bool = False
    # a feature that is to be on and is not there ends the start
    enforce: bool = False
    # host CPUs for the virtual ones, in order; empty: anywhere
    pinned: tuple[int, ...] = ()
    # host CPUs for QEMU's other threads; empty: anywhere
    emulator_pinned: tuple[int, ...] = ()


class MemoryConfig(Struct, frozen=True):
    """Guest memory in bytes."""

    size: int
    max_size: int
    hugepage: int | None = None
    # shared with helper processes (virtiofsd, vhost-user)
    shared: bool = False
    # backed by this file; `private` copies on write, so that many machines may start from one file
    file: Path | None = None
    private: bool = False


class KernelConfig(Struct, frozen=True):
    """A kernel that is started without a boot loader."""

    kernel: Path
    initrd: Path | None = None
    arguments: str = ""


class FirmwareConfig(Struct, frozen=True):
    """The firmware below the guest's boot loader."""

    kind: Literal["bios", "efi"] = "bios"
    secure_boot: bool = False
    # the variables of this machine live here between starts; None: fresh ones for each start
    variables: Path | None = None
    serial_output: bool = False
    uuid: str = ""
    serial: str = ""
    manufacturer: str = "KubeVirt"
    product: str = "None"
    family: str = "KubeVirt"
    version: str = ""
    sku: str = ""
    # (member, value) of SMBIOS type 3
    chassis: tuple[tuple[str, str], ...] = ()
    # ACPI tables (slic, msdm)
    acpi_tables: tuple[Path, ...] = ()
    # (name, file) given to the guest through fw_cfg
    files: tuple[tuple[str, Path], ...] = ()


class Tpm(Struct, frozen=True):
    """TPM 2.0. Its state lives in `state` between starts; None: a fresh one for each start."""

    state: Path | None = None


class ClockConfig(Struct, frozen=True):
    """The clock the guest finds."""

    # "utc" or a time zone's name
    base: str = "utc"
    offset_seconds: int = 0
    hpet: bool = False
    pit_policy: Literal["", "delay", "catchup", "discard"] = "delay"
    rtc_policy: Literal["", "catchup"] = "catchup"
    # "vm": the clock stands still while the guest does
    rtc_clock: Literal["host", "vm"] = "host"
    pit: bool = True
    kvm: bool = True
    hyperv: bool = False


class SharedDirectory(Struct, frozen=True):
    """A directory of the host that the guest mounts by its tag."""

    tag: str
    path: Path
    readonly: bool = False
    # it is the host's own: shared with the rights of its owner only (engine/share.py)
    as_owner: bool = False


class DeviceConfig(Struct, frozen=True):
    """Everything besides disks and network cards."""

    serial: bool = True
    # the last bytes of the serial console are kept in a file
    serial_log: bool = True
    graphics: bool = True
    # "" leaves the choice to the firmware: vga for BIOS, bochs for EFI
    video: str = ""
    rng: bool = False
    balloon: bool = True
    free_page_reporting: bool = True
    agent: bool = True
    tpm: Tpm | None = None
    # what a watchdog that was not fed does: reset, poweroff, shutdown; "": none
    watchdog: str = ""
    # (type, bus, name)
    inputs: tuple[tuple[str, str, str], ...] = ()
    # "ich9", "ac97" or "" for none
    sound: str = ""
    panic: bool = False
    usb_redirections: int = 0
    # QEMU's vmgenid, a UUID that changes with each clone
    generation_id: str = ""
    shared: tuple[SharedDirectory, ...] = ()
    # host PCI addresses given to the guest
    pci: tuple[str, ...] = ()
    # the guest's number on the host's VSOCK
    vsock: int | None = None
    # virtio devices also have the interface that old guests need
    virtio_transitional: bool = False


class MachineConfig(Struct, frozen=True):
    """A machine. Equal configs give equal command lines on the same host."""

    # shown in process lists: "namespace_name"
    label: str
    cpu: CpuConfig
    memory: MemoryConfig
    architecture: Literal["amd64", "arm64"] = "amd64"
    machine_type: str = "q35"
    firmware: FirmwareConfig = FirmwareConfig()
    kernel: KernelConfig | None = None
    disks: tuple[DiskConfig, ...] = ()
    nics: tuple[Nic, ...] = ()
    devices: DeviceConfig = DeviceConfig()
    clock: ClockConfig = ClockConfig()
    acpi: bool = True
    smm: bool = False
    iothreads: int = 0
    # a reboot of the guest ends the machine
    reboot_ends: bool = False
    # the boot menu waits (for machines that start paused)
    boot_menu: bool = False
    hotplug: bool = True
    # PCI devices on the root complex instead of root ports
    on_root_complex: bool = False
    # room for large PCI windows above the memory
    pci_hole64: bool = True
    # host CPU time limits and the like, by name of the cgroup file; see `machine/limits.py`
    limits: dict[str, str] = field(default_factory=dict)
