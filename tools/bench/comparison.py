"""The API server's figures beside those of the reference, and beside what they have to be."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.reference.build import Binaries
from tools.bench import objects
from tools.bench.client import LoadFailed, call
from tools.bench.loads import Loads, Measures, Size
from tools.bench.offline import Figure
from tools.bench.programs import Paddock, Reference, permit

_CRD = Path(__file__).resolve().parents[2] / "api" / "crds" / "kubevirt" / "virtualmachines.kubevirt.io.yaml"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Goal:
    """A figure and what it has to be: so many times better than the reference's, or at most so much."""

    measure: str
    text: str
    unit: str
    times: float = 0.0
    most: float = 0.0
    more_is_better: bool = False


GOALS = (
    Goal("create.1.rate", "creates on 1 connection", "/s", times=6, more_is_better=True),
    Goal("create.16.rate", "creates on 16 connections", "/s", times=10, more_is_better=True),
    Goal("create.64.rate", "creates on 64 connections", "/s", times=12, more_is_better=True),
    Goal("create.16.cpu", "CPU of a create on 16", "ms", times=15),
    Goal("patch.cpu", "CPU of a merge patch on 16", "ms", times=15),
    Goal("update.cpu", "CPU of an update on 16", "ms", times=10),
    Goal("get.rate", "gets on 16 connections", "/s", times=20, more_is_better=True),
    Goal("get.cpu", "CPU of a get", "ms", times=30),
    Goal("list.wall", "list of all", "ms", times=15),
    Goal("list.cpu", "CPU of a list", "ms", times=40),
    Goal("table.wall", "list of all as Table", "ms", times=20),
    Goal("table.cpu", "CPU of a Table", "ms", times=20),
    Goal("label.wall", "list by a label of 1 %", "ms", times=15),
    Goal("label.cpu", "CPU of a list by label", "ms", times=15),
    Goal("watch.cpu", "CPU of an event for a watcher", "us", times=2),
    Goal("burst.cpu", "CPU of an event in a burst", "us", times=6),
    Goal("watch.writer", "slowest reply to a watched writer", "ms", most=10),
    Goal("apply.same.cpu", "CPU of an apply that changes nothing", "ms", times=4),
    Goal("apply.changed.cpu", "CPU of an apply of one field", "ms", times=4),
    Goal("resident.empty", "resident, empty", "MB", most=50),
    Goal("watch.memory", "memory of an idle watcher", "KB", most=40),
    Goal("resident.full", "resident, all objects", "MB", most=120),
    Goal("start.empty", "start, empty", "s", most=0.3),
    Goal("start.full", "start, all objects", "s", most=0.6),
    Goal("growth", "CPU of a write, store grown 100 times", "x", most=1.2),
)


def measure_paddock(folder: Path, size: Size, say: Say) -> Measures:
    """Everything, and how a write's cost grows with the store."""
    made = _measure_growth(folder / "growth", size, say)
    (folder / "data").mkdir()
    server = Paddock(folder / "data")
    with ExitStack() as ending:
        ending.callback(server.close)
        server.start()
        permit(server.admin, objects.NAMESPACE)
        loads = Loads(server, size, say)
        _run_all(loads)
    return {**loads.measures, **made}


def _measure_growth(folder: Path, size: Size, say: Say) -> Measures:
    """CPU of a write with few and with many objects stored: two servers take turns, so that a busy moment hits both."""
    with ExitStack() as ending:
        loads: dict[str, Loads] = {}
        for name, stored in zip(("few", "many"), size.growth, strict=True):
            (folder / name).mkdir(parents=True)
            server = Paddock(folder / name)
            ending.callback(server.close)
            server.start()
            permit(server.admin, objects.NAMESPACE)
            loads[name] = Loads(server, size, say)
            loads[name].fill(stored)
        rounds = [{name: load.more(turn * size.growth_sample, size.growth_sample) for name, load in loads.items()} for turn in range(5)]
    few, many = (min(taken[name] for taken in rounds) for name in ("few", "many"))
    say(f"growth: {few:.3f} ms with {size.growth[0]} objects, {many:.3f} ms with {size.growth[1]}")
    return {"growth.few.cpu": few, "growth.many.cpu": many, "growth": many / few}


