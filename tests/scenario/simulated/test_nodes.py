"""Simulated nodes: where machines are placed, and how they move."""

from typing import Any

import pytest

from tests.scenario.simulated.conftest import Commands, until
from tests.scenario.simulated.test_server import machine

HOST = "kubernetes.io/hostname"
PHASES = ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"]


def _status(paddock: Commands, name: str) -> dict[str, Any]:
    done = paddock.run("get", "vmi", name, "-n", "default", "-o", "json")
    return dict(paddock.get("vmi", name, "-n", "default").get("status") or {}) if done.returncode == 0 else {}


def _running(paddock: Commands, name: str) -> str:
    """Return the node of a machine when it runs."""
    assert until(lambda: _status(paddock, name).get("phase") == "Running"), _status(paddock, name)
    return str(_status(paddock, name)["nodeName"])


def _cordon(paddock: Commands, *nodes: str, on: bool = True) -> None:
    for node in nodes:
        text = f"apiVersion: v1\nkind: Node\nmetadata: {{name: {node}}}\nspec: {{unschedulable: {str(on).lower()}}}"
        paddock.ok("apply", "-f", "-", "--force-conflicts", text=text)


def _move(paddock: Commands, name: str, instance: str) -> None:
    text = f"""
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {{name: {name}, namespace: default}}
spec: {{vmiName: {instance}}}
"""
    paddock.ok("apply", "-f", "-", text=text)


def _migration(paddock: Commands, name: str) -> dict[str, Any]:
    return dict(paddock.get("vmim", name, "-n", "default").get("status") or {})


@pytest.mark.spec("kubevirt", 223)
def test_machines_go_where_they_may(paddock: Commands) -> None:
    paddock.ok("apply", "-f", "-", text=machine("chosen", selector=f"{HOST}: simulated-2"))
    assert _running(paddock, "chosen") == "simulated-2"
    _cordon(paddock, "simulated-1", "simulated-2")
    paddock.ok("apply", "-f", "-", text=machine("left"))
    assert _running(paddock, "left") == "simulated-3"
    paddock.ok("apply", "-f", "-", text=machine("waits", selector=f"{HOST}: simulated-1"))

    def refusal() -> str:
        found = [each for each in _status(paddock, "waits").get("conditions", ()) if each["type"] == "PodScheduled"]
        return str(found[0]["message"]) if found else ""

    wanted = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 node(s) were unschedulable."
    assert until(refusal) == wanted
    _cordon(paddock, "simulated-1", "simulated-2", on=False)
    assert _running(paddock, "waits") == "simulated-1"


@pytest.mark.spec("kubevirt", 224)
def test_a_machine_moves(paddock: Commands) -> None:
    paddock.ok("apply", "-f", "-", text=machine("moving"))
    source = _running(paddock, "moving")
    before = paddock.get("vmi", "moving", "-n", "default")
    _move(paddock, "first", "moving")
    assert until(lambda: _migration(paddock, "first").get("phase") == "Succeeded")
    assert [each["phase"] for each in _migration(paddock, "first")["phaseTransitionTimestamps"]] == PHASES
    after = paddock.get("vmi", "moving", "-n", "default")
    state = after["status"]["migrationState"]
    assert (state["sourceNode"], state["completed"]) == (source, True) and "failed" not in state
    node = after["status"]["nodeName"]
    assert node == state["targetNode"] != source
    assert after["metadata"]["labels"]["kubevirt.io/nodeName"] == node
    assert "kubevirt.io/migrationTargetNodeName" not in after["metadata"]["labels"]
    assert after["status"]["interfaces"] == before["status"]["interfaces"] and after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "finalizers" not in paddock.get("vmim", "first", "-n", "default")["metadata"]


