"""Limits of a machine on the host: control groups, of version 2, version 1, or both side by side.

Every QEMU has a group of its own with its helpers, whether it has limits or not. It lies outside the unit of systemd that Paddock may be,
so that systemd ends no guest when it ends the processes of the unit. A user's groups lie in the unit of the user's own systemd, which is
delegated to that user.

A group is named by its path below `paddock/`: `shares` puts machines into groups of their namespaces.

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
_USER_UNIT = re.compile(r".*?/user@\d+\.service(?=/|\Z)")
_UNIT = re.compile(r"\.(service|scope|slice)(/|\Z)")
# Threads of QEMU besides those of processors: its pool for reads and writes has 64, those of displays and migrations some more.
_THREADS = 1024
_SPARE_BYTES = 2 << 30
_ATTEMPTS = 3


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


def find(mounts: str, groups: str, *, is_root: bool = True) -> Hierarchies:
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
            second = Path(place) / _outside(own.get("", ""), is_root=is_root)
        elif kind == "cgroup":
            first |= {name: Path(place) / _outside(own[name], is_root=is_root) for name in options.split(",") if name in own}
    return Hierarchies(first, second)


def _outside(path: str, *, is_root: bool) -> str:
    """The group of this process, or the uppermost one of this user where this process belongs to a unit of systemd."""
    if not is_root and (delegated := _USER_UNIT.match(path)):
        return delegated[0]
    return "" if _UNIT.search(path) else path


def on_this_host() -> Hierarchies:
    """Return the hierarchies of this host."""
    try:
        return find(Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text(), is_root=os.geteuid() == 0)
    except (OSError, ValueError):
        return Hierarchies({}, None)


def apply(hierarchies: Hierarchies, group: str, pid: int, limits: Mapping[str, str]) -> list[str]:
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
            _limit(place, group, name, value, second=second)
            (place / _GROUP / group / "cgroup.procs").write_text(str(pid))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            failed.append(f"{name}={value} is not kept: {place} does not take it ({why})")
    return failed


def usual(config: MachineConfig) -> dict[str, str]:
    """Return limits that no healthy machine comes near to, whatever its manifest says.

    Beyond `memory.high` the kernel takes memory back and slows QEMU down; it never kills it, as `memory.max` would, because nobody knows
    what a QEMU may need. A guest that moves into another QEMU has its memory twice for a while.
    """
    each = config.cpu.cores * config.cpu.threads
    memory = max(config.memory.size, config.memory.max_size)
    return {
        # machines beside one another share processors by the number that they have
        "cpu.weight": str(min(100 * config.cpu.sockets * each, 10_000)),
        "memory.high": str(2 * memory + _SPARE_BYTES),
        "pids.max": str(_THREADS + 8 * config.cpu.max_sockets * each),
    }


def enclose(hierarchies: Hierarchies, group: str, pids: Iterable[int], limits: Mapping[str, str]) -> bool:
    """Put processes into a group, with limits where the host can keep them. Returns False where no group can be made."""
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
        _enclose(place, group, pids, {name: limits[name] for name in names}, second=place == hierarchies.second)
        for place, names in places.items()
    ]
    return all(made)


def _enclose(path: Path, group: str, pids: Iterable[int], limits: Mapping[str, str], *, second: bool) -> bool:
    for _ in range(_ATTEMPTS):
        try:
            _put(path, group, pids, limits, second=second)
        except FileNotFoundError:
            # The last machine of the namespace went just now, and the group above with it.
            continue
        except OSError:
            return False
        return True
    return False


def _put(path: Path, group: str, pids: Iterable[int], limits: Mapping[str, str], *, second: bool) -> None:
    made = path / _GROUP / group
    made.mkdir(parents=True, exist_ok=True)
    for name, value in limits.items():
        with contextlib.suppress(OSError, ValueError):
            _limit(path, group, name, value, second=second)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (made / "cgroup.procs").write_text(str(pid))


def _limit(path: Path, group: str, name: str, value: str, *, second: bool) -> None:
    made = _make(path, group, name.partition(".")[0], second=second)
    for file, text in ({name: value} if second else _first(name, value)).items():
        (made / file).write_text(text)


def weigh(hierarchies: Hierarchies, group: str, weight: int) -> bool:
    """Give a group its weight among those beside it. Returns False where the host cannot."""
    found = hierarchies.of("cpu")
    if found is None:
        return False
    place, second = found
    try:
        _limit(place, group, "cpu.weight", str(weight), second=second)
    except OSError:
        return False
    return True


def shares_processors(hierarchies: Hierarchies) -> bool:
    """Return whether this process may make groups that share processors."""
    found = hierarchies.of("cpu")
    return found is not None and os.access(found[0], os.W_OK)


def exists(hierarchies: Hierarchies, group: str) -> bool:
    """Return whether a group is there that shares processors."""
    found = hierarchies.of("cpu")
    return found is not None and (found[0] / _GROUP / group).is_dir()


def holds(group: str, pid: int) -> bool:
    """Return whether a process is in a group."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return False
    return any(line.endswith(f"/{_GROUP}/{group}") for line in lines)


def remove(hierarchies: Hierarchies, group: str) -> None:
    """Remove a group without processes, and those above it that are empty then."""
    for place in _places(hierarchies):
        _prune(place / _GROUP / group, place)


def sweep(hierarchies: Hierarchies, suffix: str) -> None:
    """Remove what is empty in the groups whose names end so."""
    for place in _places(hierarchies):
        for above in (place / _GROUP).glob(f"*{suffix}"):
            # It goes with its last machine, which may end meanwhile.
            with contextlib.suppress(FileNotFoundError):
                for group in [*(each for each in above.iterdir() if each.is_dir()), above]:
                    _prune(group, place)


def _places(hierarchies: Hierarchies) -> set[Path]:
    return {*hierarchies.first.values(), *filter(None, [hierarchies.second])}


def _prune(group: Path, place: Path) -> None:
    with contextlib.suppress(OSError):
        while group != place:
            # Refused as long as it has a process, or another group.
            os.rmdir(group)
            group = group.parent


def _make(path: Path, group: str, controller: str, *, second: bool) -> Path:
    made = path / _GROUP / group
    made.mkdir(parents=True, exist_ok=True)
    if second:
        for each in (path, *(path / part for part in reversed(made.relative_to(path).parents[:-1]))):
            if controller not in _words(each / "cgroup.subtree_control"):
                (each / "cgroup.subtree_control").write_text(f"+{controller}")
    return made


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
