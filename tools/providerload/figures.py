"""Figures of a load: rates, latencies and errors for each operation."""

import math
from collections.abc import Sequence

import msgspec


class OperationFigures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One operation: how often it was done, how often in a second, and how long it took (seconds)."""

    operation: str
    count: int
    errors: int
    per_second: float
    p50: float
    p95: float
    p99: float
    longest: float


class LoadReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures of a run."""

    seconds: float
    operations: tuple[OperationFigures, ...]
    # each text of an error with its number
    errors: dict[str, int]
    # what could not be deleted
    leftovers: tuple[str, ...]


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed; 0 without values."""
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


class LoadRecorder:
    """Collects what operations took."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}
        self._failed: dict[str, int] = {}
        self._errors: dict[str, int] = {}

    def succeeded(self, operation: str, seconds: float) -> None:
        """Count an operation that had its effect."""
        self._seconds.setdefault(operation, []).append(seconds)

    def failed(self, operation: str, problem: str) -> None:
        """Count an operation that failed, or had no effect."""
        self._seconds.setdefault(operation, [])
        self._failed[operation] = self._failed.get(operation, 0) + 1
        text = f"{operation}: {problem}"
        self._errors[text] = self._errors.get(text, 0) + 1

    def report(self, seconds: float, leftovers: Sequence[str]) -> LoadReport:
        """The figures of everything so far."""
        operations = tuple(self._figures(name, values, seconds) for name, values in self._seconds.items())
        return LoadReport(seconds=round(seconds, 3), operations=operations, errors=dict(self._errors), leftovers=tuple(leftovers))

    def _figures(self, name: str, values: list[float], seconds: float) -> OperationFigures:
        return OperationFigures(
            operation=name,
            count=len(values),
            errors=self._failed.get(name, 0),
            per_second=round(len(values) / seconds, 3) if seconds > 0 else 0.0,
            p50=round(percentile(values, 0.5), 4),
            p95=round(percentile(values, 0.95), 4),
            p99=round(percentile(values, 0.99), 4),
            longest=round(max(values, default=0.0), 4),
        )