@pytest.mark.spec("kubevirt", 224)
def test_a_move_fails_or_is_aborted_and_the_guest_stays(paddock: Commands) -> None:
    paddock.ok("apply", "-f", "-", text=machine("staying", 'simulated.paddock.dev/migration-failure: "no luck today"'))
    paddock.ok("apply", "-f", "-", text=machine("slow", 'simulated.paddock.dev/migration-seconds: "600"'))
    source, other = _running(paddock, "staying"), _running(paddock, "slow")
    _move(paddock, "failing", "staying")
    _move(paddock, "long", "slow")
    assert until(lambda: _migration(paddock, "failing").get("phase") == "Failed")
    state = _status(paddock, "staying")["migrationState"]
    assert state["failureReason"] == "no luck today" and state["failed"] and _status(paddock, "staying")["nodeName"] == source
    assert until(lambda: _migration(paddock, "long").get("phase") == "Running")
    _move(paddock, "second", "slow")
    assert until(lambda: "is under way" in _migration(paddock, "second").get("migrationState", {}).get("failureReason", ""))
    paddock.ok("delete", "vmim", "long", "-n", "default")
    assert until(lambda: _status(paddock, "slow")["migrationState"].get("abortStatus") == "Succeeded")
    assert _status(paddock, "slow")["nodeName"] == other and _status(paddock, "slow")["phase"] == "Running"


@pytest.mark.spec("kubevirt", 229)
def test_volumes_move_to_other_claims(paddock: Commands) -> None:
    for name in ("first-disk", "second-disk"):
        claim = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
        text = f"metadata: {{name: {name}, namespace: default}}\nspec: {{source: {{blank: {{}}}}, storage: {claim}}}"
        paddock.ok("apply", "-f", "-", text=f"apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\n{text}")
    paddock.ok("apply", "-f", "-", text=_with_disk("first-disk"))
    source = _running(paddock, "lorry")
    paddock.ok("apply", "-f", "-", text=_with_disk("second-disk"))
    assert until(lambda: _status(paddock, "lorry").get("migrationState", {}).get("completed")), _status(paddock, "lorry")
    vmi = paddock.get("vmi", "lorry", "-n", "default")
    assert vmi["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "second-disk"
    assert not vmi["status"].get("migratedVolumes") and vmi["status"]["nodeName"] == source
    moves = [each for each in paddock.get("vmim", "-n", "default")["items"] if each["spec"]["vmiName"] == "lorry"]
    assert [each["status"]["phase"] for each in moves] == ["Succeeded"]


def _with_disk(claim: str) -> str:
    return f"""
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {{name: lorry, namespace: default}}
spec:
  runStrategy: Always
  updateVolumesStrategy: Migration
  template:
    spec:
      domain:
        memory: {{guest: 256Mi}}
        devices: {{disks: [{{name: root, disk: {{bus: virtio}}}}]}}
      volumes: [{{name: root, persistentVolumeClaim: {{claimName: {claim}}}}}]
"""


@pytest.mark.spec("kubevirt", 242)
def test_preferences_choose_among_the_nodes(paddock: Commands) -> None:
    """The node that a preference names is taken although it is the fullest, and one without room for it is no obstacle."""
    value = f"{{weight: 10, preference: {{matchExpressions: [{{key: {HOST}, operator: In, values: [simulated-3]}}]}}}}"
    affinity = f"affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{value}]}}}}"

    def asking(name: str, rules: str) -> str:
        text = machine(name).replace("      nodeSelector:", f"      {rules}\n      nodeSelector:")
        return text.replace("metadata: {annotations:", "metadata: {labels: {app: APP}, annotations:").replace("APP", name)

    for name in ("soft-a", "soft-b", "soft-c"):
        paddock.ok("apply", "-f", "-", text=asking(name, affinity))
        assert _running(paddock, name) == "simulated-3"
    away = f"{{weight: 1, podAffinityTerm: {{topologyKey: {HOST}, labelSelector: {{matchLabels: {{app: alone-1}}}}}}}}"
    apart = f"affinity: {{podAntiAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{away}]}}}}"
    together = apart.replace("podAntiAffinity", "podAffinity")
    paddock.ok("apply", "-f", "-", text=asking("alone-1", "hostname: alone"))
    node = _running(paddock, "alone-1")
    for name in ("apart-1", "apart-2", "apart-3"):
        paddock.ok("apply", "-f", "-", text=asking(name, apart))
        assert _running(paddock, name) != node
    for name in ("beside-1", "beside-2", "beside-3"):
        paddock.ok("apply", "-f", "-", text=asking(name, together))
        assert _running(paddock, name) == node
    _cordon(paddock, "simulated-3")
    paddock.ok("apply", "-f", "-", text=asking("elsewhere", affinity))
    assert _running(paddock, "elsewhere") != "simulated-3"
    _cordon(paddock, "simulated-3", on=False)
