"""Every page that moved is answered at its old address."""

from pathlib import Path

import pytest

from tests.arch.test_docs import anchors
from tools.site import redirects
from tools.site.navigation import menu

ROOT = Path(__file__).parents[4]
MOVED = redirects.moved()


def test_a_redirect_leads_from_the_old_address_to_the_new_one_with_its_anchor(tmp_path: Path) -> None:
    redirects.write(tmp_path, {"docs/guide/a/README.md": "docs/use/b.md", "docs/old.md": "docs/new/README.md#part"})
    first, second = (tmp_path / "docs/guide/a/index.html").read_text(), (tmp_path / "docs/old.html").read_text()
    assert 'content="0; url=../../use/b.html"' in first
    assert 'location.replace("../../use/b.html" + (location.hash || ""))' in first
    assert '<a href="new/index.html#part">' in second
    assert 'location.replace("new/index.html" + (location.hash || "#part"))' in second


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_page_that_moved_is_at_its_new_place_alone(old: str, new: str) -> None:
    place, _, anchor = new.partition("#")
    assert not anchor or anchor in anchors((ROOT / place).read_text(encoding="utf-8"))
    assert (ROOT / place).is_file()
    assert not (ROOT / old).exists()


def test_the_pages_of_earlier_menus_have_redirects() -> None:
    assert {"docs/guide/quickstart.md", "docs/guide/providers/README.md", "docs/dev/on-disk.md"} <= MOVED.keys()


def test_the_menu_has_no_specification_design_note_or_evidence() -> None:
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    entries = str(menu((ROOT / "docs/README.md").read_text(encoding="utf-8"), pages))
    assert [folder for folder in ("docs/spec/", "docs/design/", "docs/evidence/") if folder in entries] == []
    assert "'docs/contribute/writing.md'" in entries
