"""How much of the host a machine may use: control groups, of version 2, version 1, or both side by side.

Limits are said in the names and forms of version 2 and translated where only version 1 is there. A host that lets us make no group
runs the machine without its limits, and that is said: a limit is never a reason not to start.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_GROUP = "paddock"


@dataclass(frozen=True)
class Hierarchies:
    """Where groups can be made: controller -> our own group's directory in version 1, and the one of version 2."""

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
            second = Path(place) / own.get("", "")
        elif kind == "cgroup":
            first |= {name: Path(place) / own[name] for name in options.split(",") if name in own}
    return Hierarchies(first, second)


def on_this_host() -> Hierarchies:
    """What there is here."""
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


def remove(hierarchies: Hierarchies, id: str) -> None:
    """The groups of a machine that has ended."""
    for place in {*hierarchies.first.values(), *filter(None, [hierarchies.second])}:
        with contextlib.suppress(OSError):
            os.rmdir(place / _GROUP / id)
            # Refused as long as another machine has a group in it.
            os.rmdir(place / _GROUP)


def _make(place: Path, id: str, controller: str, *, second: bool) -> Path:
    group = place / _GROUP / id
    group.mkdir(parents=True, exist_ok=True)
    if second:
        for above in (place, place / _GROUP):
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
