"""Judgement of the programs that machines need. Pure."""

from paddock.app.doctor.check import Judgement, broken, limited, ok
from paddock.app.doctor.facts import DoctorFacts, QemuFacts

# docs/run/hosts.md says where each was run.
OLDEST_QEMU = (7, 2, 0)
# command of the package manager, by Debian's names
_PACKAGES = {"amd64": "qemu-system-x86", "arm64": "qemu-system-arm"}
_PROGRAMS = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
_FIRMWARE = {"amd64": "ovmf", "arm64": "qemu-efi-aarch64"}


def qemu_amd64(facts: DoctorFacts) -> Judgement:
    """QEMU for x86-64."""
    return _qemu(facts, "amd64")


def qemu_arm64(facts: DoctorFacts) -> Judgement:
    """QEMU for 64-bit ARM."""
    return _qemu(facts, "arm64")


def _qemu(facts: DoctorFacts, architecture: str) -> Judgement:
    found = facts.tools.qemus.get(architecture, QemuFacts())
    is_own = architecture == facts.tools.architecture
    program = _PROGRAMS[architecture]
    bad = broken if is_own else limited
    missing = "machines" if is_own else f"{architecture} machines"
    install = f"install QEMU (on Debian: apt install {_PACKAGES[architecture]}), or put {program} on PATH"
    if not found.path:
        effect = "no machine can start" if is_own else f"machines with the architecture {architecture} cannot start"
        return bad(f"there is no {program} on this host", effect, install, missing)
    if found.error:
        return bad(f"{found.path} does not start: {found.error}", "no machine can start with it", install, missing)
    version = ".".join(map(str, found.version))
    if found.version < OLDEST_QEMU:
        oldest = ".".join(map(str, OLDEST_QEMU[:2]))
        fix = f"install QEMU {oldest} or later, for example from your distribution's backports"
        return bad(f"QEMU {version} ({found.path})", f"Paddock needs QEMU {oldest} or later", fix, missing)
    return ok(f"QEMU {version} ({found.path})")


def qemu_img(facts: DoctorFacts) -> Judgement:
    if facts.tools.qemu_img:
        return ok(facts.tools.qemu_img)
    effect = "Paddock cannot make or convert disks, so most machines do not start"
    return broken("there is no qemu-img on this host", effect, "install it (on Debian: apt install qemu-utils)", "disks")


def firmware(facts: DoctorFacts) -> Judgement:
    """UEFI firmware of the host's own architecture."""
    architecture = facts.tools.architecture
    found = facts.tools.qemus.get(architecture)
    if found is None or not found.path:
        return ok("not examined without QEMU")
    if found.has_efi:
        return ok("UEFI firmware is installed")
    fix = f"install it (on Debian: apt install {_FIRMWARE.get(architecture, 'ovmf')})"
    effect = (
        "machines with bootloader.efi cannot start" if architecture == "amd64" else "no machine can start: this architecture needs UEFI"
    )
    bad = limited if architecture == "amd64" else broken
    return bad("there is no UEFI firmware (OVMF)", effect, fix, "UEFI")


def secure_boot(facts: DoctorFacts) -> Judgement:
    """Firmware with enrolled keys."""
    architecture = facts.tools.architecture
    if architecture != "amd64":
        return ok(f"there is no Secure Boot for {architecture}")
    found = facts.tools.qemus.get(architecture)
    if found is None or not found.path:
        return ok("not examined without QEMU")
    if found.has_secure_boot:
        return ok("firmware with enrolled keys is installed")
    effect = "machines with bootloader.efi cannot start unless they set secureBoot: false"
    return limited("there is no UEFI firmware with enrolled keys", effect, "install it (on Debian: apt install ovmf)", "Secure Boot")


def swtpm(facts: DoctorFacts) -> Judgement:
    """The emulated TPM."""
    if facts.tools.swtpm:
        return ok(facts.tools.swtpm)
    fix = "install it (on Debian: apt install swtpm)"
    return limited("there is no swtpm on this host", "machines with devices.tpm cannot start", fix, "TPMs")


def virtiofsd(facts: DoctorFacts) -> Judgement:
    """The server of shared directories."""
    if facts.tools.virtiofsd:
        return ok(facts.tools.virtiofsd)
    fix = "install it (Debian 12: it comes with qemu-system-common; Debian 13: apt install virtiofsd)"
    return limited("there is no virtiofsd on this host", "machines with devices.filesystems cannot start", fix, "shared directories")
