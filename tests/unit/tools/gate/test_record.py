"""The record and what it proves, over made-up runs."""

import pytest

from tools.gate import record, verdict
from tools.gate.record import BadRecord, Code, Proof, Record, Run
from tools.gate.verdict import Policy

HOST = "tests/host/test_a.py"
ONE, TWO, THREE = (f"{HOST}::test_{name}" for name in ("one", "two[a b]", "three"))
ALL = frozenset((ONE, TWO, THREE))
MODULES = frozenset((HOST, "tests/host/test_b.py"))


def run(digest: str, *passed: str, date: str = "2026-01-01", failed: tuple[str, ...] = (), whole: bool = True) -> Run:
    done = frozenset(passed)
    return Run("c" + digest, date, {HOST: digest}, ALL if whole else done | {*failed}, done, frozenset(failed), whole)


def code(digest: str, count: int = 3) -> Code:
    return Code({HOST: digest}, {HOST: count})


def is_proven(of: Record, node: str, digest: str, count: int = 3) -> bool:
    proof = of.proof(node, code(digest, count))
    return proof is not None and proof.digest == digest


def lines(of: Record) -> list[str]:
    return record.render(of).splitlines()[1:]


WHOLE = Record().with_run(run("d1", *ALL), MODULES)


def test_a_module_that_passed_is_one_line() -> None:
    assert lines(WHOLE) == [f"d1 3 cd1 2026-01-01 {HOST}"]
    assert record.parse(record.render(WHOLE)) == WHOLE


def test_what_did_not_run_is_no_proof_and_takes_none_away() -> None:
    first = Record().with_run(run("d1", ONE, THREE), MODULES)
    assert lines(first) == [f"d1 1 cd1 2026-01-01 {node}" for node in (ONE, THREE)]
    assert WHOLE.with_run(run("d1", ONE, THREE, date="2026-01-02"), MODULES) == WHOLE


def test_two_parts_of_a_module_make_a_whole() -> None:
    first = Record().with_run(run("d1", ONE, TWO), MODULES)
    assert lines(first.with_run(run("d1", THREE, date="2026-01-02"), MODULES)) == [f"d1 3 cd1 2026-01-01 {HOST}"]


def test_what_passed_on_other_code_stays_until_it_runs_again() -> None:
    """Slow tests run seldom."""
    second = WHOLE.with_run(run("d2", THREE, date="2026-01-02"), MODULES)
    assert lines(second) == [f"d1 1 cd1 2026-01-01 {ONE}", f"d2 1 cd2 2026-01-02 {THREE}", f"d1 1 cd1 2026-01-01 {TWO}"]
    assert lines(second.with_run(run("d2", ONE, TWO, date="2026-01-03"), MODULES)) == [f"d2 3 cd2 2026-01-02 {HOST}"]


def test_named_tests_are_never_taken_for_their_module() -> None:
    """Otherwise `pytest FILE::test_one` would prove the file."""
    assert lines(Record().with_run(run("d1", ONE, whole=False), MODULES)) == [f"d1 1 cd1 2026-01-01 {ONE}"]
    assert is_proven(WHOLE.with_run(run("d2", ONE, whole=False), MODULES), TWO, "d1")


def test_a_failure_takes_the_proof_away() -> None:
    worse = WHOLE.with_run(run("d1", ONE, THREE, failed=(TWO,)), MODULES)
    assert worse.proof(TWO, code("d1")) is None and is_proven(worse, ONE, "d1")
    named = WHOLE.with_run(run("d1", failed=(TWO,), whole=False), MODULES)
    assert named.proof(TWO, code("d1")) is None


def test_a_run_that_left_everything_out_changes_nothing() -> None:
    for digest in ("d1", "d2"):
        assert WHOLE.with_run(run(digest, date="2026-02-02"), MODULES) == WHOLE


