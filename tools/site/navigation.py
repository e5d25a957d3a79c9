"""The menu of the site: the headings and links of `docs/README.md`, which people read in the repository too.

A page's title in the menu is its own heading. No menu has specifications, design notes and evidence: the index for contributors links
them.
"""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

_INDEX = Path("docs/README.md")
_KINDS = "docs/reference/README.md"
_CONTRIBUTE = "docs/contribute/README.md"
_HEADING = re.compile(r"## (.+)")
_GROUP = re.compile(r"\*\*(.+)\*\*")
_LINK = re.compile(r"\]\(([^)#]+\.md)")
# A heading such as "Use: machines on this host" is "Use" in the menu.
_AFTER_COLON = re.compile(r":.*")
# Names of dialects that do not only begin with a capital.
_NAMES = {"kubevirt": "KubeVirt", "virtrigaud": "VirtRigaud"}


def menu(index: str, pages: Collection[Path]) -> list[Any]:
    """Return MkDocs' `nav`: one entry a heading, below it groups in bold and pages. `pages` are all that there are."""
    found: list[Any] = [{"Home": ["README.md", _INDEX.as_posix()]}]
    section: list[Any] = []
    place = section
    seen: set[str] = set()
    for line in index.splitlines():
        if heading := _HEADING.fullmatch(line):
            section = place = []
            found.append({_AFTER_COLON.sub("", heading[1]): section})
        elif group := _GROUP.fullmatch(line):
            place = []
            section.append({group[1]: place})
        for link in _LINK.findall(line):
            path = os.path.normpath(_INDEX.parent / link)
            if "://" not in link and path not in seen:
                seen.add(path)
                place.append({"Kinds": [path, *_dialects(pages)]} if path == _KINDS else path)
                if path == _CONTRIBUTE:
                    place.extend(
                        page.as_posix() for page in sorted(pages) if page.match("docs/contribute/*.md") and page.name != "README.md"
                    )
    return found


def paths(entries: Any) -> Iterator[str]:
    """Yield the pages of a menu, in its order."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        yield from (path for below in entries.values() for path in paths(below))
    else:
        yield from (path for entry in entries for path in paths(entry))


def _dialects(pages: Collection[Path]) -> list[Any]:
    """Return the generated pages of kinds, by dialect; the index names only the first page."""
    folders: dict[str, list[str]] = {}
    for page in sorted(pages):
        if page.match("docs/reference/*/*.md"):
            folders.setdefault(page.parent.name, []).append(page.as_posix())
    return [{_NAMES.get(name, name.capitalize()): sorted(found, key=_order)} for name, found in folders.items()]


def _order(path: str) -> tuple[bool, str]:
    return not path.endswith("/README.md"), path
