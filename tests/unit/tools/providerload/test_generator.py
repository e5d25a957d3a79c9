"""The load generator: it does what it measures, counts what fails, and deletes what it made."""

import asyncio
import random
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings, ForeignMachine, RpcFault, SecondsRange
from tests import virtualtime
from tests.coroutines import run_by
from tests.unit.contract.conformance.mutationtable import MUTATIONS
from tools.providerload.figures import LoadReport, percentile
from tools.providerload.generator import LoadGenerator, LoadSettings

SECOND = SecondsRange(1, 1)


async def run(driver: Driver, **load: Any) -> LoadReport:
    capabilities = await driver.get_capabilities(m.GetCapabilitiesRequest())
    settings = ConformanceSettings(poll_seconds=0.01, prefix="bench")
    return await LoadGenerator(driver, LoadSettings(**load), settings, capabilities, random.Random(1)).run()


def counts(report: LoadReport) -> dict[str, tuple[int, int]]:
    return {each.operation: (each.count, each.errors) for each in report.operations}


def loaded(settings: FakeSettings, **load: Any) -> tuple[LoadReport, list[str]]:
    found: list[tuple[LoadReport, list[str]]] = []

    async def script() -> None:
        fake = FakeDriver(settings, virtualtime.Clock())
        report = await run(fake, **load)
        found.append((report, [each.name for each in (await fake.list_vms(m.ListVMsRequest())).vms]))

    virtualtime.run(script())
    return found[0]


@pytest.mark.spec("virtrigaud", 111)
def test_every_operation_is_done_and_only_its_own_machines_go() -> None:
    foreign = (ForeignMachine(name="bench"), ForeignMachine(name="web"))
    report, left = loaded(FakeSettings(task_seconds=SECOND, machines=foreign), machines=6, workers=3)
    assert counts(report) == {
        "create": (6, 0),
        "power on": (6, 0),
        "describe": (6, 0),
        "snapshot": (6, 0),
        "power off": (6, 0),
        "reconfigure": (6, 0),
        "clone": (6, 0),
        "delete": (12, 0),
    }
    assert left == ["bench", "web"]
    figures = {each.operation: each for each in report.operations}
    # A snapshot is taken and deleted: two tasks of a second each.
    assert figures["create"].p50 == pytest.approx(1, abs=0.05) and figures["snapshot"].p99 == pytest.approx(2, abs=0.05)
    # Two rounds of nine tasks, three machines at a time.
    assert report.seconds == pytest.approx(18, abs=1)
    assert figures["create"].per_second == pytest.approx(6 / report.seconds, abs=0.01)


@pytest.mark.spec("virtrigaud", 111)
@pytest.mark.parametrize(
    ("mutation", "operation"),
    [
        ("power_on_is_ignored", "power on"),
        ("reconfigure_claims_success", "reconfigure"),
        ("delete_leaves_the_machine", "delete"),
        ("describe_denies_every_machine", "create"),
    ],
)
@run_by(virtualtime.run)
async def test_a_claimed_success_is_an_error(mutation: str, operation: str) -> None:
    fake = FakeDriver(FakeSettings(), virtualtime.Clock())
    MUTATIONS[mutation][1](fake)
    report = await run(fake, machines=2, workers=1)
    assert counts(report)[operation][1] >= 2
    assert any(text.startswith(f"{operation}: ") for text in report.errors)


def test_errors_are_counted_and_the_rest_goes_on() -> None:
    fault = RpcFault(rpc="SnapshotCreate", kind=ErrorKind.UNAVAILABLE, message="busy", after=1, count=2)
    report, left = loaded(FakeSettings(faults=(fault,)), machines=5, workers=2)
    assert counts(report)["snapshot"] == (3, 2) and counts(report)["clone"] == (5, 0)
    assert report.errors == {"snapshot: busy": 2} and not left


def test_chosen_operations_alone() -> None:
    report, _ = loaded(FakeSettings(without=("snapshots",)), machines=1, operations=frozenset({"describe", "snapshot"}))
    assert set(counts(report)) == {"create", "describe", "delete"}


@run_by(virtualtime.run)
async def test_a_cancelled_run_deletes_its_machines() -> None:
    fake = FakeDriver(FakeSettings(task_seconds=SECOND), virtualtime.Clock())
    load = asyncio.create_task(run(fake, machines=50, workers=5))
    await asyncio.sleep(12.5)
    assert (await fake.list_vms(m.ListVMsRequest())).vms
    load.cancel()
    await asyncio.gather(load, return_exceptions=True)
    assert not (await fake.list_vms(m.ListVMsRequest())).vms


@pytest.mark.parametrize(("part", "value"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_percentiles(part: float, value: float) -> None:
    assert percentile([float(each) for each in range(100, 0, -1)], part) == value
    assert percentile([], part) == 0
