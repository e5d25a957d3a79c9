"""Settings of the fake driver, and the file that they and the faults are read from."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paddock.base.errors import Terminal
from paddock.contract.errors import ErrorKind

_Seconds = Annotated[float, Meta(ge=0, le=86400)]
_Count = Annotated[int, Meta(ge=0, le=1 << 40)]
# How calls that take time answer: with a task, when they are done, or each as chance decides.
TaskMode = Literal["async", "sync", "mixed"]
# What a fault does to a call (docs/contribute/writing-a-driver.md has the table).
FaultEffect = Literal["error", "lost-answer", "delay", "task-error", "task-hang", "restart"]


class BadScript(Terminal):
    """A script of the fake driver that cannot be read."""


class SecondsRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A duration between two bounds, chosen by chance."""

    least: _Seconds = 0.0
    most: _Seconds = 0.0


class ForeignMachine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine that was there before: nobody owns it, and it can be adopted."""

    name: str
    cpu: Annotated[int, Meta(ge=1, le=1024)] = 2
    memory_mib: Annotated[int, Meta(ge=1, le=1 << 30)] = 4096
    disk_gib: Annotated[int, Meta(ge=1, le=65536)] = 20
    power: Literal["On", "Off", "Suspended"] = "On"


class FakeHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host of a clustered provider."""

    id: str
    address: str = ""
    cpu: Annotated[int, Meta(ge=1, le=1 << 20)] = 64
    memory_mib: Annotated[int, Meta(ge=1, le=1 << 30)] = 262144
    storage: _Count = 1 << 42
    ready: bool = True
    labels: dict[str, str] = {}
    cpu_features: tuple[str, ...] = ()


class FakeDatastore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A datastore, perhaps of a storage pod."""

    name: str
    pod: str = ""
    free_bytes: _Count = 1 << 40
    total_bytes: _Count = 1 << 41
    accessible: bool = True
    maintenance: bool = False


class RpcFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault: it hits `count` calls of an RPC after the first `after` ones (0: all of them), each with a probability."""

    # the name of an RPC, or * for every one
    rpc: str
    effect: FaultEffect = "error"
    kind: ErrorKind = ErrorKind.UNAVAILABLE
    message: str = "a fault of the script"
    # the reason code of the error (base/reasons.py)
    reason: str = ""
    after: _Count = 0
    count: _Count = 1
    probability: Annotated[float, Meta(ge=0, le=1)] = 1.0
    delay: _Seconds = 0.0


class FakeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides how a fake driver behaves."""

    seed: int = 0
    tasks: TaskMode = "async"
    # of a task, and of every answer
    task_seconds: SecondsRange = SecondsRange(0.05, 0.3)
    answer_seconds: SecondsRange = SecondsRange()
    # a guest needs this long to shut down, and to get an address
    shutdown_seconds: _Seconds = 0.2
    address_seconds: _Seconds = 0.2
    # names (with * and ?) of machines whose guests ignore a shutdown
    hanging_guests: str = ""
    # what to switch off: boolean members of GetCapabilitiesResponse, with or without "supports_", and features
    without: tuple[str, ...] = ()
    # templates and paths (with * and ?) that machines can be created from, besides prepared images and imported disks
    templates: tuple[str, ...] = ("*",)
    paths: tuple[str, ...] = ("*",)
    # the mounts of staging claims: pvc://CLAIM/PATH is DIRECTORY/CLAIM/PATH
    directory: str = "/mnt/migration-storage"
    # the storage between providers that it has; what is not a claim is a directory with the storage's name there, too
    backends: tuple[Literal["pvc", "s3", "nfs"], ...] = ("pvc",)
    # the most that all machines together may have; 0: no limit
    most_cpu: _Count = 0
    most_memory_mib: _Count = 0
    machines: tuple[ForeignMachine, ...] = ()
    hosts: tuple[FakeHost, ...] = ()
    datastores: tuple[FakeDatastore, ...] = ()
    # not empty: Validate answers that the hypervisor cannot be reached, with this message
    unreachable: str = ""
    faults: tuple[RpcFault, ...] = ()


def read(path: Path) -> FakeSettings:
    """Read a script: TOML, or JSON if the name ends in .json. Raises `BadScript`."""
    try:
        text = path.read_text(encoding="utf-8")
        data: Any = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
        return msgspec.convert(data, FakeSettings)
    except OSError as error:
        raise BadScript(f"cannot read the script {path}", why=error.strerror or str(error)) from error
    except (ValueError, tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
        raise BadScript(
            f"the script {path} has a mistake",
            why=str(error),
            fix="correct it; the classes of paddock_drivers.fake.settings are its members",
        ) from error
