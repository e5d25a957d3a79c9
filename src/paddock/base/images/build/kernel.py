"""The kernels a tiny guest may have: Debian's, with the modules it needs, or one of its own, built once from Debian's source.

The own one starts a second sooner and sees SATA disks, USB and Intel's network cards, which Debian's cloud kernel does not. Debian's
is signed, so it also starts under Secure Boot.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from paddock.base.images.build.apt import HOSTS, Options
from paddock.base.images.build.packages import Package, fetch, members, resolve
from paddock.base.images.build.programs import BuildError, need, run

_SOURCE = "linux-source-6.1"
CLOUD = "linux-image-cloud-amd64"
_TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "bc": "bc",
    "bison": "bison",
    "flex": "flex",
    "lz4": "lz4",
    "xz": "xz-utils",
    "tar": "tar",
    "strip": "binutils",
    "patch": "patch",
}
_HEADERS = {"libelf.h": "libelf-dev"}

# What Debian's kernel has as modules and this guest needs; what they depend on comes along, in the right order.
_MODULES = (
    *("virtio_pci", "virtio_blk", "virtio_net", "virtio_console", "virtio-rng", "virtio_balloon", "virtio_mem", "virtio_scsi"),
    *("sd_mod", "sr_mod", "isofs", "vfat", "nls_cp437", "nls_iso8859-1", "nls_ascii", "nls_utf8", "button", "evdev"),
    *("pvpanic-pci", "virtiofs", "efivarfs", "vmgenid"),
)
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
# Behind a module: its signature, twelve bytes that end with the signature's length, and a line that says so.
_SIGNED = b"~Module signature appended~\n"
_SIGNATURE_FIELDS = 12

_YES_WORDS = """
64BIT SMP PRINTK TTY UNIX98_PTYS SERIAL_8250 SERIAL_8250_CONSOLE BLOCK BLK_DEV_INITRD BINFMT_ELF BINFMT_SCRIPT DEVTMPFS TMPFS SHMEM
PROC_FS PROC_SYSCTL SYSFS FUTEX EPOLL EVENTFD SIGNALFD TIMERFD POSIX_TIMERS FILE_LOCKING MULTIUSER AIO ADVISE_SYSCALLS INOTIFY_USER
FHANDLE KALLSYMS HYPERVISOR_GUEST PARAVIRT KVM_GUEST PVH ACPI ACPI_BUTTON ACPI_HOTPLUG_MEMORY HOTPLUG_CPU HOTPLUG_PCI HOTPLUG_PCI_PCIE
HOTPLUG_PCI_ACPI MEMORY_HOTPLUG MEMORY_HOTPLUG_DEFAULT_ONLINE MEMORY_HOTREMOVE CONTIG_ALLOC COMPACTION MIGRATION SPARSEMEM_VMEMMAP PCI
PCIEPORTBUS PCI_MSI PCI_MMCONFIG HPET_TIMER HIGH_RES_TIMERS NO_HZ_IDLE INPUT INPUT_EVDEV NET UNIX PACKET INET IPV6 NETDEVICES NET_CORE
VIRTIO_MENU VIRTIO_NET VIRTIO_BLK VIRTIO_PCI VIRTIO_PCI_LEGACY VIRTIO_MMIO VIRTIO_MMIO_CMDLINE_DEVICES VIRTIO_CONSOLE VIRTIO_BALLOON
VIRTIO_VSOCKETS VIRTIO_FS VIRTIO_MEM SCSI SCSI_LOWLEVEL SCSI_VIRTIO BLK_DEV_SD BLK_DEV_SR ATA SATA_AHCI ATA_SFF ATA_BMDMA ATA_PIIX
USB_SUPPORT USB USB_PCI USB_XHCI_HCD USB_STORAGE HID HID_GENERIC USB_HID ETHERNET NET_VENDOR_INTEL E1000 E1000E NET_VENDOR_REALTEK
8139CP HW_RANDOM HW_RANDOM_VIRTIO VSOCKETS EXT4_FS ISO9660_FS JOLIET VFAT_FS NLS NLS_CODEPAGE_437 NLS_ISO8859_1 NLS_UTF8
PARTITION_ADVANCED MSDOS_PARTITION EFI_PARTITION EFI EFI_STUB EFIVAR_FS TCG_TPM TCG_TIS TCG_CRB X86_X2APIC RTC_CLASS RTC_DRV_CMOS
FUSE_FS NET_9P NET_9P_VIRTIO NETWORK_FILESYSTEMS 9P_FS KERNEL_LZ4 DMIID DMI_SYSFS VMGENID VIRT_DRIVERS WATCHDOG I6300ESB_WDT PVPANIC
PVPANIC_PCI RANDOM_TRUST_CPU RANDOM_TRUST_BOOTLOADER MISC_FILESYSTEMS DMI
"""
_NO_WORDS = "VT WLAN RD_GZIP RD_BZIP2 RD_LZMA RD_XZ RD_LZO RD_LZ4 RD_ZSTD SPECULATION_MITIGATIONS RETPOLINE MODULES DEBUG_KERNEL"
_YES, _NO = _YES_WORDS.split(), _NO_WORDS.split()
# Equal sources give equal kernels.
_NO_TRACES = {"KBUILD_BUILD_TIMESTAMP": "2020-01-01", "KBUILD_BUILD_USER": "paddock", "KBUILD_BUILD_HOST": "paddock"}


@dataclass(frozen=True)
class KernelBuild:
    """A kernel for boot loaders, the same one bare (QEMU starts it half a second sooner), and its modules in loading order."""

    image: bytes
    bare: bytes
    modules: Mapping[str, bytes]
    release: str


def fragment() -> str:
    """Return the kernel's configuration beyond the smallest one."""
    return "".join([*(f"CONFIG_{name}=y\n" for name in _YES), *(f"# CONFIG_{name} is not set\n" for name in _NO)])


