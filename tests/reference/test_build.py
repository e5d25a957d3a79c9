"""The build of the reference programs: once per recipe, with one builder at a time, and with errors that say what to do.

A stand-in for `go` writes the file it is asked for, so these tests need no toolchain and take no time.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reference import build

pytestmark = pytest.mark.reference

FAKE_GO = """#!/bin/sh
echo "$@" >> "{log}"
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then echo built > "$2"; fi
    shift
done
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A copy of the module, to change."""
    return shutil.copytree(build.MODULE, tmp_path / "module")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that builds nothing; the file lists how it was called."""
    tools = tmp_path / "tools"
    tools.mkdir()
    log = tmp_path / "calls"
    (tools / "go").write_text(FAKE_GO.format(log=log))
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.defpath}")
    return log


def quiet(_: str) -> None:
    """Says nothing."""


def test_a_recipe_is_built_once(tmp_path: Path, module: Path, calls: Path) -> None:
    first = build.ensure(quiet, cache=tmp_path, module=module)
    assert first.kube_apiserver.read_text() == "built\n"
    assert first.version == build.version_of(module, "k8s.io/kubernetes")
    assert build.ensure(quiet, cache=tmp_path, module=module) == first
    lines = calls.read_text().splitlines()
    assert [line.split()[-1] for line in lines] == [program.package for program in build.PROGRAMS]
    assert all(f"component-base/version.gitVersion={first.version}" in line for line in lines)


def test_a_changed_version_is_built_anew(tmp_path: Path, module: Path, calls: Path) -> None:
    first = build.ensure(quiet, cache=tmp_path, module=module)
    with (module / "go.sum").open("a") as sums:
        sums.write("another line\n")
    assert build.ensure(quiet, cache=tmp_path, module=module) != first


def test_what_was_built_is_found_without_go(tmp_path: Path, module: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.ensure(quiet, cache=tmp_path, module=module)
    monkeypatch.setenv("PATH", "/nowhere")
    assert build.ensure(quiet, cache=tmp_path, module=module) == first


def test_what_is_to_be_built_is_known_before(tmp_path: Path, module: Path, calls: Path) -> None:
    recipe, names = replace(build.ORACLE, module=module), [program.name for program in build.PROGRAMS]
    assert build.missing([recipe, recipe], cache=tmp_path) == names * 2
    build.built(recipe, quiet, cache=tmp_path)
    assert build.missing([recipe], cache=tmp_path) == []


def test_what_stands_in_for_a_module_is_a_part_of_the_recipe(tmp_path: Path, module: Path) -> None:
    (tmp_path / "types.go").write_text("package types\n")
    recipe = replace(build.ORACLE, module=module, stand_ins=tmp_path)
    before = recipe.key
    assert before != replace(recipe, stand_ins=None).key
    (tmp_path / "types.go").write_text("package other\n")
    assert recipe.key != before


def test_without_go_the_error_says_what_to_install(tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(build.GoMissing, match=r"no `go` on PATH; install Go 1\.\d+"):
        build.ensure(quiet, cache=tmp_path, module=module)


def test_a_recipe_has_its_own_versions_and_sources(tmp_path: Path, calls: Path) -> None:
    module = tmp_path / "small"
    module.mkdir()
    (module / "main.go").write_text("package main\n")
    for release in ("1", "2"):
        (module / f"{release}.mod").write_text(f"go 1.24.0\nrequire k8s.io/kubectl v0.{release}.0\n")
        (module / f"{release}.sum").write_text("")
    first, second = (
        build.Recipe(f"k-{release}", module, (build.Program("k", "."),), "k8s.io/kubectl", modfile=f"{release}.mod")
        for release in ("1", "2")
    )
    places = [build.built(recipe, quiet, cache=tmp_path) for recipe in (first, second, first)]
    assert [place.parent.name for place in places] == ["k-1", "k-2", "k-1"]
    assert [("-modfile=2.mod" in line, "gitVersion=v1.2.0" in line) for line in calls.read_text().splitlines()] == [
        (False, False),
        (True, True),
    ]
    key = first.key
    (module / "main.go").write_text("package main // changed\n")
    assert first.key != key


def test_a_failed_build_leaves_nothing_that_looks_built(tmp_path: Path, module: Path, calls: Path) -> None:
    go = tmp_path / "tools" / "go"
    working = go.read_text()
    go.write_text('#!/bin/sh\ncase "$*" in *kubectl*) echo no such module; exit 1;; esac\n')
    with pytest.raises(build.BuildFailed, match=r"cannot build kubectl: .*\nno such module"):
        build.ensure(quiet, cache=tmp_path, module=module)
    go.write_text(working)
    assert build.ensure(quiet, cache=tmp_path, module=module).kubectl.read_text() == "built\n"


def test_a_build_that_was_killed_is_begun_again(tmp_path: Path, module: Path, calls: Path) -> None:
    partial = tmp_path / "oracle" / f"{build.recipe_key(module)}.partial"
    partial.mkdir(parents=True)
    (partial / "etcd").write_text("half")
    assert build.ensure(quiet, cache=tmp_path, module=module).etcd.read_text() == "built\n"
    assert not partial.exists()


def test_parallel_runs_build_once(tmp_path: Path, calls: Path) -> None:
    command = [sys.executable, "-m", "tests.reference.build"]
    environment = {**os.environ, "PADDOCK_CACHE": str(tmp_path / "cache")}
    root = Path(__file__).parents[2]
    runs = [
        subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    printed = {run.communicate()[0] for run in runs}
    assert printed == {f"{tmp_path / 'cache' / 'oracle' / build.recipe_key()}\n"}
    assert len(calls.read_text().splitlines()) == len(build.PROGRAMS)


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"PADDOCK_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/paddock")),
        ({}, Path.home() / ".cache" / "paddock"),
    ],
)
def test_the_cache_is_where_the_user_wants_it(environ: dict[str, str], wanted: Path) -> None:
    assert build.cache_root(environ) == wanted
