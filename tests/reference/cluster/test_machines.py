"""KubeVirt on the reference cluster runs a guest: it boots, answers on its console, stops, starts, and leaves nothing behind."""

import pytest

from tests.reference.client import Json
from tests.reference.cluster.conftest import BOOT_SECONDS, TINY, Cluster
from tests.reference.cluster.control import wait
from tests.reference.virtctl.conftest import INSTANCES, MACHINES, holds
from tests.reference.virtctl.terminal import at_terminal

pytestmark = [pytest.mark.reference, pytest.mark.soak]
_PODS = "/api/v1/namespaces/default/pods"
_PROMPT = b"root@tiny:/# "
_LEAVE = b"\x1d"


def _machine(name: str) -> Json:
    """The tiny guest on a container disk."""
    devices = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "masquerade": {}}]}
    spec = {
        "terminationGracePeriodSeconds": 60,
        "domain": {"cpu": {"cores": 1}, "memory": {"guest": "192Mi"}, "devices": devices},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": TINY, "imagePullPolicy": "Never"}}],
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }


def _up(cluster: Cluster, name: str) -> Json:
    """Wait until the guest answers; return the instance's status."""
    wait("the guest", lambda: holds(cluster.get(f"{INSTANCES}/{name}"), "AgentConnected"), BOOT_SECONDS)
    status: Json = cluster.get(f"{INSTANCES}/{name}")["status"]
    assert status["phase"] == "Running"
    return status


def test_life_of_a_machine(cluster: Cluster) -> None:
    """One machine from `kubectl apply` to `kubectl delete`, with everything between by virtctl."""
    made = cluster.api.request("POST", MACHINES, _machine("tiny"))
    assert made.ok, made.message
    first = _up(cluster, "tiny")
    assert first["interfaces"][0]["ipAddress"].startswith("10.244.0.")
    with at_terminal(cluster.virtctl.command("console", "tiny"), cluster.virtctl.environment) as terminal:
        terminal.read_until(b"Successfully connected")
        terminal.type(b"\r")
        terminal.read_until(_PROMPT)
        terminal.type(b"echo $((6 * 7)) is the answer\r")
        terminal.read_until(b"42 is the answer")
        terminal.type(_LEAVE)
        terminal.ended()

    cluster.virtctl.ok("stop", "tiny")
    wait("the stop", lambda: cluster.get(f"{MACHINES}/tiny")["status"]["printableStatus"] == "Stopped", BOOT_SECONDS)
    # An instance that has ended may still be there.
    wait("the end of the guest", lambda: not cluster.get(f"{INSTANCES}/tiny") and not cluster.guests(), BOOT_SECONDS)
    cluster.virtctl.ok("start", "tiny")
    second = _up(cluster, "tiny")
    assert second["activePods"].keys().isdisjoint(first["activePods"])

    assert cluster.api.request("DELETE", f"{MACHINES}/tiny").ok
    wait("the deletion", lambda: not any(map(cluster.names, (MACHINES, INSTANCES, _PODS))), BOOT_SECONDS)
    wait("the end of the guest", lambda: not cluster.guests(), BOOT_SECONDS)
    assert cluster.machine.run("find", "/run/kubevirt/container-disks", "-mindepth", "1") == ""
