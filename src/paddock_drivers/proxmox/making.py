"""Begins machines: a clone of a template or of a machine, or an empty machine. Each comes with a note of what it is for.

While a clone is copied, its configuration has a lock and nothing else. So before the driver begins one, it makes sure that no task of its
own account is under way that it did not begin for somebody else: such a task may be the same work, whose answer was lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import failures, marks
from paddock_drivers.proxmox.api import FormValue, ProxmoxRefusal, path
from paddock_drivers.proxmox.cluster import ProxmoxCluster
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId, machine_uuid, owner_tag
from paddock_drivers.proxmox.marks import ProxmoxMachineNote
from paddock_drivers.proxmox.upid import Upid

_CLONE, _CREATE = "qmclone", "qmcreate"
_MOST_TRIES = 8
_RECENT_SECONDS = 30.0
_MOST_KNOWN = 5000


class ProxmoxBegunMachine(msgspec.Struct, frozen=True):
    """A machine that is being made: its identity, where it is made, and the cluster's task."""

    id: ProxmoxMachineId
    node: str
    upid: Upid | None


class ProxmoxCloneOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A clone to begin. `storage`, `pool` and `target` are empty for those of the source."""

    key: str
    name: str
    words: str
    node: str
    source: int
    full: bool
    storage: str = ""
    # of the new disks of a full clone; empty: as it is
    format: str = ""
    pool: str = ""
    target: str = ""
    snapshot: str = ""


class ProxmoxMachineMaking:
    """Begins clones and empty machines."""

    def __init__(self, cluster: ProxmoxCluster) -> None:
        self._cluster = cluster
        # tasks that this process has begun
        self._begun: dict[str, None] = {}
        # a VMID is free until it is taken, so those of this process are taken one after the other
        self._taking = asyncio.Lock()
        self._recent: dict[int, float] = {}

    async def clone(self, order: ProxmoxCloneOrder) -> ProxmoxBegunMachine:
        await self._check_unknown(order.node, _CLONE)

        async def begin(id: ProxmoxMachineId) -> Any:
            form: dict[str, FormValue] = {
                "newid": id.vmid,
                "name": order.name,
                "description": _described(order.words, id, order.key),
                "full": order.full,
                "storage": order.storage or None,
                "format": order.format or None,
                "pool": order.pool or None,
                "target": order.target or None,
                "snapname": order.snapshot or None,
            }
            return await self._cluster.api.post(path("nodes", order.node, "qemu", order.source, "clone"), form)

        return await self._begin(order.key, order.target or order.node, begin)

    async def empty(self, key: str, node: str, words: str, form: dict[str, FormValue]) -> ProxmoxBegunMachine:
        """Begin a machine without disks. Its tag is there from the start."""
        await self._check_unknown(node, _CREATE)

        async def begin(id: ProxmoxMachineId) -> Any:
            own: dict[str, FormValue] = {
                "vmid": id.vmid,
                "description": _described(words, id, key),
                "smbios1": f"uuid={id.uuid}",
                "tags": owner_tag(key),
            }
            return await self._cluster.api.post(path("nodes", node, "qemu"), {**form, **own})

        return await self._begin(key, node, begin)

    async def _begin(self, key: str, node: str, begin: Callable[[ProxmoxMachineId], Awaitable[Any]]) -> ProxmoxBegunMachine:
        """Begin with a free VMID; one that somebody else takes meanwhile is left to them."""
        refusal: ProxmoxRefusal | None = None
        for _ in range(_MOST_TRIES):
            async with self._taking:
                vmid = await self._free()
                machine = ProxmoxMachineId(vmid, machine_uuid(key, vmid))
                try:
                    answer = await begin(machine)
                except ProxmoxRefusal as error:
                    if not failures.is_taken(error):
                        raise
                    refusal = error
                    continue
                if (upid := Upid.parse(answer)) is not None:
                    self._begun[upid.text] = None
                    # The oldest have ended long ago.
                    for old in list(self._begun)[:-_MOST_KNOWN]:
                        del self._begun[old]
                self._recent[vmid] = asyncio.get_running_loop().time()
                self._cluster.moved(vmid, node)
                return ProxmoxBegunMachine(machine, node, upid)
        assert refusal is not None
        raise refusals.retry_later(f"{_MOST_TRIES} VMIDs in a row were taken by others") from refusal

    async def _free(self) -> int:
        """A free VMID. One that this process has just taken may look free until the cluster's worker has begun."""
        now = asyncio.get_running_loop().time()
        self._recent = {vmid: taken for vmid, taken in self._recent.items() if now - taken < _RECENT_SECONDS}
        vmid = int(await self._cluster.api.get("/cluster/nextid"))
        while vmid in self._recent:
            vmid += 1
            try:
                await self._cluster.api.get("/cluster/nextid", vmid=vmid)
            except ProxmoxRefusal as error:
                if error.status != 400:
                    raise
                self._recent[vmid] = now
        return vmid

    async def _check_unknown(self, node: str, kind: str) -> None:
        """Raise `ProviderError` while a task of this account runs that this process did not begin."""
        running = await self._cluster.api.get(path("nodes", node, "tasks"), source="active", typefilter=kind)
        own = self._cluster.settings.account
        for each in running or ():
            upid = Upid.parse(each.get("upid"))
            ended = each.get("status") not in (None, "", "RUNNING", "running")
            if upid is None or upid.type != kind or ended or upid.text in self._begun:
                continue
            if own and upid.user != own:
                continue
            what = f"a machine is being made on node {node} by a task that this program did not begin"
            raise refusals.retry_later(f"{what} ({upid.type} {upid.id}); it may be the same one")


def _described(words: str, id: ProxmoxMachineId, key: str) -> str:
    return marks.write(words, ProxmoxMachineNote(vmid=id.vmid, uuid=id.uuid, key=key))
