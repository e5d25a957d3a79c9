"""The machine that the cluster sees: namespaces with a Debian root of their own, and the files that lie there.

Everything inside ends with the first process, and so do the mounts and the network. Only the control groups outlive it;
`end` removes them. Nothing of the host's network is changed: the node has a bridge in a network namespace of its own.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddock.base.errors import Terminal

ADDRESS = "192.168.126.2"
HOSTNAME = "node"
_GROUPS, _GROUPS_FILE = Path("/sys/fs/cgroup"), "groups.json"
# The kubelet reads control groups of version 1 here; a hierarchy that the host does not mount is none of ours.
_HIERARCHIES = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
_ENVIRONMENT = ("PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8")
_END_SECONDS = 60.0
# The whole cluster weighs half as much as one busy process beside it, unless it is told otherwise.
WEIGHT = 512
_NICE = ("nice", "-n", "19")
# The kubelet writes these settings, which the whole machine shares, unless they have its values already. It finds files of ours.
_TUNABLES = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
# $1: the root; $2: the directory of the cluster; then pairs of a hierarchy's name.
_MOUNTS = """
set -e
root=$1 state=$2; shift 2
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$state/base,upperdir=$state/upper,workdir=$state/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
for name in "$@"; do
    mkdir "$root/sys/fs/cgroup/$name"
    mount -t cgroup -o "$name" cgroup "$root/sys/fs/cgroup/$name"
done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -p "$root/dev/net" "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
for name in null zero full random urandom tty net/tun fuse kmsg; do
    cp -a "/dev/$name" "$root/dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t mqueue mqueue "$root/dev/mqueue"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
for name in containerd kubelet volumes; do
    mkdir -p "$state/$name" "$root/var/lib/$name"
    mount --bind "$state/$name" "$root/var/lib/$name"
