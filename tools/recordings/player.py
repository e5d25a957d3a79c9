"""Runs commands in a pseudo-terminal, and keeps what its screen showed, and when."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte

PROMPT = "$ "
# Output closer together than this is one picture.
_FRAME_SECONDS = 0.06
_TYPED_SECONDS = 0.04
_CHUNK = 65536
# A colour name of pyte, or its hexadecimal digits; "default" is the terminal's own.
Colour = str


@dataclass(frozen=True, slots=True)
class Run:
    """Characters beside each other that look the same."""

    column: int
    text: str
    colour: Colour
    bold: bool


Row = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What the screen shows from a moment on."""

    seconds: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """A scene as it was played."""

    columns: int
    lines: int
    frames: tuple[Frame, ...]
    seconds: float


class SceneFailed(Exception):
    """A command of a scene ended with an error, so there is nothing to show."""


class Player:
    """Types commands and runs them, one after the other, on one screen."""

    def __init__(
        self, columns: int, lines: int, environment: Mapping[str, str], folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._environment = environment
        self._folder = folder
        self._clock = clock
        self._began = clock()
        self._frames: list[Frame] = []

    def play(self, commands: Sequence[str], seconds: float = 300) -> Recording:
        """Run the commands; raises `SceneFailed`."""
        for command in commands:
            self._type(command)
            self._run(command, seconds)
        self._show(PROMPT)
        return Recording(self._screen.columns, self._screen.lines, tuple(self._frames), self._clock() - self._began)

    def _type(self, command: str) -> None:
        self._show(PROMPT)
        for letter in command:
            time.sleep(_TYPED_SECONDS)
            self._show(letter)
        self._show("\r\n")

    def _run(self, command: str, seconds: float) -> None:
        ours, theirs = pty.openpty()
        size = struct.pack("HHHH", self._screen.lines, self._screen.columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self._environment,
            cwd=self._folder,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            self._follow(ours, self._clock() + seconds)
            code = process.wait(timeout=seconds)
        finally:
            os.close(ours)
            if process.poll() is None:
                process.kill()
                process.wait()
        if code:
            raise SceneFailed(f"`{command}` ended with {code}:\n" + "\n".join(line.rstrip() for line in self._screen.display))

    def _follow(self, source: int, until: float) -> None:
        """Show what comes, until the other side is closed."""
        while (left := until - self._clock()) > 0:
            if not select.select([source], [], [], left)[0]:
                break
            time.sleep(_FRAME_SECONDS)
            try:
                data = os.read(source, _CHUNK)
            except OSError:
                return
            if not data:
                return
            self._show_bytes(data)
        raise SceneFailed("a command takes too long")

    def _show(self, text: str) -> None:
        self._show_bytes(text.encode())

    def _show_bytes(self, data: bytes) -> None:
        self._stream.feed(data)
        rows = tuple(_row(self._screen, line) for line in range(self._screen.lines))
        if not self._frames or rows != self._frames[-1].rows:
            self._frames.append(Frame(self._clock() - self._began, rows))


def _row(screen: pyte.Screen, line: int) -> Row:
    found: list[Run] = []
    for column in range(screen.columns):
        cell = screen.buffer[line][column]
        last = found[-1] if found else None
        if last is not None and (last.colour, last.bold) == (cell.fg, cell.bold):
            found[-1] = Run(last.column, last.text + cell.data, last.colour, last.bold)
        else:
            found.append(Run(column, cell.data, cell.fg, cell.bold))
    stripped = (Run(each.column, each.text.rstrip(), each.colour, each.bold) for each in found)
    return tuple(each for each in stripped if each.text)