def measure_reference(binaries: Binaries, folder: Path, size: Size, say: Say) -> Measures:
    """The same loads on kube-apiserver and etcd, with our CRD installed."""
    folder.mkdir()
    server = Reference(binaries, folder)
    with ExitStack() as ending:
        ending.callback(server.close)
        server.start()
        permit(server.admin, objects.NAMESPACE)
        install(server)
        loads = Loads(server, size, say)
        _run_all(loads)
    return loads.measures


def _run_all(loads: Loads) -> None:
    loads.restart("empty")
    loads.resident("empty")
    loads.creates()
    loads.resident("full")
    loads.gets()
    loads.lists()
    loads.updates()
    loads.watches()
    loads.applies()
    loads.restart("full")
    loads.resident("restarted")
    # After the restart: before it, idle watches would reuse memory that other loads had freed.
    loads.idle_watches()


def install(server: Reference) -> None:
    """Install the CRD and wait until its kind is served."""
    status, answer = call(server.admin, "POST", _CRDS, _CRD.read_bytes(), media="application/yaml")
    if status != 201:
        raise LoadFailed(f"the reference refuses the CRD: {answer[-2000:]!r}")
    for _ in range(600):
        # A dry run of a create is the only question that tells whether creates work.
        path = f"{objects.COLLECTION}?dryRun=All"
        status, answer = call(server.target, "POST", path, objects.body(0, "probe"))
        if status == 201:
            return
    raise LoadFailed(f"the reference does not serve the CRD: {status} {answer[-500:]!r}")


@dataclass(frozen=True)
class Run:
    """The figures of one run; `theirs` is empty without a reference."""

    ours: Measures
    theirs: Measures

    def advantage(self, goal: Goal) -> float | None:
        """Return how many times better ours is; None where the reference was not measured."""
        own, other = self.ours.get(goal.measure), self.theirs.get(goal.measure)
        if not own or not other:
            return None
        return own / other if goal.more_is_better else other / own

    def meets(self, goal: Goal) -> bool | None:
        """Return whether the figure meets its target; None if the target needs a reference that was not measured."""
        if goal.most:
            return self.ours[goal.measure] <= goal.most
        factor = self.advantage(goal)
        return None if factor is None else factor >= goal.times


def rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """The table: figure, ours, the reference's, ratio, target, verdict; of several runs the median and, in brackets, the range."""
    made: list[tuple[str, ...]] = [("figure", "paddock", "kube-apiserver", "ratio", "target", "")]
    for goal in GOALS:
        if any(goal.measure not in run.ours for run in runs):
            continue
        own = _spread([run.ours[goal.measure] for run in runs], _figure, goal.unit)
        other = _spread([run.theirs[goal.measure] for run in runs if goal.measure in run.theirs], _figure, goal.unit)
        times = "{:.1f}x" if goal.more_is_better else "1/{:.1f}"
        ratio = _spread([each for run in runs if (each := run.advantage(goal))], times.format)
        target = f"<= {goal.most:g} {goal.unit}" if goal.most else f">= {goal.times:g}x" if goal.more_is_better else f"<= 1/{goal.times:g}"
        made.append((goal.text, own, other, ratio, target, _verdict([run.meets(goal) for run in runs])))
    return made


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _spread(values: Sequence[float], shown: Callable[[float], str], unit: str = "") -> str:
    if not values:
        return ""
    middle = f"{shown(median(values))} {unit}".rstrip()
    return middle if len(values) == 1 else f"{middle} ({shown(min(values))} to {shown(max(values))})"


def _verdict(met: Sequence[bool | None]) -> str:
    if None in met:
        return ""
    count = sum(map(bool, met))
    return "met" if count == len(met) else f"met in {count} of {len(met)}" if count else "MISSED"


def figures(runs: Sequence[Run]) -> list[Figure]:
    """The middle of the runs."""
    found = []
    for goal in GOALS:
        own = [run.ours[goal.measure] for run in runs if goal.measure in run.ours]
        other = [run.theirs[goal.measure] for run in runs if goal.measure in run.theirs]
        if own:
            found.append(Figure(goal.text, median(own), f"of {len(own)} runs", median(other) if other else None))
    return found


def save(path: Path, runs: Sequence[Run]) -> None:
    """Everything that was measured, also what has no target."""
    path.write_text(json.dumps([{"paddock": run.ours, "reference": run.theirs} for run in runs], indent=1, sort_keys=True) + "\n")


def text(table: Sequence[Sequence[str]]) -> str:
    """A table in columns."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
