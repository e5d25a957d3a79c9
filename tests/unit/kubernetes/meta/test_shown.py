"""Ages, paths and cells, as `kubectl get` shows them."""

import json
from typing import Any

import pytest

from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.jsonpath import BadPath, compile_path
from paddock.kubernetes.meta.tables import Ages, TableForm
from paddock.kubernetes.schema.kind import AGE, Column

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.spec("kube-api", 41)
@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (48 * HOUR - 1, "47h"),
        (48 * HOUR, "2d"),
        (48 * HOUR + HOUR, "2d1h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR, "8y"),
    ],
)
def test_ages(seconds: int, shown: str) -> None:
    assert ages.age("2020-01-01T00:00:00Z", ages.seconds_of("2020-01-01T00:00:00Z") + seconds) == shown  # type: ignore[operator]


def test_times() -> None:
    assert ages.timestamp(0.9) == "1970-01-01T00:00:00Z"
    assert ages.micro_timestamp(1.25) == "1970-01-01T00:00:01.250000Z"
    assert ages.seconds_of("nonsense") is None
    assert ages.age("nonsense", 0) == "<invalid>"


DATA: dict[str, Any] = {
    "metadata": {"name": "o", "annotations": {"a.b/c": "v"}, "creationTimestamp": "2020-01-01T00:00:00Z"},
    "spec": {"replicas": 3, "on": True, "a.b": 1, "list": [1, 2]},
    "status": {"ips": ["x", "y"], "conditions": [{"type": "Ready", "status": "True"}, {"type": "B", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("$.spec.replicas", [3]),
        (".status.ips[*]", ["x", "y"]),
        (".status.ips[0]", ["x"]),
        (".status.ips[-1]", ["y"]),
        (".status.ips[7]", []),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type=="B")].status', ["False"]),
        (".status.conditions[?(@.type=='C')].status", []),
        (".metadata.annotations['a.b/c']", ["v"]),
        (r".metadata.annotations.a\.b/c", ["v"]),
        (".spec.none.at.all", []),
        (".spec.replicas.below", []),
    ],
)
def test_paths(path: str, values: list[Any]) -> None:
    assert compile_path(path)(DATA) == values


@pytest.mark.parametrize("path", ["", "spec", ".spec[", ".a[?(@.b>1)]", "..a"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(BadPath):
        compile_path(path)


def test_cells() -> None:
    columns = (
        Column("Replicas", ".spec.replicas", "integer"),
        Column("On", ".spec.on"),
        Column("IPs", ".status.ips[*]"),
        Column("List", ".spec.list", wide=True),
        Column("None", ".spec.none"),
        Column("Number", ".metadata.name", "integer"),
        AGE,
    )
    form = TableForm(columns)
    now = ages.seconds_of("2020-01-01T00:02:05Z")
    assert now is not None
    assert json.loads(Ages(now).fill(form.row(DATA, now))) == ["o", 3, "true", "x", "[1,2]", None, None, "2m5s"]
    assert [(each["name"], each["priority"]) for each in form.definitions][:5] == [
        ("Name", 0),
        ("Replicas", 0),
        ("On", 0),
        ("IPs", 0),
        ("List", 1),
    ]
    assert form.definitions[0]["format"] == "name"
