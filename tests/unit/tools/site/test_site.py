"""The site has every page, at its place, and its menu is the index of the documents."""

from pathlib import Path

from tools.site.navigation import menu
from tools.site.staging import stage

INDEX = """# Documents

## Start: tutorials

- [The beginning](start/first.md#first): more

## Look up: reference

**Everything**

- [Kinds](reference/README.md), [again](start/first.md)
- [Elsewhere](https://example.org/x.md) and [changes](../CHANGELOG.md)

## Contribute

- [All](contribute/README.md)
"""


def test_the_menu_follows_the_index() -> None:
    names = ("reference/core/pod", "reference/core/README", "start/first", "contribute/gate", "contribute/README", "spec/x")
    pages = [Path(f"docs/{name}.md") for name in names]
    kinds = {"Kinds": ["docs/reference/README.md", {"Core": ["docs/reference/core/README.md", "docs/reference/core/pod.md"]}]}
    assert menu(INDEX, pages) == [
        {"Home": ["README.md", "docs/README.md"]},
        {"Start": ["docs/start/first.md"]},
        {"Look up": [{"Everything": [kinds, "CHANGELOG.md"]}]},
        {"Contribute": ["docs/contribute/README.md", "docs/contribute/gate.md"]},
    ]


def test_pages_keep_their_places_and_bring_what_they_link_to(tmp_path: Path) -> None:
    root, target = tmp_path / "repository", tmp_path / "pages"
    for place, text in {
        "README.md": "[a](docs/use/a.md) [l](LICENSE) [out](../secret) [web](https://example.org/LICENSE)",
        "docs/use/a.md": "[crd](../../api/crds/one.yaml#x)",
        "docs/pictures/p.svg": "<svg/>",
        "docs/recordings/r.webp": "",
        "docs/spec/s.md": "# A specification\n",
        "LICENSE": "",
        "api/crds/one.yaml": "",
        "api/crds/two.yaml": "",
        "src/code.py": "",
    }.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    (tmp_path / "secret").write_text("")
    expected = [
        "LICENSE",
        "README.md",
        "api/crds/one.yaml",
        "docs/pictures/p.svg",
        "docs/recordings/r.webp",
        "docs/spec/s.md",
        "docs/use/a.md",
    ]
    assert [each.as_posix() for each in stage(root, target)] == expected
    assert sorted(each.relative_to(target).as_posix() for each in target.rglob("*") if each.is_file()) == expected
    assert (target / "docs/spec/s.md").read_text() == "---\nsearch:\n  exclude: true\n---\n\n# A specification\n"
    assert (target / "docs/use/a.md").read_text().startswith("---\nsearch:\n  boost: 4\n---\n")
    assert (target / "README.md").read_text().startswith("---\nhide:\n")
