"""docs/reference/tried.md: what it calls tried is run by tests that exist, and nothing else is called so."""

import json
import re
from pathlib import Path

import pytest

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
    assert [test["node"] for test in recorded if test["node"].partition("::")[0] in named and test["outcome"] != "passed"] == []


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
