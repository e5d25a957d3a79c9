"""KubeVirt on the reference cluster runs a guest: it boots, answers on its console, stops, starts, and leaves nothing behind."""

from collections.abc import Callable
from typing import Any

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


def _machine(name: str, **more: Any) -> Json:
    """The tiny guest on a container disk."""
    devices = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "masquerade": {}}]}
    spec = {
        "terminationGracePeriodSeconds": 60,
        "domain": {"cpu": {"cores": 1}, "memory": {"guest": "192Mi"}, "devices": devices},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": TINY, "imagePullPolicy": "Never"}}],
        **more,
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }


def _runs(instance: Json) -> bool:
    return bool(instance.get("status", {}).get("phase") == "Running")


def _answers(instance: Json) -> bool:
    return _runs(instance) and holds(instance, "AgentConnected")


def _live(cluster: Cluster, machine: Json, is_up: Callable[[Json], bool], meet: Callable[[str], None]) -> None:
    """Everything from the creation of a machine to its end, with virtctl between."""
    name = machine["metadata"]["name"]

    def started() -> Json:
        wait("the machine", lambda: is_up(cluster.get(f"{INSTANCES}/{name}")), BOOT_SECONDS)
        status: Json = cluster.get(f"{INSTANCES}/{name}")["status"]
        assert status["interfaces"][0]["ipAddress"].startswith("10.244.0.")
        return status

    made = cluster.api.request("POST", MACHINES, machine)
    assert made.ok, made.message
    first = started()
    meet(name)
    cluster.virtctl.ok("stop", name)
    wait("the stop", lambda: cluster.get(f"{MACHINES}/{name}")["status"]["printableStatus"] == "Stopped", BOOT_SECONDS)
    # An instance that has ended may still be there.
    wait("the end of QEMU", lambda: not cluster.get(f"{INSTANCES}/{name}") and not cluster.guests(), BOOT_SECONDS)
    cluster.virtctl.ok("start", name)
    assert started()["activePods"].keys().isdisjoint(first["activePods"])
    assert cluster.api.request("DELETE", f"{MACHINES}/{name}").ok
    wait("the deletion", lambda: not any(map(cluster.names, (MACHINES, INSTANCES, _PODS))), BOOT_SECONDS)
    wait("the end of QEMU", lambda: not cluster.guests(), BOOT_SECONDS)
    # What virt-handler remembers of machines.
    wait("the end of records", lambda: cluster.machine.run("find", "/run/kubevirt-private", "-type", "f") == "")


def test_life_at_the_first_instruction(cluster: Cluster) -> None:
    """QEMU is there and its processors stand still, so everything but a guest is tried."""
    _live(cluster, _machine("still", startStrategy="Paused", terminationGracePeriodSeconds=5), _runs, lambda _: None)


def test_life_of_a_guest(cluster: Cluster) -> None:
    """The guest boots, and answers on its console."""

    def talk(name: str) -> None:
        with at_terminal(cluster.virtctl.command("console", name), cluster.virtctl.environment) as terminal:
            terminal.read_until(b"Successfully connected", BOOT_SECONDS)
            terminal.type(b"\r")
            terminal.read_until(_PROMPT, BOOT_SECONDS)
            terminal.type(b"echo $((6 * 7)) is the answer\r")
            terminal.read_until(b"42 is the answer", BOOT_SECONDS)
            terminal.type(_LEAVE)
            terminal.ended()

    _live(cluster, _machine("tiny"), _answers, talk)