def test_a_module_with_more_tests_than_were_counted_is_not_proven() -> None:
    """Parameters may come from outside: ten seeds do not prove ten thousand."""
    assert is_proven(WHOLE, ONE, "d1", 3) and not is_proven(WHOLE, ONE, "d1", 4)


def test_modules_that_are_gone_go() -> None:
    kept, gone = (Proof(f"tests/host/test_{name}.py", "d", "c", "2026-01-01") for name in ("b", "gone"))
    assert Record((kept, gone)).with_run(run("d1", ONE), MODULES).proofs[-1:] == (kept,)


def test_lines_of_two_branches_may_be_kept_together() -> None:
    theirs = Record().with_run(run("d2", *ALL), MODULES)
    both = record.parse(record.render(WHOLE) + record.render(theirs) + record.render(WHOLE))
    assert [is_proven(both, ONE, digest) for digest in ("d1", "d2", "d3")] == [True, True, False]
    assert len(both.proofs) == 2


@pytest.mark.parametrize("line", ["nonsense", f"d1 many c 2026-01-01 {ONE}", "<<<<<<< HEAD"])
def test_a_line_that_is_no_proof_is_an_error(line: str) -> None:
    with pytest.raises(BadRecord, match="restore the committed file"):
        record.parse(line)


# --- verdicts ---------------------------------------------------------------------------------------------------------

NO_TIME, SLOW, NO_KVM, NO_GO = "no time: it is over", "slow: it takes minutes", "needs kvm: there is none", "needs go: there is none"
POLICY = Policy(red=True, slow_days=30, absent={"kvm": "none here"})


def judged(of: Record, why: str, digest: str = "d1", today: str = "2026-01-02", policy: Policy = POLICY) -> verdict.Verdict:
    return verdict.judge(of, {ONE: why}, code(digest), policy, today)


@pytest.mark.parametrize(
    ("of", "why", "digest", "today", "red"),
    [
        (WHOLE, NO_TIME, "d1", "2026-01-02", False),
        (WHOLE, NO_GO, "d1", "2027-01-02", False),
        (WHOLE, NO_TIME, "d2", "2026-01-02", True),
        (Record(), NO_TIME, "d1", "2026-01-02", True),
        (Record(), NO_KVM, "d1", "2026-01-02", False),
        (Record(), NO_GO, "d1", "2026-01-02", True),
        (Record(), "I do not like it", "d1", "2026-01-02", True),
        (WHOLE, SLOW, "d2", "2026-01-31", False),
        (WHOLE, SLOW, "d2", "2026-02-01", True),
        (Record(), SLOW, "d1", "2026-01-02", True),
    ],
)
def test_a_run_is_red_for_what_it_did_not_run_and_nothing_proves(of: Record, why: str, digest: str, today: str, red: bool) -> None:
    assert judged(of, why, digest, today).red is red
    assert not judged(of, why, digest, today, Policy(red=False, slow_days=30, absent={})).red


def test_a_module_that_skips_itself_as_a_whole_is_judged() -> None:
    assert verdict.judge(Record(), {"tests/host/test_b.py": NO_GO}, code("d1"), POLICY, "2026-01-02").red


def test_a_verdict_says_what_to_do() -> None:
    assert list(verdict.lines(judged(WHOLE, NO_TIME, "d2"), 7, "make it")) == [
        "gate: 7 ran, 0 proven by the record, 0 slow and proven on other code, 0 absent, 1 unproven",
        "RED: nothing proves 1 tests on this code; run `make it` and commit what it writes",
        f"  {ONE} (no time: it is over; passed on other code at cd1, 2026-01-01)",
    ]
    found = verdict.judge(WHOLE, {ONE: SLOW, TWO: NO_KVM}, code("d2"), POLICY, "2026-01-02")
    counts = "1 ran, 0 proven by the record, 1 slow and proven on other code, 1 absent, 0 unproven"
    assert list(verdict.lines(found, 1, "make it")) == [f"gate: {counts} (absent: kvm 1; the oldest proof is of 2026-01-01)"]
