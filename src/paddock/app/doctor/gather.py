"""Collects the facts of this host for `judge`. It changes nothing: answers of QEMU are cached only below a directory that exists."""

import asyncio
import datetime
import grp
import os
import pwd
import re
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paddock.app.directory import diskformat, process
from paddock.app.directory.paths import DataPaths
from paddock.app.doctor import kernel
from paddock.app.doctor.facts import (
    DirectoryFacts,
    DoctorFacts,
    KvmFacts,
    LimitFacts,
    NetworkFacts,
    PortUse,
    QemuFacts,
    ServiceFacts,
    ToolFacts,
    TunState,
    UserFacts,
)
from paddock.app.options.settings import DEFAULT_PORT
from paddock.base.errors import PaddockError
from paddock.engine.host import efi, kvm, programs
from paddock.engine.host.efi import EfiFirmware
from paddock.engine.host.facts import memory_limit
from paddock.engine.host.qemu import Qemu, inspect
from paddock.engine.host.subprocesses import run
from paddock.engine.machine import limits
from paddock.engine.machine.process import apart
from paddock.engine.networks import hostnetwork, rootless

_KVM = Path("/dev/kvm")
_TUN = "/dev/net/tun"
_SECONDS = 10
_UNIT = re.compile(r"/([^/]+\.service)(?:/|\Z)")
_DROPS = re.compile(r"hook forward [^;]*;\s*policy drop")


async def gather(root: Path) -> DoctorFacts:
    """Look at the host, for a server in the directory `root`."""
    with _cache(root) as cache:
        qemus, found, own = await _qemus(cache)
        accelerator = await kvm.probe(found, own, cache)
    user = _user()
    tools = ToolFacts(
        architecture=kernel.architecture(),
        qemus=qemus,
        qemu_img=_path("qemu-img"),
        swtpm=_path("swtpm"),
        virtiofsd=str(shared.program) if (shared := programs.virtiofsd()) is not None else "",
        nft=hostnetwork.nft() or "",
        passt=_path("passt"),
    )
    return DoctorFacts(
        tools=tools,
        kvm=KvmFacts(
            state=accelerator.state,
            detail=accelerator.detail,
            works=frozenset(accelerator.works),
            why=dict(accelerator.why),
            group=_group_of(_KVM),
            module=kernel.kvm_module(),
        ),
        user=user,
        network=await _network(user),
        directory=await asyncio.to_thread(_directory, root),
        limits=_limits(),
        kernel=kernel.features(),
        service=await _service(root),
    )


@contextmanager
def _cache(root: Path) -> Iterator[Path]:
    """The cache of a server's engine, if this user can write there; otherwise a directory that goes at once."""
    place = DataPaths(root).engine
    if _refusal(root) is None and place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        yield place / "cache"
        return
    with tempfile.TemporaryDirectory(prefix="paddock-doctor-") as folder:
        yield Path(folder)


async def _qemus(cache: Path) -> tuple[dict[str, QemuFacts], Qemu | None, EfiFirmware]:
    """The QEMU of each architecture; the host's own, and its firmware."""
    found: dict[str, QemuFacts] = {}
    own, firmware = None, EfiFirmware()
    for architecture, name in programs.QEMU_NAMES.items():
        path = programs.find(name)
        if path is None:
            continue
        files = efi.find(architecture)
        has_efi, has_secure = files.plain is not None, files.secure is not None
        try:
            qemu = await inspect(architecture, path, cache)
        except (PaddockError, OSError) as error:
            why = getattr(error, "why", "") or str(error)
            found[architecture] = QemuFacts(str(path), error=why, has_efi=has_efi, has_secure_boot=has_secure)
            continue
        found[architecture] = QemuFacts(str(path), qemu.version, "", has_efi, has_secure)
        if architecture == kernel.architecture():
            own, firmware = qemu, files
    return found, own, firmware


def _path(name: str) -> str:
    found = programs.find(name)
    return str(found) if found is not None else ""


def _group_of(path: Path) -> str:
    """The group that owns a file and may use it; "" without one."""
    try:
        status = path.stat()
        return grp.getgrgid(status.st_gid).gr_name if status.st_mode & 0o060 == 0o060 else ""
    except (OSError, KeyError):
        return ""


def _user() -> UserFacts:
    sudo = os.environ.get("SUDO_USER", "") if os.geteuid() == 0 else ""
    sudo = "" if sudo == "root" else sudo
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    try:
        numbers = os.getgrouplist(sudo, pwd.getpwnam(sudo).pw_gid) if sudo else [*os.getgroups(), os.getegid()]
    except KeyError:
        numbers = []
    groups = set()
    for number in numbers:
        with suppress(KeyError):
            groups.add(grp.getgrgid(number).gr_name)
    is_root = os.geteuid() == 0
    return UserFacts(name=name, is_root=is_root, has_network_rights=hostnetwork.is_admin(), groups=frozenset(groups), sudo=sudo)


