"""The results of KubeVirt's functional tests: each failure has its reason, and the page tells all of them."""

from pathlib import Path

import pytest

from tests.reference.functional import results, suite
from tests.reference.functional.results import Results, Verdict
from tests.reference.functional.suite import Ending, Spec
from tools import upstream
from tools.referencepages import functional
from tools.upstream import Case, Inventory

PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "kubevirt-tests.md"
SPEC = Spec("VM should start", "vm_test.go", 3, frozenset())
FAILURE = Ending(SPEC.name, "failed", 1.0, SPEC.file, "vm_test.go:7", "Timed out after 60 s")
REASON = Verdict("differs", "it starts elsewhere", spec="should start", where="vm_test.go:7")


def test_each_failure_has_a_reason_and_each_reason_a_failure() -> None:
    assert results.faults(results.read(), results.verdicts()) == []
    assert {verdict.cause for verdict in results.verdicts()} <= results.CAUSES.keys()


def test_the_page_tells_the_recorded_results() -> None:
    assert PAGE.read_text("utf-8") == functional.page()


def test_a_failure_without_a_reason_is_a_fault_and_so_is_a_reason_without_a_failure() -> None:
    recorded = Results(1, {}, {}, {FAILURE.name: FAILURE})
    elsewhere = Verdict("differs", "it starts elsewhere", where="vm_test.go:8")
    assert results.faults(recorded, [REASON]) == []
    assert len(results.faults(recorded, [])) == 1
    assert len(results.faults(recorded, [REASON, elsewhere])) == 1


def test_no_test_of_ours_is_said_to_show_what_the_original_does_not() -> None:
    inventory = upstream.read(Path(__file__).parents[2] / "upstream")
    assert functional.softened(results.read(), results.verdicts(), inventory) == []


@pytest.mark.parametrize(("verdict", "is_fault"), [("shown", True), ("replica", True), ("differs", False), ("skipped", False)])
def test_a_case_that_is_shown_although_its_original_differs_is_found(verdict: str, is_fault: bool) -> None:
    case = Case("tests/vm_test.go", "VM / should start", verdict)
    recorded = Results(1, {}, {}, {FAILURE.name: FAILURE})
    assert bool(functional.softened(recorded, [REASON], Inventory("v1", {}, [case]))) is is_fault


def test_the_page_counts_what_can_be_decided() -> None:
    passed, skipped = (Ending(state, state, 1.0, SPEC.file) for state in ("passed", "skipped"))
    page = functional.render(Results(9, {}, {}, {ending.name: ending for ending in (FAILURE, passed, skipped)}), [REASON])
    assert "Of 9\nspecs 2 ran." in page and "1 of 2 specs pass:\n50.0 %" in page
    assert f"{REASON.why} (1):\n\n- `vm_test.go`: {FAILURE.name}" in page


def test_the_page_says_what_its_percentage_leaves_out() -> None:
    passed, stuck = Ending("passed", "passed", 1.0, SPEC.file), Ending("stuck", "failed", 1.0, SPEC.file, "vm_test.go:8")
    by_nature = Verdict("nature", "it needs a second node", where="vm_test.go:8")
    recorded = Results(9, {"hours": 2}, {"operator.go": 3}, {ending.name: ending for ending in (FAILURE, passed, stuck)})
    page = functional.render(recorded, [REASON, by_nature])
    assert "but for the 1 of those two kinds" in page and "1 of 2 specs pass:\n50.0 %" in page
    assert "Of all that ran, 1 of 3 pass: 33.3 %. 1 specs of the groups have not run yet." in page


def test_the_page_says_how_many_were_not_tried() -> None:
    message = f"Not tried: an earlier spec of its container failed. {FAILURE.message}"
    behind = Ending(f"{SPEC.name} again", "failed", 0.0, SPEC.file, FAILURE.where, message)
    page = functional.render(Results(9, {}, {}, {ending.name: ending for ending in (FAILURE, behind)}), [REASON])
    assert "\n1 of the failed ones fail with an earlier spec" in page and f"{REASON.why} (2):" in page


def test_what_a_run_did_not_reach_keeps_its_earlier_ending(tmp_path: Path) -> None:
    path, other = tmp_path / "results.json", Spec("VM should stop", "vm_test.go", 9, frozenset())
    passed = Ending(other.name, "passed", 2.0, other.file)
    results.record([FAILURE, passed], [SPEC, other], path)
    results.record([Ending(SPEC.name, "passed", 3.0, SPEC.file), Ending(other.name, "interrupted", 1.0, other.file)], [SPEC, other], path)
    assert {ending.name: ending.state for ending in results.read(path).endings.values()} == {SPEC.name: "passed", other.name: "passed"}
    # the suite has lost a spec
    results.record([], [SPEC], path)
    assert results.read(path).endings.keys() == {SPEC.name}


def test_every_group_names_files_that_ran_or_will() -> None:
    assert not [label for label, need in suite.left_out().items() if not need]
    assert all(group.limit > 0 and group.files for group in suite.groups().values())
