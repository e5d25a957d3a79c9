"""The records of machines, as their files have them."""

from pathlib import Path

import msgspec

from paddock.contract.payloads import NetworkPayload
from paddock_drivers.firecracker import files

FORMAT = 1
BUILDING, READY, DELETING = "building", "ready", "deleting"
ROOT_DISK = "root"


class MicroVmDisk(msgspec.Struct, frozen=True, omit_defaults=True):
    """A disk of a machine: a raw file."""

    name: str
    size: int
    thick: bool = False
    # the imported disk that becomes this one
    imported: str = ""

    @property
    def file(self) -> str:
        """The file, below the machine's directory and below the VMM's root."""
        return f"disks/{self.name}.raw"


class MicroVmNic(msgspec.Struct, frozen=True, omit_defaults=True):
    """A network interface. Limits are bits a second, as the guest sees them; 0: none."""

    name: str
    mac: str
    bridge: str
    tap: str
    ingress: int = 0
    egress: int = 0
    address: str = ""


class MicroVmSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The hardware of a machine. Its first disk is the one that it boots from."""

    cpu: int
    memory_mib: int
    boot_args: str
    disks: tuple[MicroVmDisk, ...]
    nics: tuple[MicroVmNic, ...] = ()
    initrd: bool = False
    seed: bool = False
    mmds: bool = False
    vsock: int = 0
    metrics: bool = False
    # of each disk: bytes and operations a second; 0: no limit
    disk_bandwidth: int = 0
    disk_operations: int = 0

    @property
    def root_by_arguments(self) -> bool:
        """Return whether the boot arguments name the root file system themselves."""
        return any(each.startswith("root=") for each in self.boot_args.split())


class ImageOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of a machine's first disk and of its kernel."""

    # a directory of `images`, a disk of `disks`, or a file that an administrator has allowed
    image: str = ""
    imported: str = ""
    file: str = ""
    format: str = "raw"
    kernel: str = ""
    initrd: str = ""
    # of a clone: the id of its source, and the snapshot that it is made from
    source: str = ""
    snapshot: str = ""


class ShutdownRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shutdown that the guest was asked for: when it ends by force, for which process, and what comes then."""

    deadline: float
    process: str
    restart: bool = False


class MicroVmRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine. `spec` is what the next start gives it, `running` what the process has."""

    format: int = FORMAT
    name: str
    token: str
    state: str = BUILDING
    owner: str = ""
    namespace: str = ""
    # NAMESPACE/NAME of the VirtualMachine that a clone was made for
    cloned_for: str = ""
    # of a create without an owner
    request: str = ""
    origin: ImageOrigin = ImageOrigin()
    spec: MicroVmSpec
    running: MicroVmSpec | None = None
    # the process that `running` is of
    process: str = ""
    # the directory that the VMM sees as its root, below the machine's
    root: str = "root"
    # the VMM's user; 0: the driver's
    user: int = 0
    shutdown: ShutdownRecord | None = None
    # the machine is paused for a copy of its disks
    paused: bool = False
    # the snapshot that the machine is being brought back to, and the one whose memory its next start loads
    reverting: str = ""
    resume: str = ""
    # the memory in MiB that the balloon takes
    balloon: int = 0
    # disks that no longer belong to the machine and keep their data
    detached: tuple[MicroVmDisk, ...] = ()
    tags: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The machine's id with this provider."""
        return f"{self.name}/{self.token}"

    @property
    def vmm_id(self) -> str:
        """The id that the VMM gets: letters, digits and hyphens, 64 at most."""
        return f"{self.name.replace('.', '-')[:40]}-{self.token}"

    @property
    def seen(self) -> MicroVmSpec:
        """The hardware that the guest has, or that it will have."""
        return self.running or self.spec

    @property
    def restart_required(self) -> bool:
        """Return whether the running machine is not yet as it should be."""
        return self.running is not None and self.running != self.spec


class MicroVmSnapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A snapshot. It exists when this record does."""

    id: str
    hint: str
    description: str = ""
    memory: bool = False
    created: float = 0.0
    spec: MicroVmSpec
    tags: tuple[str, ...] = ()


class GuestRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The documents for a guest, which may hold passwords."""

    user_data: bytes = b""
    meta_data: bytes = b""
    hostname: str = ""
    # the addresses of its interfaces, by their names
    networks: tuple[NetworkPayload, ...] = ()

    def __repr__(self) -> str:
        return "GuestRecord(<hidden>)"


class KeptImage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prepared image, or an imported disk. It exists when this record does."""

    name: str
    size: int
    source: str = ""
    checksum: str = ""
    prepared: bool = False


class MicroVmFolder:
    """The directory of one machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.name

    def read(self) -> MicroVmRecord | None:
        """Return the machine; None when there is none."""
        return files.read(self.path / "machine.json", MicroVmRecord)

    def write(self, record: MicroVmRecord) -> None:
        """Keep a record, all of it or none."""
        files.write(self.path / "machine.json", record)

    def root(self, record: MicroVmRecord) -> Path:
        """The VMM's root. What is in there is the VMM's, so nothing of it is believed."""
        return self.path / record.root

    def disk(self, disk: MicroVmDisk) -> Path:
        """The file of a disk. The VMM's root has a second name for it, which the VMM may have changed."""
        return self.path / disk.file

    def guest(self) -> GuestRecord:
        """Return the documents for the guest."""
        return files.read(self.path / "guest.json", GuestRecord) or GuestRecord()

    def write_guest(self, guest: GuestRecord) -> None:
        """Keep the documents for the guest."""
        files.write(self.path / "guest.json", guest)

    def snapshot(self, id: str) -> Path:
        """The directory of a snapshot."""
        return self.path / "snapshots" / id

    def snapshots(self) -> tuple[MicroVmSnapshot, ...]:
        """Return the machine's snapshots, the oldest first."""
        found = [files.read(each, MicroVmSnapshot) for each in (self.path / "snapshots").glob("*/snapshot.json")]
        return tuple(sorted((each for each in found if each is not None), key=lambda each: (each.created, each.id)))
