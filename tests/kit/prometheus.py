"""A strict reader of Prometheus' text format: what a page says twice, out of order or malformed is an error."""

import math
import re
from dataclasses import dataclass, field

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|\Z)')
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z")
_KINDS = ("counter", "gauge", "histogram", "summary", "untyped")
Labels = dict[str, str]


@dataclass
class Family:
    """All series of a name."""

    name: str
    text: str
    kind: str = ""
    series: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    def values(self, **labels: str) -> list[float]:
        """Of the series that have these labels."""
        return [value for (_, found), value in self.series.items() if labels.items() <= dict(found).items()]

    def labels(self) -> list[Labels]:
        """Of each series."""
        return [dict(found) for _, found in self.series]


def read(text: str) -> dict[str, Family]:
    """The families of a page; raises `ValueError` with the line that is wrong."""
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    families: dict[str, Family] = {}
    current: Family | None = None
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            current = _line(line, families, current)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}: {line!r}") from None
    for family in families.values():
        if not family.kind:
            raise ValueError(f"{family.name} has no type")
        if family.kind == "histogram":
            _check_buckets(family)
    return families


def _line(line: str, families: dict[str, Family], current: Family | None) -> Family:
    if line.startswith("# HELP "):
        name, _, text = line[7:].partition(" ")
        if not _NAME.match(name) or name in families or not text or re.search(r"\\(?![\\n])", text.replace("\\\\", "")):
            raise ValueError("a bad or second HELP")
        families[name] = Family(name, text)
        return families[name]
    if line.startswith("# TYPE "):
        name, _, kind = line[7:].partition(" ")
        if current is None or current.name != name or current.kind or kind not in _KINDS or current.series:
            raise ValueError("a TYPE that does not follow its HELP")
        current.kind = kind
        return current
    found = _SAMPLE.match(line)
    if found is None or current is None:
        raise ValueError("no sample")
    name, labels, value = found.groups()
    ends = ("_bucket", "_sum", "_count") if current.kind == "histogram" else ("",)
    if name not in [current.name + end for end in ends]:
        raise ValueError(f"a sample among those of {current.name}")
    if current.kind == "counter" and not name.endswith("_total") and "_timestamp_seconds" not in name:
        raise ValueError("a counter that is not called total")
    key = (name, frozenset(_labels(labels or "").items()))
    if key in current.series:
        raise ValueError("the same series twice")
    current.series[key] = _value(value)
    return current


def _labels(text: str) -> Labels:
    found: Labels = {}
    while text:
        match = _LABEL.match(text)
        if match is None or match[1] in found or match[1].startswith("__") or (match[3] == "," and match.end() == len(text)):
            raise ValueError("bad labels")
        found[match[1]] = re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], match[2])
        text = text[match.end() :]
    return found


def _value(text: str) -> float:
    if not re.match(r"[+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf)\Z|NaN\Z", text):
        raise ValueError("no number")
    return float(text)


def _check_buckets(family: Family) -> None:
    """They rise, and the last holds all."""
    rows: dict[frozenset[tuple[str, str]], list[tuple[float, float]]] = {}
    for (name, labels), value in family.series.items():
        if name.endswith("_bucket"):
            bound = float(dict(labels)["le"].replace("Inf", "inf"))
            rows.setdefault(frozenset(pair for pair in labels if pair[0] != "le"), []).append((bound, value))
    for about, row in rows.items():
        counts = [count for _, count in sorted(row)]
        if counts != sorted(counts) or max(row)[0] != math.inf or family.series[f"{family.name}_count", about] != counts[-1]:
            raise ValueError(f"{family.name} has bad buckets")
