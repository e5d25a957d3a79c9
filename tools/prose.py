"""`python -m tools.prose`: pages and words of each folder of documents and of the menu, and sentences that are too long.

A sentence is one of running text: of a paragraph or an item of a list, not of a table or of code. A code span is one word.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.site import navigation

ROOT = Path(__file__).resolve().parents[1]
# A sentence of a page for users has no more words than this.
LONGEST = 35
_HIDDEN = re.compile(r"<!--.*?-->|^( *)(```|~~~).*?^ *\2[^\n]*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +")
_END = re.compile(r"(?<=[.!?])[*_\")]* +")
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|etc|vs)\. ")


def blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs and items of a page, each in one line, without code, tables and headings."""
    block: list[str] = []
    for line in [*_HIDDEN.sub("", text).splitlines(), ""]:
        ends = not line.strip() or line.lstrip().startswith(("|", "#", "<"))
        if (ends or _ITEM.match(line)) and block:
            yield " ".join(block)
            block = []
        if not ends:
            block.append(_ITEM.sub("", line).strip())


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page's running text; a code span is the word CODE."""
    for block in blocks(text):
        plain = _ABBREVIATED.sub(r"\1 ", _LINK.sub(r"\1", _SPAN.sub("CODE", block)))
        yield from (each for each in _END.split(plain) if each.strip())


def words(sentence: str) -> int:
    """Return the number of words of a sentence."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def too_long(text: str) -> list[str]:
    """Return the sentences of a page that have too many words."""
    return [each for each in sentences(text) if words(each) > LONGEST]


def menu() -> dict[str, int]:
    """Return the pages of the site's menu, and the words of each."""
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    entries = navigation.menu((ROOT / "docs" / "README.md").read_text(encoding="utf-8"), pages)
    return {path: len((ROOT / path).read_text(encoding="utf-8").split()) for path in navigation.paths(entries)}


def main() -> int:
    """Print the sizes of all folders, and the long sentences of the pages that are given."""
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    for folder in sorted({path.parent for path in texts}):
        found = [text for path, text in texts.items() if path.parent == folder]
        print(f"{folder!s:28} {len(found):4} pages {sum(len(text.split()) for text in found):7,} words", end="")
        print(f" {sum(len(too_long(text)) for text in found):5} sentences above {LONGEST} words")
    print(f"{'all':28} {len(texts):4} pages {sum(len(text.split()) for text in texts.values()):7,} words")
    shown = menu()
    print(f"{'the menu of the site':28} {len(shown):4} pages {sum(shown.values()):7,} words")
    for name in sys.argv[1:]:
        print(*(f"{name}: {words(each)}: {each}" for each in too_long(Path(name).read_text(encoding="utf-8"))), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
