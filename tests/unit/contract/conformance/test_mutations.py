"""The suite finds broken providers: each mutation of the fake driver fails the case that has the promise."""

import random
from pathlib import Path

import pytest

from paddock.contract.conformance import suite
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeDatastore, FakeSettings, TaskMode
from tests import virtualtime
from tests.unit.contract.conformance.mutationtable import MUTATIONS, Mutation

PREPARE = {"source": {"http": {"url": "https://images.example/small.qcow2"}}}


def judged(folder: Path, mutation: Mutation | None = None, mode: TaskMode = "async", only: tuple[str, ...] = ()) -> SuiteResult:
    datastores = (FakeDatastore(name="ds1", pod="gold"), FakeDatastore(name="ds2"))
    settings = FakeSettings(tasks=mode, directory=str(folder), hanging_guests="*-hang", datastores=datastores)
    found: list[SuiteResult] = []
    cases = suite.select(suite.CaseSelection(only=only))

    async def script() -> None:
        driver = FakeDriver(settings, virtualtime.Clock())
        if mutation is not None:
            mutation(driver)
        wanted = ConformanceSettings(
            task_seconds=30,
            command=("true",),
            prepare=PREPARE,
            transfer_url="pvc://claim/run",
            transfer_directory=str(folder / "claim" / "run"),
        )
        found.append(await suite.judge(driver, wanted, cases=cases, chance=random.Random(1)))

    virtualtime.run(script())
    return found[0]


@pytest.mark.parametrize("mode", ["async", "sync", "mixed"])
def test_a_provider_that_keeps_the_contract_passes(mode: TaskMode, tmp_path: Path) -> None:
    result = judged(tmp_path, mode=mode)
    assert [(each.name, each.reason) for each in result.results if each.status != "passed"] == []
    assert result.good and len(result.results) == len(CASES)


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_broken_promise_fails_its_case(name: str, tmp_path: Path) -> None:
    case, mutation = MUTATIONS[name]
    result = judged(tmp_path, mutation, only=(case,))
    failed = {each.name: each.reason for each in result.results if each.status == "failed"}
    assert case in failed, f"the failed cases are {failed}"
    assert failed[case]
    assert not result.good


def test_every_case_finds_something() -> None:
    found = {case for case, _ in MUTATIONS.values()}
    # These have the same promise as another case, in another state of the machine.
    alike = {"power-cycle", "power-graceful-off", "disk-grow-online"}
    assert {each.name for each in CASES} - found == alike
