"""Debian releases to install into: built once, cached, and run in namespaces of their own, with systemd as the first process or without.

Everything inside ends with the first process: a server in the background and its guests as well. Nothing there sees the host's network,
except the commands of `online`.
"""

import hashlib
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddock.base.images.build import places
from tests.host.conftest import wait_until
from tests.host.machine import lacks

_MIRROR = "http://deb.debian.org/debian"
_CGROUPS = Path("/sys/fs/cgroup")
# Several releases may run at the same time.
_NUMBERS = itertools.count()
_ENVIRONMENT = (
    *("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TERM=dumb"),
    *("DEBIAN_FRONTEND=noninteractive", "container=paddock-test"),
)
# What the Debian package asks for, and what a session of a user needs; installations into it need no network.
HOSTING = (
    *("systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "procps", "python3", "nftables"),
    *("qemu-system-x86", "qemu-utils", "init-system-helpers"),
)
# $1: the root; $2: its boot identity. Devices are the host's, by name; /dev/kvm is left out, and so is every disk.
_MOUNTS = """
set -e
ip link set lo up
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --bind "$2" "$1/proc/sys/kernel/random/boot_id"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
mkdir -p "$1/dev/net" "$1/dev/pts" "$1/dev/shm"
for name in null zero full random urandom tty net/tun; do
    touch "$1/dev/$name"
    mount --bind "/dev/$name" "$1/dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
"""
_SYSTEMD = ("/lib/systemd/systemd", "--log-target=journal", "--show-status=no")


@dataclass(frozen=True)
class DebianRelease:
    """A release, and its Python."""

    name: str
    python: str


BOOKWORM, TRIXIE = DebianRelease("bookworm", "3.11"), DebianRelease("trixie", "3.13")


def archive(release: DebianRelease, packages: Sequence[str] = ()) -> Path:
    """Return a tar file of the release with these packages; built in a minute or three, once."""
    for need in ("root", "mmdebstrap"):
        if reason := lacks(need):
            pytest.skip(f"needs {need}: {reason}")
    folder = places.cache().parent / "chroots"
    recipe = hashlib.sha256(" ".join((release.name, *packages)).encode()).hexdigest()[:12]
    target = folder / f"{release.name}-{recipe}.tar"
    with places.alone(folder, target.stem):
        if not target.exists():
            made = target.with_suffix(".part.tar")
            _reach(release)
            included = [f"--include={','.join(packages)}"] if packages else []
            command = ["mmdebstrap", "--quiet", "--variant=minbase", *included, release.name, str(made), _MIRROR]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
            made.replace(target)
    return target


def _reach(release: DebianRelease) -> None:
    try:
        with urllib.request.urlopen(f"{_MIRROR}/dists/{release.name}/Release", timeout=30):
            pass
    except OSError as error:
        pytest.skip(f"needs mirror: {error}")


@dataclass
class Chroot:
    """A release that runs in namespaces of its own."""

    root: Path
    # cgroup of version 2 that is the uppermost one inside
    group: Path
    first: int = 0

    def words(self, words: Sequence[str], *, online: bool = False, user: str = "") -> list[str]:
        """Return the command line that runs a command inside. `online`: with the host's network."""
        within = ["--mount", "--uts", "--ipc", "--pid", "--cgroup", *([] if online else ["--net"])]
        drop = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--"] if user else []
        home = ["HOME=/home/" + user, f"USER={user}"] if user else []
        entered = ["nsenter", "-t", str(self.first), *within, "--root", "--wdns=/", "env", "-i", *_ENVIRONMENT, *home, *drop, *words]
        # A process belongs to the control groups that it is in when it enters the namespace.
        return ["sh", "-c", f"echo $$ > {shlex.quote(str(self.group))}/cgroup.procs && exec {shlex.join(entered)}"]

    def attempt(self, *words: str, online: bool = False, user: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command, and leave its verdict to the caller."""
        given = self.words(words, online=online, user=user)
        return subprocess.run(given, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def run(self, *words: str, online: bool = False, user: str = "") -> str:
        """Return the output of a command that must succeed."""
        done = self.attempt(*words, online=online, user=user)
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def in_guest(self, name: str, *words: str, user: str = "") -> str:
        """Return the output of a command in a guest, as soon as its agent answers."""
        answers: list[str] = []

        def is_carried_out() -> bool:
            done = self.attempt("paddock", "exec", name, "--", *words, user=user)
            answers.append(done.stdout)
            return done.returncode == 0

        wait_until(f"{name} carries out {shlex.join(words)}", is_carried_out, 600)
        return answers[-1]

    def power_off(self) -> None:
        """Shut the host down, and wait for its end."""
        self.attempt("systemctl", "poweroff")
        wait_until("the host is off", lambda: not Path(f"/proc/{self.first}/cwd").exists(), 360)

    def qemus(self) -> dict[int, str]:
        """Return the QEMU processes inside: pid -> control group."""
        listed = self.run("pgrep", "-f", "^/usr/bin/qemu-system-").split() if self.attempt("pgrep", "-f", "^/usr/bin/qemu-").stdout else []
        return {int(pid): self._group(pid) for pid in listed}

    def _group(self, pid: str) -> str:
        lines = self.run("cat", f"/proc/{pid}/cgroup").splitlines()
        return next(line.removeprefix("0::") for line in lines if line.startswith("0::"))


@contextmanager
def unpacked(tar: Path, folder: Path) -> Iterator[Path]:
    """The files of an archive, gone afterwards."""
    root = folder / "root"
    root.mkdir(parents=True)
    subprocess.run(["tar", "-C", str(root), "--exclude=./dev/*", "-xf", str(tar)], check=True)
    shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
    try:
        yield root
    finally:
        shutil.rmtree(root)


def take(root: Path, file: Path) -> str:
    """Copy a file into /root of a release; return its path there."""
    shutil.copyfile(file, root / "root" / file.name)
    return f"/root/{file.name}"


def take_guest(root: Path) -> None:
    """Copy the tiny guest into root's cache, where `paddock run tiny` finds it."""
    target = root / "root/.cache/paddock/guests"
    shutil.copytree(places.cache(), target, ignore=shutil.ignore_patterns("debian-*", "packages", "work-*", "*.lock"))


@contextmanager
def running(root: Path, *, systemd: bool = False, boot: str = "00000000-0000-4000-8000-000000000001") -> Iterator[Chroot]:
    """A release that runs: with systemd as the first process, or with one that sleeps. Killed at the end, as by a power cut."""
    if not (unified := next((each for each in (_CGROUPS / "unified", _CGROUPS) if (each / "cgroup.procs").exists()), None)):
        pytest.skip("needs cgroups: none are mounted here")
    group = unified / f"pdk-{os.getpid()}-{next(_NUMBERS)}"
    group.mkdir()
    identity = root.parent / "boot_id"
    identity.write_text(f"{boot}\n")
    first = _SYSTEMD if systemd else ("sleep", "infinity")
    script = f'{_MOUNTS}exec env -i {shlex.join(_ENVIRONMENT)} chroot "$1" {shlex.join(first)}'
    apart = ["--mount", "--uts", "--ipc", "--pid", "--cgroup", "--net", "--fork", "--kill-child=SIGKILL", "--propagation", "private"]
    unshare = shlex.join(["unshare", *apart, "sh", "-c", script, "sh", str(root), str(identity)])
    outer = subprocess.Popen(["sh", "-c", f"echo $$ > {group}/cgroup.procs && exec {unshare}"], stdin=subprocess.DEVNULL)
    try:
        chroot = Chroot(root, group)
        _wait_for(chroot, outer, systemd=systemd)
        yield chroot
    finally:
        outer.send_signal(signal.SIGKILL)
        outer.wait()
        _remove(group)


def _wait_for(chroot: Chroot, outer: "subprocess.Popen[bytes]", *, systemd: bool) -> None:
    program = "systemd" if systemd else "sleep"

    def is_up() -> bool:
        assert outer.poll() is None, "the namespaces cannot be made; the reason is above"
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        chroot.first = int(children[0]) if children else 0
        return bool(chroot.first) and Path(f"/proc/{chroot.first}/comm").read_text().strip() == program

    wait_until(f"{program} is the first process", is_up)
    if systemd:
        wait_until("systemd answers", lambda: chroot.attempt("test", "-S", "/run/systemd/private").returncode == 0, 120)
        state = chroot.attempt("systemctl", "is-system-running", "--wait").stdout.strip()
        assert state in ("running", "degraded"), state


def _remove(group: Path) -> None:
    """Remove a control group whose processes were killed; the kernel needs a moment for them."""
    deadline = time.monotonic() + 30
    while True:
        try:
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)
        except OSError:
            assert time.monotonic() < deadline, f"processes of {group} do not end"
            time.sleep(0.05)
        else:
            return
