"""A QEMU that a script starts: the engine's command line, the monitor's commands that are needed, and nothing else."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paddock.engine.host.facts import HostFacts
from paddock.engine.machine.argv.command import command
from paddock.engine.machine.config import MachineConfig
from tools.bench.offline import BenchError


class Started:
    """A QEMU in a folder of its own, by a command line; it waits for the command to go on."""

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        self._folder = folder
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            self._qmp = self._connect("qmp.sock")
        except BenchError:
            self.process.wait()
            raise
        self._file = self._qmp.makefile("rb")
        self._file.readline()
        self.say("qmp_capabilities")

    def _connect(self, name: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(self._folder / name))
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None:
                    raise BenchError(f"QEMU by hand: {(self._folder / 'log').read_text()}") from None
                time.sleep(0.001)

    def say(self, name: str, arguments: Mapping[str, Any] | None = None, files: tuple[int, ...] = ()) -> Any:
        """Return the monitor's answer to a command."""
        message = json.dumps({"execute": name, "arguments": arguments or {}}).encode()
        socket.send_fds(self._qmp, [message], list(files))
        while True:
            answer = json.loads(self._file.readline())
            if "event" not in answer:
                return answer["return"]

    def go_on(self) -> None:
        """The guest begins."""
        self.say("cont")

    def answer(self) -> None:
        """Returns when the agent answered."""
        with self._connect("agent.sock") as agent, agent.makefile("rb") as file:
            number = int(time.monotonic() * 1000)
            agent.sendall(json.dumps({"execute": "guest-sync", "arguments": {"id": number}}).encode() + b"\n")
            while json.loads(file.readline().lstrip(b"\xff") or b"{}").get("return") != number:
                pass

    def end(self) -> None:
        """At once."""
        self._file.close()
        self._qmp.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Hand(Started):
    """A QEMU whose command line is the engine's, as it was when its state was kept or from the beginning; it goes on at once."""

    def __init__(self, folder: Path, config: MachineConfig, facts: HostFacts, *, state: Path | None = None) -> None:
        folder.mkdir(parents=True)
        super().__init__(command(config, facts.view(config), incoming=state is not None).arguments({}, {}), folder)
        if state is not None:
            self._receive(state)
        self.go_on()

    def _receive(self, state: Path) -> None:
        self.say("migrate-set-capabilities", {"capabilities": [{"capability": "x-ignore-shared", "state": True}]})
        handle = os.open(state, os.O_RDONLY)
        self.say("getfd", {"fdname": "state"}, (handle,))
        os.close(handle)
        self.say("migrate-incoming", {"uri": "fd:state"})
        while self.say("query-status")["status"] == "inmigrate":
            time.sleep(0.002)
