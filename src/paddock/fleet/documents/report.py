"""Findings as lines, or as data for programs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from paddock.base.lines import LinePrinter, one_line
from paddock.fleet.documents.objects import LocatedFinding
from paddock.kubernetes.meta.manifests import write
from paddock.kubernetes.schema.finding import Severity


def line(located_finding: LocatedFinding) -> str:
    """`file:line:column: severity: Kind/name: field.path: message (rule id)`."""
    place = f"{located_finding.source}:{located_finding.position.line}:{located_finding.position.column}"
    field, message = located_finding.finding.field, located_finding.finding.message
    # The path stands in the line already.
    message = message.replace(f'unknown field "{field}"', "unknown field")
    parts = [
        place,
        str(located_finding.finding.severity),
        located_finding.title,
        *([field] if field else []),
        f"{message} ({located_finding.finding.rule})",
    ]
    return one_line(": ".join(parts))


def as_data(located_finding: LocatedFinding) -> dict[str, Any]:
    """A finding for programs."""
    kind, _, name = located_finding.title.partition("/")
    return {
        "file": located_finding.source,
        "line": located_finding.position.line,
        "column": located_finding.position.column,
        "severity": str(located_finding.finding.severity),
        "kind": kind,
        "name": name,
        "field": located_finding.finding.field,
        "message": located_finding.finding.message,
        "rule": located_finding.finding.rule,
        "cause": str(located_finding.finding.cause),
    }


class FindingTally:
    """The number of findings by severity."""

    def __init__(self) -> None:
        self._counts: Counter[Severity] = Counter()
        self.objects = 0

    def add(self, findings: Iterable[LocatedFinding]) -> None:
        """Count the findings of an object."""
        self._counts.update(found.finding.severity for found in findings)

    def __getitem__(self, severity: Severity) -> int:
        return self._counts[severity]

    def summary(self) -> str:
        """`3 objects: 1 error, 2 warnings`."""
        counts = [_several(self._counts[severity], str(severity)) for severity in Severity if self._counts[severity]]
        return f"{_several(self.objects, 'object')}: {', '.join(counts) or 'nothing found'}"

    def as_data(self) -> dict[str, int]:
        """The counts for programs."""
        return {"objects": self.objects, **{f"{severity}s": self._counts[severity] for severity in Severity}}


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def structured(value: Any, output: str) -> str:
    """A value as JSON or YAML."""
    return write.to_json(value) if output == "json" else write.to_yaml([value])


def tell(console: LinePrinter, findings: Sequence[LocatedFinding]) -> None:
    """Findings on standard error, where standard output is for something else."""
    for found in findings:
        console.say(line(found))
