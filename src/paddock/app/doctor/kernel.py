"""Facts of the kernel that `gather` reads: features, modules, memory, the clock."""

import ctypes
import os
import platform
from pathlib import Path

from paddock.app.doctor.facts import KernelFacts, SelinuxMode

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_HYPERVISORS = ("vboxdrv", "vboxnetflt", "vmmon", "vmnet", "xen_evtchn")
_LOADABLE = ("bridge", "tun", "vhost_net", "vhost_vsock")
_LANDLOCK_CREATE, _LANDLOCK_VERSION = 444, 1
# adjtimex: what it answers when nobody keeps the clock
_TIME_ERROR = 5
_MODULES = Path("/sys/module")


def architecture() -> str:
    """Return the host's architecture by Kubernetes' name."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def number(path: str, missing: int = 0) -> int:
    """Return the number in a file of the kernel."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return missing


def features() -> KernelFacts:
    """Return the features of the running kernel."""
    return KernelFacts(
        landlock=_landlock(),
        user_namespaces=_user_namespaces(),
        vhost_net=os.access("/dev/vhost-net", os.R_OK | os.W_OK),
        vsock=os.access("/dev/vhost-vsock", os.R_OK | os.W_OK),
        loadable=frozenset(name for name in _LOADABLE if not (_MODULES / name).exists() and has_module(name)),
        hypervisors=tuple(name for name in _HYPERVISORS if (_MODULES / name).exists()),
        selinux=_selinux(),
        apparmor=_apparmor(),
    )


def has_module(name: str) -> bool | None:
    """Return whether the kernel has a module, loaded or to be loaded on demand; None if nobody can tell."""
    if (_MODULES / name).exists():
        return True
    folder = Path("/lib/modules", platform.release())
    try:
        lists = (folder / "modules.builtin").read_text() + (folder / "modules.dep").read_text()
    except OSError:
        return None
    return any(f"/{each}.ko" in lists for each in (name, name.replace("_", "-")))


def kvm_module() -> str:
    """Return the module that brings /dev/kvm on this processor, if it has virtualization and the module is there."""
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return ""
    name = "kvm_intel" if "vmx" in words else "kvm_amd" if "svm" in words else ""
    return name if name and has_module(name) else ""


def memory() -> tuple[int, int]:
    """Return the host's memory, and how much of it programs can still get, in bytes."""
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if rest.endswith("kB"):
            found[name] = int(rest.split()[0]) * 1024
    total = found.get("MemTotal", 0)
    return total, found.get("MemAvailable", total)


def is_clock_synchronized() -> bool | None:
    """Return whether somebody keeps the clock; None if the kernel does not say."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else bool(state != _TIME_ERROR)


def _landlock() -> int:
    libc = ctypes.CDLL(None)
    found = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_VERSION))
    return max(int(found), 0)


def _user_namespaces() -> bool:
    if number("/proc/sys/user/max_user_namespaces", 0) <= 0 or number("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0:
        return False
    return number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) != 1


def _selinux() -> SelinuxMode:
    state = number("/sys/fs/selinux/enforce", -1)
    return "enforcing" if state == 1 else "permissive" if state == 0 else ""


def _apparmor() -> str:
    """Return the profile of this process; "" where none confines it."""
    if not (_MODULES / "apparmor").exists():
        return ""
    try:
        profile = Path("/proc/self/attr/apparmor/current").read_text().strip("\0\n ")
    except OSError:
        return ""
    return "" if not profile or profile.startswith("unconfined") else profile
