"""The devices of a machine: disks, displays, sound, watchdog, passed-through hardware. Network cards are in `networks`."""

from typing import Annotated

from paddock.kubernetes.schema.field import Empty, Field, Object
from paddock.kubevirt.kinds.features import FeatureState
from paddock.kubevirt.kinds.networks import Interfaces

DISK_BUSES = ("virtio", "sata", "scsi", "usb", "ide")
CACHE_MODES = ("none", "writethrough", "writeback")
IO_MODES = ("native", "threads", "io_uring")
ERROR_POLICIES = ("stop", "ignore", "report", "enospace")

_BUS = Field("Bus of the device; default: sata on amd64, virtio elsewhere.", enum=DISK_BUSES, empty_is_unset=True)
_BOOT_ORDER = Field(
    "Place in the order of boot devices, 1 first; unique over disks and cards.", ge=1, bits=32, message="must have a boot order > 0"
)


class DiskTarget(Object):
    """A hard disk."""

    bus: Annotated[str | None, _BUS] = None
    readonly: Annotated[bool | None, Field("The guest cannot write.")] = None
    pciAddress: Annotated[str | None, Field("Where the device sits, such as 0000:81:01.0; virtio only.")] = None


class LunTarget(Object):
    """A passed-through SCSI device."""

    bus: Annotated[str | None, _BUS] = None
    readonly: Annotated[bool | None, Field("The guest cannot write.")] = None
    reservation: Annotated[bool | None, Field("Persistent reservations.")] = None


class CDRomTarget(Object):
    """A CD-ROM drive."""

    bus: Annotated[str | None, _BUS] = None
    readonly: Annotated[bool | None, Field("The guest cannot write; default: true.")] = None
    tray: Annotated[str | None, Field("Whether the tray starts open; default: closed.", enum=("open", "closed"), empty_is_unset=True)] = (
        None
    )


class CustomBlockSize(Object):
    """Sizes of blocks in bytes."""

    logical: Annotated[int, Field("Size the guest addresses.", required=True)] = 0
    physical: Annotated[int, Field("Size the device works with.", required=True)] = 0
    discardGranularity: Annotated[int | None, Field("Size of what can be discarded.", ge=0, le=4294967295)] = None


class BlockSize(Object):
    """Block sizes of a disk; one of the two."""

    custom: Annotated[CustomBlockSize | None, Field("These sizes.")] = None
    matchVolume: Annotated[FeatureState | None, Field("The sizes of the volume.")] = None


class Disk(Object):
    """A disk of the machine and what it is backed by: the volume of the same name."""

    name: Annotated[str, Field("Name of the disk and of its volume.", required=True, format="dns1123-label")] = ""
    disk: Annotated[DiskTarget | None, Field("A hard disk (the default).")] = None
    lun: Annotated[LunTarget | None, Field("A passed-through SCSI device.")] = None
    cdrom: Annotated[CDRomTarget | None, Field("A CD-ROM drive.")] = None
    bootOrder: Annotated[int | None, _BOOT_ORDER] = None
    serial: Annotated[
        str | None,
        Field(
            "Serial number of the disk.",
            max_length=256,
            pattern=r"^[A-Za-z0-9_.+-]*$",
            message="must consist of letters, digits and the characters _.+-",
        ),
    ] = None
    dedicatedIOThread: Annotated[bool | None, Field("An I/O thread of its own; virtio only.")] = None
    cache: Annotated[
        str | None,
        Field("How the host caches; default: none where the storage can, else writethrough.", enum=CACHE_MODES, empty_is_unset=True),
    ] = None
    io: Annotated[str | None, Field("How the host reads and writes.", enum=IO_MODES, empty_is_unset=True)] = None
    tag: Annotated[str | None, Field("Name of the device in the config drive's metadata.")] = None
    blockSize: Annotated[BlockSize | None, Field("Block sizes.")] = None
    shareable: Annotated[bool | None, Field("Several machines may write.")] = None
    errorPolicy: Annotated[str | None, Field("What happens on an I/O error; default: stop.", enum=ERROR_POLICIES)] = None
    changedBlockTracking: Annotated[bool | None, Field("Keep track of what changes, for incremental backups.")] = None


class Filesystem(Object):
    """A directory that the guest mounts; the volume of the same name."""

    name: Annotated[str, Field("Name of the volume and tag of the mount.", required=True)] = ""
    virtiofs: Annotated[Empty, Field("Shared by virtiofs.", required=True)] = Empty()


class Input(Object):
    """An input device."""

    name: Annotated[str, Field("Name of the device.", required=True)] = ""
    type: Annotated[str, Field("Type of the device.", required=True, enum=("tablet",))] = ""
    bus: Annotated[str | None, Field("Bus of the device; default: usb.", enum=("virtio", "usb"), empty_is_unset=True)] = None


class WatchdogTimer(Object):
    """The action of a watchdog."""

    action: Annotated[str | None, Field("What happens when it is not fed; default: reset.", enum=("poweroff", "reset", "shutdown"))] = None


class Watchdog(Object):
    """A watchdog; exactly one type."""

    name: Annotated[str, Field("Name of the device.", required=True)] = ""
    i6300esb: Annotated[WatchdogTimer | None, Field("Intel 6300ESB (amd64).")] = None
    diag288: Annotated[WatchdogTimer | None, Field("DIAG 288 (s390x).")] = None


