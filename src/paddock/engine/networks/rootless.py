"""The network namespace of an ordinary user's directory: a process that holds it, and pasta, which leads out of it.

Both outlive Paddock, as guests do; `namespace.json` says which they are.
"""

import asyncio
import contextlib
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from paddock.engine import namespace
from paddock.engine.host import subprocesses
from paddock.engine.machine import limits
from paddock.engine.machine.process import Process, boot_id, end_process, start_ticks
from paddock.engine.namespace import NoNamespace
from paddock.engine.networks import hostnetwork, podnetwork, taps
from paddock.engine.networks.addressstore import write_record
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.mirror import AddressMirror
from paddock.engine.networks.netlink import Netlink, index

_LOG = logging.getLogger(__name__)
_GROUP = "network"
_TRIAL_SECONDS = 10.0
_AGAIN_SECONDS, _LONGEST_SECONDS = 1.0, 30.0
# pasta ends at once when it is asked to.
_END_SECONDS, _LOOK_SECONDS = 2.0, 0.02
# Addresses that no network has and no guest reaches: those of the host itself are led to the host.
_ADDRESS, _GATEWAY, _BITS = "169.254.2.2", "169.254.2.1", "24"
_ADDRESS6, _GATEWAY6 = "fdfd:7061:7374::2", "fe80::1"
_SETTINGS = Path("/proc/sys")
_LIFTED_BY = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=16384"),
    ("user/max_net_namespaces", "0", "sysctl -w user.max_net_namespaces=16384"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
)


class NamespaceRecord(msgspec.Struct, frozen=True):
    """The processes of a namespace, in this boot of the host; number 0 is none."""

    boot: str
    holder: int
    holder_ticks: int
    uplink: int = 0
    uplink_ticks: int = 0


def enter(directory: Path, mode: str) -> None:
    """Give an ordinary user's server its network namespace, if it wants one. Raises `NetworkUnusable` if it must have one."""
    if mode not in ("auto", "rootless") or (mode == "auto" and (os.geteuid() == 0 or hostnetwork.is_admin())):
        return
    problem = _enter(directory)
    if problem is None:
        return
    namespace.refuse(problem)
    if mode == "rootless":
        raise NetworkUnusable("cannot make a network for machines without root", why=problem.why, fix=f"{problem.fix}, or choose user mode")


def _enter(directory: Path) -> NoNamespace | None:
    if os.geteuid() == 0:
        return NoNamespace("Paddock runs as root, which needs none", "leave --network out")
    record = _read(directory)
    is_new = record is None
    if record is None:
        if problem := _programs():
            return problem
        holder, why = _fork()
        if why:
            return _explained(why)
        record = NamespaceRecord(boot_id(), holder, start_ticks(holder))
        before = os.umask(0o077)
        directory.mkdir(parents=True, exist_ok=True)
        _write(directory, record)
        os.umask(before)
        limits.enclose(limits.on_this_host(), _GROUP, [holder], {})
    try:
        namespace.enter(record.holder)
    except OSError as error:
        if is_new:
            end(directory)
        return _explained(error.strerror or str(error))
    return None


async def examine() -> NoNamespace | None:
    """Return the reason why an ordinary user's server has no namespace here; None if it has one, or would get one."""
    if namespace.holder() or namespace.refusal() is not None:
        return namespace.refusal()
    if missing := _programs():
        return missing
    # A process of its own: this one may have threads, and a fork would lack them.
    out, err, code = await subprocesses.run([sys.executable, "-P", "-m", __name__], b"", _TRIAL_SECONDS)
    return _explained((out or err).decode(errors="replace").strip()[-200:] or f"status {code}") if code else None


def trial() -> str:
    """Return the step at which a namespace of this user fails; "" if it can be had."""
    holder, why = _fork()
    if holder:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    return why


def _programs() -> NoNamespace | None:
    if shutil.which("pasta") is None:
        return NoNamespace("pasta is not installed", "install it (on Debian: apt install passt)")
    if hostnetwork.nft() is None:
        return NoNamespace("nft is not installed", "install it (on Debian: apt install nftables)")
    return None


def _explained(why: str) -> NoNamespace:
    for name, value, command in _LIFTED_BY:
        with contextlib.suppress(OSError):
            if (_SETTINGS / name).read_text().strip() == value:
                return NoNamespace(f"{name.replace('/', '.')} is {value}, which forbids namespaces of ordinary users", command)
    return NoNamespace(f"this user gets no network namespace ({why})", "permit user namespaces to it, or run Paddock as root")


