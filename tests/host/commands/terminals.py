"""Commands in a pseudo-terminal of 80 columns, and the screen that a person would see."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence

import pyte

COLUMNS, ROWS = 80, 24
PADDOCK = (sys.executable, "-m", "paddock.app")
SECONDS = 60.0


class Terminal:
    """A command in a pseudo-terminal. `said` is its output that no one has waited for yet, `screen` what stands on the terminal."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], *, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.said = b""
        self.everything = b""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._code: int | None = None
        self._pid, self._end = pty.fork()
        if not self._pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(words[0], list(words), {"TERM": "xterm", **environment})

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without the empty ones below them."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n").split("\n")

    @property
    def colours(self) -> set[str]:
        """The colours of the characters on the screen."""
        return {cell.fg for row in self.screen.buffer.values() for cell in row.values() if cell.data != " "} - {"default"}

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

    def until(self, text: bytes, seconds: float = SECONDS) -> bytes:
        """Return the output up to this text."""
        self._wait(lambda: text in self.said, f"{text!r} did not come", seconds)
        before, _, self.said = self.said.partition(text)
        return before

    def until_shown(self, holds: Callable[[list[str]], object], seconds: float = SECONDS) -> list[str]:
        """Return the lines of the screen as soon as something holds of them."""
        self._wait(lambda: bool(holds(self.lines)), "the screen does not show it", seconds)
        return self.lines

    def ended(self, seconds: float = SECONDS) -> int:
        """Read to the end of the output, and return the exit code."""
        if self._code is None:
            self._wait(lambda: not self._read(), "it goes on", seconds)
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            os.close(self._end)
        return self._code

    def _wait(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"{what} within {seconds:g} s; {self.said[-500:]!r}\n" + "\n".join(self.lines)
            self._read()

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
        self._stream.feed(data)
        return bool(data)