class TPM(Object):
    """A trusted platform module, version 2."""

    enabled: Annotated[bool | None, Field("Whether it is there; default: true.")] = None
    persistent: Annotated[bool | None, Field("Keep its state over restarts; default: false.")] = None


class Sound(Object):
    """A sound card without an output."""

    name: Annotated[str, Field("Name of the device.", zero=True)] = ""
    model: Annotated[str | None, Field("Model of the card: ich9 (the default) or ac97.")] = None


class Video(Object):
    """The graphics card."""

    type: Annotated[str | None, Field("Type of the card; default: vga with BIOS, bochs with EFI, virtio on arm64.")] = None


_DRA = "resource claims (DRA) are refused"


class VGPUDisplay(Object):
    """The display of a virtual GPU."""

    enabled: Annotated[bool | None, Field("Whether the GPU has a display; default: true.")] = None
    ramFB: Annotated[FeatureState | None, Field("A frame buffer until the guest's driver is loaded.")] = None


class VGPUOptions(Object):
    """Settings of a virtual GPU."""

    display: Annotated[VGPUDisplay | None, Field("The display.")] = None


class HostDevice(Object):
    """A device of the host."""

    name: Annotated[str, Field("Name of the device.", required=True)] = ""
    deviceName: Annotated[str | None, Field("Resource name of the device, as permitted by the configuration.")] = None
    claimName: Annotated[str | None, Field("Resource claim.", not_honoured=_DRA)] = None
    requestName: Annotated[str | None, Field("Request of the resource claim.", not_honoured=_DRA)] = None
    tag: Annotated[str | None, Field("Name of the device in the config drive's metadata.")] = None


class GPU(Object):
    """A GPU of the host."""

    name: Annotated[str, Field("Name of the device.", required=True)] = ""
    deviceName: Annotated[str | None, Field("Resource name of the device, as permitted by the configuration.")] = None
    claimName: Annotated[str | None, Field("Resource claim.", not_honoured=_DRA)] = None
    requestName: Annotated[str | None, Field("Request of the resource claim.", not_honoured=_DRA)] = None
    virtualGPUOptions: Annotated[VGPUOptions | None, Field("Settings of a virtual GPU.")] = None
    tag: Annotated[str | None, Field("Name of the device in the config drive's metadata.")] = None


class PanicDevice(Object):
    """A device by which the guest tells that it crashed."""

    model: Annotated[str | None, Field("Model of the device.", enum=("isa", "hyperv", "pvpanic"))] = None


class Devices(Object):
    """Everything that is plugged into the machine."""

    disks: Annotated[list[Disk] | None, Field("Disks.", max_items=256, keys=("name",), message="two disks must not have the same Name")] = (
        None
    )
    interfaces: Interfaces = None
    filesystems: Annotated[list[Filesystem] | None, Field("Directories that the guest mounts.")] = None
    inputs: Annotated[list[Input] | None, Field("Input devices.")] = None
    watchdog: Annotated[Watchdog | None, Field("Watchdog.")] = None
    rng: Annotated[Empty | None, Field("Random numbers from the host.")] = None
    tpm: Annotated[TPM | None, Field("Trusted platform module.")] = None
    sound: Annotated[Sound | None, Field("Sound card.")] = None
    video: Annotated[Video | None, Field("Graphics card.")] = None
    gpus: Annotated[list[GPU] | None, Field("GPUs of the host.")] = None
    hostDevices: Annotated[list[HostDevice] | None, Field("Other devices of the host.")] = None
    panicDevices: Annotated[list[PanicDevice] | None, Field("Devices by which the guest tells that it crashed.")] = None
    clientPassthrough: Annotated[Empty | None, Field("USB devices of the client, redirected.")] = None
    downwardMetrics: Annotated[Empty | None, Field("A serial port with metrics of the host.")] = None
    autoattachPodInterface: Annotated[bool | None, Field("Attach the default network; default: true.")] = None
    autoattachGraphicsDevice: Annotated[bool | None, Field("Attach a graphics card, and with it VNC; default: true.")] = None
    autoattachSerialConsole: Annotated[bool | None, Field("Attach a serial console; default: true.")] = None
    logSerialConsole: Annotated[bool | None, Field("Keep a log of the serial console.")] = None
    autoattachMemBalloon: Annotated[bool | None, Field("Attach a memory balloon; default: true.")] = None
    autoattachInputDevice: Annotated[bool | None, Field("Attach an input device; default: false.")] = None
    autoattachVSOCK: Annotated[bool | None, Field("Attach a VSOCK; default: false.")] = None
    blockMultiQueue: Annotated[bool | None, Field("Several queues for virtio disks.")] = None
    networkInterfaceMultiqueue: Annotated[
        bool | None, Field("Several queues for virtio cards.", aliases=("networkInterfaceMultiQueue",))
    ] = None
    disableHotplug: Annotated[bool | None, Field("No room for devices that are plugged in later.")] = None
    useVirtioTransitional: Annotated[bool | None, Field("Virtio that old guests understand.")] = None
