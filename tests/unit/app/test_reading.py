"""Commands that only read make nothing: in an empty home, without a server, no file and no directory appears."""

import io
from pathlib import Path

import pytest

from paddock.app.main import COMMANDS, GROUPS
from paddock.base import directories
from paddock.cli import main
from paddock.cli.console import Console

READING = [
    "status",
    "status -o json",
    "doctor",
    "doctor -o json",
    "ctx",
    "ctx ls",
    "ctx rm",
    "image ls",
    "image ls --known",
    "image ls -o json",
    "image rm quay.io/x/y:1",
    "why vm/x",
    "console x",
    "renew",
    "down",
    "down --purge --yes",
    "explain vm",
    "examples",
    "crds",
    "validate nothere.yaml",
    "backup /nowhere/x",
    "image prune",
]


@pytest.mark.parametrize("line", READING)
def test_a_command_that_reads_makes_nothing(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    for name in ("KUBECONFIG", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(temporary))
    # Neither the directory that is named nor the one of root, for a default that ignores the name.
    monkeypatch.setattr(directories, "_OF_ROOT", tmp_path / "of-root")
    monkeypatch.setenv("PADDOCK_DIR", str(home / "state" / "paddock"))
    monkeypatch.chdir(home)
    main.run(line.split(), Console(io.BytesIO(), io.BytesIO()), COMMANDS, GROUPS)
    assert [path for path in tmp_path.rglob("*") if path not in (home, temporary)] == []
