"""The list of mutants fits the product, and a mutant counts as noticed only when a test that is marked with its item fails."""

from pathlib import Path

import pytest

from tools.conformance import checklist, clauses
from tools.mutants import __main__ as mutants
from tools.mutants import listing
from tools.mutants.listing import Mutant

ROOT = Path(__file__).parents[3]
LISTED = listing.read(mutants.LISTING)
CHECKLISTS = checklist.read_checklists(ROOT / "docs" / "spec")
CLAUSES = clauses.read_clauses(ROOT / "docs" / "spec" / "clauses.toml", CHECKLISTS)

CONFTEST = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tools.conformance.plugin import SpecChoice, SpecChoices

def pytest_addoption(parser):
    parser.addoption("--spec-item", action="append")

def pytest_configure(config):
    config.addinivalue_line("markers", "spec(name, *items): x")
    config.addinivalue_line("markers", "soak: x")
    config.pluginmanager.register(SpecChoices([SpecChoice.parse(item) for item in config.getoption("--spec-item")]))
"""
MARKED = """
import pytest
import product

@pytest.mark.spec("kube-api", 27, "labels")
def test_labels(): assert product.LABELS == 1

@pytest.mark.spec("kube-api", 27, "names")
def test_names(): assert product.NAMES == 1

@pytest.mark.spec("stakater", 27)
def test_disks(): assert product.DISKS == 1
"""
PRODUCT = "LABELS = 1\nNAMES = 1\nDISKS = 1\n"


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: f"{mutant.item}: {mutant.fault}")
def test_a_listed_mutant_fits_the_product(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1 and mutant.old != mutant.new
    choice = mutant.choice
    assert 1 <= choice.number <= len(CHECKLISTS[choice.spec])
    known = CLAUSES.get((choice.spec, choice.number), ())
    assert choice.clause in known if known else not choice.clause
    assert all((ROOT / folder).is_dir() for folder in mutant.tests)


def test_no_mutant_is_listed_twice() -> None:
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in LISTED}) == len(LISTED)


@pytest.mark.parametrize("text", ["NAMES = 2\n", "LABELS = 1\nLABELS = 1\n"], ids=["moved away", "twice"])
def test_a_mutant_that_does_not_fit_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "product.py").write_text(text)
    with pytest.raises(ValueError, match=r"kube-api 27 labels: product\.py has [02] times 'LABELS = 1'"):
        listing.apply(Mutant("kube-api 27 labels", "", "product.py", "LABELS = 1", "LABELS = 2"), tmp_path)
    assert (tmp_path / "product.py").read_text() == text


@pytest.mark.parametrize(
    ("item", "old", "code"),
    [
        ("kube-api 27 labels", "LABELS = 1", mutants.FAILED),
        # The tests of other clauses and other specs do not count.
        ("kube-api 27 labels", "NAMES = 1", mutants.PASSED),
        ("kube-api 27", "NAMES = 1", mutants.FAILED),
        ("kube-api 27", "DISKS = 1", mutants.PASSED),
        ("kube-api 2", "LABELS = 1", mutants.NO_TESTS),
    ],
)
def test_what_the_marked_tests_notice(tmp_path: Path, item: str, old: str, code: int) -> None:
    for name, text in (("conftest.py", CONFTEST), ("src/product.py", PRODUCT), ("tests/unit/test_product.py", MARKED)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = mutants.tried(Mutant(item, "", "src/product.py", old, f"{old}00"), tmp_path)
    assert found.returncode == code, found.stdout
    assert (tmp_path / "src" / "product.py").read_text() == PRODUCT
