"""`paddock dashboards`: what it prints and writes, and that every query names series that are served."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from paddock.app.metrics import collector
from paddock.app.metrics.series import families
from paddock.app.server import processmetrics
from paddock.cli.commands.dashboards import NAMES
from paddock.cli.monitoring import grafana
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import plain
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.server import requestmetrics
from tests.unit.cli.commands import paddock

# What controllers, phases, flow control and the watchdog count; `up` is Prometheus' own.
OTHERS = {
    "up",
    "apiserver_flowcontrol_rejected_requests_total",
    "kubevirt_vmi_phase_transition_time_from_creation_seconds",
    "paddock_event_loop_stalls_total",
}
_METRIC = re.compile(r"\b(?:up|(?:apiserver|kubevirt|paddock|process|workqueue|rest_client|container)_[a-z_]+)\b")


def served_by_operators() -> set[str]:
    """Return the names of what every program with controllers counts, and of the leadership that only operators have."""
    machinery = Machinery()
    informers = Informers(cast(Client, None), machinery)
    Controller("any", informers.of(plain("", "v1", "configmaps", "ConfigMap")), cast(Any, None), machinery=machinery)
    return {line.split()[2] for line in machinery.metrics.text().splitlines() if line.startswith("# TYPE")} | {"paddock_leader"}


def served() -> set[str]:
    """Return the names of families."""
    process = {line.split()[2] for line in processmetrics.lines() if line.startswith("# TYPE")}
    requests = {requestmetrics.COUNT, requestmetrics.TOOK, requestmetrics.OPEN, requestmetrics.BUSY}
    return {each.name for each in families.ALL} | set(collector.RENAMED) | process | requests | OTHERS


def expressions() -> list[str]:
    """Return every query of a dashboard and every condition of an alert."""
    rules = yaml.safe_load(grafana.files()["alerts.yaml"])
    servers = [each for name, each in grafana.dashboards().items() if name != "operator"]
    panels = [query for each in servers for panel in each.panels for query, _ in panel.queries]
    variables = [query for each in servers for query in each.variables.values()]
    return [*panels, *variables, *(rule["expr"] for group in rules["groups"] for rule in group["rules"])]


@pytest.mark.parametrize("expression", expressions())
def test_every_query_names_what_is_served(expression: str) -> None:
    named, known = set(_METRIC.findall(expression)), served()
    assert named and {name for name in named if not {name, re.sub(r"_(bucket|sum|count)$", "", name)} & known} == set()


def test_the_operators_dashboard_names_what_an_operator_serves() -> None:
    dashboard = grafana.dashboards()["operator"]
    queries = [query for panel in dashboard.panels for query, _ in panel.queries]
    named = {re.sub(r"_bucket$", "", name) for query in (*queries, *dashboard.variables.values()) for name in _METRIC.findall(query)}
    assert len(named) > 5
    assert named <= served_by_operators()


@pytest.mark.parametrize("name", grafana.dashboards())
def test_a_dashboard_is_laid_out_without_overlaps(name: str) -> None:
    found = json.loads(grafana.files()[f"{name}.json"])
    taken: set[tuple[int, int]] = set()
    for panel in found["panels"]:
        place = panel["gridPos"]
        fields = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not fields & taken and max(x for x, _ in fields) < 24
        taken |= fields
        assert panel["targets"] and panel["fieldConfig"]["defaults"]["unit"]
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    assert [each["name"] for each in found["templating"]["list"]] == ["datasource", *grafana.dashboards()[name].variables]


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    for group in yaml.safe_load(grafana.files()["alerts.yaml"])["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"].keys() == {"summary", "description"} and rule["labels"]["severity"] in ("warning", "critical")


def test_the_command_lists_prints_and_writes(tmp_path: Path) -> None:
    assert (*grafana.dashboards(), grafana.ALERTS) == NAMES
    listed = paddock("dashboards")
    assert listed.code == 0 and [line.split()[0] for line in listed.out.splitlines()] == ["machines", "server", "operator", "alerts"]
    assert json.loads(paddock("dashboards", "server").out)["title"] == "Paddock: server"
    written = paddock("dashboards", "--to", str(tmp_path / "new"))
    names = ["paddock-machines.json", "paddock-server.json", "paddock-operator.json", "paddock-alerts.yaml"]
    assert [Path(line).name for line in written.out.split()] == names
    assert paddock("dashboards", "alerts", "--to", str(tmp_path)).out == f"{tmp_path}/paddock-alerts.yaml\n"
    (tmp_path / "file").write_text("")
    refused = paddock("dashboards", "--to", str(tmp_path / "file"))
    assert refused.code != 0 and "--to DIR" in refused.err
    assert paddock("dashboards", "bogus").code == 2
