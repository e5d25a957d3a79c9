"""Judgement of the directory, the limits, the kernel, the clock and the service manager. Pure."""

from paddock.app.doctor.check import HostChange, Judgement, broken, limited, load, ok
from paddock.app.doctor.facts import DoctorFacts

_GIB = 1 << 30
_MIB = 1 << 20
_LEAST_FREE, _GOOD_FREE = 256 * _MIB, 5 * _GIB
_LEAST_INODES, _GOOD_INODES = 200, 10_000
_LEAST_MEMORY, _GOOD_MEMORY = 256 * _MIB, 2 * _GIB
_GOOD_FILES = 4096
_FIRST_YEAR, _LAST_YEAR = 2024, 2060
_LANDLOCK = 1


def port(facts: DoctorFacts) -> Judgement:
    """The default port of the API server."""
    given = facts.service
    if given.port_use == "ours":
        return ok(f"the server of this directory listens on {given.port}")
    if given.port_use == "free":
        return ok(f"{given.port} is free")
    fix = "end that program, or choose another port: paddock up --listen 127.0.0.1:0 takes one that is free"
    if given.port_use == "taken":
        return limited(f"another program, or another server, listens on {given.port}", "`paddock up` needs another port", fix)
    return limited(f"this user may not listen on {given.port}", "`paddock up` needs another port", fix)


def directory(facts: DoctorFacts) -> Judgement:
    """The format and the rights of the server's directory."""
    given = facts.directory
    fix = "name another directory: --dir, or $PADDOCK_DIR"
    if given.is_read_only:
        return broken(f"the file system of {given.path} is read-only", "the server does not start", fix, "the directory")
    if not given.is_writable:
        return broken(f"this user may not write to {given.path}", "the server does not start", fix, "the directory")
    if given.refused:
        return broken(given.refused, "the server does not start", given.remedy, "the directory")
    if given.exists and given.mode & 0o022:
        change = HostChange(("chmod", "go-w", given.path), f"take the right to write {given.path} from other users")
        effect = "other users can replace what the server trusts"
        return limited(f"{given.path} can be written by other users", effect, f"chmod go-w {given.path}", change=change)
    return ok(given.path if given.exists else f"the server can make its directory below {given.path}")


def space(facts: DoctorFacts) -> Judgement:
    given = facts.directory
    text = f"{_size(given.free_bytes)} are free below {given.path}"
    fix = "make room there, remove images that nothing uses (paddock image prune), or name another directory: --dir"
    if given.free_bytes < _LEAST_FREE:
        return broken(text, "disks cannot grow, and machines stop when they write", fix, "room for disks")
    if given.free_bytes < _GOOD_FREE:
        return limited(text, "few disks and images fit", fix)
    return ok(text)


def inodes(facts: DoctorFacts) -> Judgement:
    given = facts.directory
    if not given.inodes:
        return ok("the file system does not limit the number of files")
    text = f"{given.free_inodes} inodes are free below {given.path}"
    fix = "remove files there, or name another directory: --dir"
    if given.free_inodes < _LEAST_INODES:
        return broken(text, "no file can be made, so no machine starts", fix, "room for files")
    return limited(text, "each machine needs some tens of files", fix) if given.free_inodes < _GOOD_INODES else ok(text)


def memory(facts: DoctorFacts) -> Judgement:
    """Memory for guests, and a limit around this process."""
    given = facts.limits
    around = " (limit of the control group)" if given.memory < given.host_memory else ""
    text = f"{_size(given.memory)} of memory{around}, {_size(given.available)} available"
    fix = "end other programs, give the host or the container more memory, or give machines less"
    if given.available < _LEAST_MEMORY:
        return broken(text, "hardly any guest fits", fix, "memory for machines")
    return limited(text, "only small guests fit", fix) if given.available < _GOOD_MEMORY else ok(text)


def control_groups(facts: DoctorFacts) -> Judgement:
    """Control groups for limits of machines."""
    version = facts.limits.control_groups
    if version:
        return ok(f"limits of machines are kept by control groups, version {version}")
    effect = "limits of CPU, memory and I/O of machines are not kept"
    if facts.user.is_root:
        fix = "mount control groups for writing (docker run --cgroupns=private --privileged does)"
        return limited("control groups cannot be written", effect, fix)
    return limited("this user may not make control groups", effect, "run Paddock as root where machines need limits")


def cpu_shares(facts: DoctorFacts) -> Judgement:
    """Control groups in which namespaces share the processors."""
    if facts.limits.cpu_shares:
        return ok("namespaces share the processors by weight")
    effect = "a namespace with many busy guests leaves the others less processor time"
    if facts.user.is_root:
        fix = "mount the control groups of the controller cpu for writing (docker run --cgroupns=private --privileged does)"
        return limited("no control groups share the processors", effect, fix)
    fix = "start the server with `systemd-run --user --scope paddock up`, or run Paddock as root"
    return limited("this user has no control groups that share the processors", effect, fix)


