"""The site has every page, at its place, and its menu is the index of the documents."""

from pathlib import Path

from tools.site.navigation import menu
from tools.site.staging import stage

INDEX = """# Documents

## Learn: tutorials

- [The beginning](guide/start.md#first): more

## Look up: reference

**Everything**

- [Kinds](reference/README.md), [again](guide/start.md)
- [Elsewhere](https://example.org/x.md) and [changes](../CHANGELOG.md)
"""


def test_the_menu_follows_the_index() -> None:
    pages = [Path("docs/reference/core/pod.md"), Path("docs/reference/core/README.md"), Path("docs/guide/start.md")]
    kinds = {"Kinds": ["docs/reference/README.md", {"Core": ["docs/reference/core/README.md", "docs/reference/core/pod.md"]}]}
    assert menu(INDEX, pages) == [
        {"Home": "README.md"},
        {"Learn": ["docs/guide/start.md"]},
        {"Look up": [{"Everything": [kinds, "CHANGELOG.md"]}]},
        {"All pages": "docs/README.md"},
    ]


def test_pages_keep_their_places_and_bring_what_they_link_to(tmp_path: Path) -> None:
    root, target = tmp_path / "repository", tmp_path / "pages"
    for place, text in {
        "README.md": "[a](docs/guide/a.md) [l](LICENSE) [out](../secret) [web](https://example.org/LICENSE)",
        "docs/guide/a.md": "[crd](../../api/crds/one.yaml#x)",
        "docs/pictures/p.svg": "<svg/>",
        "docs/recordings/r.webp": "",
        "LICENSE": "",
        "api/crds/one.yaml": "",
        "api/crds/two.yaml": "",
        "src/code.py": "",
    }.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    (tmp_path / "secret").write_text("")
    expected = ["LICENSE", "README.md", "api/crds/one.yaml", "docs/guide/a.md", "docs/pictures/p.svg", "docs/recordings/r.webp"]
    assert [each.as_posix() for each in stage(root, target)] == expected
    assert sorted(each.relative_to(target).as_posix() for each in target.rglob("*") if each.is_file()) == expected
