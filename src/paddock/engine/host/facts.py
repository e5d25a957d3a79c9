"""`HostFacts`: what this host can do, collected once when the program starts."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from paddock.engine.host import disks, efi, kvm, programs
from paddock.engine.host.efi import EfiFirmware
from paddock.engine.host.errors import HostError, QemuMissing
from paddock.engine.host.kvm import Kind, Kvm
from paddock.engine.host.qemu import Qemu, inspect
from paddock.engine.machine.argv.view import HostView, VirtioFs
from paddock.engine.machine.config import MachineConfig

Architecture = Literal["amd64", "arm64"]
_MACHINES: dict[str, Architecture] = {"x86_64": "amd64", "aarch64": "arm64"}
_HUGEPAGES = Path("/sys/kernel/mm/hugepages")
_NODES = Path("/sys/devices/system/node")
_CPUINFO = Path("/proc/cpuinfo")
_ZONES = Path("/usr/share/zoneinfo")
# Users that no service of a host and no container manager uses; in a container with fewer numbers a range of those.
_USERS = (range(1_900_000_000, 1_900_065_536), range(50_000, 58_192))


class Acceleration(Struct, frozen=True):
    """The accelerator of a guest. `reason` tells why it is emulated; it is "" when it is not."""

    accelerator: Literal["kvm", "tcg"]
    reason: str = ""


class HugepagePool(Struct, frozen=True):
    """Huge pages of one size."""

    total: int
    free: int


class HostFacts(Struct, frozen=True):
    architecture: Architecture
    qemus: Mapping[str, Qemu]
    efi: Mapping[str, EfiFirmware]
    kvm: Kvm
    # CPUs that this process may use
    cpus: tuple[int, ...]
    memory_bytes: int
    is_root: bool
    # numbers for a user of each machine's own; empty when this process cannot become another user
    user_ids: range = range(0)
    swtpm: Path | None = None
    virtiofs: VirtioFs | None = None
    passt: Path | None = None
    vhost_net: bool = False
    vsock: bool = False
    io_uring: bool = False
    # flags of the host's processor, by their names in /proc/cpuinfo
    cpu_flags: frozenset[str] = frozenset()
    cpu_model: str = ""
    numa_nodes: int = 1

    @property
    def qemu(self) -> Qemu:
        """The QEMU of the host's own architecture."""
        return self.qemu_for(self.architecture)

    def check(self) -> None:
        """Raise `QemuMissing` when guests of the host's own architecture cannot be run."""
        if self.architecture not in self.qemus:
            name, package = programs.QEMU_NAMES[self.architecture], programs.QEMU_PACKAGES[self.architecture]
            fix = f"install QEMU (on Debian: apt install {package}), or put {name} on the PATH of Paddock"
            raise QemuMissing(f"there is no {name} on this host", fix=fix)

    def qemu_for(self, architecture: str) -> Qemu:
        """The QEMU for an architecture."""
        found = self.qemus.get(architecture)
        if found is None:
            name = programs.QEMU_NAMES.get(architecture, f"qemu-system-{architecture}")
            fix = f"install the package that has {name}"
            raise HostError(f"cannot run machines of the architecture {architecture}", why=f"there is no {name}", fix=fix)
        return found

    def accelerator_for(self, firmware: str, smm: bool, architecture: str = "") -> Acceleration:
        """Return the accelerator of a guest with this firmware ("bios" or "efi")."""
        if architecture and architecture != self.architecture:
            return Acceleration("tcg", f"a guest of the architecture {architecture} is emulated on a host of {self.architecture}")
        kind: Kind = "smm" if smm else "efi" if firmware == "efi" else "bios"
        reason = self.kvm.reason(kind)
        return Acceleration("tcg", reason) if reason else Acceleration("kvm")

    def verdict(self, config: MachineConfig) -> Acceleration:
        """Return the accelerator of this machine."""
        smm = config.smm or (config.firmware.secure_boot and config.architecture == "amd64")
        return self.accelerator_for(config.firmware.kind, smm, config.architecture)

    def view(self, config: MachineConfig) -> HostView:
        """Return the facts that the command line of this machine needs. Reads the files of its disks."""
        qemu, firmware = self.qemu_for(config.architecture), self.efi.get(config.architecture, EfiFirmware())
        return HostView(
            qemu=qemu.path,
            accelerator=self.verdict(config).accelerator,
            version=qemu.version,
            devices=qemu.devices,
            efi=firmware.plain,
            secure_efi=firmware.secure,
            swtpm=self.swtpm,
            virtiofs=self.virtiofs,
            vhost_net=self.vhost_net,
            io_uring=self.io_uring,
            processor=self.cpu_model,
            files=disks.look_at_all(config.disks),
        )

    def hugepages(self) -> dict[int, HugepagePool]:
        """Huge pages by their size in bytes, as they are now."""
        found = {}
        for folder in _HUGEPAGES.glob("hugepages-*kB"):
            size = int(folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
            found[size] = HugepagePool(_number(folder / "nr_hugepages"), _number(folder / "free_hugepages"))
        return found

    @staticmethod
    def has_timezone(name: str) -> bool:
        """Return whether the host knows a time zone of this name."""
        parts = name.split("/")
        if not all(part and part.strip(".") for part in parts):
            return False
        try:
            return _ZONES.joinpath(*parts).is_file()
        except (OSError, ValueError):
            # No file has a name that long, or with this character.
            return False


async def collect(cache: Path) -> HostFacts:
    """Look at the host. What takes long is kept in the folder `cache`."""
    architecture = _MACHINES.get(platform.machine())
    if architecture is None:
        raise HostError("cannot run machines on this host", why=f"its architecture {platform.machine()} is not known")
    found = {name: programs.find(program) for name, program in programs.QEMU_NAMES.items()}
    qemus = {name: await inspect(name, path, cache) for name, path in found.items() if path is not None}
    firmwares = {name: efi.find(name) for name in qemus}
    own = firmwares.get(architecture, EfiFirmware())
    users = user_ids()
    return HostFacts(
        architecture=architecture,
        qemus=qemus,
        efi=firmwares,
        kvm=await kvm.probe(qemus.get(architecture), own, cache),
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        memory_bytes=memory_limit(_meminfo().get("MemTotal", 0)),
        is_root=os.geteuid() == 0,
        user_ids=users,
        swtpm=programs.find("swtpm"),
        virtiofs=programs.virtiofsd(),
        passt=programs.find("passt"),
        vhost_net=os.access("/dev/vhost-net", os.R_OK | os.W_OK),
        vsock=os.access("/dev/vhost-vsock", os.R_OK | os.W_OK),
        io_uring=_io_uring(),
        cpu_flags=frozenset(_cpuinfo("flags", "Features").split()),
        cpu_model=_cpuinfo("model name", "CPU part"),
        numa_nodes=max(len(list(_NODES.glob("node[0-9]*"))), 1),
    )


def user_ids() -> range:
    """Numbers of users that this process can become."""
    if os.geteuid():
        return range(0)
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return range(0)
    mapped = [range(int(first), int(first) + int(count)) for first, _, count in (line.split() for line in lines)]
    for wanted in _USERS:
        if any(wanted.start in have and wanted.stop - 1 in have for have in mapped):
            return wanted
    return range(0)


def _io_uring() -> bool:
    """QEMU's sandbox leaves io_uring alone, but the kernel may have it switched off."""
    state = _number(Path("/proc/sys/kernel/io_uring_disabled"), missing=-1)
    return state == 0 or (state == 1 and os.geteuid() == 0)


def _cpuinfo(*names: str) -> str:
    """Return the first value of one of these names that the kernel says of its processors."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(names)), "").partition(":")[2].strip()


def _number(path: Path, missing: int = 0) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return missing


def _meminfo() -> dict[str, int]:
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words:
            found[name] = int(words[0]) * (1024 if words[-1] == "kB" else 1)
    return found


def memory_limit(total: int) -> int:
    """Return the memory of this process: a container may have less than its host."""
    limits = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    found = [number for number in (_number(path) for path in limits) if number > 0]
    return min([total, *found])
