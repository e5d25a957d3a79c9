"""The documents tell the truth where a test can see it: links lead somewhere, commands exist, dependencies are explained."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from paddock.app import main as server
from paddock.cli import main
from tests.kit.pages import guides

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_PAGE = re.compile(r"\bdocs/[\w/-]+\.md")
_MAKE = re.compile(r"\bmake ([a-z][a-z-]*)\b")
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def links(text: str) -> Iterator[str]:
    return (match[1] for match in _LINK.finditer(_CODE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The names that headings get: lower case, punctuation gone, blanks as hyphens."""
    headings = (match[1] for match in _HEADING.finditer(text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(document: Path, text: str) -> list[str]:
    return [link for link in links(text) if "://" not in link and not _leads_somewhere(link, document, text)]


def _leads_somewhere(link: str, document: Path, text: str) -> bool:
    place, _, anchor = link.partition("#")
    target = document.parent / place
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8") if place else text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(document: Path) -> None:
    assert broken_links(document, document.read_text(encoding="utf-8")) == []


def test_broken_links_are_seen() -> None:
    text = "# A heading\n[a](LICENSE) [b](nowhere.md) [c](#a-heading) [d](#none) [e](https://example.org/x) `[f](code.md)`\n"
    assert broken_links(ROOT / "README.md", text) == ["nowhere.md", "#none"]


def commands_in(text: str) -> set[str]:
    """Return the words after `make` in code: a fenced line that begins with it, or a span."""
    code = "\n".join(match[0] for match in _CODE.finditer(text))
    return {match[1] for line in code.splitlines() if line.lstrip("`$ ").startswith("make ") for match in _MAKE.finditer(line)}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_make_commands_exist(name: str) -> None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    named = commands_in((ROOT / name).read_text(encoding="utf-8"))
    assert named, f"{name} names no make command"
    assert named - targets == set()


def test_the_readmes_paddock_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {match[1] for match in re.finditer(r"(?:^\$ |`)paddock (\w[\w-]*)", readme, re.MULTILINE)}
    assert len(named) > 4
    assert named <= set(main.COMMANDS) | set(server.COMMANDS)


def test_the_guides_name_every_command() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in guides())
    named = set(re.findall(r"(?:(?<=`)|(?<=paddock ))([a-z][\w-]*)", text))
    assert sorted({*main.COMMANDS, *server.COMMANDS} - named) == []


def test_the_index_names_every_document() -> None:
    folder = ROOT / "docs"
    indexes = [folder / "README.md", folder / "contribute" / "README.md"]
    named = {(index.parent / link).resolve() for index in indexes for link in links(index.read_text(encoding="utf-8"))}
    # The pages of kinds are listed in the index of the reference.
    documents = [path for path in folder.rglob("*.md") if path.parent.parent.name != "reference" and path != folder / "README.md"]
    assert [path.relative_to(ROOT).as_posix() for path in sorted(documents) if path.resolve() not in named] == []


def named_files(text: str) -> list[str]:
    """The files of this repository that stand in code spans."""
    return re.findall(r"`(\.importlinter|(?:src|tests|tools|docs|deploy)/[\w./-]+|[A-Z]+\.md)`", text)


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", *(f"docs/contribute/{path.name}" for path in sorted((ROOT / "docs" / "contribute").glob("*.md")))]
)
def test_the_files_that_developers_are_sent_to_exist(name: str) -> None:
    named = named_files((ROOT / name).read_text(encoding="utf-8"))
    assert name != "CONTRIBUTING.md" or len(named) > 50
    assert [file for file in named if not (ROOT / file).exists()] == []