async def _network(user: UserFacts) -> NetworkFacts:
    state: TunState = "usable" if os.access(_TUN, os.R_OK | os.W_OK) else "forbidden" if os.path.exists(_TUN) else "absent"
    ranges = tuple(f"{network} ({device})" for device, network in _routes() if device.startswith("virbr"))
    refused = None if user.is_root else await rootless.examine()
    return NetworkFacts(
        tun=state,
        rootless=refused.why if refused is not None else "",
        rootless_fix=refused.fix if refused is not None else "",
        bridge=kernel.has_module("bridge"),
        reverse_path=kernel.number("/proc/sys/net/ipv4/conf/all/rp_filter"),
        namespaces=(await asyncio.to_thread(apart, offline=False))[1],
        forward_dropped=await _drops(user),
        libvirt=ranges,
    )


def _routes() -> list[tuple[str, str]]:
    try:
        return list(hostnetwork.routes())
    except OSError:
        return []


async def _drops(user: UserFacts) -> bool:
    """Another program's chain that drops what is forwarded; only those with the right to filters see it."""
    program = hostnetwork.nft()
    if program is None or not user.has_network_rights:
        return False
    out, _, _ = await run([program, "list", "chain", "ip", "filter", "FORWARD"], b"", _SECONDS)
    return bool(_DROPS.search(out.decode(errors="replace")))


def _refusal(root: Path) -> PaddockError | None:
    """Return why the server refuses its directory; None for one of a format that this Paddock knows."""
    try:
        diskformat.check(root)
    except PaddockError as error:
        return error
    return None


def _directory(root: Path) -> DirectoryFacts:
    place = root
    while not place.exists() and place != place.parent:
        place = place.parent
    refusal = _refusal(root)
    try:
        status, room = place.stat(), os.statvfs(place)
    except OSError:
        return DirectoryFacts(path=str(root), is_writable=False)
    return DirectoryFacts(
        path=str(place),
        refused=f"{refusal.what}: {refusal.why}" if refusal is not None else "",
        remedy=refusal.fix if refusal is not None else "",
        exists=place == root,
        is_writable=os.access(place, os.W_OK | os.X_OK),
        mode=status.st_mode & 0o777,
        is_read_only=bool(room.f_flag & os.ST_RDONLY),
        free_bytes=room.f_bavail * room.f_frsize,
        inodes=room.f_files,
        free_inodes=room.f_favail,
    )


def _limits() -> LimitFacts:
    total, available = kernel.memory()
    limit, files = memory_limit(total), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    hierarchies = limits.on_this_host()
    version = 0
    place = hierarchies.of("memory")
    if place is not None and os.access(place[0], os.W_OK):
        version = 2 if place[1] else 1
    return LimitFacts(
        memory=limit,
        available=min(available, limit),
        host_memory=total,
        open_files=files if files != resource.RLIM_INFINITY else sys.maxsize,
        control_groups=version,
        cpu_shares=limits.shares_processors(hierarchies),
    )


async def _service(root: Path) -> ServiceFacts:
    server = process.find(DataPaths(root))
    port, use = DEFAULT_PORT, _use(DEFAULT_PORT)
    if server is not None:
        port, use = int(server.address.rpartition(":")[2]), "ours"
    unit = _unit(server.pid if server is not None else os.getpid())
    return ServiceFacts(
        port=port,
        port_use=use,
        unit=unit,
        kill_mode=await _kill_mode(unit) if unit else "",
        year=datetime.datetime.now(datetime.UTC).year,
        clock_synchronized=kernel.is_clock_synchronized(),
    )


def _use(port: int) -> PortUse:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return "forbidden"
        except OSError:
            return "taken"
    return "free"


def _unit(pid: int) -> str:
    """The service of systemd that a process belongs to."""
    with suppress(OSError):
        found = _UNIT.findall(Path(f"/proc/{pid}/cgroup").read_text())
        # A login of a user is a service, too (user@1000.service): the innermost one counts.
        return next((name for name in reversed(found) if not name.startswith(("user@", "session"))), "")
    return ""


async def _kill_mode(unit: str) -> str:
    program = shutil.which("systemctl")
    if program is None:
        return ""
    scope = [] if os.geteuid() == 0 else ["--user"]
    out, _, _ = await run([program, *scope, "show", "--property=KillMode", "--value", unit], b"", _SECONDS)
    return out.decode(errors="replace").strip()
