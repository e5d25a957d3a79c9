"""passt: one process beside each machine that has such a card. It ends by itself when QEMU leaves it, and outlives Paddock.

Without `--no-map-gw` the guest would reach this host's loopback address through its gateway.
"""

import asyncio
import contextlib
import hashlib
import ipaddress
import os
import signal
from pathlib import Path

from msgspec import Struct

from paddock.engine.machine import limits
from paddock.engine.networks.discovery import ROUTER
from paddock.engine.networks.errors import NetworkBusy, NetworkUnusable
from paddock.engine.networks.nics import NicSpec
from paddock.engine.networks.resolver import ResolverConfig

# Whom it becomes when it is started as root for a machine without a user of its own.
NOBODY = 65534
# The control group of all of them.
_GROUP = "passt"
_LONGEST_PATH = 100
_START_SECONDS = 5.0
_LOOK_SECONDS = 0.01


class PasstRequest(Struct, frozen=True):
    """The parameters of one process."""

    socket: Path
    inner: str
    mac: str
    user: int = 0
    dns: ResolverConfig = ResolverConfig()
    # (protocol, address on the host, port on the host, port in the guest)
    forwards: tuple[tuple[str, str, int, int], ...] = ()
    # "" without IPv6
    inner6: str = ""


class PasstSockets:
    """The sockets of the processes: a directory for each card, owned by the user that its process runs as."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "passt"
        self._secret = directory / "passt.key"

    def socket(self, nic: NicSpec, mac: str) -> Path:
        """The socket of a card; its directory is there when this returns."""
        place = Path(nic.directory) if nic.directory else self._directory / self._name(nic, mac)
        if not nic.directory:
            self._directory.mkdir(mode=0o711, parents=True, exist_ok=True)
            place.mkdir(mode=0o711, exist_ok=True)
            if os.geteuid() == 0:
                os.chown(place, nic.user or NOBODY, -1)
        path = place / f"{hashlib.sha256(nic.name.encode()).hexdigest()[:8]}.sock"
        if len(os.fsencode(path)) > _LONGEST_PATH:
            raise NetworkUnusable(
                f"cannot connect {nic.name} by passt", why=f"{path} is too long for a socket", fix="use a shorter directory"
            )
        return path

    def _name(self, nic: NicSpec, mac: str) -> str:
        try:
            key = self._secret.read_bytes()
        except FileNotFoundError:
            key = os.urandom(32)
            descriptor = os.open(self._secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
        return hashlib.sha256(key + f"{nic.owner}\0{nic.name}\0{mac}".encode()).hexdigest()[:24]


def argv(program: str, request: PasstRequest) -> list[str]:
    """The command line. Nothing in it was written by a user but name servers and search list."""
    inner = ipaddress.IPv4Network(request.inner)
    command = [program, "--foreground", "--quiet", "--one-off", "--no-map-gw", "--socket", str(request.socket)]
    if request.inner6:
        command += ["--address", str(ipaddress.IPv6Network(request.inner6)[2]), "--gateway", ROUTER]
    else:
        command.append("--ipv4-only")
    command += ["--address", str(inner[2]), "--netmask", str(inner.prefixlen), "--gateway", str(inner[1])]
    command += ["--mac-addr", request.mac, "--mtu", "1500", "--dns-forward", str(inner[3])]
    # As one word each, so that none can be taken for an option.
    command += [f"--dns={server}" for server in request.dns.servers] or ["--no-dhcp-dns"]
    command += [f"--search={domain}" for domain in request.dns.search] or ["--no-dhcp-search"]
    for protocol, option in (("tcp", "--tcp-ports"), ("udp", "--udp-ports")):
        ports = [f"{address}/{host}:{guest}" for known, address, host, guest in request.forwards if known == protocol]
        for each in ports or ["none"]:
            command += [option, each]
    if request.user and os.geteuid() == 0:
        command += ["--runas", f"{request.user}:{request.user}"]
    return command


class PasstProcess:
    """A passt that was started, by us or by a former run."""

    def __init__(self, pid: int, socket: Path) -> None:
        self._pid = pid
        self._socket = socket

    def alive(self) -> bool:
        """Return whether it is there, and is not another process with its number."""
        try:
            said = Path(f"/proc/{self._pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return os.fsencode(self._socket) in said

    async def end(self) -> None:
        """End it, and clean up."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
        for path in (self._socket, _pid_file(self._socket), _log_file(self._socket)):
            path.unlink(missing_ok=True)


def _pid_file(socket: Path) -> Path:
    return socket.with_suffix(".pid")


def _log_file(socket: Path) -> Path:
    return socket.with_suffix(".log")


def _said(socket: Path) -> str:
    lines = _log_file(socket).read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
    # Where there is no syslog it complains about that after each line.
    return next((line for line in reversed(lines) if line and "syslog" not in line), "")


def find(socket: Path) -> PasstProcess | None:
    """The one that a former run started."""
    try:
        helper = PasstProcess(int(_pid_file(socket).read_text()), socket)
    except (OSError, ValueError):
        return None
    return helper if helper.alive() else None


async def start(program: str, request: PasstRequest) -> PasstProcess:
    """A process that listens at the socket; one that does already is kept."""
    found = find(request.socket)
    if found is not None:
        return found
    request.socket.unlink(missing_ok=True)
    try:
        # Its complaints go to a file, since it outlives every pipe of ours.
        with _log_file(request.socket).open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *argv(program, request),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise NetworkBusy(f"cannot start {program}", why=str(error)) from error
    try:
        await _listening(process, request.socket)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise
    if os.geteuid() == 0:
        # QEMU is another user than passt. Who may come here is decided by the directory's name.
        request.socket.chmod(0o666)
    # It outlives Paddock, whatever ends the unit that Paddock is.
    limits.enclose(limits.on_this_host(), _GROUP, [process.pid], {})
    _pid_file(request.socket).write_text(f"{process.pid}\n")
    return PasstProcess(process.pid, request.socket)


async def _listening(process: asyncio.subprocess.Process, socket: Path) -> None:
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not socket.exists():
                if process.returncode is not None:
                    raise NetworkBusy("passt ended as it started", why=_said(socket) or f"exit status {process.returncode}")
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError as error:
        raise NetworkBusy("passt does not listen", why=f"no socket within {_START_SECONDS:g} s") from error