def pages_in_messages(code: str) -> list[str]:
    """The texts of a module, except its documentation, that name a page of this repository."""
    tree = ast.parse(code)
    owners = [each for each in ast.walk(tree) if isinstance(each, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    told = {id(each.body[0].value) for each in owners if each.body and isinstance(each.body[0], ast.Expr)}
    texts = [each for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in told]
    return [each.value for each in texts if isinstance(each.value, str) and _PAGE.search(each.value)]


def test_messages_name_no_page_that_an_installed_paddock_lacks() -> None:
    package = ROOT / "src" / "paddock"
    found = [
        text
        for path in package.parent.rglob("*.py")
        if "docs/" in (code := path.read_text(encoding="utf-8"))
        for text in pages_in_messages(code)
    ]
    found += _PAGE.findall(
        "".join(each for each in (package / "fleet/diagnosis/rules.toml").read_text().splitlines(True) if each[0] != "#")
    )
    assert found == []


def test_a_page_in_a_message_is_seen() -> None:
    code = '"""See docs/x.md."""\nFIX = "see docs/a/b.md"\ndef f():\n    """Of docs/x.md."""\n    return f"{1}: docs/c.md has it"\n'
    assert pages_in_messages(code) == ["see docs/a/b.md", ": docs/c.md has it"]


def test_a_file_that_is_gone_is_seen() -> None:
    assert named_files("| step | `src/paddock/nothing.py`, `make gen`, `.importlinter` |") == ["src/paddock/nothing.py", ".importlinter"]


def test_ci_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^step make test\b", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)


def direct_dependencies() -> list[str]:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = metadata["dependency-groups"]
    wanted = [*metadata["project"]["dependencies"], *groups["build"]]
    wanted += [entry for entry in (*groups["dev"], *groups["docs"], *groups["libvirt"], *groups["browser"]) if isinstance(entry, str)]
    return sorted(re.split(r"[^\w.-]", requirement)[0] for requirement in wanted)


@pytest.mark.parametrize("name", direct_dependencies())
def test_each_dependency_is_pinned_and_explained(name: str) -> None:
    explained = (ROOT / "docs" / "contribute" / "dependencies.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {re.escape(name)} \| \S", explained, re.MULTILINE), f"docs/contribute/dependencies.md lacks {name}"
    lock = "\n".join((ROOT / f"requirements-{each}.lock").read_text(encoding="utf-8") for each in ("dev", "docs", "libvirt", "browser"))
    pinned = re.sub(r"[-_.]+", "-", name).lower()
    assert re.search(rf"^{pinned}==\S+", lock, re.MULTILINE), f"{name} is not pinned; run `make lock`"


def page_dependencies() -> dict[str, str]:
    package: dict[str, dict[str, str]] = json.loads((ROOT / "web" / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    return package["devDependencies"]


@pytest.mark.parametrize("name", page_dependencies())
def test_each_package_of_the_page_is_pinned_and_explained(name: str) -> None:
    explained = (ROOT / "docs" / "contribute" / "dependencies.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {re.escape(name)} \| \S", explained, re.MULTILINE), f"docs/contribute/dependencies.md lacks {name}"
    version = page_dependencies()[name]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"{name} has no exact version"
    locked = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"][f"node_modules/{name}"]
    assert locked["version"] == version
    assert locked["integrity"].startswith("sha512-")


def test_no_dependency_is_explained_that_is_gone() -> None:
    rows = re.findall(r"^\| ([\w@/.-]+) \|", (ROOT / "docs" / "contribute" / "dependencies.md").read_text(encoding="utf-8"), re.M)
    assert sorted(set(rows) - {"package", "---"} - set(direct_dependencies()) - set(page_dependencies())) == []


def test_the_locks_hold_hashes_and_name_no_place() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text(encoding="utf-8")
        pins = re.findall(r"^[a-z0-9.-]+==", text, re.MULTILINE)
        hashed = re.findall(r"^[a-z0-9.-]+==[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
        assert pins
        assert len(pins) == len(hashed)
        assert "://" not in text
        assert "index" not in text


def test_the_hooks_before_a_commit_use_what_is_here() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    entries = [hook["entry"].split() for hook in repositories[0]["hooks"]]
    assert {entry[0] for entry in entries} <= {".venv/bin/python", ".venv/bin/ruff", ".venv/bin/lint-imports"}
    assert [word for entry in entries for word in entry if word.endswith(".py") and not (ROOT / word).exists()] == []
