"""Settings of the driver, from the variables of its program."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from paddock.base.errors import Terminal
from paddock_drivers.kit.staging import StagingSettings, nfs_mounts

PROGRAM, JAILER, DIRECTORY = "PROVIDER_FIRECRACKER", "PROVIDER_FIRECRACKER_JAILER", "PROVIDER_FIRECRACKER_DIRECTORY"
KERNEL, FILES, NETWORKS = "PROVIDER_FIRECRACKER_KERNEL", "PROVIDER_FIRECRACKER_FILES", "PROVIDER_FIRECRACKER_NETWORKS"
USERS, BOOT_ARGS, SOURCES = "PROVIDER_FIRECRACKER_USERS", "PROVIDER_FIRECRACKER_BOOT_ARGS", "PROVIDER_FIRECRACKER_SOURCES"
_DEFAULT_NETWORK = "PROVIDER_DEFAULT_NETWORK"
_ARGUMENTS = "console=ttyS0 reboot=k panic=1 pci=off"
_ROOT_PLACE, _USER_PLACE = "/var/lib/paddock/firecracker", "~/.local/state/paddock/firecracker"
_USERS = range(1_900_000_000, 1_900_010_000)


class FirecrackerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The places of files and programs, and the resources that machines may use."""

    directory: Path
    # empty: there is none
    program: str = ""
    jailer: str = ""
    # the kernel of machines that name none, and their boot arguments
    kernel: str = ""
    boot_args: str = _ARGUMENTS
    # directories with images and kernels that requests may name by their path
    files: tuple[Path, ...] = ()
    # bridge by the name that requests have for it; empty: every bridge of the host, by its own name
    networks: Mapping[str, str] = {}
    default_network: str = ""
    # users that VMMs run as, when the driver is root; none: the driver's own
    users: range = range(0)
    # networks and hosts of this machine that images may come from
    sources: tuple[str, ...] = ()
    staging: StagingSettings = StagingSettings()
    # how long a call waits for work before it answers with a task, and for a VMM to answer
    patience: float = 20.0
    start_seconds: float = 15.0


def read(environment: Mapping[str, str], staging: Path) -> FirecrackerSettings:
    """Return the settings of a program. Raises `Terminal`."""
    root = os.geteuid() == 0
    place = environment.get(DIRECTORY) or (_ROOT_PLACE if root else os.path.expanduser(_USER_PLACE))
    return FirecrackerSettings(
        directory=_absolute(DIRECTORY, place),
        program=_program(environment.get(PROGRAM, ""), "firecracker"),
        # Only root can make a jail.
        jailer=_program(environment.get(JAILER, ""), "jailer") if root and environment.get(JAILER) != "none" else "",
        kernel=environment.get(KERNEL, ""),
        boot_args=environment.get(BOOT_ARGS, "") or _ARGUMENTS,
        files=tuple(_absolute(FILES, each) for each in environment.get(FILES, "").split(":") if each),
        networks=_pairs(NETWORKS, environment.get(NETWORKS, "")),
        default_network=environment.get(_DEFAULT_NETWORK, ""),
        users=_users(environment.get(USERS, "")) if root else range(0),
        sources=tuple(each.strip() for each in environment.get(SOURCES, "").split(",") if each.strip()),
        staging=StagingSettings(claims=staging if staging.is_dir() else None, mounts=nfs_mounts(environment)),
    )


def _program(given: str, name: str) -> str:
    return os.path.realpath(given) if given else os.path.realpath(found) if (found := shutil.which(name)) else ""


def _absolute(variable: str, text: str) -> Path:
    if not text.startswith("/"):
        raise Terminal(f"{variable} has to be an absolute path")
    return Path(text)


def _pairs(variable: str, text: str) -> dict[str, str]:
    found = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, equals, bridge = each.partition("=")
        if not equals or not name or not bridge:
            raise Terminal(f"{variable} has to be NAME=BRIDGE, separated by commas")
        found[name] = bridge
    return found


def _users(text: str) -> range:
    if not text:
        return _USERS
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and dash and 0 < int(first) <= int(last)):
        raise Terminal(f"{USERS} has to be FIRST-LAST, two numbers of users")
    return range(int(first), int(last) + 1)
