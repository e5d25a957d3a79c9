"""The KubeVirt object of a cluster tells validate and plan which features the cluster takes."""

from pathlib import Path

import pytest

from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from tests.unit.cli.commands import paddock

MACHINE = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: a}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        memory: {guest: 1Gi}
        devices: {gpus: [{name: g, deviceName: x/y}]}
"""
KUBEVIRT = """
apiVersion: v1
kind: List
items:
- apiVersion: kubevirt.io/v1
  kind: KubeVirt
  metadata: {name: kubevirt, namespace: kubevirt}
  spec: {configuration: {developerConfiguration: {featureGates: [HostDisk]}}}
  status: {observedKubeVirtVersion: vVERSION}
"""
REFUSED = (
    "spec.template.spec.domain.devices.gpus: Invalid value: GPU feature gate is not enabled; "
    "add GPU to spec.configuration.developerConfiguration.featureGates of the KubeVirt object (kubevirt/V81)"
)


@pytest.fixture
def machine(tmp_path: Path) -> str:
    file = tmp_path / "machine.yaml"
    file.write_text(MACHINE)
    return str(file)


def cluster(directory: Path, version: str) -> str:
    file = directory / f"{version}.yaml"
    file.write_text(KUBEVIRT.replace("VERSION", version))
    return str(file)


@pytest.mark.parametrize("command", [("validate",), ("plan", "--against", "machine")])
def test_the_release_of_the_cluster_decides(command: tuple[str, ...], machine: str, tmp_path: Path) -> None:
    given = tuple(machine if each == "machine" else each for each in command)
    old = paddock(*given, "-f", machine, "--kubevirt", cluster(tmp_path, "1.3.0"))
    assert (old.code, REFUSED in old.out + old.err) == (FINDINGS, True)
    assert paddock(*given, "-f", machine, "--kubevirt", cluster(tmp_path, "1.4.0")).code == GOOD


def test_a_file_without_the_object_is_refused(machine: str) -> None:
    answer = paddock("validate", "-f", machine, "--kubevirt", machine)
    assert answer.code == UNUSABLE
    assert "has no KubeVirt object, or several; write it with `kubectl get kubevirt -A -o yaml`" in answer.err
