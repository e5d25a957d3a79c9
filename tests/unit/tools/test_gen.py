"""Writing generated files: what differs, what is put right, and that nothing else is touched."""

from pathlib import Path

from tools.gen import State, Target, differences, settle

TARGETS = (
    Target("api", lambda: {"a.yaml": "a\n", "deep/b.yaml": "b\n"}),
    Target("docs", lambda: {"page.md": "page\n"}, foreign=frozenset({"conformance.md"})),
)


def test_missing_stale_and_surplus_files_are_found_and_settled(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "api" / "a.yaml").write_text("old\n")
    (tmp_path / "api" / "gone.yaml").write_text("x\n")
    (tmp_path / "docs" / "conformance.md").write_text("by hand of another tool\n")
    found = list(differences(tmp_path, TARGETS))
    assert [(one.path.relative_to(tmp_path).as_posix(), one.state) for one in found] == [
        ("api/a.yaml", State.STALE),
        ("api/deep/b.yaml", State.MISSING),
        ("api/gone.yaml", State.SURPLUS),
        ("docs/page.md", State.MISSING),
    ]
    for one in found:
        settle(one)
    assert list(differences(tmp_path, TARGETS)) == []
    assert (tmp_path / "api" / "deep" / "b.yaml").read_text() == "b\n"
    assert not (tmp_path / "api" / "gone.yaml").exists()
    assert (tmp_path / "docs" / "conformance.md").exists()


def test_line_ends_count(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_bytes(b"page\r\n")
    assert [one.state for one in differences(tmp_path, TARGETS[1:])] == [State.STALE]
