"""The conformance suite on libvirt's driver for tests."""

import random
from collections.abc import Callable

import pytest

from paddock.contract.conformance import suite
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from tests.coroutines import played
from tests.kit.providers import providerruns
from tests.unit.drivers.libvirt.conftest import Bench

SETTINGS = ConformanceSettings(poll_seconds=0.01, settle_seconds=1.0, disk_gib=1)
# libvirt's driver for tests has neither a power button that guests ignore nor memory that is plugged in.
UNKNOWN_TO_THE_DRIVER = {"power-graceful-forced", "reconfigure-online", "disk-info", "disk-grow", "disk-grow-online", "features"}
CORE = ("provider", "machines", "power", "reconfigure", "inputs")


@pytest.mark.parametrize(
    "case",
    [each for each in CASES if each.name not in UNKNOWN_TO_THE_DRIVER and each.run.__module__.rpartition(".")[2] in CORE],
    ids=lambda case: case.name,
)
@played
async def test_the_driver_keeps_the_contract(
    bench: Bench, /, case: ConformanceCase, record_property: Callable[[str, object], None]
) -> None:
    found: list[SuiteResult] = []
    found.append(await suite.judge(bench.driver, SETTINGS, cases=(case,), chance=random.Random(1)))
    (run,) = found
    (result,) = run.results
    providerruns.keep(record_property, "libvirt", "libvirt's driver for tests", run)
    assert (result.status, run.leftovers) == ("passed", ()), result.reason
