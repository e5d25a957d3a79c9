"""The prose of code and documents: active sentences, without the impersonal phrases that docs/contribute/writing.md lists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMPERSONAL = re.compile(r"\b(?:is|are|was|were|been|being|be) (?:told|said|looked at)\b", re.IGNORECASE)
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
