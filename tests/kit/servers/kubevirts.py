"""The KubeVirt object of a cluster, on a host of Paddock: what reads it there takes the host for a cluster."""

from tests.kit.servers.apiharness import Harness

KUBEVIRTS = "/apis/kubevirt.io/v1/namespaces/virt/kubevirts"


async def install_kubevirt(api: Harness, version: str, *gates: str) -> None:
    """Make the object of a release with these feature gates on."""
    await api.post("/api/v1/namespaces", {"metadata": {"name": "virt"}})
    configuration = {"developerConfiguration": {"featureGates": list(gates)}}
    head = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}}
    made = await api.post(KUBEVIRTS, {**head, "spec": {"configuration": configuration}})
    assert made.status == 201, made.data
    status = {**made.data, "status": {"observedKubeVirtVersion": version, "phase": "Deployed"}}
    written = await api.put(f"{KUBEVIRTS}/kubevirt/status", status)
    assert written.status == 200, written.data
