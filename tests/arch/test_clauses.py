"""Each clause that `docs/spec/clauses.toml` names has a test, whose mark names it."""

import re

from tests.arch.trees import PACKAGE
from tools.conformance import checklist, clauses

MARK = re.compile(r'mark\.spec\(\s*"([a-z-]+)",\s*(\d+),\s*((?:"[^"]*"\s*,?\s*)+)\)')


def marked(text: str) -> set[tuple[str, int, str]]:
    """Return the clauses that the marks of a module name."""
    return {(spec, int(number), clause) for spec, number, named in MARK.findall(text) for clause in re.findall(r'"([^"]*)"', named)}


def test_marks_are_found() -> None:
    text = '@pytest.mark.spec("kube-api", 27, "names", "labels")\n@pytest.mark.spec("kube-api", 1, 2)\n'
    assert marked(text) == {("kube-api", 27, "names"), ("kube-api", 27, "labels")}


def test_each_clause_has_a_test() -> None:
    specs = PACKAGE.parents[1] / "docs" / "spec"
    declared = clauses.read_clauses(specs / "clauses.toml", checklist.read_checklists(specs))
    wanted = {(spec, number, clause) for (spec, number), each in declared.items() for clause in each}
    found = {mark for path in (PACKAGE.parents[1] / "tests").rglob("test_*.py") for mark in marked(path.read_text(encoding="utf-8"))}
    assert wanted and wanted - found == set(), "docs/spec/clauses.toml: no test is marked with these clauses"
