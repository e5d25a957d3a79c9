"""The facts of a host that `paddock doctor` judges. Values only: `gather` collects them, `judge` decides what they mean."""

from collections.abc import Mapping
from typing import Literal

import msgspec

KvmState = Literal["real", "emulated", "broken", "absent", "forbidden"]
TunState = Literal["usable", "absent", "forbidden"]
SelinuxMode = Literal["", "permissive", "enforcing"]
PortUse = Literal["free", "ours", "taken", "forbidden"]


class QemuFacts(msgspec.Struct, frozen=True):
    """The QEMU of one architecture. Without a path there is none; an error says why it does not start."""

    path: str = ""
    version: tuple[int, int, int] = (0, 0, 0)
    error: str = ""
    has_efi: bool = False
    has_secure_boot: bool = False


class ToolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The programs of a host; "" means that there is none."""

    # as Kubernetes names it: amd64, arm64
    architecture: str
    qemus: Mapping[str, QemuFacts] = {}
    qemu_img: str = ""
    swtpm: str = ""
    virtiofsd: str = ""
    nft: str = ""
    passt: str = ""


class KvmFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The accelerator as the engine's probe found it."""

    state: KvmState = "absent"
    detail: str = ""
    # kinds of firmware that boot under it, and the reason of each that does not
    works: frozenset[str] = frozenset()
    why: Mapping[str, str] = {}
    # group that owns /dev/kvm
    group: str = ""
    # module of the kernel that would bring it; "" if the processor has no virtualization
    module: str = ""


class UserFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The user who runs the command, or who became root by sudo."""

    name: str = ""
    is_root: bool = False
    # root with the rights that networks need; a container's root may lack them
    has_network_rights: bool = False
    groups: frozenset[str] = frozenset()
    # the user behind sudo
    sudo: str = ""


class NetworkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The needs of machines' networks."""

    tun: TunState = "usable"
    # None: not known
    bridge: bool | None = None
    # net.ipv4.conf.all.rp_filter
    reverse_path: int = 0
    # the error of a trial; "" when programs of machines get namespaces of their own
    namespaces: str = ""
    # why an ordinary user's server has no network namespace, and what lifts it; "" if it has one, or would get one
    rootless: str = ""
    rootless_fix: str = ""
    # another packet filter drops what is forwarded
    forward_dropped: bool = False
    # ranges of other hypervisors' networks, as "range (bridge)"
    libvirt: tuple[str, ...] = ()


class DirectoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The directory of the server, or the nearest one above it that exists."""

    path: str
    exists: bool = False
    is_writable: bool = True
    # why the server refuses it, and what to do about that
    refused: str = ""
    remedy: str = ""
    # permission bits
    mode: int = 0o700
    is_read_only: bool = False
    free_bytes: int = 0
    # 0: the file system does not count them
    inodes: int = 0
    free_inodes: int = 0


class LimitFacts(msgspec.Struct, frozen=True, kw_only=True):
    # of the host, or of the control group around this process
    memory: int = 0
    available: int = 0
    host_memory: int = 0
    open_files: int = 0
    # version of the control groups that can be written; 0: none
    control_groups: int = 0
    # namespaces can share the processors by weight
    cpu_shares: bool = False


class KernelFacts(msgspec.Struct, frozen=True, kw_only=True):
    # version of Landlock's interface; 0: there is none
    landlock: int = 0
    user_namespaces: bool = True
    vhost_net: bool = False
    vsock: bool = False
    # of the modules that networks use: those that are not there, and that modprobe could load
    loadable: frozenset[str] = frozenset()
    # modules of other hypervisors that are loaded
    hypervisors: tuple[str, ...] = ()
    selinux: SelinuxMode = ""
    # profile that confines this process; "" for none
    apparmor: str = ""


class ServiceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The server, its port, its unit of systemd, and the clock."""

    port: int = 0
    port_use: PortUse = "free"
    # unit of systemd that the server, or this process, belongs to
    unit: str = ""
    kill_mode: str = ""
    year: int = 2026
    # None: not known
    clock_synchronized: bool | None = None


class DoctorFacts(msgspec.Struct, frozen=True, kw_only=True):
    tools: ToolFacts
    kvm: KvmFacts
    user: UserFacts
    network: NetworkFacts
    directory: DirectoryFacts
    limits: LimitFacts
    kernel: KernelFacts
    service: ServiceFacts
