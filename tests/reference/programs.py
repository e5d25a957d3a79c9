"""Runs a program that tells what it sees, one JSON document a line, and waits for what it should say."""

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Line = dict[str, Any]
PATIENCE = 30.0


class Program:
    """A running program."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process = process
        self._log = log
        self._coming: queue.Queue[Line | None] = queue.Queue()
        # everything it said so far, and when
        self.said: list[Line] = []
        self.times: list[float] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._coming.put(json.loads(line))
        self._coming.put(None)

    def wait_for(self, event: str, where: Callable[[Line], bool] = lambda _: True, patience: float = PATIENCE) -> Line:
        """The next line of an event; what comes before it is kept in `said`."""
        end = time.monotonic() + patience
        while True:
            try:
                line = self._coming.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                tail = self._log.read_text().splitlines()[-5:]
                raise AssertionError(f"no {event!r} came; it said {self.said[-12:]} and {tail}")
            self.said.append(line)
            self.times.append(time.monotonic())
            if line["event"] == event and where(line):
                return line

    def count(self, event: str, **members: Any) -> int:
        """Return how often it reported an event so far."""
        while not self._coming.empty():
            line = self._coming.get()
            if line is not None:
                self.said.append(line)
                self.times.append(time.monotonic())
        return sum(line["event"] == event and members.items() <= line.items() for line in self.said)

    def kill(self) -> None:
        """As a crash ends it."""
        self._process.kill()
        self._process.wait()

    def end(self) -> list[Line]:
        """Ask it to end, and everything it said."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=PATIENCE)
        self.count("")
        return self.said


@contextmanager
def telling(command: Sequence[object], log: Path) -> Iterator[Program]:
    """A program for the length of a `with` block; what it says on its other output is in the log."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            yield Program(process, log)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
