"""`tiny`: a guest of a few megabytes that starts in seconds and does what tests and first steps need.

DHCP on every card, HTTP on 80, echo on 7 (TCP and UDP), SSH, the guest agent, the ACPI power button, a shell on the serial console,
a data disk that survives, host name, SSH keys, password and commands from NoCloud or ConfigDrive. It says `READY NAME ADDRESS` on
the serial console. Its root file system is in memory.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from paddock.base.images.build import answers, apt, directboot, disk, filesystems, grub, kernel, places, tinyguest
from paddock.base.images.build.initramfs import archive
from paddock.base.images.build.packages import Package, PackageMember, fetch, members, resolve
from paddock.base.images.build.programs import need, run

Kind = Literal["debian", "own", "fastest"]

_MIB = 1 << 20
_ESP_SIZE = 40 * _MIB
_DATA_SIZE = 48 * _MIB
# Boot loaders follow a file cluster by cluster, and mkfs.vfat's own choice for this size is 2 KiB.
_ESP_CLUSTER = 64
# Raised when the recipe changes in a way that its inputs do not show.
_RECIPE = 4

_PROGRAMS = ("busybox-static", "qemu-guest-agent", "dropbear-bin", "openssh-sftp-server", "inetutils-inetd")
_LIBRARIES = (
    *("libc6", "libglib2.0-0", "libnuma1", "libudev1", "liburing2", "libpcre2-8-0", "zlib1g", "libtomcrypt1", "libtommath1"),
    *("libgmp10", "libcrypt1"),
)
_WANTED = {
    *("usr/sbin/qemu-ga", "usr/sbin/dropbear", "usr/lib/openssh/sftp-server", "usr/sbin/inetutils-inetd"),
    *("lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libm.so.6", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
    "lib64/ld-linux-x86-64.so.2",
}
_WANTED_LIBRARIES = (
    *("libglib-2.0.so", "libgmodule-2.0.so", "libnuma.so", "libudev.so", "liburing.so", "libpcre2-8.so", "libz.so"),
    *("libtomcrypt.so", "libtommath.so", "libgmp.so", "libcrypt.so"),
)
# The kernel's check of the timer counts ticks against a loop of instructions. Emulated on a busy host it fails, and the kernel panics.
# Debian's kernel tests its ciphers at each start, which is a tenth of an emulated boot.
_ARGUMENTS = "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off memhp_default_state=online cryptomgr.notests"


@dataclass(frozen=True)
class TinyImage:
    """The files of a build. `kernel` is for boot loaders and firmware, `bare` the same for QEMU's `-kernel` alone; both need `initrd`."""

    disk: Path
    kernel: Path
    bare: Path
    initrd: Path
    # "debian" or "own"
    flavour: str


@dataclass(frozen=True)
class Variant:
    """A guest like this one with some files of its own, by their place in the root file system."""

    # without dashes
    name: str = "tiny"
    files: Mapping[str, PackageMember] = field(default_factory=dict)


def build(cache: Path, kind: Kind = "fastest", jobs: int = 0, variant: Variant = Variant()) -> TinyImage:
    """The image, from `cache` when it was built there before. "fastest" is the own kernel if that is there, else Debian's."""
    with places.alone(cache, "tiny"):
        # An own kernel changes which image is the fastest, so whoever has one asks apt each time.
        asked = [kind, _key((), variant), *_names()] if kind != "own" and not kernel.any_own(cache) else []
        known = answers.remembered(cache, f"{variant.name}-{kind}", asked) if asked else ""
        if not known or not (cache / known / "tiny.qcow2").exists():
            known = _build(cache, kind, jobs, variant)
            if asked:
                answers.remember(cache, f"{variant.name}-{kind}", asked, known)
    folder = cache / known
    flavour = known.split("-")[1]
    return TinyImage(folder / "tiny.qcow2", folder / "vmlinuz", folder / "vmlinux", folder / "initrd", flavour)


def newest(cache: Path) -> Path | None:
    """The disk that was built last by this recipe, without asking apt; one with a kernel of its own boots sooner."""
    found = (file for flavour in ("own", "debian") for file in _by_age(cache.glob(f"tiny-{flavour}-{_RECIPE}-*/tiny.qcow2")))
    return next(found, None)


def _by_age(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)


def _names() -> list[str]:
    return [*_PROGRAMS, *_LIBRARIES, *grub.EFI_PACKAGES]


def _build(cache: Path, kind: Kind, jobs: int, variant: Variant) -> str:
    """Return the name of the image's folder."""
    # Other releases of Debian have no such source; who never built it is not asked for it.
    sources = kernel.source_packages() if kind == "own" or (kind == "fastest" and kernel.any_own(cache)) else ()
    own = kind == "own" or (bool(sources) and kernel.has_own(cache, sources))
    names = _names()
    lists = apt.options(cache, names if own else [*names, kernel.CLOUD])
    kernel_packages = sources if own else kernel.debian_packages(lists)
    packages = resolve(names, lists)
    flavour = "own" if own else "debian"
    folder = cache / f"{variant.name}-{flavour}-{_RECIPE}-{_key([*packages, *kernel_packages], variant)}"
    if not (folder / "tiny.qcow2").exists():
        need({**filesystems.TOOLS, "qemu-img": "qemu-utils", "lz4": "lz4"}, "build the tiny image")
        files = cache / "packages"
        one = kernel.own(cache, sources, jobs or os.cpu_count() or 1) if own else kernel.debian(kernel_packages, files, lists)
        _assemble(folder, one, fetch(packages, files, lists), variant)
    return folder.name


