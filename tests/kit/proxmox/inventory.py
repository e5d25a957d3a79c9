"""What a cluster has: nodes, storages with volumes, machines, pools and bridges."""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.proxmox.content import Content
from tests.kit.proxmox.errors import failed

GIB = 1 << 30
FILE_BASED = ("dir", "nfs", "cifs")


@dataclass
class Node:
    """A server of the cluster; `online` is false while it is away."""

    name: str
    online: bool = True
    cpus: int = 16
    memory: int = 64 * GIB
    bridges: list[str] = field(default_factory=lambda: ["vmbr0", "vmbr1"])


@dataclass
class Volume:
    """A disk, an ISO image or another file of a storage."""

    volid: str
    kind: str
    format: str
    content: Content
    vmid: int = 0
    parent: str = ""
    snapshots: dict[str, Content] = field(default_factory=dict)
    created: int = 0
    # The file as it was uploaded; a disk has none.
    file: bytes | None = None

    @property
    def name(self) -> str:
        return self.volid.partition(":")[2]

    @property
    def size(self) -> int:
        return self.content.size if self.file is None else len(self.file)

    def occupied(self, *, thick: bool) -> int:
        """Return the bytes that the volume takes of its storage."""
        return self.content.allocated if self.file is None and not thick else self.size

    @property
    def is_base(self) -> bool:
        return self.name.rpartition("/")[2].startswith("base-")


@dataclass
class Storage:
    """A storage. One that is not shared has volumes of its own on every node. `directory` is where files really appear."""

    name: str
    kind: str
    content: tuple[str, ...]
    shared: bool = False
    total: int = 500 * GIB
    other_use: int = 10 * GIB
    nodes: tuple[str, ...] = ()
    disabled: bool = False
    # False while the storage is configured and cannot be reached.
    active: bool = True
    directory: Path | None = None

    @property
    def formats(self) -> tuple[str, ...]:
        return ("raw", "qcow2", "vmdk") if self.kind in FILE_BASED else ("raw",)

    @property
    def is_file_based(self) -> bool:
        return self.kind in FILE_BASED


