"""`debian-12`: an ordinary Debian with cloud-init, the guest agent and SSH, for BIOS, UEFI and Secure Boot, from Debian's own archive.

It is what a downloaded cloud image would be: no passwords, no keys, everything else by cloud-init. It can only be made by root, because
the files of a root file system belong to many users.
"""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from paddock.base.images.build import disk, filesystems, grub, places
from paddock.base.images.build.packages import fetch, resolve
from paddock.base.images.build.programs import BuildError, need, run

_MIB = 1 << 20
_ESP_SIZE = 48 * _MIB
_ROOT_SIZE = 1968 * _MIB
_RECIPE = 1
_MIRROR = "http://deb.debian.org/debian"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

_PACKAGES = (
    *("systemd-sysv", "udev", "dbus", "kmod", "iproute2", "netbase", "sudo", "openssh-server", "cloud-init", "cloud-guest-utils"),
    *("qemu-guest-agent", "linux-image-cloud-amd64", "initramfs-tools", "lz4", "grub-pc-bin", "grub-efi-amd64-bin"),
    *("grub-efi-amd64-signed", "shim-signed", "mokutil", "systemd-resolved", "e2fsprogs", "fdisk", "ca-certificates", "iputils-ping"),
)
_GRUB_MODULES = (
    *("biosdisk", "part_gpt", "ext2", "search", "search_label", "linux", "normal", "configfile", "serial", "terminal", "boot", "echo"),
    "test",
)
# In place before the packages, because the kernel's own script makes the initial RAM disk.
_BEFORE = {
    "etc/initramfs-tools/conf.d/paddock": "MODULES=list\nCOMPRESS=lz4\n",
    "usr/share/initramfs-tools/modules.d/paddock": "virtio_pci\nvirtio_blk\nvirtio_scsi\nsd_mod\nvirtio_net\next4\n",
}
_GRUB = """set timeout=0
search --no-floppy --label root --set=root
linux /vmlinuz root=LABEL=root ro console=tty0 console=ttyS0,115200 quiet
initrd /initrd.img
boot
"""
_AFTER = {
    "etc/fstab": "LABEL=root / ext4 defaults,discard,errors=remount-ro 0 1\n",
    "etc/hostname": "debian\n",
    "etc/machine-id": "",
    "etc/cloud/cloud.cfg.d/90_paddock.cfg": "datasource_list: [NoCloud, ConfigDrive, None]\nlocale: false\nssh_genkeytypes: [ed25519]\n",
    "boot/grub/grub.cfg": _GRUB,
}
_EFI_GRUB = "search --no-floppy --label root --set=root\nset prefix=($root)/boot/grub\nconfigfile $prefix/grub.cfg\n"
_TOOLS = {**filesystems.TOOLS, "mmdebstrap": "mmdebstrap", "qemu-img": "qemu-utils"}


@dataclass(frozen=True)
class Release:
    name: str
    sources: tuple[str, ...]


RELEASES: Mapping[str, Release] = {
    "debian-12": Release(
        "bookworm",
        (
            f"deb {_MIRROR} bookworm main",
            f"deb {_MIRROR} bookworm-updates main",
            "deb http://deb.debian.org/debian-security bookworm-security main",
        ),
    )
}


def build(cache: Path, name: str = "debian-12") -> Path:
    """The image, from `cache` when it was built there before; it is made anew when this recipe changes, or its folder is removed."""
    release = RELEASES[name]
    said = json.dumps([_RECIPE, release.sources, _PACKAGES, _BEFORE, _AFTER, _EFI_GRUB, _ROOT_SIZE])
    folder = cache / f"{name}-{hashlib.sha256(said.encode()).hexdigest()[:16]}"
    with places.alone(cache, name):
        if not (folder / f"{name}.qcow2").exists():
            _check()
            boot = fetch(resolve([*grub.BIOS_PACKAGES, *grub.EFI_PACKAGES]), cache / "packages")
            _assemble(folder, name, release, boot)
    return folder / f"{name}.qcow2"


def _check() -> None:
    if os.geteuid() != 0:
        why = "its files belong to many users, which only root can set"
        raise BuildError("cannot build a Debian image", why=why, fix="run the command as root; `paddock image build tiny` needs no rights")
    need(_TOOLS, "build a Debian image")
    if not _KEYRING.exists():
        raise BuildError("cannot build a Debian image", why=f"there is no {_KEYRING}", fix="apt-get install debian-archive-keyring")


def _assemble(folder: Path, name: str, release: Release, boot: dict[str, Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix="work-") as temporary:
        work = Path(temporary)
        root = work / "root"
        _install(root, work, release)
        _finish(root)
        filesystems.ext4(work / "root.img", _ROOT_SIZE, "root", root)
        shutil.rmtree(root)
        efi = {**grub.efi(boot), "EFI/debian/grub.cfg": _EFI_GRUB.encode()}
        filesystems.fat(work / "esp.img", _ESP_SIZE, "EFI", efi)
        first, core = grub.bios(boot, _GRUB_MODULES, "(,gpt3)/boot/grub")
        _make_disk(work, first, core)
        run(
            ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "-o", "compression_type=zstd", work / "disk.raw", work / "disk.qcow2"]
        )
        os.replace(work / "disk.qcow2", folder / f"{name}.qcow2")


def _install(root: Path, work: Path, release: Release) -> None:
    """The packages, in a directory."""
    before = work / "before"
    for name, text in _BEFORE.items():
        _put(before / name, text)
    command = [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        f"--keyring={_KEYRING}",
        "--aptopt=Apt::Install-Recommends false",
        f"--include={','.join(_PACKAGES)}",
        f'--essential-hook=cp -r {shlex.quote(str(before))}/. "$1"/',
        release.name,
        str(root),
        *release.sources,
    ]
    # Its own temporary directory must be of a file system that may have devices; the default one need not be.
    run(command, env={"TMPDIR": str(work)})


def _finish(root: Path) -> None:
    """Turn a machine into an image: no identity, cloud-init's network, services on."""
    run(["chroot", root, "systemctl", "--quiet", "enable", "systemd-networkd", "systemd-resolved", "ssh"])
    for name, text in _AFTER.items():
        _put(root / name, text)
    resolver = root / "etc/resolv.conf"
    resolver.unlink(missing_ok=True)
    resolver.symlink_to("../run/systemd/resolve/stub-resolv.conf")
    for pattern in ("etc/ssh/ssh_host_*", "var/lib/apt/lists/*_*", "var/cache/apt/*.bin", "var/log/*.log", "var/lib/dbus/machine-id"):
        for path in root.glob(pattern):
            path.unlink()


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _make_disk(work: Path, first: bytes, core: bytes) -> None:
    core_at = disk.ALIGNMENT // disk.SECTOR
    partitions = (
        disk.Partition(disk.BIOS_BOOT, "bios", disk.ALIGNMENT, disk.core_image(core, core_at)),
        disk.Partition(disk.EFI_SYSTEM, "efi", _ESP_SIZE, work / "esp.img"),
        disk.Partition(disk.LINUX_ROOT, "root", _ROOT_SIZE, work / "root.img"),
    )
    placed, size = disk.place(partitions)
    disk.write(work / "disk.raw", placed, size, disk.boot_sector(first, core_at))