def _key(packages: Iterable[Package], variant: Variant) -> str:
    files = {**tinyguest.contents(), **variant.files}
    guest = {name: [member.mode, member.target, member.data.decode()] for name, member in files.items()}
    said = [_RECIPE, [package.sha256 for package in packages], guest, kernel.fragment(), _ARGUMENTS]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _assemble(folder: Path, one: kernel.KernelBuild, packages: dict[str, Path], variant: Variant) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    guest = {**_guest(one, packages), **variant.files}
    initrd = archive(guest, tinyguest.DIRECTORIES)
    with TemporaryDirectory(dir=folder, prefix="work-") as temporary:
        work = Path(temporary)
        # The own kernel unpacks nothing; Debian's unpacks LZ4 in less time than UEFI takes to read what it saves.
        _make_esp(work / "esp", one.image, _packed(initrd, work) if one.modules else initrd, packages)
        _make_disk(work, one.bare, archive(_unsigned(guest), tinyguest.DIRECTORIES))
        (work / "vmlinuz").write_bytes(one.image)
        (work / "vmlinux").write_bytes(one.bare)
        (work / "initrd").write_bytes(initrd)
        # The disk last: it says that the others are there.
        for name in ("vmlinuz", "vmlinux", "initrd", "tiny.qcow2"):
            os.replace(work / name, folder / name)


def _guest(one: kernel.KernelBuild, packages: dict[str, Path]) -> dict[str, PackageMember]:
    """Everything in the guest's root file system."""
    files = tinyguest.contents()
    for name in (*_PROGRAMS, *_LIBRARIES):
        for path, member in members(packages[name]):
            if path in _WANTED or (Path(path).name.startswith(_WANTED_LIBRARIES) and "/x86_64-linux-gnu/" in path):
                files[path] = member
            elif path == "bin/busybox":
                files[path] = member
                files |= {f"bin/{applet}": PackageMember(0o777, target="busybox") for applet in _applets(member.data)}
    for place in ("usr/sbin/inetd", "sbin/inetd"):
        files[place] = PackageMember(0o777, target="/usr/sbin/inetutils-inetd")
    files["usr/lib/sftp-server"] = PackageMember(0o777, target="/usr/lib/openssh/sftp-server")
    files |= {f"sbin/{name}": PackageMember(0o777, target="../bin/busybox") for name in ("poweroff", "reboot", "halt")}
    files |= {f"lib/modules/{name}.ko": PackageMember(0o644, data) for name, data in one.modules.items()}
    if one.modules:
        files["lib/modules/order"] = PackageMember(0o644, "".join(f"{name}.ko\n" for name in one.modules).encode())
    return files


def _applets(busybox: bytes) -> list[str]:
    with TemporaryDirectory() as temporary:
        program = Path(temporary, "busybox")
        program.write_bytes(busybox)
        program.chmod(0o755)
        return [name for name in run([program, "--list"]).decode().split() if name != "busybox"]


def _packed(initrd: bytes, work: Path) -> bytes:
    """LZ4 in the older of its two forms, the one that kernels read."""
    (work / "plain").write_bytes(initrd)
    run(["lz4", "-9", "-l", "-q", "-f", work / "plain", work / "packed"])
    return (work / "packed").read_bytes()


def start() -> str:
    """The part of GRUB under UEFI."""
    return f"linux /vmlinuz {_ARGUMENTS}\ninitrd /initrd\nboot\n"


def _unsigned(guest: dict[str, PackageMember]) -> dict[str, PackageMember]:
    """The same files for a BIOS, without Secure Boot: a kernel neither verifies these modules nor reads the types in them."""
    return {
        path: replace(member, data=kernel.plain_module(member.data)) if path.endswith(".ko") else member for path, member in guest.items()
    }


def _make_esp(esp: Path, image: bytes, initrd: bytes, packages: dict[str, Path]) -> None:
    efi = {**grub.efi(packages), "EFI/debian/grub.cfg": start().encode(), "vmlinuz": image, "initrd": initrd}
    filesystems.fat(esp, _ESP_SIZE, "TINY-EFI", efi, _ESP_CLUSTER)


def _make_disk(work: Path, bare: bytes, initrd: bytes) -> None:
    code, content = directboot.build(bare, initrd, _ARGUMENTS, disk.ALIGNMENT // disk.SECTOR)
    filesystems.ext4(work / "data", _DATA_SIZE, "tiny-data")
    partitions = (
        disk.Partition(disk.BIOS_BOOT, "bios", len(content), content),
        disk.Partition(disk.EFI_SYSTEM, "efi", _ESP_SIZE, work / "esp"),
        disk.Partition(disk.LINUX, "data", _DATA_SIZE, work / "data"),
    )
    placed, size = disk.place(partitions)
    disk.write(work / "tiny.raw", placed, size, code)
    # Most of it is packed already; packed again, every read would unpack it anew while the firmware waits and turns.
    run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", work / "tiny.raw", work / "tiny.qcow2"])


def export(image: TinyImage, folder: Path) -> TinyImage:
    """Copies of the files in a directory of the caller's."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"disk": "tiny.qcow2", "kernel": "vmlinuz", "bare": "vmlinux", "initrd": "initrd"}
    for part, name in names.items():
        shutil.copyfile(getattr(image, part), folder / name)
    return TinyImage(**{part: folder / name for part, name in names.items()}, flavour=image.flavour)
