"""A server with simulated guests, as users start it and ask it."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from paddock.kubernetes import catalog
from tests.reference.client import Api
from tests.reference.embedded import Embedded
from tests.reference.server import probe
from tests.scenario.simulated.conftest import Commands, until

PREREQUISITES = Path(__file__).with_name("prerequisites.yaml")
# In this order: the dialects that VirtRigaud's local Provider and the others stand on come first.
DIALECTS = ("stakater", "vitistack", "kubevirt", "kubermatic", "virtrigaud")
NAMESPACES = {name: "kubevirt-examples" if name == "kubevirt" else name for name in DIALECTS}
# The migration is of a machine that has to run first.
LATER = ("migration.yaml",)
STOPPED = {
    "kubevirt-examples/minimal": "Stopped",
    "kubevirt-examples/sized": "Stopped",
    "virtrigaud/build-agent": "Stopped",
    # it waits for the upload of its installation medium
    "kubevirt-examples/windows": "Provisioning",
    # no host has a card for SR-IOV
    "team-a/many-sources": "ErrorUnschedulable",
    # on hypervisors elsewhere
    "virtrigaud/database": "WaitingForDependencies",
    "virtrigaud/legacy": "WaitingForDependencies",
    "virtrigaud/web-server": "WaitingForDependencies",
}
MACHINE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: NAME, namespace: default}
spec:
  runStrategy: Always
  template:
    metadata: {annotations: {ANNOTATIONS}}
    spec:
      nodeSelector: {SELECTOR}
      domain:
        memory: {guest: 128Mi}
        devices: {interfaces: [{name: default, masquerade: {}}], disks: [{name: root, disk: {bus: virtio}}]}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, containerDisk: {image: "registry.example.com/disk:1"}}]
"""


def machine(name: str, annotations: str = "", selector: str = "") -> str:
    return MACHINE.replace("NAME", name).replace("ANNOTATIONS", annotations).replace("SELECTOR", selector)


def _vmi(paddock: Commands, name: str) -> dict[str, object]:
    done = paddock.run("get", "vmi", name, "-n", "default", "-o", "json")
    return dict(json.loads(done.stdout).get("status") or {}) if done.returncode == 0 else {}


@pytest.mark.spec("kubevirt", 218)
def test_the_examples_of_all_dialects_run(server: Embedded, paddock: Commands) -> None:
    for namespace in NAMESPACES.values():
        paddock.ok("apply", "-f", "-", text=f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}")
    paddock.ok("apply", "-f", str(PREREQUISITES))
    for dialect, namespace in NAMESPACES.items():
        files = [each for each in sorted((catalog.folder(dialect) / "examples").glob("*.yaml")) if each.name not in LATER]
        paddock.ok("apply", "-n", namespace, "--force-conflicts", *(word for each in files for word in ("-f", str(each))))

    def wrong() -> dict[str, str]:
        found = {name: each["status"] for name, each in paddock.machines().items()}
        return {name: status for name, status in found.items() if status != STOPPED.get(name, "Running")}

    assert until(lambda: not wrong()), wrong()
    there = paddock.machines()
    assert len(there) > 30 and {each["dialect"] for each in there.values()} == set(DIALECTS)
    assert all(each["node"].startswith("simulated-") for name, each in there.items() if name not in STOPPED)
    assert not list(server.root.rglob("qemu.log")) and not list(server.root.rglob("*.qcow2"))
    paddock.ok("apply", "-f", str(catalog.folder("kubevirt") / "examples/migration.yaml"))
    assert until(lambda: paddock.get("vmim", "move", "-n", "default").get("status", {}).get("phase") in ("Succeeded", "Failed"))


@pytest.mark.spec("kubevirt", 219)
def test_it_says_what_it_is(server: Embedded, paddock: Commands) -> None:
    paddock.ok("apply", "-f", "-", text=machine("said"))
    assert until(lambda: _vmi(paddock, "said").get("phase") == "Running")
    nodes = paddock.get("nodes")["items"]
    assert {each["metadata"]["name"] for each in nodes} == {"simulated-1", "simulated-2", "simulated-3"}
    assert {each["metadata"]["labels"]["paddock.dev/guests"] for each in nodes} == {"simulated"}
    assert {each["status"]["nodeInfo"]["containerRuntimeVersion"] for each in nodes} == {"simulated://guests"}
    conditions = {each["type"]: each for each in _vmi(paddock, "said")["conditions"]}  # type: ignore[attr-defined]  # a list
    assert conditions["SimulatedGuest"]["status"] == "True" and "nothing runs" in conditions["SimulatedGuest"]["message"]
    assert "guests are simulated on 3 nodes" in server.log.read_text()
    assert "guests are simulated" in paddock.ok("status", "--dir", str(server.root))
    assert "simulated" in paddock.run("why", "said", "-n", "default").stdout
    assert b"[+]guests-are-simulated ok" in probe(f"{server.access.url}/readyz?verbose", server.access)


