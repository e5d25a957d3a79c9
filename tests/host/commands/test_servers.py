"""Two servers side by side: their contexts, and the order in which commands find the one that they talk to."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from paddock.app.directory import process
from paddock.app.directory.paths import DataPaths
from tests.host.commands.terminals import PADDOCK

SECONDS = 120


class Servers:
    """A user's home with servers, none of which runs machines."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = ("PATH", "LANG", "PADDOCK_CLAIMS")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(home)}
        self._running: list[subprocess.Popen[bytes]] = []

    @property
    def default(self) -> Path:
        """The directory of the user's own server."""
        return self.home / ".local" / "state" / "paddock"

    def up(self, root: Path) -> str:
        """Start a server; return its address."""
        root.mkdir(parents=True, exist_ok=True)
        with (root / "said").open("ab") as said:
            command = [*PADDOCK, "up", f"--dir={root}", "--listen=127.0.0.1:0", "--network=user"]
            self._running.append(subprocess.Popen(command, stdout=said, stderr=said, env=self.environment))
        deadline = time.monotonic() + SECONDS
        while (found := process.find(DataPaths(root))) is None or not found.ready:
            assert self._running[-1].poll() is None and time.monotonic() < deadline, (root / "said").read_text()[-2000:]
            time.sleep(0.05)
        return found.address

    def call(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        environment = {**self.environment, **variables}
        return subprocess.run([*PADDOCK, *words], env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)

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
        for each in self._running:
            each.send_signal(signal.SIGTERM)
        for each in self._running:
            each.wait(60)


@pytest.fixture
def servers(work: Path) -> Iterator[Servers]:
    made = Servers(work / "home")
    made.home.mkdir()
    yield made
    made.end()


def namespace(name: str, folder: Path) -> str:
    """A file with a namespace, by which a server is recognized."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    return str(path)


def config(root: Path) -> str:
    return str(root / "kubeconfig")


@pytest.mark.needs("qemu", "kubectl")
def test_contexts_of_two_servers_come_and_go(servers: Servers, work: Path) -> None:
    one, two = work / "One_Lab", work / "two"
    for root in (one, two):
        servers.up(root)
        servers.good("apply", "-f", namespace(root.name.lower().replace("_", "-"), work), "--kubeconfig", config(root))
        servers.good("ctx", "add", "--dir", str(root))
    assert servers.kubectl("config", "get-contexts", "-o", "name").split() == ["paddock-one-lab", "paddock-two"]
    assert servers.kubectl("config", "current-context").strip() == "paddock-one-lab", "the first one stays the current one"
    assert "one-lab" in servers.kubectl("get", "namespaces") and "one-lab" not in servers.kubectl("get", "ns", "--context=paddock-two")
    servers.good("ctx", "add", "--dir", str(two), "--as", "other", "--use")
    assert servers.kubectl("config", "current-context").strip() == "other"
    assert servers.kubectl("config", "get-contexts", "-o", "name").split() == ["other", "paddock-one-lab"], "a server has one context"
    assert "two" in servers.kubectl("get", "namespaces", "-o", "name").replace("namespace/", "").split()
    # What others wrote into the file stays.
    servers.kubectl("config", "set-context", "mine", "--cluster=elsewhere", "--user=me")
    listed = servers.good("ctx").splitlines()
    assert [line.split()[0] for line in listed[1:]] == ["other", "paddock-one-lab"] or {line.split()[0] for line in listed[1:]} == {
        "other",
        "paddock-one-lab",
    }
    assert "paddock: " not in servers.good("ctx", "rm", "--dir", str(two))
    assert set(servers.kubectl("config", "get-contexts", "-o", "name").split()) == {"mine", "paddock-one-lab"}
    servers.good("ctx", "rm", "--dir", str(one))
    assert servers.kubectl("config", "get-contexts", "-o", "name").split() == ["mine"]
    assert "kind: Config" in (servers.home / ".kube" / "config").read_text()
