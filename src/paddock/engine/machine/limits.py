"""Limits of a machine on the host: control groups, of version 2, version 1, or both side by side.

Every QEMU has a group of its own with its helpers, whether it has limits or not. It lies outside the unit of systemd that Paddock may be,
so that systemd ends no guest when it ends the processes of the unit.

Limits have the names and forms of version 2 and are translated where only version 1 exists. A host that lets us make no group runs the
machine without its limits and reports that: a limit is never a reason not to start.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from paddock.engine.machine.config import MachineConfig

_GROUP = "paddock"
# The hierarchy by which an older systemd knows the processes of a unit.
_UNITS = "name=systemd"
_UNIT = re.compile(r"\.(service|scope|slice)(/|\Z)")
# Threads of QEMU besides those of processors: its pool for reads and writes has 64, those of displays and migrations some more.
_THREADS = 1024
_SPARE_BYTES = 2 << 30


class Hierarchies(Struct, frozen=True):
    """The parents of new groups: controller -> our own group's directory in version 1, and the one of version 2."""

    first: Mapping[str, Path]
    second: Path | None

    def of(self, controller: str) -> tuple[Path, bool] | None:
        """The directory for a controller, and whether it is of version 2."""
        if self.second is not None and controller in _words(self.second / "cgroup.controllers"):
            return self.second, True
        place = self.first.get(controller)
        return (place, False) if place is not None else None


def find(mounts: str, groups: str) -> Hierarchies:
    """From /proc/self/mounts and /proc/self/cgroup."""
    own: dict[str, str] = {}
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    first: dict[str, Path] = {}
    second = None
    for line in mounts.splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            second = Path(place) / _outside(own.get("", ""))
        elif kind == "cgroup":
            first |= {name: Path(place) / _outside(own[name]) for name in options.split(",") if name in own}
    return Hierarchies(first, second)


def _outside(path: str) -> str:
    """The group of this process, or the uppermost one where this process belongs to a unit of systemd."""
    return "" if _UNIT.search(path) else path


def on_this_host() -> Hierarchies:
    """Return the hierarchies of this host."""
    try:
        return find(Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text())
    except (OSError, ValueError):
        return Hierarchies({}, None)


def apply(hierarchies: Hierarchies, id: str, pid: int, limits: Mapping[str, str]) -> list[str]:
    """Puts a process below its limits. Returns a sentence for each that could not be set."""
    failed = []
    for name, value in sorted(limits.items()):
        controller = name.partition(".")[0]
        found = hierarchies.of(controller)
        if found is None:
            failed.append(f"{name}={value} is not kept: this host has no control groups for {controller}")
            continue
        place, second = found
        try:
            group = _make(place, id, controller, second=second)
            for file, text in ({name: value} if second else _first(name, value)).items():
                (group / file).write_text(text)
            (group / "cgroup.procs").write_text(str(pid))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            failed.append(f"{name}={value} is not kept: {place} does not take it ({why})")
    return failed


def usual(config: MachineConfig) -> dict[str, str]:
    """Return limits that no healthy machine comes near to, whatever its manifest says.

    Beyond `memory.high` the kernel takes memory back and slows QEMU down; it never kills it, as `memory.max` would, because nobody knows
    what a QEMU may need. A guest that moves into another QEMU has its memory twice for a while.
    """
    cpus = config.cpu.max_sockets * config.cpu.cores * config.cpu.threads
    memory = max(config.memory.size, config.memory.max_size)
    return {"memory.high": str(2 * memory + _SPARE_BYTES), "pids.max": str(_THREADS + 8 * cpus)}


def enclose(hierarchies: Hierarchies, id: str, pids: Iterable[int], limits: Mapping[str, str]) -> bool:
    """Put processes into the machine's group, with limits where the host can keep them. Returns False where no group can be made."""
    places: dict[Path, list[str]] = {}
    if hierarchies.second is not None:
        places[hierarchies.second] = []
    if _UNITS in hierarchies.first:
        places[hierarchies.first[_UNITS]] = []
    for name in limits:
        found = hierarchies.of(name.partition(".")[0])
        if found is not None and (found[1] or name != "memory.high"):
            places.setdefault(found[0], []).append(name)
    made = [
        _enclose(place, id, pids, {name: limits[name] for name in names}, second=place == hierarchies.second)
        for place, names in places.items()
    ]
    return all(made)


def _enclose(path: Path, id: str, pids: Iterable[int], limits: Mapping[str, str], *, second: bool) -> bool:
    try:
        group = path / _GROUP / id
        group.mkdir(parents=True, exist_ok=True)
        for name, value in limits.items():
            with contextlib.suppress(OSError, ValueError):
                _make(path, id, name.partition(".")[0], second=second)
                for file, text in ({name: value} if second else _first(name, value)).items():
                    (group / file).write_text(text)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        return False
    return True


def remove(hierarchies: Hierarchies, id: str) -> None:
    """The groups of a machine that has ended."""
    for place in {*hierarchies.first.values(), *filter(None, [hierarchies.second])}:
        with contextlib.suppress(OSError):
            os.rmdir(place / _GROUP / id)
            # Refused as long as another machine has a group in it.
            os.rmdir(place / _GROUP)


def _make(path: Path, id: str, controller: str, *, second: bool) -> Path:
    group = path / _GROUP / id
    group.mkdir(parents=True, exist_ok=True)
    if second:
        for above in (path, path / _GROUP):
            if controller not in _words(above / "cgroup.subtree_control"):
                (above / "cgroup.subtree_control").write_text(f"+{controller}")
    return group


def _first(name: str, value: str) -> dict[str, str]:
    """A limit of version 2 in the files of version 1."""
    match name:
        case "cpu.max":
            quota, _, period = value.partition(" ")
            return {"cpu.cfs_period_us": period or "100000", "cpu.cfs_quota_us": "-1" if quota == "max" else quota}
        case "cpu.weight":
            return {"cpu.shares": str(max(2, int(value) * 1024 // 100))}
        case "memory.max":
            return {"memory.limit_in_bytes": "-1" if value == "max" else value}
        case "pids.max" | "cpuset.cpus" | "cpuset.mems":
            return {name: value}
    raise ValueError("version 1 has no such limit")


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
