"""The page of drivers: each cell follows from runs."""

from pathlib import Path

import pytest

from paddock.contract.conformance.cases.catalog import CASES
from tools.conformance import providers, results
from tools.conformance.results import Outcome, ProviderRun, TestResult

BASIC = next(case.name for case in CASES if not case.needs and not case.features)


def run(*capabilities: str, **cases: Outcome) -> ProviderRun:
    named = {name.replace("_", "-"): outcome for name, outcome in cases.items()}
    return ProviderRun("toy", "a table", capabilities, tuple(sorted(named.items())))


def cell(capability: str, *runs: ProviderRun, outcome: Outcome = "passed") -> str:
    page = providers.render([TestResult(f"test_{number}", (), outcome, (each,)) for number, each in enumerate(runs)])
    return next(line for line in page.splitlines() if line.startswith(f"| {capability} |")).split("|")[2].strip()


@pytest.mark.parametrize(
    ("capabilities", "cases", "wanted"),
    [
        (("supports_snapshots",), {"snapshot_create": "passed"}, "yes"),
        (("supports_snapshots",), {"snapshot_create": "skipped"}, "unproven"),
        (("supports_snapshots",), {}, "unproven"),
        ((), {"snapshot_create": "passed"}, "no"),
    ],
)
def test_a_capability_is_proven_by_its_cases(capabilities: tuple[str, ...], cases: dict[str, Outcome], wanted: str) -> None:
    assert cell("snapshots", run(*capabilities, **cases)) == wanted


def test_a_feature_without_a_case_is_the_drivers_word() -> None:
    assert cell("class.resourceLimits", run("class")) == "says so"
    assert cell("class.resourceLimits", run()) == "no"


def test_parts_of_a_run_add_up() -> None:
    one, other = run("supports_snapshots", snapshot_create="skipped"), run("supports_snapshots", snapshot_create="passed")
    assert cell("snapshots", other, one) == cell("snapshots", one, other) == "yes"


def test_a_test_that_failed_proves_nothing() -> None:
    page = providers.render([TestResult("test", (), "failed", (run("supports_snapshots", snapshot_create="passed"),))])
    assert "toy" not in page


def test_runs_are_kept_in_a_file(tmp_path: Path) -> None:
    kept = TestResult("test", (("virtrigaud", 98),), "passed", (run("exec", validate="passed"),))
    results.write(tmp_path / "results.json", [kept])
    assert results.read(tmp_path / "results.json") == (kept,)
    assert results.parse_run(results.as_text(kept.runs[0])) == kept.runs[0]
