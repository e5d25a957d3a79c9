"""Builds from clones: the commit decides and not what the clone has become, and without a clone the error says which to make.

A stand-in for `go` writes the file it is asked for, with the source that it was given.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reference import clones
from tests.reference.build import Program

pytestmark = pytest.mark.reference

FAKE_GO = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
    -modfile=*) modules="${1#-modfile=}" ;;
    -o) output="$2" ;;
    esac
    shift
done
cat main.go "${modules:-go.mod}" > "$output"
"""


def commit(directory: Path, **files: str) -> str:
    """Commit files in a repository, which is made if it is not there, and return the commit."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("_", ".")).write_text(text)
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "x")):
        subprocess.run(["git", *command], cwd=directory, check=True)
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> clones.CloneRecipe:
    """A recipe of a program and the module that it requires, with clones of both."""
    monkeypatch.setenv(clones.CLONES, str(tmp_path / "clones"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "go").write_text(FAKE_GO)
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    first = commit(tmp_path / "clones/makers/program", main_go="first\n", go_mod="module example.com/program\n\ngo 1.24.0\n", go_sum="")
    kinds = commit(tmp_path / "clones/makers/kinds", go_mod="module example.com/kinds\n")
    beside = clones.Clone("makers/kinds", kinds, "example.com/kinds")
    return clones.CloneRecipe("program", clones.Clone("makers/program", first), (Program("program", "./cmd"),), (beside,))


def quiet(_: str) -> None:
    """Says nothing."""


def test_the_commit_is_built_whatever_the_clone_has_become(recipe: clones.CloneRecipe, tmp_path: Path) -> None:
    commit(tmp_path / "clones/makers/program", main_go="second\n")
    done = clones.built(recipe, quiet, cache=tmp_path)
    assert (done / "program").read_text().startswith("first\n") and [each.name for each in done.iterdir()] == ["program"]
    assert recipe.clone.show("main.go") == b"first\n"


def test_modules_that_the_proxy_lacks_come_from_their_clones(recipe: clones.CloneRecipe, tmp_path: Path) -> None:
    done = clones.built(recipe, quiet, cache=tmp_path)
    (line,) = [each for each in (done / "program").read_text().splitlines() if each.startswith("replace ")]
    assert line.startswith("replace example.com/kinds => /") and line.endswith("/beside/example.com/kinds")


def test_what_was_built_is_found_without_its_clone(recipe: clones.CloneRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = clones.built(recipe, quiet, cache=tmp_path)
    monkeypatch.delenv(clones.CLONES)
    assert clones.built(recipe, quiet, cache=tmp_path) == first
    other = replace(recipe, clone=replace(recipe.clone, commit="0" * 40))
    assert other.key != recipe.key
    with pytest.raises(clones.NoClone, match=r"names no directory with a clone of it; git clone --bare https://github.com/makers/program "):
        clones.built(other, quiet, cache=tmp_path)


def test_a_commit_that_a_clone_lacks_is_named(recipe: clones.CloneRecipe, tmp_path: Path) -> None:
    other = replace(recipe, clone=replace(recipe.clone, commit="0" * 40))
    with pytest.raises(clones.NoClone, match=r"cannot read github\.com/makers/program: .*; git -C .* fetch"):
        clones.built(other, quiet, cache=tmp_path)


def test_a_clone_may_lack_what_is_not_read(recipe: clones.CloneRecipe, tmp_path: Path) -> None:
    """Only some paths are read, a vendored module of the tree stands in for what the proxy lacks, and files stay beside the programs."""
    home = tmp_path / "clones/makers/program"
    (home / "cmd").mkdir()
    (home / "cmd/start.sh").write_text("echo start\n")
    (home / "vendor/example.com/binding").mkdir(parents=True)
    (home / "vendor/example.com/binding/binding.go").write_text("package binding\n")
    made = replace(recipe.clone, commit=commit(home, large_bin="a disk of gigabytes\n"))
    blob = subprocess.run(
        ["git", "rev-parse", f"{made.commit}:large.bin"], cwd=home, check=True, capture_output=True, text=True
    ).stdout.strip()
    (home / ".git/objects" / blob[:2] / blob[2:]).unlink()
    beside = replace(made, module="example.com/binding", folder="vendor/example.com/binding")
    some = replace(recipe, clone=made, beside=(beside,), paths=("cmd", "main.go", "go.mod", "go.sum"), files=("cmd/start.sh",))
    folder = clones.built(some, quiet, cache=tmp_path / "cache")
    assert sorted(each.name for each in folder.iterdir()) == ["program", "start.sh"]
    assert "replace example.com/binding => " in (folder / "program").read_text()
    with pytest.raises(clones.NoClone):
        clones.built(replace(some, paths=()), quiet, cache=tmp_path / "cache")
