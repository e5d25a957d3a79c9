"""The directory of the demonstration and the processes that it started; it is gone afterwards."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen

import msgspec

from paddock.app.directory.paths import DataPaths
from paddock.app.directory.process import started_at
from paddock.base.errors import Terminal

REPOSITORY = Path(__file__).resolve().parents[2]
SERVER, SHELF = "server", "shelf"
_GRACE_SECONDS = 20.0


class Process(msgspec.Struct, frozen=True):
    """A process of ours; the time of its start tells it from another one that got its number."""

    pid: int
    started: int

    @property
    def lives(self) -> bool:
        """True while this very process exists."""
        return started_at(self.pid) == self.started


@dataclass(frozen=True)
class Place:
    """The directory of the demonstration. Each process is written down as soon as it has a number, so that none is forgotten."""

    root: Path

    @classmethod
    def default(cls) -> "Place":
        """A directory that the users of machines can pass through, as below root's home they could not."""
        if given := os.environ.get("PADDOCK_DEMO_DIR"):
            return cls(Path(given).absolute())
        if os.geteuid() == 0:
            return cls(Path("/var/lib/paddock-demo"))
        return cls(Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "paddock-demo")

    @property
    def host(self) -> DataPaths:
        """The server's own directory."""
        return DataPaths(self.root / "host")

    @property
    def examples(self) -> Path:
        """The manifests as they are applied."""
        return self.root / "examples"

    @property
    def images(self) -> Path:
        """The directory of the web server."""
        return self.root / "images"

    @property
    def key(self) -> Path:
        """The key that opens the guests."""
        return self.root / "ssh_key"

    @property
    def port(self) -> Path:
        """The port of the web server: it stays the same, because manifests name it."""
        return self.root / "shelf.port"

    @property
    def _mark(self) -> Path:
        return self.root / "paddock-demo"

    @property
    def exists(self) -> bool:
        """True if there is anything of the demonstration."""
        return self._mark.exists()

    def prepare(self) -> None:
        """Make the directory, or go on with what an earlier run left."""
        if self.root.exists() and not self.exists and any(self.root.iterdir()):
            raise Terminal(f"cannot use {self.root}", why="it holds something else", fix="name another directory: PADDOCK_DEMO_DIR=DIR")
        for folder in (self.root, self.images, self.examples):
            folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._mark.touch()

    def forget(self) -> None:
        """Remove the directory; only one that `prepare` made."""
        if self.exists:
            shutil.rmtree(self.root)

    def find(self, name: str) -> Process | None:
        """A process that was started and is still there."""
        try:
            found = msgspec.json.decode((self.root / f"{name}.process").read_bytes(), type=Process)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.lives else None

    def launch(self, name: str, command: Sequence[str | Path]) -> "Popen[bytes]":
        """Start a program in the background: what a terminal sends to us does not reach it."""
        with (self.root / f"{name}.log").open("ab") as log:
            # Not to be cut short between the start and the note: it would run for ever.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
            try:
                child = Popen(
                    [sys.executable, "-m", *map(str, command)],
                    stdin=DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd=REPOSITORY,
                    preexec_fn=lambda: (signal.pthread_sigmask(signal.SIG_SETMASK, before), None)[1],
                )
                self._note(name, Process(child.pid, started_at(child.pid) or 0))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child

    def _note(self, name: str, process: Process) -> None:
        fresh = self.root / f"{name}.process.new"
        fresh.write_bytes(msgspec.json.encode(process))
        fresh.replace(self.root / f"{name}.process")

    def end(self, name: str) -> None:
        """End a process: first as a user does, then for certain."""
        for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
            found = self.find(name)
            if found is None:
                return
            os.kill(found.pid, number)
            until = time.monotonic() + seconds
            while found.lives and time.monotonic() < until:
                time.sleep(0.02)

    def last_words(self, name: str) -> str:
        """The last line of a process's log."""
        try:
            lines = (self.root / f"{name}.log").read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else "it said nothing"
