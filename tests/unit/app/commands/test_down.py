"""`paddock down`: options that go together, and a server that does not stop."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.app.commands import down
from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from paddock.app.directory.process import RunningServer
from paddock.base.errors import Terminal, Transient
from paddock.cli.console import Console
from paddock.engine.claims import HostReservations

_DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that is recorded as the server of the directory, and ignores the signal to stop."""
    with subprocess.Popen([sys.executable, "-c", _DEAF], stdout=subprocess.PIPE, text=True) as found:
        assert found.stdout is not None and found.stdout.readline() == "deaf\n"
        process.write(DataPaths(tmp_path), RunningServer(found.pid, process.started_at(found.pid) or 0, "https://127.0.0.1:1"))
        yield found
        found.kill()


def said(root: Path, *words: str) -> str:
    out, err = io.BytesIO(), io.BytesIO()
    assert down.run([f"--dir={root}", *words], Console(out, err)) == 0
    return out.getvalue().decode() + err.getvalue().decode()


def test_a_server_that_does_not_stop_is_not_killed(tmp_path: Path, deaf: "subprocess.Popen[str]") -> None:
    with pytest.raises(Transient, match="still stopping"):
        said(tmp_path, "--timeout=0.2")
    assert deaf.poll() is None


def test_a_server_that_does_not_answer_does_not_keep_guests_from_their_shutdown(tmp_path: Path, deaf: "subprocess.Popen[str]") -> None:
    assert f"killing the server in {tmp_path}" in said(tmp_path, "--guests", "--timeout=0.2")
    assert deaf.wait() == -9


def test_without_a_server_and_without_guests_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert said(tmp_path, "--guests") == ""


def test_all_directories_are_those_with_a_claim(tmp_path: Path, deaf: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDOCK_HOST_DIR", str(tmp_path / "host"))
    monkeypatch.setattr("paddock.app.directory.shutdown.os.geteuid", lambda: 0)
    (tmp_path / "engine").mkdir()
    HostReservations().users(tmp_path / "engine")
    assert f"killing the server in {tmp_path}:" in said(tmp_path / "other", "--guests", "--all", "--timeout=0.2")
    assert deaf.wait() == -9


@pytest.mark.parametrize("words", [("--all",), ("--guests", "--all", "--purge", "--yes"), ("--delete-data",)])
def test_options_that_do_not_go_together(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(Terminal, match="goes with"):
        said(tmp_path, *words)
