"""The nodes of the cluster as hosts, and its storages as datastores."""

import asyncio
from typing import Any

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import placing
from paddock_drivers.proxmox.api import ProxmoxRefusal, path
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxResource

_MIB = 1 << 20
_ONLINE, _RUNNING, _AVAILABLE = "online", "running", "available"


class ProxmoxHostInventory:
    def __init__(self, cluster: ProxmoxCluster) -> None:
        self._cluster = cluster

    async def every(self) -> m.ListHostsResponse:
        """Return all nodes, with what their machines leave of them."""
        resources = await self._cluster.resources()
        nodes = sorted((each for each in resources if each.type == "node"), key=lambda each: each.node)
        statuses = await asyncio.gather(*(self._status(each) for each in nodes))
        return m.ListHostsResponse(hosts=tuple(host_of(each, status, resources) for each, status in zip(nodes, statuses, strict=True)))

    async def find(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one node; raises NotFound when there is none."""
        resources = await self._cluster.resources()
        for each in resources:
            if each.type == "node" and each.node == request.host_id:
                return host_of(each, await self._status(each), resources)
        raise refusals.not_found(f"node {request.host_id[:64]} does not exist")

    async def _status(self, node: ProxmoxResource) -> dict[str, Any]:
        """Return the status of a node; nothing when it is off, or for users without Sys.Audit."""
        if node.status != _ONLINE:
            return {}
        try:
            return dict(await self._cluster.api.get(path("nodes", node.node, "status")) or {})
        except ProxmoxRefusal:
            return {}

    async def datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the storages that take disks; those of a pool, if one is named."""
        resources = await self._cluster.resources("storage")
        pods = await self._pods()
        found: dict[str, x.DatastoreInfo] = {}
        for each in resources:
            if each.type != "storage" or placing.IMAGES not in each.content.split(","):
                continue
            before = found.get(each.storage)
            # A local storage has an entry for each node; the one with the most free space is where a machine would go.
            free = max(each.maxdisk - each.disk, 0)
            if before is not None and before.accessible and (each.status != _AVAILABLE or before.free_bytes >= free):
                continue
            accessible = each.status == _AVAILABLE
            found[each.storage] = x.DatastoreInfo(
                name=each.storage,
                pod=pods.get(each.storage, ""),
                free_bytes=free if accessible else 0,
                total_bytes=each.maxdisk,
                accessible=accessible,
            )
        return x.ListDatastoresResponse(
            datastores=tuple(each for _, each in sorted(found.items()) if not request.pod or each.pod == request.pod)
        )

    async def _pods(self) -> dict[str, str]:
        """The pool of each storage that is in one: a storage pod is a pool with storages."""
        try:
            pools = await self._cluster.api.get("/pools")
            names = [str(each["poolid"]) for each in pools or ()]
            listed = await asyncio.gather(*(self._cluster.api.get(path("pools", name)) for name in names))
        except ProxmoxRefusal:
            return {}
        found: dict[str, str] = {}
        for name, pool in zip(names, listed, strict=True):
            for member in (pool or {}).get("members") or ():
                if member.get("type") == "storage" and member.get("storage"):
                    found.setdefault(str(member["storage"]), name)
        return found


def host_of(node: ProxmoxResource, status: dict[str, Any], resources: tuple[ProxmoxResource, ...]) -> m.HostInfo:
    """Return a node as a host. Storage is what is free of the storages for disks."""
    running = [each for each in resources if each.type == "qemu" and each.node == node.node and each.status == _RUNNING]
    stores = [each for each in placing.storages(resources, placing.IMAGES) if each.node == node.node]
    info = status.get("cpuinfo") or {}
    used = max(sum(each.maxmem for each in running), node.mem)
    labels = {"kubernetes.io/hostname": node.node, "proxmox.com/storages": ",".join(sorted(each.storage for each in stores))}
    return m.HostInfo(
        id=node.node,
        address="",
        allocatable_cpu=max(0, int(node.maxcpu - sum(each.maxcpu for each in running))),
        allocatable_mem_mib=max(0, (node.maxmem - used) // _MIB),
        allocatable_storage=sum(max(each.maxdisk - each.disk, 0) for each in stores),
        health=m.HostHealth.READY if node.status == _ONLINE else m.HostHealth.NOT_READY,
        labels={key: value for key, value in labels.items() if value},
        cpu_model=str(info.get("model") or ""),
        cpu_features=tuple(sorted(str(info.get("flags") or "").split())),
        emulator_version=str(status.get("pveversion") or ""),
    )