def source_packages() -> tuple[Package, ...]:
    """Return the packages that the own kernel is built from."""
    return resolve([_SOURCE])


def own_folder(cache: Path, packages: Sequence[Package]) -> Path:
    """Return the folder of the own kernel of this source and configuration."""
    key = hashlib.sha256("\n".join([*(package.sha256 for package in packages), fragment()]).encode()).hexdigest()[:16]
    return cache / f"kernel-{key}"


def any_own(cache: Path) -> bool:
    """An own kernel was built here, of whatever source and configuration."""
    return any(cache.glob("kernel-*/bzImage"))


def has_own(cache: Path, packages: Sequence[Package]) -> bool:
    """The own kernel of this source and configuration was built here."""
    return (own_folder(cache, packages) / "bzImage").exists()


def own(cache: Path, packages: Sequence[Package], jobs: int) -> KernelBuild:
    """The own kernel, built when it is not there yet: ten minutes of a processor."""
    folder = own_folder(cache, packages)
    if not has_own(cache, packages):
        _build(cache, packages, folder, jobs)
    return KernelBuild((folder / "bzImage").read_bytes(), (folder / "vmlinux").read_bytes(), {}, "own")


def _build(cache: Path, packages: Sequence[Package], folder: Path, jobs: int) -> None:
    need(_TOOLS, "build the guest's own kernel")
    for header, package in _HEADERS.items():
        if not Path("/usr/include", header).exists():
            raise BuildError("cannot build the guest's own kernel", why=f"this host has no {header}", fix=f"apt-get install {package}")
    archive = fetch(packages, cache / "packages")[_SOURCE]
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix="work-") as temporary:
        work = Path(temporary)
        run(["dpkg-deb", "-x", archive, work])
        run(["tar", "-xJf", work / "usr" / "src" / f"{_SOURCE}.tar.xz", "-C", work])
        tree = work / _SOURCE
        (work / "fragment").write_text(fragment())
        run(["make", "-s", "tinyconfig"], cwd=tree)
        run([tree / "scripts" / "kconfig" / "merge_config.sh", "-m", ".config", "../fragment"], cwd=tree)
        run(["make", "-s", "olddefconfig"], cwd=tree)
        _check_configuration((tree / ".config").read_text())
        run(["make", "-s", f"-j{jobs}", "vmlinux", "bzImage"], cwd=tree, env=_NO_TRACES)
        run(["strip", "-s", "-o", folder / "vmlinux", tree / "vmlinux"])
        built = tree / "arch" / "x86" / "boot" / "bzImage"
        shutil.copyfile(built, folder / "bzImage.new")
        os.replace(folder / "bzImage.new", folder / "bzImage")


