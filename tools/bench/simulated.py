"""Simulated guests: from a VirtualMachine to its guest that runs, many starts, and a server that is started again among them.

Times are those on the wall, as a client sees them that creates objects and watches instances.
"""

import http.client
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.reference.client import Api
from tests.reference.embedded import Embedded, serving
from tests.reference.server import Access
from tools.bench.offline import BenchError, Figure

SINGLE, MANY = 100, 1000
_MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
_INSTANCES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
_PATIENCE = 600.0


class Phases:
    """When each instance was seen to run first, by a watch in a thread."""

    def __init__(self, access: Access) -> None:
        self.running: dict[str, float] = {}
        self._news = threading.Condition()
        url = urlsplit(access.url)
        self._connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=access.tls())
        self._connection.request("GET", f"{_INSTANCES}?watch=true", headers={"Authorization": f"Bearer {access.token}"})
        self._answer = self._connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()

    def wait(self, names: list[str]) -> None:
        """Return when all of these run."""
        with self._news:
            if not self._news.wait_for(lambda: all(name in self.running for name in names), _PATIENCE):
                missing = [name for name in names if name not in self.running]
                raise BenchError(f"{len(missing)} of {len(names)} machines did not run within {_PATIENCE:g} s: {missing[:5]}")

    def close(self) -> None:
        """End the watch."""
        if (sock := self._connection.sock) is not None:
            sock.close()

    def _read(self) -> None:
        try:
            for line in self._answer:
                now, seen = time.monotonic(), json.loads(line)["object"]
                if seen.get("status", {}).get("phase") == "Running":
                    with self._news:
                        self.running.setdefault(seen["metadata"]["name"], now)
                        self._news.notify_all()
        except (OSError, ValueError, http.client.HTTPException):
            return


def machine(name: str, namespace: str = "default") -> dict[str, Any]:
    """Return a small VirtualMachine."""
    devices = {"interfaces": [{"name": "default", "masquerade": {}}], "disks": [{"name": "root", "disk": {"bus": "virtio"}}]}
    spec = {
        "domain": {"memory": {"guest": "128Mi"}, "devices": devices},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": "registry.example.com/disk:1"}}],
    }
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": metadata,
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }


def measure(folder: Path, *, quick: bool = False) -> list[Figure]:
    """Start a server with ten nodes, and measure; a minute."""
    many = MANY // 10 if quick else MANY
    with serving(folder / "server", "--guests", "simulated", "--nodes", "10", command="up") as server, _client(server) as api:
        return [*_single(server, api), *_crowd(server, api, many), *_again(server, many)]


@contextmanager
def _client(server: Embedded) -> Iterator[Api]:
    api = Api(server.access)
    try:
        yield api
    finally:
        api.close()


def _single(server: Embedded, api: Api) -> Iterator[Figure]:
    phases, taken = Phases(server.access), []
    for number in range(SINGLE):
        name = f"one-{number}"
        began = time.monotonic()
        _create(api, name)
        phases.wait([name])
        taken.append((phases.running[name] - began) * 1000)
    phases.close()
    taken.sort()
    yield Figure("VM to Running, median of 100", statistics.median(taken))
    yield Figure("VM to Running, p99 of 100", taken[int(len(taken) * 0.99) - 1])


def _crowd(server: Embedded, api: Api, many: int) -> Iterator[Figure]:
    phases, names = Phases(server.access), [f"many-{number}" for number in range(many)]
    began = time.monotonic()
    for name in names:
        _create(api, name)
    phases.wait(names)
    seconds = max(phases.running[each] for each in names) - began
    yield Figure("1,000 machines created one after the other, until all run", seconds, f"{many} machines")
    phases.close()


def _again(server: Embedded, many: int) -> Iterator[Figure]:
    server.stop()
    began = time.monotonic()
    server.start()
    yield Figure("start of a server with 1,100 machines", time.monotonic() - began, f"{many + SINGLE} machines")
    with _client(server) as api:
        phases = [each["status"]["phase"] for each in api.request("GET", _INSTANCES).body["items"]]
    if phases.count("Running") != many + SINGLE:
        raise BenchError(f"{phases.count('Running')} of {many + SINGLE} machines run after the start")


def _create(api: Api, name: str) -> None:
    answer = api.request("POST", _MACHINES, machine(name))
    if answer.status != 201:
        raise BenchError(f"cannot create {name}: {answer.status} {answer.body}")