done
mkdir -p "$root/cluster" "$root/opt/bin"
mount --bind "$state/files" "$root/cluster"
mount --bind "$state/programs" "$root/opt/bin"
for path in "$state"/tunables/*; do
    mount --bind "$path" "$root/proc/sys/$(basename "$path" | tr + /)"
done
hostname node
ip link set lo up
ip link add node0 type bridge
ip addr add ADDRESS/24 dev node0
ip link set node0 up
ip route add default dev node0
echo 1 > "$root/proc/sys/net/ipv4/ip_forward"
echo 1 > "$root/proc/sys/net/bridge/bridge-nf-call-iptables"
cd "$root"
mkdir -p .old
pivot_root . .old
mount --make-rshared /
umount -l /.old
touch /run/ready
exec bash -c 'while :; do sleep 3600 & wait; done'
""".replace("ADDRESS", ADDRESS)


class NodeFailed(Terminal):
    """The node did not come up, or a program on it ended."""


@dataclass(frozen=True)
class Machine:
    """A node that runs; `first` is the process that holds it, as the host sees it."""

    directory: Path
    first: int

    def words(self, words: Sequence[str], environment: Sequence[str] = ()) -> list[str]:
        """Return the command line that runs a command on the node."""
        within = ["--mount", "--uts", "--ipc", "--pid", "--net", "--cgroup"]
        return ["nsenter", "-t", str(self.first), *within, "--root", "--wdns=/", "env", "-i", *_ENVIRONMENT, *environment, *words]

    def run(self, *words: str, given: bytes = b"") -> str:
        """Run a command on the node and return its output; raise `NodeFailed` with its errors."""
        done = subprocess.run(self.words(words), input=given, capture_output=True, check=False)
        if done.returncode:
            raise NodeFailed(f"cannot run {words[0]} on the node", why=(done.stderr or done.stdout).decode(errors="replace")[-2000:])
        return done.stdout.decode(errors="replace")

    def start(self, name: str, *words: str) -> None:
        """Start a program that lasts as long as the node; its log lies in the directory of the cluster."""
        _detached(self.directory, name, self.words(words))

    def start_outside(self, name: str, *words: str, on_network: bool = False, inherited: Sequence[int] = ()) -> None:
        """Start a program of the host that ends with the node; it can be on the node's network, and keep open files of this process."""
        within = ["--pid", *(["--net"] if on_network else [])]
        _detached(self.directory, name, ["nsenter", "-t", str(self.first), *within, *words], inherited)


def found(directory: Path) -> Machine | None:
    """Return the node of a cluster, if it runs."""
    try:
        pid, began = (directory / "pid").read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return Machine(directory, int(pid)) if _began(int(pid)) == began else None


def begin(directory: Path, base: Path, programs: Mapping[str, Path], weight: int = WEIGHT) -> Machine:
    """Make the namespaces of a node from a root directory, with these programs in /opt/bin; a busy process of the host weighs 1024."""
    for name in ("upper", "work", "root", "files", "programs", "tunables", "logs", "containerd", "kubelet", "volumes"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "base").unlink(missing_ok=True)
    (directory / "base").symlink_to(base)
    for name, path in programs.items():
        shutil.copy2(path, directory / "programs" / name)
    for name, value in _TUNABLES.items():
        (directory / "tunables" / name.replace("/", "+")).write_text(f"{value}\n")
    _make_groups(directory, weight)
    hierarchies = [name for name in _HIERARCHIES if (_GROUPS / name).is_dir()]
    script = ["sh", "-c", _MOUNTS, "node", str(directory / "root"), str(directory), *hierarchies]
    unshared = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--cgroup", "--fork", "--", *script]
    return _settled(directory, _detached(directory, "node", unshared))


def _settled(directory: Path, pid: int) -> Machine:
    """Wait for the first process of the node, which is the child of the one that made the namespaces."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while children.exists():
        first = next(iter(children.read_text().split()), "")
        if first and Path(f"/proc/{first}/root/run/ready").exists():
            (directory / "pid").write_text(f"{first} {_began(int(first))}")
            return Machine(directory, int(first))
        time.sleep(0.05)
    raise NodeFailed("cannot make the namespaces of the node", why=(directory / "logs" / "node.log").read_text()[-2000:])


def end(directory: Path) -> None:
    """End a node with everything on it, and remove its control groups and its directory."""
    if machine := found(directory):
        os.kill(machine.first, signal.SIGKILL)
        deadline = time.monotonic() + _END_SECONDS
        while Path(f"/proc/{machine.first}").exists():
            if time.monotonic() > deadline:
                raise NodeFailed(f"process {machine.first} of the node does not end", fix="look for its children in /proc")
            time.sleep(0.1)
    for group in _own_groups(directory).values():
        _remove_group(group)
    shutil.rmtree(directory, ignore_errors=True)


def processes(directory: Path) -> list[int]:
    """Return every process of a node, as the host sees it."""
    group = _own_groups(directory)["cpuacct"]
    # Groups come and go with their containers, which a walk does not mind.
    found = [int(pid) for folder, _, _ in os.walk(group) for pid in _read(Path(folder, "cgroup.procs")).split()]
    return sorted(set(found))


def cpu_seconds(directory: Path) -> float:
    """Return the seconds of CPU of a node so far, with those of processes that have ended."""
    return int((_own_groups(directory)["cpuacct"] / "cpuacct.usage").read_text()) / 1e9


def _read(file: Path) -> str:
    """Return what a file says; nothing when it is gone meanwhile."""
    try:
        return file.read_text()
    except OSError:
        return ""


def remains(directory: Path) -> list[str]:
    """Return what a node has left on this machine, after it ended: processes, mounts, control groups and files."""
    groups = [group for group in _own_groups(directory).values() if group.exists()]
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(directory) in line.split()[4]]
    processes = [str(pid) for group in groups for pid in (group / "cgroup.procs").read_text().split()]
    return [*map(str, groups), *mounts, *processes, *([str(directory)] if directory.exists() else [])]


def _began(pid: int) -> str:
    """Return the time at which a process began, which tells it from a later one with its number; empty for none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _own_groups(directory: Path) -> dict[str, Path]:
    """Return the cluster's control group of each hierarchy: below the one that began it, and for a new one below this process's."""
    written = directory / _GROUPS_FILE
    if written.exists():
        return {name: Path(path) for name, path in json.loads(written.read_text()).items()}
    own = f"paddock-cluster-{hashlib.sha256(str(directory).encode()).hexdigest()[:8]}"
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, name, path = line.split(":", 2)
        if name in _HIERARCHIES:
            groups[name] = _GROUPS / name / path.strip("/") / own
    return groups


def _make_groups(directory: Path, weight: int) -> None:
    groups = _own_groups(directory)
    (directory / _GROUPS_FILE).write_text(json.dumps({name: str(path) for name, path in groups.items()}))
    for name, group in groups.items():
        group.mkdir(exist_ok=True)
        if name == "cpu":
            (group / "cpu.shares").write_text(str(weight))
        if name == "cpuset":
            # A new group has neither processors nor memory, and takes no process before it has both.
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((group.parent / file).read_text())


def _detached(directory: Path, name: str, words: Sequence[str], inherited: Sequence[int] = ()) -> int:
    """Start a command that outlives this program, in the control groups of the node, and return its process.

    It joins the groups first: a control group namespace begins where its first process is.
    """
    joins = "".join(f"echo $$ > {group}/cgroup.procs; " for group in _own_groups(directory).values())
    log = directory / "logs" / f"{name}.log"
    script = f'{joins}exec 3>&1 >>"$0" 2>&1 </dev/null; setsid "$@" 3>&- & echo $! >&3'
    command = ["sh", "-ec", script, str(log), *_NICE, *words]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, pass_fds=inherited).stdout)


def _remove_group(group: Path) -> None:
    """Remove a control group with those below it; the kernel refuses for as long as the last process of one is being ended."""
    deadline = time.monotonic() + _END_SECONDS
    while group.is_dir():
        try:
            for child in sorted((path for path in group.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts)):
                child.rmdir()
            group.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise NodeFailed(f"cannot remove the control group {group}", why=str(error), fix="end its processes") from error
            time.sleep(0.1)
