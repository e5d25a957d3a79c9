"""Grafana's form of a dashboard. Pure, but for reading the declarations that lie beside it."""

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

_FOLDER = Path(__file__).parent
ALERTS = "alerts"
_WIDTH = 24
# kind -> Grafana's type, and the width and the height of a panel
_SHAPES = {"stat": ("stat", 6, 4), "series": ("timeseries", 12, 8)}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(msgspec.Struct, frozen=True):
    """A panel: its queries, each with the legend of its series."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "series"


class Dashboard(msgspec.Struct, frozen=True):
    """A dashboard; the values of its variables come from queries."""

    title: str
    uid: str
    text: str
    panels: tuple[Panel, ...]
    variables: dict[str, str] = {}


@cache
def dashboards() -> Mapping[str, Dashboard]:
    """Return the dashboards by name."""
    found = tomllib.loads((_FOLDER / "dashboards.toml").read_text(encoding="utf-8"))
    return msgspec.convert(found, dict[str, Dashboard])


def files() -> dict[str, str]:
    """Return every file with its content: a dashboard each, and the rules."""
    made = {f"{name}.json": document(each) for name, each in dashboards().items()}
    return {**made, f"{ALERTS}.yaml": (_FOLDER / "alerts.yaml").read_text(encoding="utf-8")}


def document(dashboard: Dashboard) -> str:
    """Return a dashboard as Grafana imports it."""
    panels, x, y, height = [], 0, 0, 0
    for number, panel in enumerate(dashboard.panels, 1):
        kind, wide, high = _SHAPES[panel.kind]
        if x + wide > _WIDTH or (height and high != height):
            x, y = 0, y + height
        height = high
        panels.append(_panel(number, panel, kind, {"x": x, "y": y, "w": wide, "h": high}))
        x += wide
    made = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.text,
        "tags": ["paddock"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), *(_variable(name, query) for name, query in dashboard.variables.items())]},
        "annotations": {"list": []},
        "panels": panels,
    }
    return json.dumps(made, indent=2) + "\n"


def _panel(number: int, panel: Panel, kind: str, position: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if kind == "timeseries" else {},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(panel.queries)
        ],
    }


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variable(name: str, query: str) -> dict[str, Any]:
    shared = {"name": name, "label": name.capitalize(), "type": "query", "datasource": _SOURCE, "refresh": 2}
    return {**shared, "query": {"query": query, "refId": name}, "includeAll": True, "multi": True, "allValue": ".*"}
