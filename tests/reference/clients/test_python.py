"""The Python libraries kubernetes, kubernetes_asyncio, kr8s, lightkube and kopf: their verbs, and that they survive a restart.

Each library has a script in `python/`, which runs in an environment of its own and fails by itself. Before its watch it says
`watching`; then the server is restarted, and the watch has to show what was made before and after.
"""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from tests.reference.client import MERGE_PATCH, Api, Kubectl
from tests.reference.clients import venv
from tests.reference.clients.conftest import HARNESS
from tests.reference.embedded import Embedded, serving

pytestmark = pytest.mark.reference
SECONDS = 90.0


class Script:
    """A running script and the lines it says."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self._lines: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, wanted: str) -> None:
        """Read on until a line is said."""
        end = time.monotonic() + SECONDS
        while wanted not in self.said:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                line = None
            assert line is not None, f"{wanted!r} was not said:\n" + "\n".join(self.said[-40:])
            self.said.append(line)

    def end(self) -> int:
        """The exit code."""
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        return code


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, kubectl: Kubectl) -> Iterator[Embedded]:
    """A server that these tests restart."""
    with serving(tmp_path_factory.mktemp("restarted") / "server") as server:
        own = Kubectl(kubectl.program, server.access, tmp_path_factory.mktemp("kubectl"))
        own.ok("apply", "-f", str(HARNESS))
        own.ok("wait", "--for=condition=Established", "crd/crates.reference.paddock.example")
        yield server


@pytest.fixture(scope="module")
def python(pytestconfig: pytest.Config) -> Path:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return venv.python(terminal.write_line if terminal else print)


@pytest.fixture
def started(server: Embedded, python: Path, tmp_path: Path) -> Callable[[str, str], Any]:
    @contextmanager
    def start(name: str, namespace: str) -> Iterator[Script]:
        environment = {"PATH": os.defpath, "HOME": str(tmp_path), "KUBECONFIG": str(server.kubeconfig), "NAMESPACE": namespace}
        with subprocess.Popen(
            [str(python), str(venv.SCRIPTS / f"{name}.py")], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield Script(process)
            finally:
                process.kill()

    return start


def made(server: Embedded, path: str, body: Any) -> None:
    api = Api(server.access)
    answer = api.request("POST", path, body)
    api.close()
    assert answer.ok, answer.message


LIBRARIES = ("kubernetes", "asyncio", "kr8s", "lightkube")


@pytest.mark.spec("kube-api", 130)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_does_everything_and_survives_a_restart(server: Embedded, started: Any, library: str) -> None:
    made(server, "/api/v1/namespaces", {"metadata": {"name": library}})
    maps = f"/api/v1/namespaces/{library}/configmaps"
    with started(f"with_{library}", library) as script:
        script.until("watching")
        made(server, maps, {"metadata": {"name": "before"}})
        script.until("seen ADDED before")
        server.restart()
        made(server, maps, {"metadata": {"name": "last"}})
        script.until("seen ADDED last")
        assert script.end() == 0


@pytest.mark.spec("kube-api", 130)
def test_an_operator_of_kopf(server: Embedded, started: Any) -> None:
    made(server, "/api/v1/namespaces", {"metadata": {"name": "kopf"}})
    crates = "/apis/reference.paddock.example/v1/namespaces/kopf/crates"
    crate = {"apiVersion": "reference.paddock.example/v1", "kind": "Crate", "spec": {"color": "red", "replicas": 2}}
    with started("operator_kopf", "kopf"):
        made(server, crates, {**crate, "metadata": {"name": "one"}})
        found = until(server, f"{crates}/one", lambda body: (body.get("status") or {}).get("replicas") == 2)
        assert found["metadata"]["finalizers"] == ["test.example/kopf"]
        patched = Api(server.access)
        assert patched.request("PATCH", f"{crates}/one", {"spec": {"replicas": 5}}, headers=MERGE_PATCH).ok
        patched.close()
        until(server, f"{crates}/one", lambda body: body["status"] == {"replicas": 5, "selector": "was=2"})
        until(server, "/api/v1/namespaces/kopf/events", lambda body: any(each["reason"] == "Packed" for each in body["items"]))
        server.restart()
        made(server, crates, {**crate, "metadata": {"name": "two"}})
        until(server, f"{crates}/two", lambda body: (body.get("status") or {}).get("replicas") == 2)
        patched = Api(server.access)
        assert patched.request("DELETE", f"{crates}/one").ok
        patched.close()
        # Its handler runs, then the finalizer goes, and with it the object.
        until(server, f"{crates}/one", lambda body: body.get("reason") == "NotFound")


def until(server: Embedded, path: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Asks until an answer is as wanted."""
    end, api = time.monotonic() + SECONDS, Api(server.access)
    try:
        while True:
            body = api.request("GET", path).body
            if holds(body):
                return body
            assert time.monotonic() < end, body
            time.sleep(0.1)
    finally:
        api.close()
