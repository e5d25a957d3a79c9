"""The reports of a guest's agent, as values. All of it was bounded and cleaned before it got here (`agentdata`)."""

from typing import NamedTuple

from msgspec import Struct


class AgentInfo(Struct, frozen=True):
    """The agent itself. `commands`: name -> it is enabled."""

    version: str
    commands: tuple[tuple[str, bool], ...] = ()


class GuestOs(Struct, frozen=True):
    """The operating system, as it calls itself."""

    name: str = ""
    kernel_release: str = ""
    version: str = ""
    pretty_name: str = ""
    version_id: str = ""
    kernel_version: str = ""
    machine: str = ""
    id: str = ""


class Timezone(Struct, frozen=True):
    """`offset` is in seconds east of UTC."""

    name: str
    offset: int


class GuestUser(Struct, frozen=True):
    """Somebody who is logged in, since `login_time` (seconds since the epoch)."""

    name: str
    domain: str = ""
    login_time: float = 0.0


class GuestFilesystem(Struct, frozen=True):
    """A mounted file system. `disks`: (serial, bus) of the disks it is on."""

    disk: str
    mount_point: str
    type: str
    used_bytes: int = 0
    total_bytes: int = 0
    disks: tuple[tuple[str, str], ...] = ()


class GuestInterface(Struct, frozen=True):
    """A network interface. `addresses`: (address, prefix length)."""

    name: str
    mac: str = ""
    addresses: tuple[tuple[str, int], ...] = ()


class GuestExecResult(NamedTuple):
    """A program that ended in the guest. A negative code is the signal that ended it."""

    code: int
    out: bytes
    err: bytes
