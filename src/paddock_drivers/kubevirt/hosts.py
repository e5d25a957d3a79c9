"""The nodes of the target as hosts: what is free on each, its labels, features of its CPU and taints.

The target schedules machines itself, so the driver needs no host for a call, and is not a clustered provider. Hosts are for whoever places
machines by rules. A taint is a label `virtrigaud.io/taint/KEY: VALUE:EFFECT`, several of a key separated by commas.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from paddock.base import quantity
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.errors import Forbidden
from paddock.kubernetes.client.options import EVERYTHING
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import observed, targets
from paddock_drivers.kubevirt.cluster import TargetCluster
from paddock_drivers.kubevirt.observed import MachineSize

_MIB = 1 << 20
_CPU_FEATURE, _CPU_MODEL = "cpu-feature.node.kubevirt.io/", "host-model-cpu.node.kubevirt.io/"
_TAINT = "virtrigaud.io/taint/"
_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
Data = Mapping[str, Any]


class HostInventory:
    """Lists the nodes of the target."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def every(self) -> m.ListHostsResponse:
        """Return all nodes. A driver that may not read them has no hosts to offer."""
        try:
            nodes = (await self._cluster.client.list(targets.NODES, EVERYTHING)).items
        except Forbidden as error:
            what = "hosts cannot be listed"
            raise ProviderError(ErrorKind.NOT_SUPPORTED, what, why="the driver's account may not list nodes") from error
        used = _used(await self._instances())
        listed = sorted(nodes, key=lambda each: str(each["metadata"]["name"]))
        return m.ListHostsResponse(hosts=tuple(host_of(each, used.get(each["metadata"]["name"], MachineSize(0, 0))) for each in listed))

    async def find(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one node; raises NotFound when there is none."""
        for each in (await self.every()).hosts:
            if each.id == request.host_id:
                return each
        raise refusals.not_found(f"host {request.host_id} does not exist")

    async def _instances(self) -> Iterable[VirtualMachineInstance]:
        """The runs of all machines; those of the driver's namespace where its account sees no others."""
        try:
            return (await self._cluster.client.list(targets.INSTANCES, EVERYTHING)).items
        except Forbidden:
            return await self._cluster.every(targets.INSTANCES)


def _used(instances: Iterable[VirtualMachineInstance]) -> dict[str, MachineSize]:
    """The resources that the guests of each node have."""
    found: dict[str, MachineSize] = {}
    for each in instances:
        node = observed.instance_status(each).nodeName
        if node and observed.is_live(each):
            before, has = found.get(node, MachineSize(0, 0)), observed.instance_size(each)
            found[node] = MachineSize(before.cpus + has.cpus, before.memory_mib + has.memory_mib)
    return found


def host_of(node: Data, used: MachineSize) -> m.HostInfo:
    """Return a node as a host, with what its guests leave of it."""
    status, metadata = node.get("status") or {}, node["metadata"]
    labels = dict(metadata.get("labels") or {})
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    models = [name.removeprefix(_CPU_MODEL) for name, value in labels.items() if name.startswith(_CPU_MODEL) and value == "true"]
    return m.HostInfo(
        id=metadata["name"],
        address=_address(status),
        allocatable_cpu=max(0, quantity.whole(allocatable.get("cpu", 0)) - used.cpus),
        allocatable_mem_mib=max(0, quantity.whole(allocatable.get("memory", 0)) // _MIB - used.memory_mib),
        allocatable_storage=quantity.whole(allocatable.get("ephemeral-storage", 0)),
        health=_health(status),
        labels={**labels, **_taints(node)},
        cpu_model=next(iter(sorted(models)), ""),
        cpu_features=tuple(sorted(name.removeprefix(_CPU_FEATURE) for name in labels if name.startswith(_CPU_FEATURE))),
    )


def _address(status: Data) -> str:
    addresses = status.get("addresses") or ()
    return next((str(each.get("address") or "") for each in addresses if each.get("type") == "InternalIP"), "")


def _health(status: Data) -> m.HostHealth:
    ready = next((str(each.get("status")) for each in status.get("conditions") or () if each.get("type") == "Ready"), "")
    if not ready:
        return m.HostHealth.UNSPECIFIED
    return m.HostHealth.READY if ready == "True" else m.HostHealth.NOT_READY


def _taints(node: Data) -> dict[str, str]:
    spec = node.get("spec") or {}
    taints = [*(spec.get("taints") or ())]
    if spec.get("unschedulable") and _UNSCHEDULABLE["key"] not in {each.get("key") for each in taints}:
        taints.append(_UNSCHEDULABLE)
    found: dict[str, list[str]] = {}
    for each in taints:
        found.setdefault(f"{_TAINT}{each.get('key', '')}", []).append(f"{each.get('value') or ''}:{each.get('effect') or ''}")
    return {key: ",".join(values) for key, values in found.items()}
