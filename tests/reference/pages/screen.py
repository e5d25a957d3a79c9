"""A program at a terminal of its own, as a person sees it: keys go in, and pyte keeps what the screen shows."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

LINES, COLUMNS = 40, 140
KEYS = {"<enter>": b"\r", "<esc>": b"\x1b", "<tab>": b"\t", "<down>": b"\x1b[B", "<up>": b"\x1b[A"}
_KEY = re.compile(r"<[a-z]+>|<(?:ctrl|shift)-.>|.")
_SECONDS = 60.0


class Screen:
    """The person's side of the terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                ready, _, _ = select.select([self._descriptor], [], [], 1)
                data = os.read(self._descriptor, 65536) if ready else None
            except (OSError, ValueError):
                return
            if data == b"":
                return
            if data:
                with self._lock:
                    self._stream.feed(data)

    def press(self, keys: str) -> None:
        """Press keys; `<enter>`, `<ctrl-d>` and the like stand for one."""
        for key in _KEY.findall(keys):
            os.write(self._descriptor, _bytes(key))
            # A program that reads keys one by one takes what comes with an escape for one key.
            time.sleep(0.5 if key == "<esc>" else 0.05)

    def text(self) -> str:
        """Return what the screen shows, line by line."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def shows(self, wanted: str, seconds: float = _SECONDS) -> None:
        """Wait until a line has a text, in which `...` stands for anything."""
        pattern = re.compile(".*".join(r"\s+".join(map(re.escape, part.split())) for part in wanted.split("...")))
        end = time.monotonic() + seconds
        while not pattern.search(self.text()):
            assert time.monotonic() < end, f"the screen does not show {wanted!r}:\n{self.text()}"
            time.sleep(0.1)


def _bytes(key: str) -> bytes:
    """Return what a terminal sends for a key."""
    if key.startswith("<ctrl-"):
        return bytes([ord(key[6]) & 0x1F])
    return key[7].upper().encode() if key.startswith("<shift-") else KEYS.get(key) or key.encode()


@contextmanager
def at_screen(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[Screen]:
    """A program at a terminal for the length of a `with` block."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        # The terminal controls it: k9s opens /dev/tty.
        ["setsid", "--ctty", *command],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield Screen(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
