"""The record of a long suite: which tests passed, and on which code.

One line is a test module all of whose tests passed, or one test. Lines of two branches may simply be kept together
(``.gitattributes`` merges them so): a line holds as long as the code that it names is the code that there is. So neither history nor
the commit itself is needed to judge, and a shallow clone will do; commit and date are for people.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

HEADER = "# digest of the code, number of tests, commit, date, module or test; docs/contribute/gate.md\n"


class BadRecord(Exception):
    """A record that cannot be read."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One line: a test, or all `count` tests of a module, passed on some code."""

    node: str
    digest: str
    commit: str
    date: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Code:
    """The digest of the code that each test module uses, and the number of its tests; a module that was not collected has neither."""

    digests: Mapping[str, str]
    counts: Mapping[str, int]

    def digest_of(self, node: str) -> str:
        """Return the digest of the code that a test uses."""
        return self.digests.get(module_of(node), "")


@dataclass(frozen=True, slots=True)
class Run:
    """What passed in one run of a suite, and on which code.

    `collected` are the tests of the modules that it looked at. A run is `whole` when it collected all tests of these. `failed` are the
    tests that it disproved.
    """

    commit: str
    date: str
    digests: Mapping[str, str]
    collected: Set[str]
    passed: Set[str]
    failed: Set[str] = field(default_factory=frozenset)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """The proofs of one suite."""

    proofs: tuple[Proof, ...] = ()

    def proof(self, node: str, code: Code) -> Proof | None:
        """Return what proves a test: on that code, or else the newest proof on any other."""
        module = module_of(node)
        count = code.counts.get(module)
        found = (each for each in self.proofs if each.node == node != module or (each.node == module and each.count == count))
        return max(found, key=lambda proof: (proof.digest == code.digest_of(node), proof.date), default=None)

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
    """Return the newest proof of each test of a module, of which one on this code counts as the newest."""
    digest = run.digests[module]
    collected = frozenset(node for node in run.collected if module_of(node) == module)
    failed, passed = collected & run.failed, collected & run.passed
    known: dict[str, Proof] = {}
    # Lines of the module that a run of a part cannot tell apart.
    kept: list[Proof] = []
    for each in sorted(old, key=lambda proof: (proof.digest == digest, proof.date)):
        if each.node != module:
            known[each.node] = each
        elif run.whole and each.count == len(collected):
            known |= {node: replace(each, node=node, count=1) for node in collected}
        elif not failed and not (run.whole and passed):
            kept.append(each)
    known |= {node: Proof(node, digest, run.commit, run.date) for node in passed if node not in known or known[node].digest != digest}
    return kept + _condensed(module, {node: each for node, each in known.items() if node not in failed}, collected if run.whole else None)


def _condensed(module: str, known: Mapping[str, Proof], collected: Set[str] | None) -> list[Proof]:
    """Return one line for a module all of whose tests are proven on the same code, otherwise a line for each that is."""
    lines = [each for node, each in sorted(known.items()) if collected is None or node in collected]
    if collected is None or len(lines) < len(collected) or len({each.digest for each in lines}) != 1:
        return lines
    oldest = min(lines, key=lambda proof: proof.date)
    return [replace(oldest, node=module, count=len(lines))]


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
        digest, count, commit, date, node = line.split(" ", 4)
        return Proof(node, digest, commit, date, int(count))
    except ValueError as error:
        raise BadRecord(f"cannot read the line {line!r} of the record: restore the committed file") from error


def render(record: Record) -> str:
    """Return the text of a record, sorted by test."""
    rows = sorted(set(record.proofs), key=lambda proof: (proof.node, proof.digest, proof.date))
    return HEADER + "".join(f"{each.digest} {each.count} {each.commit} {each.date} {each.node}\n" for each in rows)
