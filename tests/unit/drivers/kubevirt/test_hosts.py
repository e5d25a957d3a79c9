"""Nodes as hosts."""

from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kubevirt import hosts
from paddock_drivers.kubevirt.observed import MachineSize
from tests.coroutines import played
from tests.unit.drivers.kubevirt.conftest import Target


def node(**members: Any) -> dict[str, Any]:
    status = {
        "allocatable": {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "10.0.0.1"}],
    }
    labels = {
        "topology.kubernetes.io/zone": "eu",
        "cpu-feature.node.kubevirt.io/avx512f": "true",
        "host-model-cpu.node.kubevirt.io/EPYC": "true",
    }
    return {"metadata": {"name": "n1", "labels": labels}, "spec": members.pop("spec", {}), "status": {**status, **members}}


def test_a_node_is_a_host_with_what_its_guests_leave() -> None:
    found = hosts.host_of(node(), MachineSize(6, 4096))
    assert (found.id, found.address, found.health) == ("n1", "10.0.0.1", m.HostHealth.READY)
    assert (found.allocatable_cpu, found.allocatable_mem_mib, found.allocatable_storage) == (10, 61440, 100 << 30)
    assert (found.cpu_model, found.cpu_features, found.labels["topology.kubernetes.io/zone"]) == ("EPYC", ("avx512f",), "eu")
    assert hosts.host_of(node(), MachineSize(99, 1 << 20)).allocatable_cpu == 0
    for state, health in (("False", m.HostHealth.NOT_READY), ("Unknown", m.HostHealth.NOT_READY)):
        assert hosts.host_of(node(conditions=[{"type": "Ready", "status": state}]), MachineSize(0, 0)).health is health
    assert hosts.host_of(node(conditions=[]), MachineSize(0, 0)).health is m.HostHealth.UNSPECIFIED


def test_taints_are_labels() -> None:
    taints = [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"key": "gpu", "effect": "NoExecute"},
        {"key": "a/b", "effect": "PreferNoSchedule"},
    ]
    labels = hosts.host_of(node(spec={"taints": taints, "unschedulable": True}), MachineSize(0, 0)).labels
    assert labels["virtrigaud.io/taint/gpu"] == "yes:NoSchedule,:NoExecute"
    assert labels["virtrigaud.io/taint/a/b"] == ":PreferNoSchedule"
    assert labels["virtrigaud.io/taint/node.kubernetes.io/unschedulable"] == ":NoSchedule"


@played
async def test_the_target_lists_its_nodes(target: Target, /) -> None:
    status = {"allocatable": {"cpu": "8", "memory": "16Gi"}, "conditions": [{"type": "Ready", "status": "True"}]}
    said = await target.host.api.merge("/api/v1/nodes/host/status", {"status": status})
    assert said.status == 200, said.data
    (before,) = (await target.driver.list_hosts(m.ListHostsRequest())).hosts
    assert before.health is m.HostHealth.READY and before.allocatable_mem_mib > 0
    await target.running()
    (after,) = (await target.driver.list_hosts(m.ListHostsRequest())).hosts
    assert before.allocatable_mem_mib - after.allocatable_mem_mib == 1024
    assert await target.driver.get_host_info(m.GetHostInfoRequest(host_id=before.id)) == after
    with pytest.raises(ProviderError) as error:
        await target.driver.get_host_info(m.GetHostInfoRequest(host_id="other"))
    assert error.value.kind is ErrorKind.NOT_FOUND
    assert not (await target.driver.get_capabilities(m.GetCapabilitiesRequest())).supports_clustering
