"""The reference cluster starts on this machine, runs a pod, and leaves nothing behind."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.reference.cluster import control, images, namespace
from tests.reference.cluster.__main__ import Wanted
from tests.reference.cluster.conftest import node
from tests.reference.cluster.namespace import Machine

pytestmark = [pytest.mark.reference, pytest.mark.soak]


@pytest.fixture(scope="module")
def machine(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A cluster without KubeVirt."""
    with node(pytestconfig, tmp_path_factory.mktemp("cluster"), Wanted()) as machine:
        yield machine


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "only", "image": images.PAUSE, "imagePullPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


def test_pod(machine: Machine) -> None:
    """The scheduler binds a pod, the kubelet runs it from an image that we wrote, and it has an address of the pods' network."""
    control.apply(machine, _pod("first"))
    control.wait("the pod", lambda: control.kubectl(machine, "get", "pod", "first", "-o", "jsonpath={.status.phase}") == "Running")
    pod = json.loads(control.kubectl(machine, "get", "pod", "first", "-o", "json"))
    assert pod["spec"]["nodeName"] == namespace.HOSTNAME
    assert pod["status"]["podIP"].startswith("10.244.0.")


def test_names(machine: Machine) -> None:
    """The Service of the name server answers with the address of another Service."""
    control.wait("the name server", lambda: bool(machine.run("getent", "hosts", "kubernetes.default.svc.cluster.local")))
    assert machine.run("getent", "hosts", "kubernetes.default.svc.cluster.local").split()[0] == "10.96.0.1"
