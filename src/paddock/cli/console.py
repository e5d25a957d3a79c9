"""The output of a command. Text is UTF-8 whatever the terminal says; a closed pipe ends the command quietly."""

import sys
from typing import IO


class Console:
    """Standard output and standard error of one command."""

    def __init__(self, out: IO[bytes] | None = None, err: IO[bytes] | None = None) -> None:
        self._out = out or sys.stdout.buffer
        self._err = err or sys.stderr.buffer

    def out(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "backslashreplace"))

    def say(self, line: str) -> None:
        """Write a line to standard error, after everything that was written to standard output."""
        self._out.flush()
        self._err.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self._err.flush()

    def ask(self, question: str) -> None:
        """Write a question to standard error; the answer follows it on its line."""
        self._out.flush()
        self._err.write(question.encode("utf-8", "backslashreplace"))
        self._err.flush()

    def note(self, text: str) -> None:
        """Write to standard error as it is; what moves the cursor belongs here."""
        self._err.write(text.encode("utf-8", "backslashreplace"))
        self._err.flush()

    @property
    def error_is_terminal(self) -> bool:
        """True if standard error is a terminal."""
        return self._err.isatty()

    def flush(self) -> None:
        """Write out what is buffered."""
        self._out.flush()
