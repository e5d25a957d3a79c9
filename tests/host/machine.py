"""The abilities of this machine: the names that `@pytest.mark.needs(...)` takes, each with a check that gives the reason for a lack."""

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from paddock.engine.host import programs
from paddock.engine.networks import hostnetwork

_QEMU = "qemu-system-x86_64"
_OVMF = Path("/usr/share/OVMF")


def _programs(*names: str) -> Callable[[], str]:
    def look() -> str:
        missing = [name for name in names if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None]
        return f"there is no {', no '.join(missing)} on this machine" if missing else ""

    return look


def _virtiofsd() -> str:
    # It is in no PATH: the engine knows the places.
    return "" if programs.virtiofsd() is not None else "there is no virtiofsd on this machine"


def _root() -> str:
    return "" if os.geteuid() == 0 else "only root may"


def _user() -> str:
    return "" if os.geteuid() != 0 else "root may do what this test sees refused"


def _kvm_device() -> str:
    return "" if os.access("/dev/kvm", os.R_OK | os.W_OK) else "there is no /dev/kvm that this user may open"


def _kvm() -> str:
    if missing := _kvm_device():
        return missing
    # A KVM that interprets instructions answers every question and runs no kernel.
    modules = Path("/sys/module")
    if (modules / "kvm_pvm").exists() and not any((modules / name).exists() for name in ("kvm_intel", "kvm_amd")):
        return "KVM of this machine emulates instructions; no kernel boots under it"
    return ""


def _tun() -> str:
    return "" if os.access("/dev/net/tun", os.R_OK | os.W_OK) else "/dev/net/tun may not be opened"


def _vlan() -> str:
    if missing := _programs("ip", "unshare")() or _root():
        return missing
    made = subprocess.run(["unshare", "-n", "ip", "link", "add", "b", "type", "bridge", "vlan_filtering", "1"], capture_output=True)
    return "" if made.returncode == 0 else "this kernel has no VLANs on bridges"


def _iommu() -> str:
    groups = Path("/sys/kernel/iommu_groups")
    return "" if groups.is_dir() and any(groups.iterdir()) else "this machine has no IOMMU"


def _hugepages() -> str:
    pools = Path("/sys/kernel/mm/hugepages").glob("hugepages-*/nr_hugepages")
    return "" if any(int(pool.read_text()) for pool in pools) else "no huge pages are set aside"


def _ovmf() -> str:
    return "" if (_OVMF / "OVMF_CODE_4M.fd").exists() and (_OVMF / "OVMF_CODE_4M.ms.fd").exists() else "there is no OVMF on this machine"


def _libvirtd() -> str:
    if missing := _programs("libvirtd", "dnsmasq", "ip", "unshare", _QEMU)() or _root():
        return missing
    return "" if find_spec("libvirt") is not None else "libvirt-python is not installed; it is built where libvirt-dev and pkg-config are"


def _apt() -> str:
    if missing := _programs("apt-get", "dpkg-deb")():
        return missing
    return "" if any(Path("/var/lib/apt/lists").glob("*_Packages*")) else "apt has no package lists; run `apt-get update`"


def _rootless() -> str:
    if missing := _programs("pasta", "nft")() or _root():
        return missing
    from tests.host.networks import rootless  # noqa: PLC0415 - hardly any test needs it

    return rootless.lacks()


NEEDS: dict[str, Callable[[], str]] = {
    "qemu": _programs(_QEMU, "qemu-img"),
    "root": _root,
    "chromium": _programs("chromium"),
    "user": _user,
    "kvm-device": _kvm_device,
    "kvm": _kvm,
    "tun": _tun,
    "netns": lambda: _programs("ip")() or _root(),
    "nft": _programs("nft"),
    "busybox": _programs("busybox"),
    "libvirtd": _libvirtd,
    "ovmf": _ovmf,
    "swtpm": _programs("swtpm"),
    "passt": _programs("passt"),
    # root runs the test, and an ordinary user what it tests
    "rootless": _rootless,
    "cc": _programs("cc"),
    "ssh": _programs("ssh", "ssh-keygen"),
    "kubectl": _programs("kubectl"),
    "podman": _programs("podman", "runc"),
    "prometheus": _programs("prometheus", "promtool"),
    "gpg": _programs("gpg", "gpgconf"),
    "xorriso": _programs("xorriso", "osirrox"),
    "mtools": _programs("mcopy", "mmd", "mkfs.vfat"),
    "mmdebstrap": _programs("mmdebstrap"),
    "virtiofsd": _virtiofsd,
    "filesystems": _programs("mkfs.ext4", "mkfs.xfs", "losetup"),
    "apt": _apt,
    "vlan": _vlan,
    "ipv6": lambda: "" if hostnetwork.has_ipv6() else "this machine has no IPv6",
    "iommu": _iommu,
    "hugepages": _hugepages,
}


@cache
def lacks(name: str) -> str:
    """Return the reason why this machine lacks something; "": it has it."""
    return NEEDS[name]()
