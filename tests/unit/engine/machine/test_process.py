"""The kernel's facts about processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddock.engine.machine import process
from paddock.engine.machine.process import ProcessLaunch, cpu_seconds, holders, spawn, wanted_seconds


def test_who_waits_for_a_processor_wants_it() -> None:
    """Two that want all of one CPU use half of it each; a guest that boots on a busy host must not look as if it slept."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while sum(cpu_seconds(busy.pid)) < 0.2:
            pass
        assert wanted_seconds(busy.pid) > 1.3 * sum(cpu_seconds(busy.pid))
    finally:
        os.sched_setaffinity(0, before)
        busy.kill()
        busy.wait()


def test_a_program_has_a_session_of_its_own_which_it_makes_after_the_first_exec(tmp_path: Path) -> None:
    """The caller waits for that exec, and on a busy host the processes of a new session wait longer for a processor."""
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    pid = spawn(ProcessLaunch(("sleep", "600"), tmp_path, log))
    try:
        while Path(f"/proc/{pid}/comm").read_text() != "sleep\n":
            pass
        assert os.getsid(pid) == pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(log)


def test_the_first_exec_is_not_in_the_new_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_program", lambda name: "/bin/sh" if name == "setsid" else None)
    (tmp_path / "script").write_text("exec sleep 600")
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    pid = spawn(ProcessLaunch(("script",), tmp_path, log))
    try:
        assert os.getsid(pid) == os.getsid(0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(log)


_HOLD = "exec 9< {}; echo open; exec sleep 600"


@contextmanager
def holding(*words: str) -> Iterator[int]:
    """A process that has opened a file."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "open\n"
            yield process.pid
        finally:
            process.kill()


def test_the_holders_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/lock").touch()
    with holding("sh", "-c", _HOLD.format(tmp_path / "lock")) as pid, holding("sh", "-c", _HOLD.format(tmp_path / "other/lock")):
        assert holders(tmp_path / "lock") == holders(tmp_path / "link") == [pid]
    assert holders(tmp_path / "lock") == holders(tmp_path / "gone") == []


def test_a_holder_that_closes_another_file_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process does that executes one program after the other."""
    (tmp_path / "lock").touch()
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*(["999"] if str(path).endswith("/fd") else []), *listed(path)])
    with holding("sh", "-c", _HOLD.format(tmp_path / "lock")) as pid:
        assert holders(tmp_path / "lock") == [pid]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_holder_with_mounts_of_its_own(tmp_path: Path) -> None:
    """Its path of the file is none that anybody else has."""
    (tmp_path / "lock").touch()
    (tmp_path / "seen").mkdir()
    script = f"mount --bind {tmp_path} {tmp_path}/seen && {_HOLD.format(tmp_path / 'seen/lock')}"
    if subprocess.run(["unshare", "-m", "mount", "--bind", tmp_path, tmp_path / "seen"], check=False, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    with holding("unshare", "-m", "sh", "-c", script) as pid:
        assert holders(tmp_path / "lock") == [pid]


def test_one_that_is_gone_wants_nothing() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert wanted_seconds(gone.pid) == 0
