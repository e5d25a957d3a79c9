"""A libvirtd of Debian's packages, started by hand in namespaces of its own, with all its files in a directory of the test.

    with Libvirtd(work, "netns7") as daemon:
        libvirt.open(daemon.uri)

Nothing of the machine's own libvirt is touched: its directories are covered by the test's. A /dev/kvm is hidden, because one that is
emulated takes a minute for each definition. QEMUs, dnsmasqs and the daemon are ended by their process ids.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

libvirt = pytest.importorskip(
    "libvirt", reason="needs libvirtd: no libvirt-python; `make setup` builds it where libvirt-dev and pkg-config are installed"
)

_COVERED = {
    "etc": "/etc/libvirt",
    "run": "/run/libvirt",
    "lib": "/var/lib/libvirt",
    "log": "/var/log/libvirt",
    "cache": "/var/cache/libvirt",
}
_QEMU_CONF = """
stdio_handler = "file"
security_driver = "none"
namespaces = []
cgroup_controllers = []
remember_owner = 0
user = "{user}"
group = "{group}"
swtpm_user = "root"
swtpm_group = "root"
"""
_LIBVIRTD_CONF = """
auth_unix_rw = "none"
unix_sock_rw_perms = "0777"
log_filters = "1:qemu.qemu_monitor 3:*"
"""
_NETWORK = """
<network><name>default</name><forward mode='open'/><bridge name='lvbr0' stp='off'/>
<ip address='10.77.0.1' netmask='255.255.255.0'><dhcp><range start='10.77.0.10' end='10.77.0.250'/></dhcp></ip></network>
"""
_POOL = "<pool type='dir'><name>{name}</name><target><path>{path}</path></target></pool>"
_SECONDS = 60.0


# Debian's user for machines. Its package for whole hosts makes it, and the daemon does not start without it.
_USER, _NUMBER = "libvirt-qemu", 64055
_ACCOUNTS = {
    "passwd": f"{_USER}:x:{_NUMBER}:{_NUMBER}::/nonexistent:/usr/sbin/nologin\n",
    "group": f"{_USER}:x:{_NUMBER}:\n",
}


class Libvirtd:
    """A daemon with a pool and a network called default. `stop` and `start` are for tests of its absence; machines live on."""

    def __init__(self, work: Path, netns: str) -> None:
        self.work = work
        self.netns = netns
        self.pool = work / "pool"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.work / "run" / "libvirt-sock"

    @property
    def uri(self) -> str:
        """The endpoint."""
        return f"qemu+unix:///system?socket={self.socket}"

    def __enter__(self) -> Self:
        self.work.chmod(0o755)
        for name in (*_COVERED, "pool"):
            (self.work / name).mkdir()
        (self.work / "hidden").touch()
        (self.work / "etc" / "qemu.conf").write_text(_QEMU_CONF.format(user=_USER, group=_USER))
        (self.work / "etc" / "libvirtd.conf").write_text(_LIBVIRTD_CONF)
        for name, line in _ACCOUNTS.items():
            there = Path("/etc", name).read_text()
            (self.work / name).write_text(there if f"\n{_USER}:" in there else there + line)
        self.start()
        with self.connected() as connection:
            pool = connection.storagePoolDefineXML(_POOL.format(name="default", path=self.pool))
            pool.create()
            pool.setAutostart(True)
            network = connection.networkDefineXML(_NETWORK)
            network.create()
            network.setAutostart(True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        for pid in self.qemus():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for file in (self.work / "run" / "network").glob("*.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)

    def start(self) -> None:
        """Start the daemon, and wait until it answers."""
        mounts = [f"mount --bind {self.work / name} {place}" for name, place in _COVERED.items()]
        mounts += [f"mount --bind {self.work / name} /etc/{name}" for name in _ACCOUNTS]
        script = " && ".join(
            [
                *(f"mkdir -p {place}" for place in _COVERED.values()),
                *mounts,
                f"if [ -e /dev/kvm ]; then mount --bind {self.work / 'hidden'} /dev/kvm; fi",
                f"exec libvirtd -p {self.work / 'run' / 'libvirtd.pid'} -f {self.work / 'etc' / 'libvirtd.conf'}",
            ]
        )
        with (self.work / "libvirtd.log").open("ab") as log:
            words = ["ip", "netns", "exec", self.netns, "unshare", "-m", "--propagation", "private", "sh", "-c", script]
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait()

    def stop(self) -> None:
        """End the daemon; its machines run on."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Let the daemon accept and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def qemus(self) -> list[int]:
        """The process ids of its running machines."""
        found = []
        for file in (self.work / "run" / "qemu").glob("*.pid"):
            if file.name == "driver.pid":
                # The daemon's own.
                continue
            with contextlib.suppress(ValueError, OSError):
                pid = int(file.read_text())
                os.kill(pid, 0)
                found.append(pid)
        return found

    def add_pool(self, name: str) -> Path:
        """Make another pool, and return its directory."""
        path = self.work / name
        path.mkdir()
        self.define_pool(name, path)
        return path

    def define_pool(self, name: str, path: Path) -> None:
        """Make a pool of a directory that is there."""
        with self.connected() as connection:
            connection.storagePoolDefineXML(_POOL.format(name=name, path=path)).create()

    def refresh(self) -> None:
        """Let the default pool look at its directory again."""
        with self.connected() as connection:
            connection.storagePoolLookupByName("default").refresh(0)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection of an administrator, as `virsh` has one."""
        connection = libvirt.open(self.uri)
        try:
            yield connection
        finally:
            connection.close()

    def _wait(self) -> None:
        deadline = time.monotonic() + _SECONDS
        while True:
            assert self._process is not None and self._process.poll() is None, (self.work / "libvirtd.log").read_text()[-2000:]
            if self.socket.exists():
                with contextlib.suppress(libvirt.libvirtError):
                    libvirt.open(self.uri).close()
                    return
            assert time.monotonic() < deadline, (self.work / "libvirtd.log").read_text()[-2000:]
            time.sleep(0.1)
