"""A living KubeVirt for tests, as a process of its own: `paddock up --guests simulated` (docs/testing/fixtures.md).

    with ControlPlane(release="1.6", nodes=2) as control_plane:
        ...  # a client with control_plane.kubeconfig

`paddock.envtest.plugin` has it as fixtures of pytest. Nothing of the server is loaded into the process of the tests.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import IO, Self

_READY = "paddock: ready at "
_LAST_LINES = 5
_START_SECONDS, _STOP_SECONDS = 60.0, 20.0


class StartFailed(Exception):
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
        """Return when the API server and all controllers are ready. Raises `StartFailed`."""
        if self._process is not None:
            raise RuntimeError("the control plane has started already")
        self._folder = Path(tempfile.mkdtemp(prefix="paddock-envtest-"))
        where = ("--dir", str(self._folder / "server"), "--listen", "127.0.0.1:0", "--in-memory")
        command = [sys.executable, "-m", "paddock.app", "up", *where, *self._options]
        # A signal for the tests is theirs: they end the control plane in order.
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
        log = self._process.stderr
        assert log is not None
        try:
            self.address = self._await_ready(log)
        except BaseException:
            self.stop()
            raise
        # Read to its end, so that the server never waits for a reader.
        self._reader = threading.Thread(target=self._drain, args=(log,), daemon=True)
        self._reader.start()
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

    def _await_ready(self, log: IO[str]) -> str:
        """Return the address that the log tells. Nothing but whole lines are read, so that none is left in a buffer."""
        end = time.monotonic() + _START_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(log, selectors.EVENT_READ)
            while selector.select(max(end - time.monotonic(), 0)):
                line = log.readline()
                if not line:
                    raise StartFailed("\n".join(("paddock up ended:", *self._log)))
                self._log.append(line.rstrip())
                if line.startswith(_READY):
                    return line.removeprefix(_READY).partition(";")[0].strip()
        raise StartFailed("\n".join((f"paddock up was not ready within {_START_SECONDS:.0f} seconds:", *self._log)))

    def _drain(self, log: IO[str]) -> None:
        for line in log:
            self._log.append(line.rstrip())
