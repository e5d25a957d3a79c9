"""A QEMU that a script starts: the engine's command line, the monitor's commands that are needed, and nothing else."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock.engine.host.facts import Facts
from paddock.engine.machine.argv.command import command
from paddock.engine.machine.config import MachineConfig


class Hand:
    """A QEMU that a script started."""

    def __init__(self, folder: Path, config: MachineConfig, facts: Facts, *, state: Path | None = None) -> None:
        folder.mkdir(parents=True)
        line = command(config, facts.view(config), incoming=state is not None)
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                line.arguments({}, {}), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._folder = folder
        self._state = state
        self._qmp = self._connect("qmp.sock")
        self._file = self._qmp.makefile("rb")
        self._file.readline()
        self._say("qmp_capabilities")
        if state is not None:
            self._receive(state)
        self._say("cont")

    def _connect(self, name: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(self._folder / name))
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None:
                    raise RuntimeError((self._folder / "log").read_text()) from None
                time.sleep(0.002)

    def _say(self, name: str, arguments: Mapping[str, Any] | None = None, files: tuple[int, ...] = ()) -> Any:
        message = json.dumps({"execute": name, "arguments": arguments or {}}).encode()
        socket.send_fds(self._qmp, [message], list(files))
        while True:
            answer = json.loads(self._file.readline())
            if "event" not in answer:
                return answer["return"]

    def _receive(self, state: Path) -> None:
        self._say("migrate-set-capabilities", {"capabilities": [{"capability": "x-ignore-shared", "state": True}]})
        handle = os.open(state, os.O_RDONLY)
        self._say("getfd", {"fdname": "state"}, (handle,))
        os.close(handle)
        self._say("migrate-incoming", {"uri": "fd:state"})
        while self._say("query-status")["status"] == "inmigrate":
            time.sleep(0.002)

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
