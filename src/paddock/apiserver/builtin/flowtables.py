"""Flow control's kinds as rows of a table."""

from typing import Any

from paddock.apiserver.builtin.tables import NONE, Cells, age_of, column, name_of
from paddock.schema.kind import AGE, Column

Data = dict[str, Any]
_GROUP = "flowcontrol.apiserver.k8s.io"


def _schema(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    dangling = [each.get("status", "?") for each in (data.get("status") or {}).get("conditions") or () if each.get("type") == "Dangling"]
    return [
        name_of(data),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        age_of(data, now),
        dangling[0] if dangling else "?",
    ]


def _level(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing") or {}
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares", 0)
    counts = [queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(data), spec.get("type", ""), shares, *counts, age_of(data, now)]


TABLES: dict[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {
    (_GROUP, "FlowSchema"): (
        (column("PriorityLevel"), column("MatchingPrecedence"), column("DistinguisherMethod"), AGE, column("MissingPL")),
        _schema,
    ),
    (_GROUP, "PriorityLevelConfiguration"): (
        (column("Type"), column("NominalConcurrencyShares"), column("Queues"), column("HandSize"), column("QueueLengthLimit"), AGE),
        _level,
    ),
}
