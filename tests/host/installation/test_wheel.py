"""The wheel in fresh environments: what a user has after `pip install`, and that a source distribution gives the same."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.packages import wheel

ROOT = Path(wheel.__file__).resolve().parents[2]
BESIDE = (
    "share/man/man1/paddock.1",
    "share/man/man1/paddock-up.1",
    "share/bash-completion/completions/paddock",
    "share/zsh/site-functions/_paddock",
    "share/fish/vendor_completions.d/paddock.fish",
    "share/paddock/systemd/system/paddock.service",
    "share/paddock/systemd/system/paddock-guests.service",
    "share/paddock/systemd/user/paddock.service",
    "share/paddock/systemd/user/paddock-guests.service",
    "share/paddock/helm/kubevirt-operator/Chart.yaml",
    "share/paddock/helm/paddock/values.schema.json",
    "share/paddock/kubevirt-operator/config/crd/machines.vitistack.io.yaml",
    "share/paddock/kustomize/kustomization.yaml",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel.build(tmp_path_factory.mktemp("wheel"))


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, env={**os.environ, **environment}, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def judge(paddock: Path, prefix: Path) -> None:
    """Judge an installation: its commit, its commands without a server, what lies beside it."""
    version = json.loads(run(paddock, "version", "-o", "json"))
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    assert version["commit"].removesuffix("-dirty") == commit
    assert run(paddock, "examples", "--list")
    assert "CustomResourceDefinition" in run(paddock, "crds", "--dialect", "stakater")
    assert run(paddock, "completion", "bash").startswith("# bash completion")
    assert "validate\t" in run(paddock.with_name("kubectl_complete-paddock"), "valid")
    assert run(paddock.with_name("kubectl-paddock"), "--version").startswith("paddock ")
    assert "fake" in run(
        paddock.with_name("python"), "-c", "from paddock_drivers import catalog; catalog.find('fake'); print(*catalog.TYPES)"
    )
    assert [name for name in BESIDE if not (prefix / name).is_file()] == []


def test_pip(built: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "--disable-pip-version-check", "install", "-q", built)
    judge(tmp_path / "venv/bin/paddock", tmp_path / "venv")


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_tools(tool: str, built: Path, tmp_path: Path) -> None:
    program = shutil.which(tool)
    if program is None:
        run(sys.executable, "-m", "venv", tmp_path / "tool")
        run(tmp_path / "tool/bin/pip", "--disable-pip-version-check", "install", "-q", tool)
        program = str(tmp_path / "tool/bin" / tool)
    places = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man", "UV_TOOL_DIR": "uv", "UV_TOOL_BIN_DIR": "bin"}
    words = ("install",) if tool == "pipx" else ("tool", "install", "--python", sys.executable)
    run(program, *words, built, **{name: str(tmp_path / place) for name, place in places.items()})
    prefix = tmp_path / ("pipx/venvs/paddock" if tool == "pipx" else "uv/paddock")
    assert run(tmp_path / "bin/paddock", "--version").startswith("paddock ")
    judge(prefix / "bin/paddock", prefix)


def test_a_source_distribution_gives_the_same_wheel(built: Path, tmp_path: Path) -> None:
    source = wheel.source_distribution(tmp_path)
    again = wheel.from_source(source, tmp_path / "again")
    with zipfile.ZipFile(built) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())
        differing = [name for name in first.namelist() if first.read(name) != second.read(name)]
    assert differing == []
