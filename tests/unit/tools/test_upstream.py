"""The lists of KubeVirt's own tests: every test that they name exists, and every case has one verdict."""

from pathlib import Path

import pytest

from tools import upstream
from tools.upstream import Case, Inventory

ROOT = Path(__file__).parents[3]
LISTS = ROOT / "tests" / "upstream"


@pytest.mark.spec("kubevirt", 110)
def test_every_case_has_a_verdict_and_every_test_that_is_named_exists() -> None:
    inventory = upstream.read(LISTS)
    assert list(upstream.faults(inventory, ROOT)) == []
    replicas = {each.test for each in inventory.cases if each.verdict == "replica"}
    assert len(inventory.cases) > 600 and len(replicas) > 70


@pytest.mark.spec("kubevirt", 110)
def test_the_page_names_what_is_skipped_with_its_reason() -> None:
    inventory = upstream.read(LISTS)
    page = upstream.page(inventory)
    for case in inventory.cases:
        if case.verdict in ("skipped", "differs"):
            assert f"- `{case.file}`: {upstream.plain(case.name)}" in page
    assert all(f"### {reason} (" in page and why in page for reason, why in inventory.reasons.items())
    assert page == (ROOT / "docs" / "evidence" / "upstream-tests.md").read_text("utf-8")


HERE = "tests/unit/tools/test_upstream.py::test_what_is_wrong_is_found"


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (Case("a", "b", "replica", HERE), ""),
        (Case("a", "b", "replica", HERE + "x"), f"a: b: there is no test '{HERE}x'"),
        (Case("a", "b", "shown", "tests/nowhere.py::test"), "a: b: there is no test 'tests/nowhere.py::test'"),
        (Case("a", "b", "differs", "", "so"), "a: b: there is no test ''"),
        (Case("a", "b", "differs", HERE, ""), "a: b: says not what differs"),
        (Case("a", "b", "skipped", "", "weather"), "a: b: 'weather' is no reason of reasons.toml"),
        (Case("a", "b", ""), "a: b: needs exactly one of replica, shown, differs, skipped"),
    ],
)
def test_what_is_wrong_is_found(case: Case, fault: str) -> None:
    inventory = Inventory("v1", {"pods": "x"}, [case, Case("a", "other", "skipped", "", "pods")])
    assert list(upstream.faults(inventory, ROOT)) == ([fault] if fault else [])
    assert list(upstream.faults(Inventory("v1", {"pods": "x", "odd": "y"}, inventory.cases[1:]), ROOT)) == [
        "reasons.toml: nothing is skipped for the reason 'odd'"
    ]
    twice = Inventory("v1", {"pods": "x"}, [inventory.cases[1], inventory.cases[1]])
    assert list(upstream.faults(twice, ROOT)) == ["a: other: listed 2 times"]


def test_a_case_with_two_verdicts_has_none(tmp_path: Path) -> None:
    (tmp_path / "reasons.toml").write_text('version = "v1"\n[reasons]\npods = "x"\n')
    (tmp_path / "a.toml").write_text('["a_test.go"]\n"b" = { skipped = "pods", shown = "tests/x.py::test" }\n')
    (case,) = upstream.read(tmp_path).cases
    assert case.verdict == ""
