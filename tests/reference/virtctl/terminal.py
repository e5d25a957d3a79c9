"""A program at a terminal: what a person would type and read."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


class Terminal:
    """The person's side."""

    def __init__(self, descriptor: int, process: "subprocess.Popen[bytes]") -> None:
        self._descriptor = descriptor
        self.process = process
        self.seen = b""

    def type(self, text: bytes) -> None:
        """Press keys."""
        os.write(self._descriptor, text)

    def read_until(self, text: bytes, seconds: float = 60) -> bytes:
        """Read until a text has come; gives what came up to it, and forgets it."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            self._read(end - time.monotonic(), text)
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def ended(self, seconds: float = 20) -> bytes:
        """Wait for the end of the program; gives what it said meanwhile."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            try:
                self._read(0.2, b"")
            except AssertionError:
                assert time.monotonic() < end, f"it goes on: {self.seen[-500:]!r}"
        try:
            while True:
                self._read(0.2, b"")
        except AssertionError:
            return self.seen

    def _read(self, seconds: float, wanted: bytes) -> None:
        ready, _, _ = select.select([self._descriptor], [], [], max(seconds, 0))
        try:
            data = os.read(self._descriptor, 65536) if ready else b""
        except OSError:
            data = b""
        assert data, f"{wanted!r} did not come; last: {self.seen[-800:]!r}"
        self.seen += data


@contextmanager
def at_terminal(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Terminal]:
    """A program at a terminal of its own for the length of a block."""
    own, its = pty.openpty()
    process = subprocess.Popen(
        command, env={**environment, "TERM": "vt100"}, stdin=its, stdout=its, stderr=its, start_new_session=True, close_fds=True
    )
    os.close(its)
    try:
        yield Terminal(own, process)
    finally:
        process.kill()
        process.wait()
        os.close(own)
