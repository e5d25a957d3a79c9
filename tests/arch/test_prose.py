"""The prose of code and documents: active sentences, without the impersonal phrases that docs/contribute/writing.md lists."""

import re
from pathlib import Path

import pytest

from tests.kit.pages import guides
from tools import prose

ROOT = Path(__file__).resolve().parents[2]
IMPERSONAL = re.compile(r"\b(?:is|are|was|were|been|being|be) (?:told|said|looked at)\b", re.IGNORECASE)
# Words that a native engineer would not use so.
WORDS = r"\b(?:anew|whoever|nobody|somebody|goes on|go on|went on)\b"
UNENGLISH = re.compile(WORDS, re.IGNORECASE)
# A page for users has no dates, loads and history of what was measured, and none of these words.
FOREIGN = re.compile(r"\b(?:20\d\d-\d\d-\d\d|(?:at a )?load of \d|since then|earlier build|after this page)\b|" + WORDS, re.IGNORECASE)
# The page of rules quotes what it forbids; these are written from declarations and from other programs' names of tests.
EXEMPT = ("docs/contribute/writing.md", "docs/evidence/", "docs/reference/")


def test_nothing_is_told_said_or_looked_at() -> None:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("tools/**/*.py"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    names = [(each, str(each.relative_to(ROOT))) for each in files]
    found = [
        f"{name}:{number}: {line.strip()}"
        for file, name in names
        if not name.startswith(EXEMPT)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if IMPERSONAL.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *guides()], ids=lambda page: f"{page.parent.name}/{page.name}")
def test_sentences_are_short(page: Path) -> None:
    assert prose.too_long(page.read_text(encoding="utf-8")) == []


def test_pages_for_users_have_no_dates_history_or_foreign_words() -> None:
    found = [
        f"{page.name}: {each}" for page in guides() for each in prose.sentences(page.read_text(encoding="utf-8")) if FOREIGN.search(each)
    ]
    assert found == []


def test_the_menu_is_one_that_a_stranger_reads() -> None:
    shown = prose.menu()
    assert len(shown) <= 147
    assert sum(shown.values()) <= 220_000


def test_texts_of_the_program_have_no_foreign_words() -> None:
    reference = ROOT / "docs" / "reference"
    pages = [reference / "commands.md", reference / "why.md", reference / "settings.md", *reference.glob("*/*.md")]
    lines = [(page.name, line) for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    # The id of a cause stays the same.
    assert [(name, line) for name, line in lines if UNENGLISH.search(line.replace("`nobody-cares`", ""))] == []


def test_a_long_sentence_is_seen() -> None:
    long = f"It has {'many ' * 34}words."
    text = f"# A heading\n\n| {long} |\n\n```text\n{long}\n```\n\nShort. {long}\n- {long.replace('many', '`a b`')} So [is this](x.md).\n"
    assert prose.too_long(text) == [long, long.replace("many", "CODE")]


def test_a_date_and_a_foreign_word_are_seen() -> None:
    assert all(FOREIGN.search(each) for each in ("Measured on 2026-11-28.", "At a load of 8.", "Whoever asks.", "It is made anew."))
