"""The page: families in their order, each with its series. A series is a line, written where its labels are known."""

import re
from collections.abc import Iterable, Iterator, Mapping

from paddock.base.metrics import MetricFamily, escaped, number

# a family's name, and a line of it
Sample = tuple[str, str]
_ODD = re.compile(r"[^a-zA-Z0-9_]")


def labels(**values: str) -> str:
    """Labels, as they stand between braces."""
    return ",".join([f'{name}="{escaped(value)}"' for name, value in values.items()])


def prefixed(prefix: str, values: Mapping[str, str] | None) -> str:
    """Labels of an object as labels of a series. Where two of them become the same name, the first by name is taken."""
    found: dict[str, str] = {}
    for name in sorted(values or ()):
        found.setdefault(prefix + _ODD.sub("_", name), (values or {})[name])
    return "".join([f',{name}="{escaped(value)}"' for name, value in found.items()])


def sample(name: str, labelled: str, value: float) -> Sample:
    return name, f"{name}{{{labelled}}} {number(value)}" if labelled else f"{name} {number(value)}"


class MetricsPage:
    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = tuple(families)
        self._lines: dict[str, list[str]] = {family.name: [] for family in self._families}

    def add(self, samples: Iterable[Sample]) -> None:
        """More series; of known families alone."""
        lines = self._lines
        for name, line in samples:
            lines[name].append(line)

    def text(self) -> str:
        """As Prometheus reads it."""
        return "\n".join(self._all()) + "\n"

    def _all(self) -> Iterator[str]:
        for family in self._families:
            yield from family.head()
            yield from self._lines[family.name]
