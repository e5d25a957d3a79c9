"""The Debian root of the node and of KubeVirt's image: a tar file that mmdebstrap makes once, and the directory it unpacks to."""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from paddock.base.errors import Terminal
from tests.reference.build import cache_root, locked

# containerd 2, which a kubelet of this age needs, is in no older suite.
_SUITE = "forky"
_MIRROR = "http://deb.debian.org/debian"
_PACKAGES = (
    *("containerd", "runc", "containernetworking-plugins", "iptables", "nftables", "conntrack", "iproute2", "procps", "mount", "kmod"),
    *("e2fsprogs", "util-linux", "ca-certificates", "libvirt-daemon", "libvirt-daemon-driver-qemu", "libvirt-daemon-log"),
    *("libvirt-daemon-common", "libvirt-clients", "qemu-system-x86", "qemu-utils", "swtpm", "swtpm-tools", "passt", "virtiofsd", "ovmf"),
    # without systemd, which the daemon of libvirt asks for otherwise
    *("libcap2-bin", "xorriso", "acl", "sysvinit-core", "systemd-standalone-sysusers"),
    # CDI's importer reads images through nbdkit, and is linked with libnbd
    *("nbdkit", "libnbd-dev"),
)
_APT = (
    'APT::Install-Recommends "false"',
    # A mirror may keep a testing suite longer than its signature is fresh; the signature itself is still checked.
    'Acquire::Check-Valid-Until "false"',
)
_DPKG = ("path-exclude=/usr/share/doc/*", "path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*", "force-unsafe-io")


class BaseFailed(Terminal):
    """mmdebstrap could not make the root."""


def made(say: Callable[[str], None]) -> tuple[Path, Path]:
    """Return the directory and the tar file of the root, made first if they are not in the cache."""
    key = hashlib.sha256(repr((_SUITE, _PACKAGES, _APT, _DPKG)).encode()).hexdigest()[:20]
    home = cache_root() / "cluster"
    home.mkdir(parents=True, exist_ok=True)
    folder, tar = home / key, home / f"{key}.tar"
    with locked(home / f"{key}.lock", say):
        if not tar.exists():
            say(f"installing Debian {_SUITE} into {tar} (minutes, once)")
            _debootstrap(tar)
        if not folder.is_dir():
            _unpack(tar, folder)
    return folder, tar


def _debootstrap(tar: Path) -> None:
    partial = tar.with_suffix(".partial.tar")
    options = [*(f"--aptopt={each}" for each in _APT), *(f"--dpkgopt={each}" for each in _DPKG), f"--include={','.join(_PACKAGES)}"]
    command = ["nice", "mmdebstrap", "--quiet", "--variant=apt", *options, _SUITE, str(partial), _MIRROR]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr[-2000:]
        raise BaseFailed("cannot install Debian for the node", why=why, fix=f"check that {_MIRROR} can be reached and has {_SUITE}")
    partial.rename(tar)


def _unpack(tar: Path, folder: Path) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    subprocess.run(["nice", "tar", "-C", str(partial), "--numeric-owner", "--xattrs", "-xpf", str(tar)], check=True)
    partial.rename(folder)
