"""Counters, gauges and histograms in the text form that Prometheus reads.

Nothing here is global: whoever puts a program together makes one `MetricsRegistry` and hands it on. Names are written as they are given.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]
# From 1 ms to 30 s, for requests and reconciles.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class MetricFamily(NamedTuple):
    """The declaration of series that a part of the program writes itself: their name, their type and what they measure."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str

    def head(self) -> Iterator[str]:
        """Yield the lines above the samples."""
        yield f"# HELP {self.name} {one_line(self.text)}"
        yield f"# TYPE {self.name} {self.kind}"


class Metric(ABC):
    """A name with what it measures and the names of its labels. Values of labels are given in that order."""

    KIND = "untyped"

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        self.name = name
        self.text = text
        self.labels = labels

    @abstractmethod
    def lines(self) -> Iterator[str]:
        pass

    def _key(self, values: Labels) -> Labels:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {values}")
        return values

    def _sample(self, values: Labels, value: float, suffix: str = "", more: str = "") -> str:
        pairs = [f'{name}="{escaped(text)}"' for name, text in zip(self.labels, values, strict=True)]
        if more:
            pairs.append(more)
        labels = "{" + ",".join(pairs) + "}" if pairs else ""
        return f"{self.name}{suffix}{labels} {number(value)}"


class Counter(Metric):
    KIND = "counter"

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def inc(self, *values: str, by: float = 1.0) -> None:
        key = self._key(values)
        self._values[key] = self._values.get(key, 0.0) + by

    def keep(self, predicate: Callable[[Labels], bool]) -> None:
        """Forget the series of everything else: it is gone."""
        self._values = {values: count for values, count in self._values.items() if predicate(values)}

    def value(self, *values: str) -> float:
        return self._values.get(values, 0.0)

    def lines(self) -> Iterator[str]:
        for key in sorted(self._values):
            yield self._sample(key, self._values[key])


class Gauge(Counter):
    """Goes up and down, or is asked when somebody looks."""

    KIND = "gauge"

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        super().__init__(name, text, labels)
        self._asked: dict[Labels, Callable[[], float]] = {}

    def set(self, value: float, *values: str) -> None:
        self._values[self._key(values)] = value

    def ask(self, ask: Callable[[], float], *values: str) -> None:
        """Be whatever this says at the time."""
        self._asked[self._key(values)] = ask

    def replace(self, samples: dict[Labels, float]) -> None:
        """Be these and no others: series of what is gone go too."""
        self._values = {self._key(values): value for values, value in samples.items()}

    def lines(self) -> Iterator[str]:
        found = {**self._values, **{key: float(ask()) for key, ask in self._asked.items()}}
        for key in sorted(found):
            yield self._sample(key, found[key])


class Histogram(Metric):
    """A distribution of values over buckets."""

    KIND = "histogram"

    def __init__(self, name: str, text: str, labels: Labels = (), bounds: Iterable[float] = SECONDS) -> None:
        super().__init__(name, text, labels)
        self._bounds = tuple(bounds)
        # the count of each bucket, then of what is over all of them, and the sum
        self._values: dict[Labels, list[float]] = {}

    def observe(self, value: float, *values: str) -> None:
        key = self._key(values)
        counts = self._values.get(key)
        if counts is None:
            counts = self._values[key] = [0.0] * (len(self._bounds) + 2)
        place = next((index for index, bound in enumerate(self._bounds) if value <= bound), len(self._bounds))
        counts[place] += 1
        counts[-1] += value

    def count(self, *values: str) -> float:
        """The number of recorded values."""
        return sum(self._values.get(values, [0.0])[:-1])

    def lines(self) -> Iterator[str]:
        """The samples; each bucket holds those below it too."""
        for key in sorted(self._values):
            *counts, total = self._values[key]
            below = 0.0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                below += count
                yield self._sample(key, below, "_bucket", f'le="{number(bound)}"')
            yield self._sample(key, total, "_sum")
            yield self._sample(key, below, "_count")


M = TypeVar("M", bound=Metric)


class MetricsRegistry:
    """The metrics of one program. Asking for a name again gives the same metric."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._before: list[Callable[[], None]] = []

    def counter(self, name: str, text: str, labels: Labels = ()) -> Counter:
        return self._add(Counter(name, text, labels))

    def gauge(self, name: str, text: str, labels: Labels = ()) -> Gauge:
        return self._add(Gauge(name, text, labels))

    def histogram(self, name: str, text: str, labels: Labels = (), bounds: Iterable[float] = SECONDS) -> Histogram:
        return self._add(Histogram(name, text, labels, bounds))

    def before(self, work: Callable[[], None]) -> None:
        """Do this whenever somebody is about to look: for gauges that are counted anew."""
        self._before.append(work)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._metrics))

    def renamed(self, known: str, name: str, label: tuple[str, str] | None = None) -> Iterator[str]:
        """The lines of a metric under another name, for readers who know it by that; `label`: one of its labels, and that name."""
        metric = self._metrics.get(known)
        if metric is None:
            return
        yield f"# HELP {name} {one_line(metric.text)}"
        yield f"# TYPE {name} {metric.KIND}"
        for line in metric.lines():
            line = name + line.removeprefix(known)
            yield line.replace(f'{{{label[0]}="', f'{{{label[1]}="', 1) if label is not None else line

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        for work in self._before:
            work()
        lines = []
        for name in sorted(self._metrics):
            metric = self._metrics[name]
            lines += [f"# HELP {name} {one_line(metric.text)}", f"# TYPE {name} {metric.KIND}", *metric.lines()]
        return "\n".join(lines) + "\n"

    def _add(self, metric: M) -> M:
        known = self._metrics.setdefault(metric.name, metric)
        if type(known) is not type(metric) or known.labels != metric.labels:
            raise ValueError(f"{metric.name} is a {known.KIND} with the labels {known.labels} already")
        return known


def number(value: float) -> str:
    """A value, as samples have it."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def escaped(text: str) -> str:
    """The value of a label, for between its quotes."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def one_line(text: str) -> str:
    """A text, for a line of HELP."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")
