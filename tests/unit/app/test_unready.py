"""A server that cannot run machines, started as users start it: it answers, and says why it is not ready."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths

WHY = "there is no qemu-system-"


def paddock(*words: str, path: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "paddock.app", *words]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=90, env=environment)


@pytest.mark.spec("kubevirt", 112)
def test_a_host_without_qemu_is_not_ready_and_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    root, nothing = tmp_path / "server", str(tmp_path / "bin")
    said = paddock("up", f"--dir={root}", "--listen=:0", "--network=user", "--detach", path=nothing)
    found = process.find(DataPaths(root))
    try:
        assert said.returncode == 2 and "Traceback" not in said.stderr
        assert WHY in said.stderr and "install QEMU" in said.stderr and "is not ready" in said.stderr
        assert found is not None and not found.ready and WHY in found.problem
        status = paddock("status", f"--dir={root}", path=nothing)
        assert status.returncode == 1
        assert "not ready: https://" in status.stdout and f"machines are unmanaged: {WHY}" in status.stdout
        status = paddock("status", f"--dir={root}", "-o", "json", path=nothing)
        document = json.loads(status.stdout)
        assert (document["running"], document["ready"]) == (True, False) and WHY in document["problem"]
    finally:
        if found is not None:
            os.kill(found.pid, signal.SIGTERM)
            while process.is_alive(found):
                time.sleep(0.01)
