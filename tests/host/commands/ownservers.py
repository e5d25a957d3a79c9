"""A user's home with servers of its own, none of which runs machines."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from tests.host.commands.terminals import PADDOCK, Terminal

SECONDS = 120


class Servers:
    """A user's home with servers, none of which runs machines. `within` is the program that has them in a namespace of their own."""

    def __init__(self, home: Path, within: Sequence[str] = ()) -> None:
        self.home = home
        self._within = within
        kept = ("PATH", "LANG", "PADDOCK_CLAIMS")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(home)}
        self._running: dict[Path, subprocess.Popen[bytes]] = {}

    @property
    def default(self) -> Path:
        """The directory of the user's own server."""
        return self.home / ".local" / "state" / "paddock"

    def up(self, root: Path, seen_as: Path | None = None, *options: str) -> str:
        """Start a server, whose directory it may see at another place; return its address."""
        root.mkdir(parents=True, exist_ok=True)
        with (root / "said").open("ab") as said:
            command = [*self._within, *PADDOCK, "up", f"--dir={seen_as or root}", "--listen=127.0.0.1:0", "--network=user", *options]
            server = self._running[root] = subprocess.Popen(command, stdout=said, stderr=said, env=self.environment)
        deadline = time.monotonic() + SECONDS
        while (found := process.find(DataPaths(root))) is None or not found.ready:
            assert server.poll() is None and time.monotonic() < deadline, (root / "said").read_text()[-2000:]
            time.sleep(0.05)
        return found.address

    def down(self, root: Path) -> None:
        """End a server in good order."""
        server = self._running.pop(root)
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0

    def call(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        environment = {**self.environment, **variables}
        return subprocess.run(
            [*self._within, *PADDOCK, *words], env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )

    def good(self, *words: str, **variables: str) -> str:
        """Run a command that has to succeed."""
        ended = self.call(*words, **variables)
        assert ended.returncode == 0, (words, ended)
        return ended.stdout

    def kubectl(self, *words: str) -> str:
        """The real program, with the user's own kubeconfig."""
        ended = subprocess.run(["kubectl", *words], env=self.environment, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert ended.returncode == 0, ended
        return ended.stdout

    def end(self) -> None:
        """End the servers."""
        for root in list(self._running):
            self.down(root)

    def terminal(self, *words: str, **variables: str) -> Terminal:
        """Start a command in a terminal."""
        return Terminal([*self._within, *PADDOCK, *words], {**self.environment, **variables})

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command without a terminal."""
        command = [*self._within, *PADDOCK, *words]
        return subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
