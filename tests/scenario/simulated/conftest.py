"""A `paddock up` with simulated guests as a program of its own, and commands that ask it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.embedded import Embedded, serving

Json = dict[str, Any]
OPTIONS = ("--guests", "simulated", "--nodes", "3")
PATIENCE = 60.0


class Commands:
    """`paddock` with the kubeconfig of one server."""

    def __init__(self, kubeconfig: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def run(self, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        """Return what a command says, whether it succeeds or not."""
        command = [sys.executable, "-m", "paddock.app", *words]
        return subprocess.run(command, check=False, input=text, capture_output=True, text=True, timeout=PATIENCE, env=self._environment)

    def ok(self, *words: str, text: str = "") -> str:
        """Return the output of a command, which must succeed."""
        done = self.run(*words, text=text)
        assert done.returncode == 0, f"paddock {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def get(self, *words: str) -> Json:
        """Return an object."""
        return dict(json.loads(self.ok("get", *words, "-o", "json")))

    def machines(self) -> dict[str, Json]:
        """Return all machines by namespace and name."""
        return {f"{each['namespace']}/{each['name']}": each for each in json.loads(self.ok("ls", "-A", "-o", "json"))}


def until(look: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Return what a look finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A server with three simulated nodes. No QEMU is on its PATH's side of things: it starts none."""
    with serving(tmp_path_factory.mktemp("simulated") / "server", *OPTIONS, command="up") as server:
        yield server


@pytest.fixture(scope="module")
def paddock(server: Embedded) -> Commands:
    """The commands of the server's administrator."""
    return Commands(server.kubeconfig)