def _check_configuration(text: str) -> None:
    lines = set(text.splitlines())
    if refused := [name for name in _YES if f"CONFIG_{name}=y" not in lines]:
        raise BuildError("cannot build the guest's own kernel", why=f"this source knows no {', '.join(refused)}", fix="use Debian's kernel")


def debian_packages(apt: Options = HOSTS) -> tuple[Package, ...]:
    """Return the packages of Debian's current cloud kernel."""
    shown = run(["apt-cache", *apt, "show", "--no-all-versions", CLOUD]).decode()
    match = re.search(r"^Depends: (linux-image-\S+)", shown, re.MULTILINE)
    if match is None:
        raise BuildError(f"apt offers no {CLOUD}", fix="update the package lists with `apt-get update`")
    return resolve([match[1]], apt)


def debian(packages: Sequence[Package], folder: Path, apt: Options = HOSTS) -> KernelBuild:
    """Debian's kernel and its modules, as they were signed."""
    (path,) = fetch(packages, folder, apt).values()
    image, release, modules = b"", "", dict[str, bytes]()
    for name, member in members(path):
        if name.startswith("boot/vmlinuz-"):
            image, release = member.data, name.removeprefix("boot/vmlinuz-")
        elif name.endswith(".ko"):
            modules[PurePosixPath(name).stem] = member.data
    return KernelBuild(image, unpacked(image), ordered(modules, _MODULES), release)


def ordered(modules: Mapping[str, bytes], chosen: Sequence[str]) -> dict[str, bytes]:
    """The wanted modules that there are, each after those it depends on. A module that is missing is built in."""
    names = {name.replace("-", "_"): name for name in modules}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        stem = names.get(name.replace("-", "_"))
        if stem is None or stem in found:
            return
        match = _DEPENDS.search(modules[stem])
        for other in match[1].decode().split(",") if match and match[1] else ():
            add(other)
        found[stem] = modules[stem]

    for name in chosen:
        add(name)
    return found


def plain_module(module: bytes) -> bytes:
    """A module without its signature and without its types: to read those, a kernel first reads its own, megabytes of them."""
    if module.endswith(_SIGNED):
        end = len(module) - len(_SIGNED)
        module = module[: end - _SIGNATURE_FIELDS - int.from_bytes(module[end - 4 : end], "big")]
    return module.replace(b"\0.BTF\0", b"\0.btf\0")


def unpacked(image: bytes) -> bytes:
    """The ELF file within a bzImage of the x86 boot protocol; LZ4 is what Debian and the own configuration use."""
    sectors = image[0x1F1] or 4
    start = (sectors + 1) * 512 + int.from_bytes(image[0x248:0x24C], "little")
    length = int.from_bytes(image[0x24C:0x250], "little")
    payload = image[start : start + length]
    with TemporaryDirectory() as temporary:
        packed, bare = Path(temporary, "packed"), Path(temporary, "bare")
        # The last four bytes tell the length of what was packed.
        packed.write_bytes(payload[:-4])
        need({"lz4": "lz4"}, "unpack the kernel")
        run(["lz4", "-d", "-q", "-f", packed, bare])
        return bare.read_bytes()
