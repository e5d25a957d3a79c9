"""What was tried at each size, what each must not exceed, and what broke first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limit:
    """The most that a trial may take before the growth ends, and the goal at the largest size, if there is one."""

    unit: str
    most: float
    goal: float | None = None


@dataclass
class Stage:
    """A size, the figures of the trials there, and what did not work at all."""

    machines: int
    figures: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Break:
    """The end of a growth."""

    machines: int
    trial: str
    why: str

    def __str__(self) -> str:
        return f"{self.trial} broke first, at {self.machines:,} machines: {self.why}"


def first_break(stages: Sequence[Stage], limits: Mapping[str, Limit]) -> Break | None:
    """Return what failed or exceeded its limit at the smallest size; of several there, the one that is furthest beyond it."""
    for stage in stages:
        if stage.failed:
            trial, why = next(iter(stage.failed.items()))
            return Break(stage.machines, trial, why)
        beyond = {trial: stage.figures[trial] / limit.most for trial, limit in limits.items() if trial in stage.figures}
        worst = max(beyond, key=lambda trial: beyond[trial], default="")
        if worst and beyond[worst] > 1:
            limit = limits[worst]
            return Break(stage.machines, worst, f"{stage.figures[worst]:.4g} {limit.unit}, limit {limit.most:g} {limit.unit}")
    return None


def misses(stage: Stage, limits: Mapping[str, Limit]) -> list[str]:
    """Return the goals that the largest size does not meet."""
    return [
        f"{trial}: {stage.figures[trial]:.4g} {limit.unit}, goal {limit.goal:g} {limit.unit}"
        for trial, limit in limits.items()
        if limit.goal is not None and stage.figures.get(trial, 0.0) > limit.goal
    ]


def growth(stages: Sequence[Stage], trial: str) -> float | None:
    """Return how many times more a trial costs at the last size than at the first."""
    known = [stage.figures[trial] for stage in stages if stage.figures.get(trial)]
    return known[-1] / known[0] if len(known) > 1 else None


def table(stages: Sequence[Stage], limits: Mapping[str, Limit]) -> str:
    """One row for each trial, one column for each size."""
    head = ["", "unit", *(f"{stage.machines:,}" for stage in stages), "growth"]
    rows = [head]
    for trial, limit in limits.items():
        cells = ["failed" if trial in stage.failed else _cell(stage.figures.get(trial)) for stage in stages]
        if any(cells):
            grown = growth(stages, trial)
            rows.append([trial, limit.unit, *cells, "" if grown is None else f"{grown:.2f}x"])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "  ".join(_padded(cell, width, number) for number, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows
    )


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)
