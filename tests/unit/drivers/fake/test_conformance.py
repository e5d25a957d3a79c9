"""The conformance suite on the fake driver, with all that it can."""

import random
from collections.abc import Callable
from pathlib import Path

from paddock.contract.conformance import suite
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.providers import providerruns


@run_by(virtualtime.run)
async def test_the_driver_keeps_the_contract(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    found: list[SuiteResult] = []
    driver = FakeDriver(FakeSettings(directory=str(tmp_path)), virtualtime.Clock())
    (tmp_path / "claim").mkdir()
    settings = ConformanceSettings(
        transfer_url="pvc://claim/run",
        transfer_directory=str(tmp_path / "claim" / "run"),
        prepare={"source": {"http": {"url": "https://images.example/tiny.qcow2"}}},
    )
    found.append(await suite.judge(driver, settings, chance=random.Random(1)))
    (result,) = found
    providerruns.keep(record_property, "fake", "nothing", result)
    assert result.good, [each for each in result.results if each.status == "failed"]
