"""A living KubeVirt for tests, as a process of its own: `paddock up --guests simulated` (docs/testing/fixtures.md).

    with ControlPlane(release="1.6", nodes=2) as control_plane:
        ...  # a client with control_plane.kubeconfig

It is a plugin of pytest, too: `pytest_plugins = ["paddock.app.envtest"]` in the topmost conftest.py. Nothing of the server is loaded into
the process of the tests.
"""

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pytest

_READY = "paddock: ready at "
_LAST_LINES = 5
_START_SECONDS, _STOP_SECONDS = 60.0, 20.0


class ControlPlaneFailed(Exception):
    """The control plane did not start; the message has the last lines of its log."""


class ControlPlane:
    """A control plane with simulated guests in a temporary directory, from `start` to `stop`."""

    def __init__(self, *, release: str = "", nodes: int = 1, options: tuple[str, ...] = ()) -> None:
        """`release` is the release of KubeVirt to be, such as 1.3 (default: Paddock itself), and `options` are more of `paddock up`."""
        self._options = ("--guests", "simulated", "--nodes", str(nodes), *(("--as-kubevirt", release) if release else ()), *options)
        self._folder: Path | None = None
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._log: deque[str] = deque(maxlen=_LAST_LINES)
        # of the API server, once it has started
        self.address = ""

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with all rights. It goes with `stop`."""
        if self._folder is None:
            raise RuntimeError("the control plane has not started")
        return self._folder / "server" / "kubeconfig"

    @property
    def environment(self) -> dict[str, str]:
        """The environment for programs such as kubectl, virtctl and paddock."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def start(self) -> Self:
        """Return when the API server and all controllers are ready. Raises `ControlPlaneFailed`."""
        if self._process is not None:
            raise RuntimeError("the control plane has started already")
        self._folder = Path(tempfile.mkdtemp(prefix="paddock-envtest-"))
        where = ("--dir", str(self._folder / "server"), "--listen", "127.0.0.1:0", "--in-memory")
        command = [sys.executable, "-m", "paddock.app", "up", *where, *self._options]
        # A signal for the tests is theirs: they end the control plane in order.
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        # It reads to the end, so that the server never waits for a reader.
        self._reader = threading.Thread(target=self._follow, args=(self._process.stderr, lines), daemon=True)
        self._reader.start()
        try:
            self.address = self._await_ready(lines)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it, and remove all that it had. It may be called again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._reader is not None:
                self._reader.join()
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = self._reader = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def _await_ready(self, lines: "queue.SimpleQueue[str]") -> str:
        """Return the address that the log has."""
        end, why = time.monotonic() + _START_SECONDS, f"paddock up was not ready within {_START_SECONDS:.0f} seconds:"
        with contextlib.suppress(queue.Empty):
            while line := lines.get(timeout=max(end - time.monotonic(), 0)):
                if line.startswith(_READY):
                    return line.removeprefix(_READY).partition(";")[0].strip()
            why = "paddock up ended:"
        raise ControlPlaneFailed("\n".join((why, *self._log)))

    def _follow(self, log: IO[str], lines: "queue.SimpleQueue[str]") -> None:
        """Hand on each line, and an empty text at the end."""
        for line in log:
            self._log.append(line.rstrip())
            lines.put(line)
        lines.put("")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the control plane, on the command line and in the configuration of pytest."""
    group = parser.getgroup("paddock")
    group.addoption("--kubevirt-release", metavar="RELEASE", help="Release of KubeVirt to be, 1.3 to 1.9")
    group.addoption("--kubevirt-nodes", metavar="N", help="Nodes that simulated guests seem to run on")
    parser.addini("kubevirt_release", "Release of KubeVirt to be, 1.3 to 1.9 (default: Paddock itself)", default="")
    parser.addini("kubevirt_nodes", "Nodes that simulated guests seem to run on", default="1")


@pytest.fixture(scope="session")
def kubevirt(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A living KubeVirt with simulated guests, one for all tests."""
    release = pytestconfig.getoption("--kubevirt-release") or pytestconfig.getini("kubevirt_release")
    nodes = pytestconfig.getoption("--kubevirt-nodes") or pytestconfig.getini("kubevirt_nodes")
    with ControlPlane(release=str(release), nodes=int(nodes)) as control_plane:
        yield control_plane
