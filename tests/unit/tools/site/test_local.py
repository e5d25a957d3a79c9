"""A page of the site loads nothing from elsewhere, also for its search."""

from pathlib import Path

from tools.site import local

HEAD = '<link rel="canonical" href="https://example.org/"><a href="https://example.org/">x</a>'


def test_the_worker_of_the_search_is_local_and_the_rest_is_named(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page, other = tmp_path / "docs" / "a.html", tmp_path / "b.html"
    page.write_text(f'{HEAD}<script src="https://unpkg.com/iframe-worker/shim"></script>')
    other.write_text(
        f'{HEAD}<script defer src="https://elsewhere.example/x.js"></script><link rel="stylesheet" href="http://e.example/y.css">'
    )
    assert local.keep(tmp_path) == ["b.html: https://elsewhere.example/x.js", "b.html: http://e.example/y.css"]
    assert '<script src="../fileworker.js">' in page.read_text()
    assert "window.Worker" in (tmp_path / "fileworker.js").read_text()
