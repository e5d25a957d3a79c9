"""The server's own KubeVirt object turns feature gates of the engine on and off, for every kind with a machine in it."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness

KUBEVIRTS, VIRT = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts", "/apis/kubevirt.io/v1/namespaces/default"


def kubevirt(**developer: Any) -> dict[str, Any]:
    spec = {"configuration": {"developerConfiguration": developer}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt", "namespace": "kubevirt"}, "spec": spec}


def holder(kind: str, name: str, devices: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An object of a kind, with a machine that has these devices, and where it is created."""
    hardware = {"domain": {"devices": devices, "memory": {"guest": "128Mi"}}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": hardware}
    selector = {"matchLabels": {"app": "a"}}
    specs: dict[str, tuple[str, str, dict[str, Any]]] = {
        "VirtualMachineInstance": (VIRT, "kubevirt.io/v1", hardware),
        "VirtualMachine": (VIRT, "kubevirt.io/v1", {"runStrategy": "Halted", "template": template}),
        "VirtualMachineInstanceReplicaSet": (VIRT, "kubevirt.io/v1", {"replicas": 0, "selector": selector, "template": template}),
        "VirtualMachinePool": (
            "/apis/pool.kubevirt.io/v1beta1/namespaces/default",
            "pool.kubevirt.io/v1beta1",
            {
                "replicas": 0,
                "selector": selector,
                "virtualMachineTemplate": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"runStrategy": "Halted", "template": template},
                },
            },
        ),
    }
    base, version, spec = specs[kind]
    return f"{base}/{kind.lower()}s", {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


VSOCK = {"autoattachVSOCK": True}


@pytest.mark.parametrize("kind", ["VirtualMachineInstance", "VirtualMachine", "VirtualMachineInstanceReplicaSet", "VirtualMachinePool"])
@scripted
async def test_a_gate_holds_as_the_kubevirt_object_says_at_the_moment(kind: str) -> None:
    async with Harness() as api:
        await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubevirt"}})
        refused = await api.post(*holder(kind, "one", VSOCK))
        assert refused.status == 422 and "add VSOCK to spec.configuration" in str(refused.data)
        assert (await api.post(KUBEVIRTS, kubevirt(featureGates=["VSOCK"]))).status == 201
        taken = await api.post(*holder(kind, "one", VSOCK))
        assert taken.status == 201, taken.data
        stored = (await api.get(f"{KUBEVIRTS}/kubevirt")).data
        stored["spec"]["configuration"]["developerConfiguration"] = {"featureGates": []}
        assert (await api.put(f"{KUBEVIRTS}/kubevirt", stored)).status == 200
        assert (await api.post(*holder(kind, "two", VSOCK))).status == 422


@scripted
async def test_a_gate_whose_feature_the_engine_lacks_stays_shut() -> None:
    async with Harness() as api:
        await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubevirt"}})
        assert (await api.post(KUBEVIRTS, kubevirt(featureGates=["DownwardMetrics"]))).status == 201
        refused = await api.post(*holder("VirtualMachineInstance", "one", {"downwardMetrics": {}}))
        assert refused.status == 422 and "whatever the KubeVirt object says: guests get no metrics" in str(refused.data)
