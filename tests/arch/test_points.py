"""The points of the web console: each that is met names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "console.md"
ROW = re.compile(r"^\| (?P<point>[^|]+) \| (?P<state>[^|]+) \| (?P<proof>[^|]+) \|$", re.MULTILINE)
PROOF = re.compile(r"`([^`]+)`")


def points() -> dict[str, tuple[str, list[str]]]:
    """Return the state and the proofs of each point."""
    found = [each for each in ROW.finditer(PAGE.read_text(encoding="utf-8")) if each["point"] != "point" and set(each["point"]) != {"-"}]
    return {each["point"]: (each["state"], PROOF.findall(each["proof"])) for each in found}


def names_in(path: Path) -> set[str]:
    """Return the names of the tests of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ts":
        return set(re.findall(r'^test\("([^"]+)"', text, re.MULTILINE))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(text).body if isinstance(node, functions) and node.name.startswith("test_")}


def missing(proofs: list[str]) -> list[str]:
    """Return the proofs that are no tests."""
    found = [(proof, *proof.split("::", 1)) for proof in proofs if "::" in proof]
    wrong = [proof for proof, file, name in found if not (ROOT / file).is_file() or name not in names_in(ROOT / file)]
    return wrong + [proof for proof in proofs if "::" not in proof]


def test_every_point_has_its_row() -> None:
    assert len(points()) > 40


@pytest.mark.parametrize("point", points())
def test_the_tests_of_a_point_exist(point: str) -> None:
    state, proofs = points()[point]
    assert re.match(r"met$|in part: |refused: ", state)
    assert bool(proofs) is not state.startswith("refused: ")
    assert missing(proofs) == []


@pytest.mark.parametrize(
    "proof",
    [
        "tests/arch/test_points.py",
        "tests/arch/test_points.py::test_nothing",
        "tests/nowhere.py::test_it",
        "web/test/stream.test.ts::nothing",
    ],
)
def test_a_proof_that_is_gone_is_seen(proof: str) -> None:
    assert missing([proof]) == [proof]


def test_the_pictures_of_the_guide_are_small_and_shown() -> None:
    pictures = sorted((ROOT / "docs" / "recordings").glob("console-*.webp"))
    shown = re.findall(r"\(\.\./recordings/(console-[^)]+)\)", (ROOT / "docs" / "use" / "console.md").read_text(encoding="utf-8"))
    assert [each.name for each in pictures] == sorted(shown)
    assert pictures
    assert max(each.stat().st_size for each in pictures) < 60_000
