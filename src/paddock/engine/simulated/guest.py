"""The inside of a simulated guest: its system, its files, the few programs that print something, and its serial console."""

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence

from paddock.engine.machine.guest import AgentInfo, GuestExecResult, GuestOs

OS = GuestOs(
    name="Paddock Simulated Linux",
    kernel_release="6.1.0-simulated",
    version="1 (simulated)",
    pretty_name="Paddock Simulated Linux 1",
    version_id="1",
    kernel_version="#1 SMP simulated",
    machine="x86_64",
    id="paddock-simulated",
)
VERSION = "9.0.0"
_COMMANDS = (
    "guest-exec",
    "guest-exec-status",
    "guest-file-close",
    "guest-file-open",
    "guest-file-read",
    "guest-file-seek",
    "guest-file-write",
    "guest-fsfreeze-freeze",
    "guest-fsfreeze-status",
    "guest-fsfreeze-thaw",
    "guest-get-fsinfo",
    "guest-get-host-name",
    "guest-get-load",
    "guest-get-osinfo",
    "guest-get-time",
    "guest-get-timezone",
    "guest-get-users",
    "guest-info",
    "guest-network-get-interfaces",
    "guest-ping",
    "guest-set-user-password",
    "guest-shutdown",
    "guest-ssh-add-authorized-keys",
    "guest-ssh-get-authorized-keys",
    "guest-ssh-remove-authorized-keys",
    "guest-sync",
    "guest-sync-delimited",
)
INFO = AgentInfo(VERSION, tuple((name, True) for name in _COMMANDS))
# programs that end the guest, or begin it anew
POWER_OFF, REBOOT = (("poweroff",), ("shutdown", "-h", "now"), ("halt",)), (("reboot",), ("shutdown", "-r", "now"))
_SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")
_SHELL_CHARACTERS = frozenset("|&;<>()$`\\*?[]{}~#")
_CLOUD_INIT = b'{"v1": {"datasource": "DataSourceNoCloud (simulated)", "errors": []}}\n'


def files(hostname: str) -> dict[str, bytes]:
    """Return the files that a guest begins with."""
    release = f'NAME="{OS.name}"\nPRETTY_NAME="{OS.pretty_name}"\nID={OS.id}\nVERSION_ID="{OS.version_id}"\n'
    return {
        "/etc/hostname": f"{hostname}\n".encode(),
        "/etc/os-release": release.encode(),
        "/run/cloud-init/result.json": _CLOUD_INIT,
    }


def run(argv: Sequence[str], hostname: str, known_files: Mapping[str, bytes]) -> GuestExecResult:
    """Return the result of a program. One that the guest does not have ends with 127, as a shell would say it."""
    name, arguments = (argv[0].rpartition("/")[2], tuple(argv[1:])) if argv else ("", ())
    if argv and argv[0] in _SHELLS and arguments[:1] == ("-c",) and len(arguments) == 2:
        if _SHELL_CHARACTERS & set(arguments[1]):
            return _failed(2, "sh: a simulated guest has no shell: only plain commands are understood")
        return run(shlex.split(arguments[1]), hostname, known_files)
    if name == "cat":
        missing = [each for each in arguments if each not in known_files]
        out = b"".join(known_files[each] for each in arguments if each in known_files)
        return GuestExecResult(1 if missing else 0, out, "".join(f"cat: {each}: No such file\n" for each in missing).encode())
    said = _SAYINGS.get(name)
    if name == "echo":
        return _printed(" ".join(arguments))
    if name == "hostname":
        return _printed(hostname)
    if said is not None:
        return _printed(said)
    if name in ("true", "sync", "sleep"):
        return GuestExecResult(0, b"", b"")
    if name == "false":
        return GuestExecResult(1, b"", b"")
    return _failed(127, f"{name or 'nothing'}: not found: a simulated guest has only a few programs")


_SAYINGS = {"whoami": "root", "uname": "Linux", "id": "uid=0(root) gid=0(root)"}


def power_request(argv: Sequence[str]) -> str:
    """Return "powerdown" or "reboot" for a program that asks for it, otherwise "". Through `systemctl`, too."""
    plain = tuple(argv[1:] if argv and argv[0] in ("systemctl", "sudo") else argv)
    if not plain:
        return ""
    named = (plain[0].rpartition("/")[2], *plain[1:])
    return "powerdown" if named in POWER_OFF else "reboot" if named in REBOOT else ""


def _printed(text: str) -> GuestExecResult:
    return GuestExecResult(0, f"{text}\n".encode(), b"")


def _failed(code: int, text: str) -> GuestExecResult:
    return GuestExecResult(code, b"", f"{text}\n".encode())


# --- its console --------------------------------------------------------------------------------------------------------------

BANNER = "This guest is simulated: nothing runs in it (paddock up --guests simulated)."


class ConsolePipe:
    """A session with a console."""

    def __init__(self, first: bytes, answer: Callable[[str], bytes]) -> None:
        self._answer = answer
        self._line = b""
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._closed = False
        if first:
            self._said.put_nowait(first)

    async def read(self) -> bytes:
        """The next bytes; `b""` is the end."""
        return b"" if self._closed and self._said.empty() else await self._said.get()

    async def write(self, data: bytes) -> None:
        """Echo what is typed, and answer each line."""
        if self._closed:
            return
        for byte in data:
            if byte in b"\r\n":
                line, self._line = self._line.decode("utf-8", "replace"), b""
                self._said.put_nowait(b"\r\n" + self._answer(line))
            elif byte in b"\x08\x7f":
                self._line = self._line[:-1]
                self._said.put_nowait(b"\b \b")
            elif len(self._line) < 4096:
                self._line += bytes((byte,))
                self._said.put_nowait(bytes((byte,)))

    def close(self) -> None:
        """End the session; a reader sees the end."""
        if not self._closed:
            self._closed = True
            self._said.put_nowait(b"")


class ConsoleLog:
    """The output of a guest on its serial console, where a real machine has its directory."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._text = b""

    def write(self, text: str) -> None:
        """Add a line to the output."""
        self._text = (self._text + text.encode() + b"\r\n")[-4096:]

    def serial_tail(self, size: int) -> bytes:
        """Return the last bytes of it."""
        return self._text[-size:]