@dataclass
class Guest:
    """How the system inside a machine behaves."""

    obeys_shutdown: bool = True
    shutdown_seconds: float = 1.0
    has_agent: bool = True
    gives_memory_back: bool = False
    agent_seconds: float = 0.0
    hostname: str = "guest"
    # Addresses by the number of the interface; those that DHCP would give are derived.
    addresses: dict[int, list[str]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    executed: dict[int, tuple[int, str, str]] = field(default_factory=dict)
    # What a command answers: exit code, output, error output. FileNotFoundError is a command that the guest does not have.
    commands: Callable[[list[str], str], tuple[int, str, str]] = field(default=lambda command, given: plain_command(command, given))


def plain_command(command: list[str], given: str) -> tuple[int, str, str]:
    """Be a guest that has few commands."""
    name = command[0].rpartition("/")[2] if command else "cat"
    if name not in ("true", "false", "echo", "cat", "sh"):
        raise FileNotFoundError(name)
    output = " ".join(command[1:]) + "\n" if name == "echo" else given if name == "cat" else ""
    return (1 if name == "false" else 0), output, ""


@dataclass
class Process:
    """A running QEMU. `conf` is what it was started with and what was plugged in since."""

    pid: int
    started: float
    status: str = "running"
    conf: dict[str, str] = field(default_factory=dict)


@dataclass
class Machine:
    """A virtual machine: its configuration file, and its process while it runs."""

    vmid: int
    node: str
    conf: dict[str, str]
    pending: dict[str, str] = field(default_factory=dict)
    deletions: dict[str, bool] = field(default_factory=dict)
    snapshots: dict[str, dict[str, str]] = field(default_factory=dict)
    process: Process | None = None
    guest: Guest = field(default_factory=Guest)
    pool: str = ""

    @property
    def is_template(self) -> bool:
        return self.conf.get("template") == "1"

    @property
    def digest(self) -> str:
        lines = [
            *sorted(self.conf.items()),
            *sorted(self.pending.items()),
            *sorted((name, str(each)) for name, each in self.deletions.items()),
        ]
        sections = [(name, str(sorted(each.items()))) for name, each in sorted(self.snapshots.items())]
        return hashlib.sha1(repr((lines, sections)).encode()).hexdigest()

    def check_lock(self) -> None:
        """Refuse work on a machine that other work has locked."""
        if lock := self.conf.get("lock"):
            raise failed(f"VM is locked ({lock})")

    def check_protection(self, what: str) -> None:
        """Refuse to remove what the option `protection` guards."""
        if self.conf.get("protection") == "1":
            raise failed(f"{what} - protection mode enabled")


@dataclass
class HaService:
    """A resource of the HA manager: the state that is asked for, and the one that the manager has brought it to."""

    requested: str = "started"
    state: str = "started"


@dataclass
class Pool:
    """A pool of machines and storages."""

    name: str
    comment: str = ""
    storages: set[str] = field(default_factory=set)


class Clock:
    """The date of the simulated cluster. It can run faster than the real one, and tests can move it."""

    def __init__(self, speed: float = 1.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._speed = monotonic, speed
        self._begin, self._date = monotonic(), time.time()

    def __call__(self) -> float:
        return self._date + (self._monotonic() - self._begin) * self._speed

    def skip(self, seconds: float) -> None:
        """Let time pass at once."""
        self._date += seconds


class Cluster:
    """All of it. `volumes` are kept by the node that has them ("" for shared storages) and their ID."""

    def __init__(self, clock: Clock, nodes: tuple[str, ...] = ("pve1",), name: str = "paddock") -> None:
        self.clock, self.name = clock, name
        self.nodes = {each: Node(each) for each in nodes}
        self.storages: dict[str, Storage] = {}
        self.volumes: dict[tuple[str, str], Volume] = {}
        self.machines: dict[int, Machine] = {}
        self.pools: dict[str, Pool] = {}
        # By VMID: the machines under high availability.
        self.services: dict[int, HaService] = {}
        # Made for each new machine; a test replaces it.
        self.new_guest: Callable[[int, str], Guest] = lambda vmid, name: Guest(obeys_shutdown=not name.endswith("-hang"))

    def machine(self, vmid: int, node: str) -> Machine:
        """Return a machine of a node; the real API misses the configuration file."""
        machine = self.machines.get(vmid)
        if machine is None or machine.node != node:
            raise failed(f"Configuration file 'nodes/{node}/qemu-server/{vmid}.conf' does not exist")
        return machine

    def storage(self, name: str, node: str = "") -> Storage:
        """Return a storage that is configured, enabled and there on the node."""
        if name not in self.storages:
            raise failed(f"storage '{name}' does not exist")
        storage = self.storages[name]
        if storage.disabled:
            raise failed(f"storage '{name}' is disabled")
        if node and storage.nodes and node not in storage.nodes:
            raise failed(f"storage '{name}' is not available on node '{node}'")
        return storage

    def activate(self, name: str, node: str) -> Storage:
        """Return a storage that can be used now."""
        storage = self.storage(name, node)
        if not storage.active:
            raise failed(f"storage '{name}' is not online")
        return storage

    def scope(self, storage: str, node: str) -> str:
        """Return whose volumes those of the storage on the node are."""
        return "" if self.storages[storage].shared else node

    def volume(self, volid: str, node: str) -> Volume | None:
        """Return a volume as the node sees it."""
        storage = volid.partition(":")[0]
        if storage not in self.storages:
            return None
        return self.volumes.get((self.scope(storage, node), volid))

    def volumes_of(self, storage: str, node: str) -> Iterator[Volume]:
        """Yield the volumes of a storage on a node, in order of their names."""
        scope = self.scope(storage, node)
        for (place, volid), volume in sorted(self.volumes.items()):
            if place == scope and volid.startswith(f"{storage}:"):
                yield volume

    def used(self, storage: Storage, node: str) -> int:
        """Return the bytes that are used."""
        return storage.other_use + sum(each.occupied(thick=storage.kind == "lvm") for each in self.volumes_of(storage.name, node))

    def pool_of(self, path: str) -> str:
        """Return the pool whose permissions also hold for a path."""
        kind, _, name = path.strip("/").partition("/")
        if kind == "vms" and name.isdigit() and int(name) in self.machines:
            return self.machines[int(name)].pool
        if kind == "storage":
            return next((pool.name for pool in self.pools.values() if name in pool.storages), "")
        return ""

    def next_id(self) -> int:
        """Return the lowest free ID."""
        return next(vmid for vmid in range(100, 1_000_000) if vmid not in self.machines)


def random_mac() -> str:
    """Return an address with the prefix of Proxmox Server Solutions."""
    tail = secrets.token_bytes(3)
    return "BC:24:11:" + ":".join(f"{each:02X}" for each in tail)
