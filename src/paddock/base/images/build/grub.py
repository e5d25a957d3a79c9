"""GRUB, as a BIOS starts it from the first sector of a disk, and as UEFI starts it, signed, from its own partition."""

from pathlib import Path
from tempfile import TemporaryDirectory

from paddock.base.images.build.packages import members, pick
from paddock.base.images.build.programs import run

# The program that joins GRUB's pieces, and what it is linked with.
BIOS_PACKAGES = ("grub-pc-bin", "grub-common", "libdevmapper1.02.1", "liblzma5", "libudev1", "libselinux1", "libpcre2-8-0")
EFI_PACKAGES = ("shim-signed", "grub-efi-amd64-signed")

_LIBRARIES = {"libdevmapper1.02.1", "liblzma5", "libudev1", "libselinux1", "libpcre2-8-0"}


def bios(packages: dict[str, Path], modules: tuple[str, ...], prefix: str) -> tuple[bytes, bytes]:
    """(the first sector, the rest) with these modules; the configuration is a file in `prefix`."""
    with TemporaryDirectory() as temporary:
        work = Path(temporary)
        parts = work / "parts"
        parts.mkdir()
        for name, member in members(packages["grub-pc-bin"]):
            if name.startswith("usr/lib/grub/i386-pc/"):
                (parts / Path(name).name).write_bytes(member.data)
        run(["dpkg-deb", "-x", packages["grub-common"], work / "tools"])
        for library in _LIBRARIES:
            run(["dpkg-deb", "-x", packages[library], work / "tools"])
        command: list[str | Path] = [
            work / "tools/usr/bin/grub-mkimage",
            "-O",
            "i386-pc",
            "-d",
            parts,
            "-p",
            prefix,
            "-o",
            work / "core.img",
            *modules,
        ]
        found = [work / "tools" / part for part in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")]
        run(command, env={"LD_LIBRARY_PATH": ":".join(map(str, found))})
        return (parts / "boot.img").read_bytes(), (work / "core.img").read_bytes()


def efi(packages: dict[str, Path]) -> dict[str, bytes]:
    """The files of the EFI partition that Secure Boot accepts: Debian's shim starts Debian's GRUB, which reads EFI/debian/grub.cfg."""
    shim = pick(packages["shim-signed"], {"usr/lib/shim/shimx64.efi.signed": "EFI/BOOT/BOOTX64.EFI"})
    loader = pick(packages["grub-efi-amd64-signed"], {"usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed": "EFI/BOOT/grubx64.efi"})
    return {name: member.data for name, member in (shim | loader).items()}