def open_files(facts: DoctorFacts) -> Judgement:
    """The hard limit of open files."""
    found = facts.limits.open_files
    if found >= _GOOD_FILES:
        return ok(f"a process may open {found} files")
    effect = "a server with some hundred machines or clients runs out of them"
    return limited(f"a process may open {found} files", effect, "raise the limit: ulimit -n 65536, or LimitNOFILE= in a unit of systemd")


def landlock(facts: DoctorFacts) -> Judgement:
    """The confinement of helpers by paths."""
    found = facts.kernel.landlock
    if found >= _LANDLOCK:
        return ok(f"Landlock, version {found} of its interface")
    effect = "programs that read foreign images are confined by users, namespaces and limits only"
    return limited("the kernel has no Landlock", effect, "boot with lsm=landlock,... or use a kernel from 5.13 on")


def user_namespaces(facts: DoctorFacts) -> Judgement:
    if facts.kernel.user_namespaces:
        return ok("unprivileged processes may make user namespaces")
    if facts.user.is_root:
        return ok("not permitted to users; root does not need it")
    effect = "programs that read foreign images keep the network; everything else of their confinement holds"
    lifted = facts.network.rootless_fix
    fix = lifted if lifted.startswith("sysctl ") else "permit it by AppArmor or sysctl"
    return limited("unprivileged processes may not make user namespaces", effect, f"{fix}, or run Paddock as root")


def vhost(facts: DoctorFacts) -> Judgement:
    """Networks and sockets in the kernel."""
    if not facts.user.is_root:
        return ok("used where this user may open the devices")
    lacking = [name for name, has in (("vhost_net", facts.kernel.vhost_net), ("vhost_vsock", facts.kernel.vsock)) if not has]
    if not lacking:
        return ok("vhost-net and vhost-vsock can be used")
    names = " and ".join(lacking)
    slow = "networks of machines are slower" if "vhost_net" in lacking else ""
    sockets = "machines with autoattachVSOCK cannot start" if "vhost_vsock" in lacking else ""
    change = load(facts, *lacking)
    fix = f"modprobe -a {' '.join(lacking)}" if change is not None else "use a kernel that has these modules"
    found = f"the kernel has not loaded {names}"
    return limited(found, " and ".join(filter(None, (slow, sockets))), fix, "vsock" if sockets else "", change)


def clock(facts: DoctorFacts) -> Judgement:
    """The time, by which certificates and tokens are judged."""
    year = facts.service.year
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        effect = "certificates and TLS connections to registries fail"
        return broken(f"the clock says {year}", effect, "set the clock: timedatectl set-ntp true, or date --set", "the right time")
    if facts.service.clock_synchronized is False:
        effect = "tokens and certificates of other hosts may be judged wrongly when it drifts"
        return limited("the clock is not synchronized", effect, "run a time service: timedatectl set-ntp true, or chrony")
    return ok(f"the clock is synchronized ({year})" if facts.service.clock_synchronized else f"the clock says {year}")


def access_control(facts: DoctorFacts) -> Judgement:
    if facts.kernel.selinux == "enforcing":
        effect = "Paddock brings no policy and is not tested with one; QEMU may be denied files"
        return limited(
            "SELinux is enforcing", effect, "if a machine is denied something, read ausearch -m avc, and allow it by audit2allow"
        )
    if facts.kernel.apparmor:
        effect = "programs that Paddock starts may be denied files"
        fix = "run Paddock unconfined, or allow what the kernel's log says was denied"
        return limited(f"AppArmor confines this process by {facts.kernel.apparmor}", effect, fix)
    return ok("neither SELinux nor AppArmor confines Paddock")


def unit(facts: DoctorFacts) -> Judgement:
    """The unit of systemd, whose end must not end guests."""
    given = facts.service
    if not given.unit:
        return ok("the server does not run as a unit of systemd")
    if given.kill_mode in ("process", "none"):
        return ok(f"{given.unit} has KillMode={given.kill_mode}: its end ends no guest")
    if facts.limits.control_groups and facts.user.is_root:
        return ok(f"{given.unit} has KillMode={given.kill_mode or 'control-group'}; guests have control groups outside of it")
    effect = "when the unit stops, systemd ends all guests with it"
    fix = f"systemctl edit {given.unit}: below [Service], write KillMode=process"
    return broken(f"{given.unit} has KillMode={given.kill_mode or 'control-group'}", effect, fix, "guests that outlive the server")


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count // _MIB} MiB"
