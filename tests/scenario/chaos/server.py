"""The real server as a process of its own, to be ended in every way a process can end."""

import asyncio
import signal
import ssl
import subprocess
import sys
from pathlib import Path

from paddock.app.directory import process as running
from paddock.app.directory.paths import DataPaths
from tests.scenario.chaos.client import Client, context_of

_PATIENCE = 60.0


class Server:
    """`paddock apiserver` in a directory."""

    def __init__(self, folder: Path) -> None:
        self.places = DataPaths(folder)
        # Beside the directory, so that it can be written when nothing else can.
        self.log = folder.with_name(f"{folder.name}.log")
        self.process: subprocess.Popen[bytes] | None = None
        self._context: ssl.SSLContext | None = None
        self.address = ""

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the process, and do not wait for it."""
        self.places.root.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "paddock.app", "apiserver", "--dir", str(self.places.root), "--listen", "127.0.0.1:0"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self.process

    async def start(self) -> None:
        """Start the process and wait until it is ready."""
        process = self.spawn()
        async with asyncio.timeout(_PATIENCE):
            while True:
                found = running.find(self.places)
                if found is not None and found.pid == process.pid:
                    break
                assert process.poll() is None, self.said()
                await asyncio.sleep(0.005)
        self.address = found.address
        if self._context is None:
            self._context = context_of(self.places.kubeconfig)

    @property
    def context(self) -> ssl.SSLContext:
        """TLS as the administrator."""
        assert self._context is not None
        return self._context

    def client(self) -> Client:
        """A connection as the administrator."""
        return Client(self.address, self.context)

    def kill(self) -> None:
        """End it at once, without a word."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def stop(self) -> int:
        """Ask it to end; returns its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(_PATIENCE):
            while (code := self.process.poll()) is None:
                await asyncio.sleep(0.01)
        return code

    def finish(self) -> None:
        """Leave no process behind, however the test went."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def said(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-4000:]
