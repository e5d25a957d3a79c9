"""The start and the end of the reference server: errors with the log in them, and nothing left running, however the run ends."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference.build import Binaries
from tests.reference.server import ATTEMPTS, StartFailed, running

pytestmark = pytest.mark.reference

# Starts a server, says that it is up, and waits to be killed.
HOLD = """
import sys
from pathlib import Path
from tests.reference.build import Binaries
from tests.reference.server import running
etcd, kubectl, apiserver, directory = map(Path, sys.argv[1:])
with running(Binaries(etcd, kubectl, apiserver, ""), directory):
    print("up", flush=True)
    sys.stdin.read()
"""


def broken(tmp_path: Path, says: str) -> Binaries:
    """Programs that write a line and end."""
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho start >> "{tmp_path}/starts"\necho "{says}"\nexit 3\n')
    program.chmod(0o755)
    return Binaries(program, program, program, "")


@pytest.mark.parametrize(("says", "starts"), [("disk is full", 1), ("bind: address already in use", ATTEMPTS)])
def test_a_failed_start_shows_the_log_and_only_a_lost_port_is_tried_again(tmp_path: Path, says: str, starts: int) -> None:
    with pytest.raises(StartFailed, match=f"cannot start etcd: it ended with code 3\n{says}; the whole log is in .*"):
        running(broken(tmp_path, says), tmp_path).__enter__()
    assert len((tmp_path / "starts").read_text().splitlines()) == starts


def test_the_data_goes_and_the_logs_stay(binaries: Binaries, tmp_path: Path) -> None:
    with running(binaries, tmp_path) as access:
        assert (tmp_path / "etcd").is_dir()
        assert access.kubeconfig.stat().st_mode & 0o077 == 0
    assert not (tmp_path / "etcd").exists()
    assert (tmp_path / "etcd.log").exists()
    assert (tmp_path / "kube-apiserver.log").stat().st_size > 0


def test_the_programs_die_with_the_run(binaries: Binaries, tmp_path: Path) -> None:
    programs = [str(path) for path in (binaries.etcd, binaries.kubectl, binaries.kube_apiserver)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, *programs, str(tmp_path)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"up\n"
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        ends = [os.pidfd_open(int(child)) for child in children]
        assert len(ends) == 2
        run.kill()
    for end in ends:
        # A pidfd becomes readable when its process has ended.
        assert select.select([end], [], [], 30)[0]
        os.close(end)
