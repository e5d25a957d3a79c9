"""The record and what it proves, over made-up runs."""

import pytest

from tools.gate import record, verdict
from tools.gate.record import BadRecord, Outcome, Proof, Record, Run

HOST = "tests/host/test_a.py"
ONE, TWO, THREE = (f"{HOST}::test_{name}" for name in ("one", "two[a b]", "three"))
ALL = frozenset((ONE, TWO, THREE))
MODULES = frozenset((HOST, "tests/host/test_b.py"))


def run(digest: str = "d1", date: str = "2026-01-01", *, failed: tuple[str, ...] = (), whole: bool = True, **outcomes: Outcome) -> Run:
    named = {"one": ONE, "two": TWO, "three": THREE}
    done = {named[name]: outcome for name, outcome in outcomes.items()}
    return Run("c" + digest, date, {HOST: digest}, ALL if whole else frozenset(done), done, frozenset(failed), whole)


def lines(of: Record) -> list[str]:
    return record.render(of).splitlines()[1:]


def test_a_module_that_passed_is_one_line() -> None:
    made = Record().with_run(run(one="passed", two="passed", three="passed"), MODULES)
    assert lines(made) == [f"d1 passed 3 cd1 2026-01-01 {HOST}"]
    assert record.parse(record.render(made)) == made


def test_what_was_skipped_is_named() -> None:
    made = Record().with_run(run(one="passed", two="skipped", three="passed"), MODULES)
    assert lines(made) == [f"d1 passed 3 cd1 2026-01-01 {HOST}", f"d1 skipped 1 cd1 2026-01-01 {TWO}"]
    proof = made.proof(TWO, "d1", 3)
    assert proof is not None and proof.outcome == "skipped"


def test_a_skip_takes_no_proof_away() -> None:
    whole = Record().with_run(run(one="passed", two="passed", three="passed"), MODULES)
    assert whole.with_run(run(one="passed", two="skipped", three="passed"), MODULES) == whole
    assert "skipped" in record.render(whole.with_run(run("d2", one="passed", two="skipped", three="passed"), MODULES))


def test_two_parts_of_a_module_make_a_whole() -> None:
    first = Record().with_run(run(one="passed", two="passed"), MODULES)
    assert lines(first) == [f"d1 passed 1 cd1 2026-01-01 {ONE}", f"d1 passed 1 cd1 2026-01-01 {TWO}"]
    assert lines(first.with_run(run(date="2026-01-02", three="passed"), MODULES)) == [f"d1 passed 3 cd1 2026-01-01 {HOST}"]


def test_parts_on_different_code_do_not_make_a_whole() -> None:
    first = Record().with_run(run(one="passed", two="passed"), MODULES)
    assert lines(first.with_run(run("d2", three="passed"), MODULES)) == [f"d2 passed 1 cd2 2026-01-01 {THREE}"]


def test_named_tests_are_never_taken_for_their_module() -> None:
    """Otherwise `pytest FILE::test_one` would prove the file."""
    made = Record().with_run(run(one="passed", whole=False), MODULES)
    assert lines(made) == [f"d1 passed 1 cd1 2026-01-01 {ONE}"]


def test_a_failure_takes_the_proof_away() -> None:
    whole = Record().with_run(run(one="passed", two="passed", three="passed"), MODULES)
    worse = whole.with_run(run(failed=(TWO,), one="passed", three="passed"), MODULES)
    assert worse.proof(TWO, "d1", 3) is None and worse.proof(ONE, "d1", 3) is not None
    named = whole.with_run(Run("c", "2026-01-02", {HOST: "d1"}, frozenset((TWO,)), {}, frozenset((TWO,)), whole=False), MODULES)
    assert named.proof(TWO, "d1", 3) is None


def test_a_run_that_left_everything_out_changes_nothing() -> None:
    for digest in ("d1", "d2"):
        before = Record().with_run(run(one="passed", two="passed", three="passed"), MODULES)
        assert before.with_run(run(digest, "2026-02-02"), MODULES) == before


def test_a_module_with_more_tests_than_were_counted_is_not_proven() -> None:
    """Parameters may come from outside: ten seeds do not prove ten thousand."""
    made = Record().with_run(run(one="passed", two="passed", three="passed"), MODULES)
    assert made.proof(ONE, "d1", 3) is not None
    assert made.proof(ONE, "d1", 4) is None


def test_modules_that_are_gone_go() -> None:
    kept, gone = (Proof(f"tests/host/test_{name}.py", "d", "passed", "c", "2026-01-01") for name in ("b", "gone"))
    assert Record((kept, gone)).with_run(run(one="passed"), MODULES).proofs[-1:] == (kept,)


def test_lines_of_two_branches_may_be_kept_together() -> None:
    ours = Record().with_run(run("d1", one="passed", two="passed", three="passed"), MODULES)
    theirs = Record().with_run(run("d2", one="passed", two="passed", three="passed"), MODULES)
    both = record.parse(record.render(ours) + record.render(theirs) + record.render(ours))
    assert both.proof(ONE, "d1", 3) is not None and both.proof(ONE, "d2", 3) is not None and both.proof(ONE, "d3", 3) is None
    assert len(both.proofs) == 2


@pytest.mark.parametrize("line", ["nonsense", f"d1 failed 1 c 2026-01-01 {ONE}", f"d1 passed many c 2026-01-01 {ONE}", "<<<<<<< HEAD"])
def test_a_line_that_is_no_proof_is_an_error(line: str) -> None:
    with pytest.raises(BadRecord, match="restore the committed file"):
        record.parse(line)


# --- verdicts ---------------------------------------------------------------------------------------------------------

PROVEN = Record().with_run(run(one="passed", two="skipped", three="passed"), MODULES)


@pytest.mark.parametrize(
    ("of", "left_out", "digest", "red"),
    [
        (PROVEN, set(), "d1", False),
        (PROVEN, {ONE, TWO}, "d1", False),
        (PROVEN, {ONE}, "d2", True),
        (Record(), {ONE}, "d1", True),
        (Record(), set(), "d1", False),
        (None, {ONE, TWO}, "d1", False),
    ],
    ids=["all ran", "the same code", "other code", "never recorded", "nothing left out", "no record at all"],
)
def test_a_run_is_red_for_what_nothing_proves(of: Record | None, left_out: set[str], digest: str, red: bool) -> None:
    assert verdict.judge(of, left_out, {HOST: digest}, {HOST: 3}).red is red


def test_a_verdict_says_what_to_do() -> None:
    found = list(verdict.lines(verdict.judge(PROVEN, {ONE}, {HOST: "d2"}, {HOST: 3}), "make it"))
    assert found == [
        "RED: nothing proves 1 of them on this code; run `make it` and commit what it writes",
        f"  {ONE} (on other code at cd1, 2026-01-01)",
    ]
    found = list(verdict.lines(verdict.judge(PROVEN, ALL, {HOST: "d1"}, {HOST: 3}), "make it"))
    assert found == [
        "3 of them passed on the same code: cd1 (2026-01-01)",
        "1 of these were skipped there, for what that machine lacked",
    ]
    assert "no record" in next(verdict.lines(verdict.judge(None, {ONE}, {}, {}), "make it"))
    assert list(verdict.lines(verdict.judge(PROVEN, set(), {}, {}), "make it")) == []
