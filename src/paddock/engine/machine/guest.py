"""The reports of a guest's agent, as values. All of it was bounded and cleaned before it got here (`agentdata`)."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class AgentInfo:
    """The agent itself. `commands`: name -> it is enabled."""

    version: str
    commands: tuple[tuple[str, bool], ...] = ()

    def can(self, command: str) -> bool:
        """It has this command, and it is enabled."""
        return (command, True) in self.commands


@dataclass(frozen=True)
class GuestOs:
    """The operating system, as it calls itself."""

    name: str = ""
    kernel_release: str = ""
    version: str = ""
    pretty_name: str = ""
    version_id: str = ""
    kernel_version: str = ""
    machine: str = ""
    id: str = ""


@dataclass(frozen=True)
class Timezone:
    """`offset` is in seconds east of UTC."""

    name: str
    offset: int


@dataclass(frozen=True)
class GuestUser:
    """Somebody who is logged in, since `login_time` (seconds since the epoch)."""

    name: str
    domain: str = ""
    login_time: float = 0.0


@dataclass(frozen=True)
class GuestFilesystem:
    """A mounted file system. `disks`: (serial, bus) of the disks it is on."""

    disk: str
    mount_point: str
    type: str
    used_bytes: int = 0
    total_bytes: int = 0
    disks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class GuestInterface:
    """A network interface. `addresses`: (address, prefix length)."""

    name: str
    mac: str = ""
    addresses: tuple[tuple[str, int], ...] = ()


class GuestExecResult(NamedTuple):
    """A program that ended in the guest. A negative code is the signal that ended it."""

    code: int
    out: bytes
    err: bytes
