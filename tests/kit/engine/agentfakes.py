"""The agent of a guest in memory, for `tests/kit/engine/enginefakes.py`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from paddock.engine.machine import guest
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.observation import Observation

# What a guest's agent still does while the guest's file systems are frozen.
_WHILE_FROZEN = ("ping", "info", "frozen", "thaw")


class AgentOwner(Protocol):
    """The machine of an agent."""

    id: str
    observed: Observation

    def observe(self, **changes: Any) -> None: ...
    def reboot(self) -> None: ...
    def power_off(self) -> None: ...


# those that KubeVirt wants of every agent, and some of the others
COMMANDS = (
    *(
        "guest-ping",
        "guest-exec",
        "guest-fsfreeze-freeze",
        "guest-get-time",
        "guest-info",
        "guest-shutdown",
        "guest-network-get-interfaces",
    ),
    *("guest-get-fsinfo", "guest-get-host-name", "guest-get-users", "guest-get-timezone", "guest-get-osinfo", "guest-set-user-password"),
    *("guest-ssh-get-authorized-keys", "guest-ssh-add-authorized-keys", "guest-ssh-remove-authorized-keys"),
)


class FakeAgent:
    """An agent whose answers are attributes. `refuse["freeze"] = "text"` makes one fail; `calls` is what was asked of it."""

    def __init__(self, machine: AgentOwner) -> None:
        self._machine = machine
        self.refuse: dict[str, str] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.told_info = guest.AgentInfo("7.2.0", tuple((name, True) for name in COMMANDS))
        self.told_os = guest.GuestOs(name="Paddock Test Linux", id="test", version_id="1")
        self.told_hostname = "guest"
        self.told_timezone = guest.Timezone("UTC", 0)
        self.told_users: tuple[guest.GuestUser, ...] = ()
        self.told_filesystems: tuple[guest.GuestFilesystem, ...] = ()
        self.told_load: tuple[float, ...] = ()
        self.told_interfaces: tuple[guest.GuestInterface, ...] = ()
        self.passwords: dict[str, str] = {}
        self.authorized: dict[str, tuple[str, ...]] = {}
        # commands that were begun; `busy`: none of them ends
        self.runs: list[tuple[str, ...]] = []
        self.busy = False
        self.files: dict[str, bytes] = {}
        self.is_frozen = False
        # its channel is open, and nothing comes
        self.hangs = False
        self.run: Callable[[tuple[str, ...]], guest.GuestExecResult] = lambda argv: guest.GuestExecResult(0, b"", b"")

    def connect(self) -> None:
        self._machine.observe(agent=True, milestone="agent")

    def disconnect(self) -> None:
        self._machine.observe(agent=False)

    def _called(self, name: str, *values: Any) -> None:
        self.calls.append((name, *values))
        if not self._machine.observed.agent:
            raise AgentError(f"cannot ask the agent of {self._machine.id}", reason="NotConnected", why="its channel is closed")
        if self.hangs:
            raise AgentError(f"the agent of {self._machine.id} did not answer {name}", reason="Unanswered", why="nothing came within 5 s")
        if self.is_frozen and name not in _WHILE_FROZEN:
            raise AgentError(f"the agent of {self._machine.id} refused {name}", reason="Refused", why="file systems are frozen")
        if name in self.refuse:
            raise AgentError(f"the agent of {self._machine.id} refused {name}", reason="Refused", why=self.refuse[name])

    async def ping(self) -> None:
        self._called("ping")

    async def info(self) -> guest.AgentInfo:
        self._called("info")
        return self.told_info

    async def os(self) -> guest.GuestOs:
        self._called("os")
        return self.told_os

    async def hostname(self) -> str:
        self._called("hostname")
        return self.told_hostname

    async def timezone(self) -> guest.Timezone:
        self._called("timezone")
        return self.told_timezone

    async def users(self) -> tuple[guest.GuestUser, ...]:
        self._called("users")
        return self.told_users

    async def filesystems(self) -> tuple[guest.GuestFilesystem, ...]:
        self._called("filesystems")
        return self.told_filesystems

    async def load(self) -> tuple[float, ...]:
        self._called("load")
        return self.told_load

    async def interfaces(self) -> tuple[guest.GuestInterface, ...]:
        self._called("interfaces")
        return self.told_interfaces

    async def freeze(self) -> int:
        self._called("freeze")
        self.is_frozen = True
        return 1

    async def thaw(self) -> int:
        self._called("thaw")
        self.is_frozen = False
        return 1

    async def frozen(self) -> bool:
        self._called("frozen")
        return self.is_frozen

    async def set_password(self, user: str, password: str, *, crypted: bool = False) -> None:
        self._called("set_password", user)
        self.passwords[user] = password

    async def add_keys(self, user: str, keys: tuple[str, ...], *, reset: bool = False) -> None:
        self._called("add_keys", user)
        before = () if reset else self.authorized.get(user, ())
        self.authorized[user] = (*before, *(key for key in keys if key not in before))

    async def keys(self, user: str) -> tuple[str, ...]:
        self._called("keys", user)
        return self.authorized.get(user, ())

    async def execute(self, argv: Sequence[str], timeout: float, stdin: bytes = b"") -> guest.GuestExecResult:
        self._called("execute", argv)
        return self.run(tuple(argv))

    async def spawn(self, argv: Sequence[str], stdin: bytes = b"") -> int:
        self._called("spawn", argv, stdin)
        self.runs.append(tuple(argv))
        return len(self.runs)

    async def outcome(self, number: int, seconds: float) -> guest.GuestExecResult | None:
        self._called("outcome", number)
        return None if self.busy else self.run(self.runs[number - 1])

    async def read_file(self, path: str, offset: int, count: int) -> tuple[bytes, bool]:
        self._called("read_file", path, offset, count)
        data = self.files[path][offset : offset + count]
        return data, offset + len(data) >= len(self.files[path])

    async def write_file(self, path: str, offset: int, data: bytes) -> None:
        self._called("write_file", path, offset, len(data))
        self.files[path] = self.files.get(path, b"")[:offset] + data

    async def shutdown(self, mode: str = "powerdown") -> None:
        self._called("shutdown", mode)
        if mode == "reboot":
            self._machine.reboot()
        else:
            self._machine.power_off()
