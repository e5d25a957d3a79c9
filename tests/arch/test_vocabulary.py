"""The vocabulary of the package: one class for one name, no banned words, rooms in `plan` (docs/design/0012-vocabulary.md)."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tools import house

PACKAGE = Path(__file__).parents[2] / "src" / "paddock"

# Metaphors, pronouns and participles that once stood for something.
BANNED = frozenset(
    [
        "About",
        "Acts",
        "Around",
        "Asked",
        "Asking",
        "Awakened",
        "Book",
        "Came",
        "Carried",
        "Census",
        "Chores",
        "Circumstances",
        "Door",
        "Doors",
        "Eyes",
        "Far",
        "Found",
        "Gathered",
        "Given",
        "Hold",
        "House",
        "Kept",
        "Known",
        "Ledger",
        "Look",
        "Looking",
        "Made",
        "Means",
        "Moved",
        "News",
        "Noted",
        "Nowhere",
        "Place",
        "Places",
        "Police",
        "Policing",
        "Reached",
        "Remains",
        "Said",
        "Saying",
        "Scene",
        "Seeing",
        "Seen",
        "Shelf",
        "Shown",
        "Sight",
        "Spoken",
        "Surroundings",
        "Taken",
        "Teller",
        "Told",
        "Trouble",
        "Voice",
        "Wanted",
        "Wish",
        "Word",
        "Words",
        "World",
    ]
)
QUESTION = re.compile(r"(What|Who|Whose|Where|When|Why|How|Which|Whether)([A-Z]|$)")
GERUND_OR_PARTICIPLE = re.compile(r"[A-Z][a-z]+(ing|ed)")
# Nouns, states and errors that only look like one; of errors, the names of Kubernetes' reasons and of the store's.
ALLOWED = frozenset(
    [
        "Autohealing",
        "Checked",
        "Compacted",
        "Counted",
        "Damaged",
        "Decoded",
        "Deleted",
        "Expired",
        "Finding",
        "Forwarded",
        "Keyring",
        "Pending",
        "Rendering",
        "Seed",
        "Setting",
        "Stopping",
        "Translated",
        "Unanswered",
        "Unauthorized",
    ]
)


@cache
def _classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted(PACKAGE.parent.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(PACKAGE.parent).as_posix())
    return found


def test_a_public_class_has_a_name_of_its_own() -> None:
    assert {name: files for name, files in _classes().items() if len(files) > 1} == {}


def test_names_are_nouns_of_the_domain() -> None:
    names = set(_classes())
    assert len(names) > 1500
    odd = {each for each in names if each in BANNED or QUESTION.match(each) or GERUND_OR_PARTICIPLE.fullmatch(each)}
    assert odd - ALLOWED == set()
    assert ALLOWED - odd == set(), "an exception that nothing needs"


def test_identifiers_are_the_words_of_the_glossary() -> None:
    assert list(house.banned(house.read(PACKAGE.parent))) == []


@pytest.mark.parametrize(
    "source",
    ["card = 1", "self._look()", "def tell(told): pass", "f(going=1)", "import a as world", "try: pass\nexcept OSError as told: pass"],
)
def test_a_word_that_the_glossary_replaces_is_seen(source: str) -> None:
    tree = ast.parse(source)
    module = house.Module(Path("paddock/base/x.py"), tree, 1, tuple(ast.walk(tree)))
    assert len(list(house.banned([module]))) == 1


def test_every_decision_has_a_room() -> None:
    assert [path.name for path in sorted((PACKAGE / "kubevirt" / "plan").glob("*.py"))] == ["__init__.py"]
