"""Simulated guests as kubectl and virtctl see them, the old releases and the new ones."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference import recipes
from tests.reference.build import Binaries, built
from tests.reference.embedded import Embedded, serving

MACHINE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: NAME}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        memory: {guest: 128Mi}
        devices: {interfaces: [{name: default, masquerade: {}}], disks: [{name: root, disk: {bus: virtio}}]}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, containerDisk: {image: "registry.example.com/disk:1"}}]
"""


class Program:
    """A client of the server: kubectl or a virtctl."""

    def __init__(self, path: Path, kubeconfig: Path, home: Path) -> None:
        self._path = path
        self._environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    def run(self, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        """Return what it says, whether it succeeds or not."""
        command = [str(self._path), *words]
        return subprocess.run(command, check=False, input=text, capture_output=True, text=True, timeout=60, env=self._environment)

    def ok(self, *words: str, text: str = "") -> str:
        """Return its output; it must succeed."""
        done = self.run(*words, text=text)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """A server with two simulated nodes."""
    with serving(tmp_path_factory.mktemp("simulated") / "server", "--guests", "simulated", "--nodes", "2", command="up") as server:
        yield server


@pytest.fixture(scope="module")
def kubectl(server: Embedded, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The real kubectl."""
    return Program(binaries.kubectl, server.kubeconfig, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="module", params=list(recipes.VIRTCTLS))
def virtctl(request: pytest.FixtureRequest, server: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """One virtctl after the other."""
    return Program(built(recipes.VIRTCTLS[request.param], say=print) / "virtctl", server.kubeconfig, tmp_path_factory.mktemp("virtctl"))


def _instance(kubectl: Program, name: str) -> dict[str, Any]:
    done = kubectl.run("get", "vmi", name, "-o", "json")
    return dict(json.loads(done.stdout).get("status") or {}) if done.returncode == 0 else {}


def _until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


@pytest.mark.spec("kubevirt", 218)
def test_a_machine_runs_for_kubectl(kubectl: Program) -> None:
    kubectl.ok("apply", "-f", "-", text=MACHINE.replace("NAME", "web"))
    kubectl.ok("wait", "vm/web", "--for=condition=Ready", "--timeout=30s")
    kubectl.ok("wait", "vmi/web", "--for=condition=AgentConnected", "--timeout=30s")
    assert "Running" in kubectl.ok("get", "vmi", "web") and "simulated-" in kubectl.ok("get", "pods", "-o", "wide")
    kubectl.ok("cordon", "simulated-1")
    assert "SchedulingDisabled" in kubectl.ok("get", "node", "simulated-1")
    kubectl.ok("uncordon", "simulated-1")
    kubectl.ok("delete", "vm", "web", "--wait", "--timeout=30s")
    assert kubectl.run("get", "vmi", "web").returncode != 0


@pytest.mark.spec("kubevirt", 218)
def test_verbs_of_virtctl(kubectl: Program, virtctl: Program) -> None:
    kubectl.ok("apply", "-f", "-", text=MACHINE.replace("NAME", "asked"))
    assert _until(lambda: _instance(kubectl, "asked").get("guestOSInfo", {}).get("id") == "paddock-simulated")
    assert "Paddock Simulated Linux" in virtctl.ok("guestosinfo", "asked")
    assert "simulated" in virtctl.ok("userlist", "asked") and "ext4" in virtctl.ok("fslist", "asked")
    virtctl.ok("pause", "vm", "asked")
    assert _until(lambda: any(each["type"] == "Paused" for each in _instance(kubectl, "asked")["conditions"]))
    virtctl.ok("unpause", "vm", "asked")
    first = kubectl.ok("get", "vmi", "asked", "-o", "jsonpath={.metadata.uid}")
    virtctl.ok("restart", "asked")
    assert _until(lambda: kubectl.run("get", "vmi", "asked", "-o", "jsonpath={.metadata.uid}").stdout not in ("", first))
    assert _until(lambda: _instance(kubectl, "asked").get("phase") == "Running")
    node = _instance(kubectl, "asked")["nodeName"]
    virtctl.ok("migrate", "asked")
    assert _until(lambda: _instance(kubectl, "asked")["nodeName"] != node)
    assert _until(lambda: _instance(kubectl, "asked")["migrationState"].get("completed"))
    virtctl.ok("stop", "asked")
    assert _until(lambda: kubectl.run("get", "vmi", "asked").returncode != 0)
    kubectl.ok("delete", "vm", "asked", "--wait", "--timeout=30s")


@pytest.mark.spec("kubevirt", 226)
def test_a_drain_moves_machines_or_ends_them(kubectl: Program) -> None:
    moving = MACHINE.replace("NAME", "moving").replace(
        "    spec:\n      domain", "    spec:\n      evictionStrategy: LiveMigrate\n      domain"
    )
    kubectl.ok("apply", "-f", "-", text=f"{moving}---{MACHINE.replace('NAME', 'ending')}")
    for name in ("moving", "ending"):
        assert _until(lambda name=name: _instance(kubectl, name).get("phase") == "Running")  # type: ignore[misc]  # bound now
    first = {name: kubectl.ok("get", "vmi", name, "-o", "jsonpath={.metadata.uid}") for name in ("moving", "ending")}
    for node in ("simulated-1", "simulated-2"):
        kubectl.ok("drain", node, "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=50s")
        assert _until(lambda node=node: all(_instance(kubectl, each).get("nodeName", node) != node for each in first))  # type: ignore[misc]
        assert _until(lambda: all(_instance(kubectl, each).get("phase") == "Running" for each in first))
        kubectl.ok("uncordon", node)
    assert kubectl.ok("get", "vmi", "moving", "-o", "jsonpath={.metadata.uid}") == first["moving"]
    assert kubectl.ok("get", "vmi", "ending", "-o", "jsonpath={.metadata.uid}") != first["ending"]
    assert "evacuationNodeName" not in _instance(kubectl, "moving") and "kubevirt-evacuation-" in kubectl.ok("get", "vmim")
    kubectl.ok("delete", "vm", "moving", "ending", "--wait", "--timeout=30s")
