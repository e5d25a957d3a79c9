"""The record of a long suite: which tests passed, and on which code.

One line is a test module all of whose tests passed, or one test. Lines of two branches may simply be kept together
(``.gitattributes`` merges them so): a line holds as long as the code that it names is the code that there is. So neither history nor
the commit itself is needed to judge, and a shallow clone will do; commit and date are for people.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Outcome = Literal["passed", "skipped"]
_OUTCOMES: Mapping[str, Outcome] = {"passed": "passed", "skipped": "skipped"}
HEADER = "# digest of the code, outcome, number of tests, commit, date, module or test; docs/dev/gate.md\n"


class BadRecord(Exception):
    """A record that cannot be read."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One line: a test, or a module with `count` tests, had an outcome on some code."""

    node: str
    digest: str
    outcome: Outcome
    commit: str
    date: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """The results of one run of a suite: its tests by outcome, on which code.

    `collected` are the tests of the modules that it looked at. A run is `whole` when it collected all tests of these. `failed` are the
    tests that it disproved.
    """

    commit: str
    date: str
    digests: Mapping[str, str]
    collected: Set[str]
    outcomes: Mapping[str, Outcome]
    failed: Set[str] = field(default_factory=frozenset)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """The proofs of one suite."""

    proofs: tuple[Proof, ...] = ()

    def proof(self, node: str, digest: str, count: int) -> Proof | None:
        """Return what proves a test on the code with that digest; its module has `count` tests."""
        there = [each for each in self.proofs if each.digest == digest]
        own = (each for each in there if each.node == node)
        whole = (each for each in there if each.node == module_of(node) and each.count == count)
        return next(own, None) or next(whole, None)

    def last(self, node: str) -> Proof | None:
        """Return the newest proof of a test on any code."""
        there = (each for each in self.proofs if each.node in (node, module_of(node)))
        return max(there, key=lambda proof: proof.date, default=None)

    def with_run(self, run: Run, modules: Set[str]) -> "Record":
        """Return the record after a run; `modules` are the test modules that exist."""
        made: list[Proof] = []
        touched = {module_of(node) for node in run.collected}
        for module in sorted(touched | {module_of(each.node) for each in self.proofs}):
            old = [each for each in self.proofs if module_of(each.node) == module]
            if module in touched:
                made.extend(_of_module(module, old, run))
            elif module in modules:
                made.extend(old)
        return Record(tuple(made))


def _of_module(module: str, old: Iterable[Proof], run: Run) -> list[Proof]:
    digest = run.digests[module]
    collected = {node for node in run.collected if module_of(node) == module}
    failed = any(module_of(node) == module for node in run.failed)
    known: dict[str, Proof] = {}
    kept: list[Proof] = []
    for each in sorted(old, key=lambda proof: proof.node != module):
        if each.digest != digest or each.node in run.failed:
            continue
        if each.node != module:
            known[each.node] = each
        elif each.count == len(collected) and run.whole:
            known |= {node: Proof(node, digest, "passed", each.commit, each.date) for node in collected - run.failed}
        elif not failed:
            kept.append(each)
    for node, outcome in run.outcomes.items():
        # What one machine lacks takes nothing from what another one has proven.
        if node in collected and (outcome == "passed" or node not in known):
            known[node] = Proof(node, digest, outcome, run.commit, run.date)
    if not known and not kept:
        # Nothing holds on this code: what held on other code stays, to be shown.
        return [each for each in old if each.digest != digest]
    return kept + _condensed(module, known, collected if run.whole else frozenset())


def _condensed(module: str, known: Mapping[str, Proof], collected: Set[str]) -> list[Proof]:
    """Return one line for a module all of whose tests are proven, and lines for those that were skipped."""
    lines = [each for node, each in sorted(known.items()) if not collected or node in collected]
    passed = [each for each in lines if each.outcome == "passed"]
    if not collected or not collected <= set(known) or not passed:
        return lines
    oldest = min(passed, key=lambda proof: proof.date)
    whole = Proof(module, oldest.digest, "passed", oldest.commit, oldest.date, len(collected))
    return [whole, *(each for each in lines if each.outcome == "skipped")]


def module_of(node: str) -> str:
    """Return the file of a test."""
    return node.partition("::")[0]


def read(path: Path) -> Record:
    """Return the record in a file."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Record:
    """Return the record that a text holds; lines that stand twice count once."""
    lines = {line for line in text.splitlines() if line and not line.startswith("#")}
    return Record(tuple(sorted((_proof(line) for line in lines), key=lambda proof: (proof.node, proof.digest))))


def _proof(line: str) -> Proof:
    try:
        digest, outcome, count, commit, date, node = line.split(" ", 5)
        return Proof(node, digest, _OUTCOMES[outcome], commit, date, int(count))
    except (ValueError, KeyError) as error:
        raise BadRecord(f"cannot read the line {line!r} of the record: restore the committed file") from error


def render(record: Record) -> str:
    """Return the text of a record, sorted by test."""
    rows = sorted(set(record.proofs), key=lambda proof: (proof.node, proof.digest, proof.date))
    return HEADER + "".join(f"{each.digest} {each.outcome} {each.count} {each.commit} {each.date} {each.node}\n" for each in rows)
