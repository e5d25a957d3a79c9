"""The part of the page that says how current the proofs are, and a check that leaves it out."""

from pathlib import Path

import pytest

from tools.conformance import __main__ as conformance
from tools.conformance import currency, results
from tools.conformance.checklist import Item
from tools.conformance.results import TestResult
from tools.conformance.verdict import Verdict

HOST, REFERENCE = "tests/host/test_a.py", "tests/reference/test_b.py"
DIGESTS = {HOST: "new", REFERENCE: "new"}


def ran(file: str, number: int, code: str, date: str = "2026-01-02") -> TestResult:
    return TestResult(f"{file}::test_{number}", (("kubevirt", number),), "passed", code=code, date=date)


def test_only_results_of_the_same_code_count_and_the_others_are_dated() -> None:
    verdicts = {"kubevirt": tuple(Verdict(Item(number, ""), met=number < 6, needs_engine=True) for number in range(1, 7))}
    seldom = [
        ran(HOST, 1, "new"),
        ran(HOST, 2, "old", "2026-01-03"),
        ran(HOST, 2, "new"),
        ran(REFERENCE, 3, "old", "2026-01-01"),
        ran(REFERENCE, 4, "new"),
        ran(HOST, 6, "old", "2025-01-01"),
    ]
    assert "| kubevirt | 3 | 2 | 2, 3 | 2026-01-01 |" in currency.render(verdicts, seldom, DIGESTS)


def test_results_from_before_digests_were_noted_are_of_other_code() -> None:
    verdicts = {"kubevirt": (Verdict(Item(1, ""), met=True),)}
    assert "| kubevirt | 0 | 0 | 1 | not dated |" in currency.render(verdicts, [ran(HOST, 1, "", "")], DIGESTS)


def test_a_check_leaves_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "digests", lambda root, files: DIGESTS)
    host, page = tmp_path / "host.json", tmp_path / "page.md"
    results.write(tmp_path / "unit.json", [])
    results.write(host, [ran(HOST, 1, "new")])
    options = [f"--{name}={tmp_path / file}" for name, file in (("results", "unit.json"), ("host", host.name), ("reference", "none"))]
    options += [f"--page={page}", f"--providers={tmp_path / 'providers.md'}"]
    assert conformance.main(options) == 0 and "| kubevirt | 1 | 1 | - | - |" in page.read_text()
    results.write(host, [ran(HOST, 1, "old", "2026-01-01")])
    assert conformance.main([*options, "--check"]) == 0
    assert conformance.main(options) == 0 and "| kubevirt | 0 | 0 | 1 | 2026-01-01 |" in page.read_text()
    results.write(host, [ran(HOST, 2, "old")])
    assert conformance.main([*options, "--check"]) == 1
