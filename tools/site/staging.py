"""The pages of the site, at the places that they have in the repository, so that every link between them stays as it is."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

# The start page is the README, as it is in the repository.
_PAGES = ("*.md", "docs/**/*.md", "docs/**/*.svg", "docs/**/*.png", "docs/**/*.webp")
# The folders that the search leaves out, as the menu does.
_UNSEARCHED = ("docs/spec/", "docs/design/", "docs/evidence/", "tests/")
_NO_SEARCH = "---\nsearch:\n  exclude: true\n---\n\n"
# The folders whose pages the search puts before those of the reference.
_FIRST = ("docs/start/", "docs/use/", "docs/manifests/", "docs/run/", "docs/cluster/", "docs/about/")
_BOOST = "---\nsearch:\n  boost: 4\n---\n\n"
# The start page has the whole width.
_HOME = "---\nhide:\n  - navigation\n  - toc\n---\n\n"
_LINK = re.compile(r"\]\(([^)\s#]+)")


def stage(root: Path, target: Path) -> list[Path]:
    """Copy the pages, and the files that they link to; return their places."""
    shutil.rmtree(target, ignore_errors=True)
    pages = sorted(path for pattern in _PAGES for path in root.glob(pattern))
    places = sorted({path.relative_to(root) for path in (*pages, *_linked(root, pages))})
    for place in places:
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / place, target / place)
        if place.suffix == ".md":
            (target / place).write_text(_settings(place.as_posix()) + (root / place).read_text(encoding="utf-8"), encoding="utf-8")
    return places


def _settings(place: str) -> str:
    """Return what the site has to know of a page."""
    if place == "README.md":
        return _HOME
    return _NO_SEARCH if place.startswith(_UNSEARCHED) else _BOOST if place.startswith(_FIRST) else ""


def _linked(root: Path, pages: Iterable[Path]) -> Iterable[Path]:
    """Return the files outside the documents that pages link to, such as the CRDs."""
    for page in pages:
        if page.suffix != ".md":
            continue
        for match in _LINK.finditer(page.read_text(encoding="utf-8")):
            found = Path(os.path.normpath(page.parent / unquote(match[1])))
            if "://" not in match[1] and found.is_file() and found.is_relative_to(root):
                yield found