@pytest.mark.spec("kubevirt", 221)
def test_guests_go_on_when_the_server_is_killed_and_started_again(server: Embedded, paddock: Commands) -> None:
    paddock.ok("apply", "-f", "-", text=machine("lasting"))
    assert until(lambda: _vmi(paddock, "lasting").get("phase") == "Running")
    before = paddock.get("vmi", "lasting", "-n", "default")
    server.kill()
    server.start()
    assert until(lambda: paddock.run("exec", "lasting", "-n", "default", "--", "hostname").stdout == "lasting\n")
    after = paddock.get("vmi", "lasting", "-n", "default")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    for part in ("interfaces", "nodeName", "phaseTransitionTimestamps"):
        assert after["status"][part] == before["status"][part]


@pytest.mark.spec("kubevirt", 222)
def test_a_start_fails_and_a_guest_panics_on_request(paddock: Commands) -> None:
    paddock.ok("apply", "-f", "-", text=machine("failing", 'simulated.paddock.dev/start-failure: "no luck today"'))
    paddock.ok("apply", "-f", "-", text=machine("wrong", 'simulated.paddock.dev/panik-after: "1"'))
    paddock.ok("apply", "-f", "-", text=machine("panicking", 'simulated.paddock.dev/panic-after: "0.5"'))
    assert until(lambda: "no luck today" in paddock.run("why", "failing", "-n", "default").stdout)
    assert until(lambda: "panik-after is unknown" in paddock.run("why", "wrong", "-n", "default").stdout)
    assert until(lambda: "panicked" in paddock.run("events", "-n", "default").stdout)


@pytest.mark.spec("kubevirt", 225)
def test_what_needs_a_guest_is_refused_with_the_reason(paddock: Commands, tmp_path: Path) -> None:
    paddock.ok("apply", "-f", "-", text=machine("asked"))
    assert until(lambda: _vmi(paddock, "asked").get("phase") == "Running")
    said = paddock.run("screenshot", "asked", "-n", "default", "-f", str(tmp_path / "picture.png"))
    assert said.returncode != 0 and "guests are simulated" in said.stderr
    assert not (tmp_path / "picture.png").exists()


@pytest.mark.spec("kubevirt", 220)
@pytest.mark.spec("kubevirt", 246)
def test_a_fork_is_refused_at_once(paddock: Commands) -> None:
    template = "[{metadata: {name: forked}, spec: {source: {blank: {}}, storage: {resources: {requests: {storage: 1Gi}}}}}]"
    text = machine("forked").replace('containerDisk: {image: "registry.example.com/disk:1"}', "dataVolume: {name: forked}")
    paddock.ok("apply", "-f", "-", text=text.replace("  template:\n", f"  dataVolumeTemplates: {template}\n  template:\n", 1))
    assert until(lambda: _vmi(paddock, "forked").get("phase") == "Running")
    refused = paddock.run("fork", "forked", "-n", "default", "--timeout", "40s")
    assert refused.returncode == 2 and "guests are simulated" in refused.stderr, refused.stderr
    assert "default/forked-fork-1" not in paddock.machines()


def test_a_directory_keeps_its_kind_of_guests(server: Embedded, tmp_path: Path) -> None:
    def up(*words: str) -> str:
        command = [sys.executable, "-m", "paddock.app", "up", "--listen", "127.0.0.1:0", "--detach", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        return done.stderr

    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "guests.json").write_bytes((server.root / "guests.json").read_bytes())
    assert "it was made for simulated guests" in up("--dir", str(copy))
    (tmp_path / "real" / "engine").mkdir(parents=True)
    assert "it was made for real guests" in up("--dir", str(tmp_path / "real"), "--guests", "simulated")
    assert not (tmp_path / "real" / "guests.json").exists()
    assert "--nodes has no effect on real guests" in up("--dir", str(tmp_path / "new"), "--nodes", "2")


@pytest.mark.spec("kubevirt", 243)
def test_an_import_fails_as_an_annotation_asks(server: Embedded, paddock: Commands) -> None:
    volume = """
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  name: broken
  namespace: default
  annotations: {simulated.paddock.dev/import-failure: the mirror is down, cdi.kubevirt.io/storage.bind.immediate.requested: "true"}
spec:
  source: {http: {url: "https://images.example.com/disk.qcow2"}}
  storage: {resources: {requests: {storage: 1Gi}}}
"""
    paddock.ok("apply", "-f", "-", text=volume)

    def status() -> dict[str, object]:
        return dict(paddock.get("dv", "broken", "-n", "default").get("status") or {})

    assert until(lambda: "the mirror is down" in json.dumps(status())), status()
    assert status()["phase"] != "Succeeded"
    path = "/api/v1/namespaces/default/persistentvolumeclaims/broken"
    with closing(Api(server.access)) as api:
        nothing = {"metadata": {"annotations": {"simulated.paddock.dev/import-failure": None}}}
        assert api.request("PATCH", path, nothing, headers={"Content-Type": "application/merge-patch+json"}).ok
    assert until(lambda: status().get("phase") == "Succeeded"), status()
