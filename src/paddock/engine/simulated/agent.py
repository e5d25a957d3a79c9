"""The agent of a simulated guest."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from paddock.engine.machine import guest as reports
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.observation import Observation
from paddock.engine.networks.nics import AttachedNic
from paddock.engine.simulated import guest

# What an agent still does while the guest's file systems are frozen.
_WHILE_FROZEN = ("ping", "info", "frozen", "thaw")
_MOST_FILE_BYTES = 16 << 20
_DISK_BYTES = 10 << 30


class AgentState(Struct, frozen=True):
    """The changes that requests made in a guest, which a restart of the server must not lose."""

    frozen: bool = False
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)


class AgentOwner(Protocol):
    """The machine of an agent."""

    id: str

    @property
    def config(self) -> MachineConfig: ...
    @property
    def observed(self) -> Observation: ...
    @property
    def hostname(self) -> str: ...
    @property
    def inside(self) -> AgentState: ...
    def change_inside(self, state: AgentState) -> None: ...
    def power_off(self) -> None: ...
    def reboot(self) -> None: ...


class SimulatedAgent:
    """Answers as the agent of a small Linux does. Every call may raise `AgentError`."""

    def __init__(self, machine: AgentOwner, attached: Callable[[str], AttachedNic | None]) -> None:
        """`attached` returns the network's side of a card by its MAC."""
        self._machine = machine
        self._attached = attached
        # results of programs that nobody has asked for yet, by process number
        self._results: dict[int, reports.GuestExecResult] = {}
        self._number = 1000

    async def ping(self) -> None:
        """Answer, if the agent can answer."""
        self._check("ping")

    async def info(self) -> reports.AgentInfo:
        """Return its version and its commands."""
        self._check("info")
        return guest.INFO

    async def os(self) -> reports.GuestOs:
        """Return the operating system of the guest."""
        self._check("os")
        return replace(guest.OS, machine="aarch64") if self._machine.config.architecture == "arm64" else guest.OS

    async def hostname(self) -> str:
        """Return the name of the guest."""
        self._check("hostname")
        return self._machine.hostname

    async def timezone(self) -> reports.Timezone:
        """Return the time zone of the guest."""
        self._check("timezone")
        return reports.Timezone("UTC", 0)

    async def users(self) -> tuple[reports.GuestUser, ...]:
        """Return who is logged in."""
        self._check("users")
        return (reports.GuestUser("simulated", login_time=self._machine.observed.times.get("running", 0.0)),)

    async def filesystems(self) -> tuple[reports.GuestFilesystem, ...]:
        """Return a file system on the first disk."""
        self._check("filesystems")
        first = next((each for each in self._machine.config.disks if each.role == "disk"), None)
        if first is None:
            return ()
        state = self._machine.observed.disks.get(first.name)
        total = state.size if state is not None and state.size else _DISK_BYTES
        return (reports.GuestFilesystem("vda1", "/", "ext4", total // 4, total, ((first.serial, first.bus),)),)

    async def load(self) -> tuple[float, ...]:
        """Return the load of a guest that does nothing."""
        self._check("load")
        return (0.0, 0.0, 0.0)

    async def interfaces(self) -> tuple[reports.GuestInterface, ...]:
        """Return the loopback interface and those of the cards."""
        self._check("interfaces")
        found = [reports.GuestInterface("lo", "00:00:00:00:00:00", (("127.0.0.1", 8), ("::1", 128)))]
        for number, nic in enumerate(self._machine.config.nics):
            attached = self._attached(nic.mac)
            given = (attached.guest_address, attached.guest_address6) if attached is not None else ()
            addresses = tuple((address, int(prefix)) for address, _, prefix in (each.partition("/") for each in given if each))
            found.append(reports.GuestInterface(f"eth{number}", nic.mac, addresses))
        return tuple(found)

    async def freeze(self) -> int:
        """File systems stand still until `thaw`."""
        self._check("freeze")
        self._machine.change_inside(replace(self._machine.inside, frozen=True))
        return 1

    async def thaw(self) -> int:
        """File systems go on after a freeze."""
        self._check("thaw")
        self._machine.change_inside(replace(self._machine.inside, frozen=False))
        return 1

    async def frozen(self) -> bool:
        """Return whether file systems stand still."""
        self._check("frozen")
        return self._machine.inside.frozen

    async def set_time(self, seconds: float) -> None:
        """Take a time. A simulated guest has the host's."""
        self._check("set_time")

    async def set_password(self, user: str, password: str, *, crypted: bool = False) -> None:
        """Take a password. Nobody logs in with it."""
        self._check("set_password")

    async def add_keys(self, user: str, keys: Sequence[str], *, reset: bool = False) -> None:
        """Add SSH keys of a user."""
        self._check("add_keys")
        inside = self._machine.inside
        before = () if reset else inside.keys.get(user, ())
        self._machine.change_inside(replace(inside, keys={**inside.keys, user: tuple(dict.fromkeys((*before, *keys)))}))

    async def keys(self, user: str) -> tuple[str, ...]:
        """Return the SSH keys of a user."""
        self._check("keys")
        return self._machine.inside.keys.get(user, ())

    async def execute(self, argv: Sequence[str], timeout: float, stdin: bytes = b"") -> reports.GuestExecResult:
        """Run a program and return its result."""
        self._check("execute")
        return self._run(tuple(argv))

    async def spawn(self, argv: Sequence[str], stdin: bytes = b"", *, patience: float = 0.0) -> int:
        """Start a program; return its process number."""
        self._check("spawn")
        self._number += 1
        self._results[self._number] = self._run(tuple(argv))
        return self._number

    async def outcome(self, number: int, seconds: float) -> reports.GuestExecResult | None:
        """Return the outcome of a program, once."""
        self._check("outcome")
        if number not in self._results:
            raise self._error("outcome", "Refused", f"there is no process {number}")
        return self._results.pop(number)

    async def read_file(self, path: str, offset: int, count: int) -> tuple[bytes, bool]:
        """Return bytes of a file, and whether it ends there."""
        self._check("read_file")
        files = self._files()
        if path not in files:
            raise self._error("read_file", "Refused", f"there is no file {path}")
        data = files[path][offset : offset + count]
        return data, offset + len(data) >= len(files[path])

    async def write_file(self, path: str, offset: int, data: bytes) -> None:
        """Write into a file; at offset 0 it begins anew."""
        self._check("write_file")
        inside = self._machine.inside
        content = self._files().get(path, b"")[:offset] + data
        if sum(map(len, inside.files.values())) + len(content) > _MOST_FILE_BYTES:
            raise self._error("write_file", "Refused", "a simulated guest keeps at most 16 MiB of files")
        self._machine.change_inside(replace(inside, files={**inside.files, path: content}))

    async def shutdown(self, mode: Literal["powerdown", "reboot", "halt"] = "powerdown") -> None:
        """Shut the guest down, or begin it anew."""
        self._check("shutdown")
        self._answer_first(self._machine.reboot if mode == "reboot" else self._machine.power_off)

    def answer(self, line: str) -> bytes:
        """Return what the console prints for a line."""
        argv = line.split()
        out = self._run(tuple(argv)) if argv else reports.GuestExecResult(0, b"", b"")
        return (out.out + out.err).replace(b"\n", b"\r\n") + f"{self._machine.hostname}# ".encode()

    def _run(self, argv: tuple[str, ...]) -> reports.GuestExecResult:
        request = guest.power_request(argv)
        if request:
            self._answer_first(self._machine.reboot if request == "reboot" else self._machine.power_off)
            return reports.GuestExecResult(0, b"", b"")
        return guest.run(argv, self._machine.hostname, self._files())

    @staticmethod
    def _answer_first(call: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(call)

    def _files(self) -> dict[str, bytes]:
        return {**guest.files(self._machine.hostname), **self._machine.inside.files}

    def _check(self, name: str) -> None:
        observed = self._machine.observed
        if not observed.agent:
            raise self._error(name, "NotConnected", "its channel is closed")
        if observed.paused:
            raise self._error(name, "Unanswered", "the guest is paused")
        if self._machine.inside.frozen and name not in _WHILE_FROZEN:
            raise self._error(name, "Refused", "file systems are frozen")

    def _error(self, name: str, reason: str, why: str) -> AgentError:
        return AgentError(f"the agent of {self._machine.id} did not do {name}", reason=reason, why=why)