def _fork() -> tuple[int, str]:
    """Start the process that holds a new namespace; returns its pid, or 0 and the step that failed. No server has threads yet."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.closerange(3, writing)
            os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
            _hold(writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        ready = select.select([pipe], (), (), _TRIAL_SECONDS)[0]
        said = pipe.read().decode(errors="replace") if ready else "it took too long"
    if not said:
        return child, ""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 0, said


def _hold(writing: int) -> None:
    """In the child: make the namespace, try it, and sleep. The pipe gets the step that failed, or ends without a word."""
    step = "a user namespace"
    try:
        os.setsid()
        os.chdir("/")
        namespace.unshare()
        step = "its loopback device"
        _raise_loopback()
        step = "forwarding"
        _open_forwarding()
        step = "a bridge"
        _try_bridge()
        step = "a tap"
        os.close(taps.open_queue("trial"))
        step = "sleep"
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        # The pipe ends with the exec.
        os.execv(shutil.which("sleep") or "/bin/sleep", ["sleep", "2147483647"])
    except BaseException as error:
        os.write(writing, f"{step}: {error}".encode())


def _raise_loopback() -> None:
    netlink = Netlink()
    netlink.set_link(index("lo"))
    netlink.close()


def _open_forwarding() -> None:
    """The namespace routes between its devices, also those that come later; its packet filter says what."""
    taps.write_setting("ipv4/ip_forward", "1")
    taps.write_setting("ipv4/conf/all/rp_filter", "0")
    if taps.read_setting("ipv6/conf/all/forwarding"):
        taps.write_setting("ipv6/conf/all/forwarding", "1")


def _try_bridge() -> None:
    netlink = Netlink()
    netlink.make_bridge("trial")
    netlink.delete_link("trial")
    netlink.close()


def _path(directory: Path) -> Path:
    return directory / "namespace.json"


def _read(directory: Path) -> NamespaceRecord | None:
    """Return the record of a namespace that is there."""
    try:
        record = msgspec.json.decode(_path(directory).read_bytes(), type=NamespaceRecord)
    except (OSError, ValueError):
        return None
    is_there = record.boot == boot_id() and record.holder_ticks and start_ticks(record.holder) == record.holder_ticks
    return record if is_there else None


def _write(directory: Path, record: NamespaceRecord) -> None:
    write_record(_path(directory), msgspec.json.encode(record))


def end(directory: Path) -> None:
    """End the namespace of a directory, if it has one. No server runs there, or it is the one that ends."""
    record = _read(directory)
    if record is not None:
        end_process(record.uplink, record.uplink_ticks, signal.SIGTERM)
        end_process(record.holder, record.holder_ticks)
        until = time.monotonic() + _END_SECONDS
        while time.monotonic() < until and record.uplink and start_ticks(record.uplink) == record.uplink_ticks:
            time.sleep(_LOOK_SECONDS)
    _path(directory).unlink(missing_ok=True)


def leave(directory: Path) -> None:
    """End the namespace that this process joined, unless there are cards in it."""
    if namespace.holder() and not (directory / podnetwork.TABLE).exists():
        end(directory)


class Uplink:
    """The pasta of a namespace: started with the first card, started again when it ends, left alone when Paddock ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: Process | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _AGAIN_SECONDS
        self._mirror = AddressMirror()

    def open(self) -> None:
        """Have it run from now on."""
        if namespace.holder():
            # First: nothing of a guest's reaches the host itself.
            self._mirror.open()
        record = _read(self._directory)
        if self._process is not None or self._timer is not None or record is None or not namespace.holder():
            return
        if not (record.uplink_ticks and start_ticks(record.uplink) == record.uplink_ticks):
            record = self._start(record)
        with contextlib.suppress(ProcessLookupError):
            self._process = Process(record.uplink, partial(self._ended, record.uplink))
            return
        self._again()

    def _start(self, record: NamespaceRecord) -> NamespaceRecord:
        program = shutil.which("pasta") or "pasta"
        log = self._directory / "uplink.log"
        try:
            # Its rights are those of whoever starts it, and it gives up what it does not need.
            with log.open("wb") as errors, namespace.lent():
                started = subprocess.Popen(
                    argv(program, record.holder), stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
                )
        except OSError as error:
            _LOG.warning("pasta cannot be started", extra={"why": error.strerror})
            return record
        # `Process` waits for it.
        started.returncode = 0
        limits.enclose(limits.on_this_host(), _GROUP, [started.pid], {})
        record = replace(record, uplink=started.pid, uplink_ticks=start_ticks(started.pid))
        _write(self._directory, record)
        return record

    def _ended(self, pid: int, status: int | None) -> None:
        if self._process is None or self._process.pid != pid:
            # `end` ended it.
            return
        self._process = None
        _LOG.warning("machines have no way out: pasta ended and is started again", extra={"status": status, "why": self._said()})
        self._again()

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._retry)
        self._pause = min(self._pause * 2, _LONGEST_SECONDS)

    def _retry(self) -> None:
        self._timer = None
        self.open()

    def _said(self) -> str:
        try:
            lines = (self._directory / "uplink.log").read_text(errors="replace").splitlines()
        except OSError:
            return ""
        # Where there is no syslog it complains about that after each line.
        return next((line for line in reversed(lines) if line and "syslog" not in line), "")

    def close(self) -> None:
        """Watch it no more; it stays."""
        self._mirror.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._process is not None:
            self._process.release()
            self._process = None

    def end(self) -> None:
        """End it: there are no cards."""
        process, self._process = self._process, None
        if process is not None:
            # The event loop keeps it until it has ended, so that its status is read.
            process.signal(signal.SIGTERM)
            if (record := _read(self._directory)) is not None:
                _write(self._directory, replace(record, uplink=0, uplink_ticks=0))
        self.close()


def argv(program: str, holder: int) -> list[str]:
    """The command line of pasta: a device and a default route in the namespace, and no forwards into it."""
    command = [program, "--foreground", "--quiet", "--config-net", "--netns-only", "--no-map-gw", "--ns-ifname", "uplink"]
    for option in ("--tcp-ports", "--udp-ports", "--tcp-ns", "--udp-ns"):
        command += [option, "none"]
    command += ["--address", _ADDRESS, "--netmask", _BITS, "--gateway", _GATEWAY]
    if hostnetwork.has_ipv6():
        command += ["--address", _ADDRESS6, "--gateway", _GATEWAY6]
    return [*command, "--netns", f"/proc/{holder}/ns/net"]


if __name__ == "__main__":
    if failed := trial():
        sys.stdout.write(failed)
        sys.exit(1)
