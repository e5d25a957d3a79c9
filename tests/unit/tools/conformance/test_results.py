"""The files of results: what is written comes back, and says on which day a test ran."""

from pathlib import Path

import pytest

from tools.conformance import results
from tools.conformance.results import TestResult


@pytest.mark.parametrize(("code", "date"), [("d1", "2026-01-02"), ("", "2026-01-02"), ("", "")], ids=["both", "only a day", "neither"])
def test_a_day_is_written_with_and_without_the_code(code: str, date: str, tmp_path: Path) -> None:
    result = TestResult("test_it.py::test_it", (("stakater", 1),), "passed", code=code, date=date)
    results.write(tmp_path / "results.json", [result])
    assert results.read(tmp_path / "results.json") == (result,)
    assert ('"date"' in (tmp_path / "results.json").read_text(encoding="utf-8")) == bool(date)
