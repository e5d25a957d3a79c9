"""docs/reference/tried.md: what it calls tried is run by tests that exist, and nothing else is called so."""

import json
import re
from pathlib import Path

import pytest

from tools import gen
from tools.conformance import results
from tools.conformance.results import TestResult
from tools.referencepages import tried
from tools.referencepages.tried import Row

ROOT = Path(__file__).resolve().parents[3]
ROWS = [row for group in tried.groups() for row in group.row]
_TEST = re.compile(r"^(?:async )?def test_", re.MULTILINE)
RESULTS = ("tests/host/results.json", "tests/reference/results.json")


def mistakes(row: Row) -> list[str]:
    """Return what is wrong with a row."""
    found = [f"{row.what}: {test} has no tests" for test in row.runs if not is_a_test(ROOT / test)]
    if (row.state == "no") == bool(row.runs):
        found.append(f"{row.what}: only what was tried names tests")
    if row.state in ("part", "simulated") and not row.note:
        found.append(f"{row.what}: say how far it was tried")
    if row.pins and row.version not in (ROOT / row.pins).read_text(encoding="utf-8"):
        found.append(f"{row.what}: {row.pins} has no {row.version}")
    return found


def is_a_test(file: Path) -> bool:
    return file.is_file() and file.name.startswith("test_") and bool(_TEST.search(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_what_was_tried_has_tests_that_run_it(row: Row) -> None:
    assert mistakes(row) == []


@pytest.mark.parametrize(
    "row",
    [
        Row("gone", "run", runs=("tests/host/test_gone.py",)),
        Row("no test", "run", runs=("tests/host/bare.py",)),
        Row("claimed", "run"),
        Row("denied", "no", runs=("tests/host/test_guests.py",)),
        Row("vague", "part", runs=("tests/host/test_guests.py",)),
        Row("old", "run", runs=("tests/host/test_guests.py",), pins="tests/reference/recipes.py", version='"0.1"'),
    ],
    ids=lambda row: row.what,
)
def test_a_wrong_row_is_seen(row: Row) -> None:
    assert mistakes(row) != []


def test_no_test_of_the_page_failed_in_the_recorded_runs() -> None:
    recorded = [test for name in RESULTS for test in json.loads((ROOT / name).read_text(encoding="utf-8"))["tests"]]
    named = {test for row in ROWS for test in row.runs}
    outcomes = [(test["node"], test["outcome"]) for test in recorded if test["node"].partition("::")[0] in named]
    # One that a machine lacks something for is skipped beside others that pass.
    assert [node for node, outcome in outcomes if outcome not in ("passed", "skipped")] == []
    modules = {node.partition("::")[0] for node, _ in outcomes}
    assert modules == {node.partition("::")[0] for node, outcome in outcomes if outcome == "passed"}


def _recorded(root: Path, *passed: tuple[str, str]) -> None:
    tests = [TestResult(f"tests/host/{node}", (("kubevirt", 1),), "passed", date=day) for node, day in passed]
    results.write(root / "tests" / "host" / "results.json", tests)


def test_a_module_has_the_day_of_its_oldest_result(tmp_path: Path) -> None:
    _recorded(tmp_path, ("test_a.py::one", "2026-01-03"), ("test_a.py::two", "2026-01-02"), ("test_b.py::one", ""))
    assert tried.days(tmp_path) == {"tests/host/test_a.py": "2026-01-02"}


def test_the_record_of_the_gate_tells_of_other_tests_and_of_later_days(tmp_path: Path) -> None:
    _recorded(tmp_path, ("test_a.py::one", "2026-01-03"), ("test_b.py::one", "2026-01-03"))
    passed = ("2 c1 2026-01-05 tests/host/test_a.py", "1 c1 2026-01-01 tests/host/test_b.py::one", "2 c1 2026-01-04 tests/host/test_c.py")
    (tmp_path / "tests" / "host" / "passed.txt").write_text("".join(f"d1 {each}\n" for each in passed), encoding="utf-8")
    assert tried.days(tmp_path) == {
        "tests/host/test_a.py": "2026-01-05",
        "tests/host/test_b.py": "2026-01-03",
        "tests/host/test_c.py": "2026-01-04",
    }


def test_a_failed_test_has_no_day(tmp_path: Path) -> None:
    results.write(tmp_path / "tests" / "host" / "results.json", [TestResult("tests/host/test_a.py::one", (), "failed", date="2026-01-03")])
    assert tried.days(tmp_path) == {}


def test_the_page_dates_each_test_and_invents_no_day() -> None:
    row = next(row for row in ROWS if len(row.runs) > 1)
    page = tried.page({row.runs[0]: "2026-01-03"})
    assert f"`{row.runs[0]}` (2026-01-03), `{row.runs[1]}`" in page
    assert "2026" not in tried.page({})


def test_a_later_day_alone_does_not_make_the_page_stale(tmp_path: Path) -> None:
    file, module = tmp_path / "tried.md", "tests/host/machines/test_life.py"
    file.write_text(tried.page({module: "2026-01-03"}), encoding="utf-8")
    later = gen.Difference(file, gen.State.STALE, tried.page({module: "2026-01-05"}))
    assert not gen.is_stale(later)
    assert gen.is_stale(gen.Difference(file, gen.State.STALE, tried.page({}) + "another line"))


def test_the_hosts_are_those_of_the_guide() -> None:
    page = (ROOT / "docs" / "run" / "hosts.md").read_text(encoding="utf-8")
    releases = set(re.findall(r"^\| (Debian \d+)", page, re.MULTILINE))
    said = {match[0] for row in ROWS if row.state != "no" and (match := re.match(r"(?:Debian|Ubuntu|Fedora) [\d.]+", row.what))}
    hosts = next(group for group in tried.groups() if group.title == "Hosts")
    assert {each for each in said if any(row.what.startswith(each) for row in hosts.row)} == releases


@pytest.mark.parametrize("row", [row for row in ROWS if row.state == "simulated"], ids=lambda row: row.what)
def test_a_provider_that_met_only_a_simulator_says_so_first(row: Row) -> None:
    page = (ROOT / "docs" / "providers" / f"{row.what.split()[0].lower()}.md").read_text(encoding="utf-8")
    assert "has only met a simulator" in page.partition("\n## ")[0]
