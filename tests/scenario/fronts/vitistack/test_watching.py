"""The view of those who run the controllers: metrics under the documented names, and lines of the log."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from paddock.kubernetes.runtime import logs
from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Vitistack, machine, network

PREFIX = "kubevirt_operator_"


@pytest.mark.spec("vitistack", 74)
@played
async def test_metrics_have_their_names_and_labels(host: Vitistack, /) -> None:
    await host.make(machine(), machine("huge", template="huge"))
    await host.make(machine("lost", networks=[{"name": "eth0", "networkName": "none"}]))
    await host.up()
    text = host.control.program.machinery.metrics.text()
    for name, kind in (
        ("machines_total", "gauge"),
        ("reconciliation_duration_seconds", "histogram"),
        ("reconciliation_errors_total", "counter"),
        ("virtual_machines_total", "gauge"),
        ("storage_provisioning_duration_seconds", "histogram"),
        ("network_configuration_errors_total", "counter"),
    ):
        assert f"# TYPE {PREFIX}{name} {kind}\n" in text
    found = host.metrics()
    assert found[f'{PREFIX}machines_total{{phase="Running",template="small"}}'] == 1
    assert found[f'{PREFIX}machines_total{{phase="Failed",template="huge"}}'] == 1
    assert found[f'{PREFIX}machines_total{{phase="Pending",template="small"}}'] == 1
    assert found[f'{PREFIX}virtual_machines_total{{status="Running"}}'] >= 1
    assert found[f'{PREFIX}reconciliation_errors_total{{controller="Machine",error_type="TemplateNotFound"}}'] == 1
    assert found[f'{PREFIX}network_configuration_errors_total{{network_name="none"}}'] >= 1
    assert found[f'{PREFIX}reconciliation_duration_seconds_count{{controller="Machine"}}'] > 1
    bound = f'{PREFIX}storage_provisioning_duration_seconds_count{{storage_class="paddock"}}'
    assert found[bound] >= 1
    # a claim counts once, and series of what is gone go
    before = found[bound]
    await host.drop("Machine", "huge")
    await asyncio.sleep(60)
    found = host.metrics()
    assert found[bound] == before
    assert f'{PREFIX}machines_total{{phase="Failed",template="huge"}}' not in found


@pytest.mark.spec("vitistack", 74)
@played
async def test_looks_at_networks_are_measured_and_machines_without_a_template_are_none(host: Vitistack, /) -> None:
    plain = machine("own", resources={"memory": {"size": "1Gi"}}, disks=[{"name": "root", "size": "1Gi"}])
    del plain["spec"]["template"]
    await host.make(network(), plain)
    await host.up("own")
    found = host.metrics()
    assert found[f'{PREFIX}machines_total{{phase="Running",template="none"}}'] == 1
    assert found[f'{PREFIX}reconciliation_duration_seconds_count{{controller="NetworkConfiguration"}}'] >= 1


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Yield the log, as JSON lines."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setFormatter(logs.JsonLines())
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield said
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.mark.spec("vitistack", 76)
@played
async def test_lines_of_the_log_have_the_seven_fields(host: Vitistack, /, lines: io.StringIO) -> None:
    await host.make(machine(), machine("huge", template="huge"))
    await host.up()
    await host.drop("Machine", "web")
    await asyncio.sleep(60)
    said = [json.loads(each) for each in lines.getvalue().splitlines()]
    about = [each for each in said if each.get("controller") == "Machine"]
    assert {each["machine"] for each in about} == {"web", "huge"}
    for each in about:
        assert {"timestamp", "level", "controller", "machine", "namespace", "phase", "message"} <= each.keys(), each
        assert each["timestamp"].endswith("Z")
        assert each["namespace"] == "default"
    assert {"Pending", "Creating", "Running", "Failed"} <= {each["phase"] for each in about}
