"""Met or not, and the page that says so."""

import pytest

from tools.conformance import engine, page, reasons
from tools.conformance.checklist import Item
from tools.conformance.reasons import Reason
from tools.conformance.results import Outcome, TestResult
from tools.conformance.verdict import decide, met

ITEMS = {"stakater": (Item(1, "First."), Item(2, "Second: a <name> and `<code|x>`."))}
TOTALS = {"stakater": 2}


def result(node: str, outcome: Outcome = "passed", number: int = 1) -> TestResult:
    return TestResult(node, (("stakater", number),), outcome)


@pytest.mark.parametrize(
    ("outcomes", "met"),
    [
        (["passed"], True),
        (["passed", "passed"], True),
        (["passed", "skipped"], False),
        (["passed", "failed"], False),
        (["skipped"], False),
        ([], False),
    ],
)
def test_an_item_is_met_only_if_all_its_tests_passed(outcomes: list[Outcome], met: bool) -> None:
    results = [result(f"t.py::test[{number}]", outcome) for number, outcome in enumerate(outcomes)]
    first, second = decide(ITEMS, results, {})["stakater"]
    assert first.met is met
    assert not second.met


def test_the_reason_names_what_did_not_pass() -> None:
    results = [result("t.py::test_a[1]"), result("t.py::test_a[2]", "skipped"), result("t.py::test_b", "failed")]
    first, second = decide(ITEMS, results, {("stakater", 1): Reason("1", "needs a guest")})["stakater"]
    assert first.reason == "needs a guest; `t.py::test_b` failed; `t.py::test_a` skipped"
    assert second.reason == "no test yet"


def test_page() -> None:
    verdicts = decide(ITEMS, [result("t.py::test_a[1]", number=2), result("t.py::test_a[2]", number=2)], {})
    lines = page.render(verdicts).splitlines()
    assert lines[2:5] == [
        "| spec | met | total | of guests, met | on the real engine |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| stakater | 1 | 2 | 0 | 0 |",
    ]
    assert lines[-2:] == [
        "| 1 | First. | not met: no test yet |",
        "| 2 | Second: a &lt;name> and `<code\\|x>`. | `t.py::test_a` |",
    ]


@pytest.mark.parametrize(
    ("nodes", "row", "cell"),
    [
        (["tests/unit/t.py::test_a"], "| stakater | 1 | 2 | 1 | 0 |", "shown on a fake engine: `tests/unit/t.py::test_a`"),
        (["tests/host/t.py::test_a"], "| stakater | 1 | 2 | 1 | 1 |", "`tests/host/t.py::test_a`"),
        (
            ["tests/host/t.py::test_a", "tests/unit/t.py::test_b"],
            "| stakater | 1 | 2 | 1 | 1 |",
            "`tests/host/t.py::test_a`, `tests/unit/t.py::test_b`",
        ),
    ],
)
def test_the_page_tells_what_only_a_fake_engine_shows(nodes: list[str], row: str, cell: str) -> None:
    guests = engine.parse({"stakater": "1"}, TOTALS)
    lines = page.render(decide(ITEMS, [result(node) for node in nodes], {}, guests)).splitlines()
    assert lines[4] == row
    assert lines[-2] == f"| 1 | First. | {cell} |"


@pytest.mark.parametrize("lists", [{"nobody": "1"}, {"stakater": "3"}, {"stakater": "one"}])
def test_wrong_lists_of_items_are_refused(lists: dict[str, str]) -> None:
    with pytest.raises(reasons.ReasonsError):
        engine.parse(lists, TOTALS)


def test_shortened_text_closes_its_code() -> None:
    assert page.shorten("say `one two three` now", 12) == "say `one` ..."
    assert page.shorten("short", 12) == "short"


def test_reasons_take_items_ranges_and_lists() -> None:
    table = {"stakater": {"1": "a"}, "kubevirt": {"2-4, 7": "b"}}
    found = reasons.parse(table, {"stakater": 2, "kubevirt": 9})
    b = Reason("2-4, 7", "b")
    assert found == {("stakater", 1): Reason("1", "a"), **{("kubevirt", number): b for number in (2, 3, 4, 7)}}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"nobody": {"1": "a"}}, "no spec 'nobody'"),
        ({"stakater": {"3": "a"}}, "items 1 to 2, not 3"),
        ({"stakater": {"1": "a", "1-2": "b"}}, "item 1 has two reasons"),
        ({"stakater": {"2-1": "a"}}, "runs backwards"),
        ({"stakater": {"one": "a"}}, "no item, range or list"),
    ],
)
def test_wrong_reasons_are_refused(table: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(reasons.ReasonsError, match=message):
        reasons.parse(table, TOTALS)


def test_a_reason_is_outdated_when_all_its_items_are_met() -> None:
    why = reasons.parse({"stakater": {"1-2": "a"}, "kubevirt": {"1, 3": "b", "2": "c"}}, {"stakater": 2, "kubevirt": 3})
    assert reasons.outdated(why, {("stakater", 1)}) == []
    assert reasons.outdated(why, {("stakater", 1), ("stakater", 2), ("kubevirt", 2), ("kubevirt", 3)}) == [
        ("stakater", "1-2"),
        ("kubevirt", "2"),
    ]


def test_met_items() -> None:
    assert met(decide(ITEMS, [result("t.py::test", number=2)], {})) == {("stakater", 2)}
