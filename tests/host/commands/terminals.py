"""Commands in a pseudo-terminal of 80 columns, and the screen that a person would see."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte

COLUMNS, ROWS = 80, 24
PADDOCK = (sys.executable, "-m", "paddock.app")
SECONDS = 60.0


def rows(lines: Sequence[str], name: str) -> list[str]:
    """Return the lines of a table that begin with a name."""
    return [line for line in lines if line.startswith(name)]


class CommandOutput:
    """The output of a command, read from one descriptor. `said` is the output that no one has waited for yet."""

    def __init__(self, end: int) -> None:
        self.said = b""
        self.everything = b""
        self._end = end

    def until(self, text: bytes, seconds: float = SECONDS) -> bytes:
        """Return the output up to this text."""
        self._wait(lambda: text in self.said, f"{text!r} did not come", seconds)
        before, _, self.said = self.said.partition(text)
        return before

    def took(self, data: bytes) -> None:
        """Note output as it comes."""

    def _wait(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"{what} within {seconds:g} s; {self.everything[-1000:]!r}"
            assert self._read() or holds(), f"{what}, and the command has ended; {self.everything[-1000:]!r}"

    def _read(self) -> bool:
        """Take what comes within a moment; False at the end of the output."""
        if not select.select([self._end], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._end, 65536)
        except OSError:
            # Linux reports an error where the other side of a terminal is closed.
            return False
        self.said += data
        self.everything += data
        self.took(data)
        return bool(data)


class PipedCommand(CommandOutput):
    """A command whose standard output is a pipe, and which goes on until it is interrupted."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        super().__init__(process.stdout.fileno())
        self._process = process

    def interrupt(self) -> tuple[int, str]:
        """Interrupt it as ctrl+C does; return its exit code and what it wrote to standard error."""
        self._process.send_signal(signal.SIGINT)
        _, errors = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, errors


class Terminal(CommandOutput):
    """A command in a pseudo-terminal; `screen` is what stands on it."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], *, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._code: int | None = None
        self._pid, end = pty.fork()
        if not self._pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(words[0], list(words), {"TERM": "xterm", **environment})
        super().__init__(end)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without the empty ones below them."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n").split("\n")

    @property
    def colours(self) -> set[str]:
        """The colours of the characters on the screen."""
        return {cell.fg for row in self.screen.buffer.values() for cell in row.values() if cell.data != " "} - {"default"}

    def took(self, data: bytes) -> None:
        """Draw what the command wrote."""
        self._stream.feed(data)

    def type(self, data: bytes) -> None:
        """Type on the keyboard; ctrl+C is b"\\x03"."""
        os.write(self._end, data)

    def send(self, number: signal.Signals) -> None:
        """Send the command a signal."""
        os.kill(self._pid, number)

    def close(self) -> int:
        """Close the terminal, as a window is closed; return the exit code."""
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def until_shown(self, holds: Callable[[list[str]], object], seconds: float = SECONDS) -> list[str]:
        """Return the lines of the screen as soon as something holds of them."""
        self._wait(lambda: bool(holds(self.lines)), "the screen does not show it", seconds)
        return self.lines

    def ended(self, seconds: float = SECONDS) -> int:
        """Read to the end of the output, and return the exit code."""
        if self._code is None:
            deadline = time.monotonic() + seconds
            while self._read():
                assert time.monotonic() < deadline, f"it goes on after {seconds:g} s; {self.everything[-1000:]!r}"
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            os.close(self._end)
        return self._code
