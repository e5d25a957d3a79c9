"""A test as somebody writes it who develops against KubeVirt."""

import json
import subprocess
import sys
import time

from paddock.app.envtest import ControlPlane

MACHINE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Always
  template:
    spec:
      domain: {memory: {guest: 128Mi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
      volumes: [{name: root, containerDisk: {image: "registry.example.com/disk:1"}}]
"""


def paddock(kubevirt: ControlPlane, *words: str, text: str = "") -> str:
    command = [sys.executable, "-m", "paddock.app", *words]
    return subprocess.run(command, input=text, env=kubevirt.environment, check=True, capture_output=True, text=True).stdout


def test_a_machine_runs(kubevirt: ControlPlane) -> None:
    paddock(kubevirt, "apply", "-f", "-", text=MACHINE)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        machine = json.loads(paddock(kubevirt, "get", "vm", "web", "-o", "json"))
        if machine.get("status", {}).get("printableStatus") == "Running":
            return
    raise AssertionError("the machine does not run")


def test_it_is_the_release_that_was_asked_for(kubevirt: ControlPlane) -> None:
    end, version = time.monotonic() + 30, ""
    while not version and time.monotonic() < end:
        found = json.loads(paddock(kubevirt, "get", "kubevirt", "kubevirt", "-n", "kubevirt", "-o", "json"))
        version = found.get("status", {}).get("observedKubeVirtVersion", "")
    assert version == "v1.6.0"
