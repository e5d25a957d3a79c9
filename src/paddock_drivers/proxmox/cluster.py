"""The cluster as the driver's parts see it: its resources, where its machines are, and its tasks."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.proxmox import failures
from paddock_drivers.proxmox.api import FormValue, ProxmoxApi, ProxmoxRefusal, path
from paddock_drivers.proxmox.config import ProxmoxMachineConfig
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId
from paddock_drivers.proxmox.settings import ProxmoxSettings
from paddock_drivers.proxmox.upid import Upid
from paddock_drivers.proxmox.works import ProxmoxWorks

_QEMU, _ONLINE = "qemu", "online"
_RUNNING = "running"
_WARNINGS = "WARNINGS"
# A node that has left the cluster.
_NO_NODE = ("no such cluster node", "hostname lookup", "unable to find node")
_TASK_SECONDS = 8.0


class ProxmoxResource(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the cluster's list of resources."""

    type: str = ""
    id: str = ""
    node: str = ""
    status: str = ""
    vmid: int = 0
    name: str = ""
    tags: str = ""
    lock: str = ""
    pool: str = ""
    template: int = 0
    maxcpu: float = 0
    # of a node's own list of machines
    cpus: float = 0
    qmpstatus: str = ""
    maxmem: int = 0
    mem: int = 0
    maxdisk: int = 0
    disk: int = 0
    storage: str = ""
    content: str = ""
    plugintype: str = ""
    shared: int = 0


class ProxmoxLocatedMachine(msgspec.Struct, frozen=True):
    """A machine, and the node that it is on now."""

    node: str
    config: ProxmoxMachineConfig

    @property
    def id(self) -> ProxmoxMachineId:
        return self.config.id


class ProxmoxCluster:
    """One cluster, or one node that stands alone."""

    def __init__(self, api: ProxmoxApi, settings: ProxmoxSettings, works: ProxmoxWorks) -> None:
        self.api = api
        self.settings = settings
        self.works = works
        # where machines were last seen
        self._nodes: dict[int, str] = {}
        self._release: tuple[int, int] | None = None

    # --- what the cluster has -------------------------------------------------------------------------------------------------

    async def release(self) -> tuple[int, int]:
        """The release of Proxmox VE: (8, 4)."""
        if self._release is None:
            found = await self.api.get("/version")
            numbers = re.match(r"(\d+)[.-](\d+)", str((found or {}).get("release") or (found or {}).get("version") or ""))
            self._release = (int(numbers[1]), int(numbers[2])) if numbers is not None else (0, 0)
        return self._release

    def forget_release(self) -> None:
        """Ask again: the cluster may have been upgraded."""
        self._release = None

    async def resources(self, type: str = "") -> tuple[ProxmoxResource, ...]:
        """The machines, nodes and storages of the cluster, in one call."""
        listed = await self.api.get("/cluster/resources", type=type or None)
        found = tuple(msgspec.convert(_present(each), ProxmoxResource, strict=False) for each in listed or ())
        if type in ("", "vm"):
            self._nodes = {each.vmid: each.node for each in found if each.type == "qemu"}
        return found

    async def machines(self, resources: tuple[ProxmoxResource, ...] = ()) -> tuple[ProxmoxResource, ...]:
        """All machines as they are now: one call for the cluster, and one for each node that is up.

        The list of resources is fed by what nodes broadcast every few seconds, so a new machine has no name there yet.
        """
        found = resources or await self.resources()
        nodes = [each.node for each in found if each.type == "node" and each.status == _ONLINE]
        listed = dict(zip(nodes, await asyncio.gather(*(self._machines_of(node) for node in nodes)), strict=True))
        known = {each.vmid: each for each in found if each.type == _QEMU}
        live = [
            msgspec.structs.replace(each, pool=known[each.vmid].pool if each.vmid in known else "")
            for machines in listed.values()
            for each in machines or ()
        ]
        here = {each.vmid for each in live}
        # Of a node that does not answer only the broadcast is known.
        lost = [each for each in known.values() if each.vmid not in here and listed.get(each.node) is None]
        self._nodes |= {each.vmid: each.node for each in live}
        return (*live, *lost)

    async def _machines_of(self, node: str) -> tuple[ProxmoxResource, ...] | None:
        try:
            listed = await self.api.get(path("nodes", node, "qemu"))
        except ProxmoxRefusal as error:
            if error.status in (401, 403):
                raise
            return None
        found = (msgspec.convert({**_present(each), "type": _QEMU, "node": node}, ProxmoxResource, strict=False) for each in listed or ())
        return tuple(msgspec.structs.replace(each, maxcpu=each.cpus or each.maxcpu) for each in found)

    # --- machines -------------------------------------------------------------------------------------------------------------

    async def config(self, node: str, vmid: int) -> ProxmoxMachineConfig:
        """The configuration that a machine runs with."""
        return ProxmoxMachineConfig(vmid, await self.api.get(path("nodes", node, "qemu", vmid, "config"), current=True) or {})

    async def find(self, text: str) -> ProxmoxLocatedMachine | None:
        """The machine of an id; None when the cluster positively does not have it."""
        identity = ProxmoxMachineId.parse(text)
        return await self.locate(identity) if identity is not None else None

    async def machine(self, text: str) -> ProxmoxLocatedMachine:
        """The machine of an id; raises NotFound."""
        found = await self.find(text)
        if found is None:
            raise refusals.not_found(f"machine {text[:64]} does not exist in this Proxmox VE cluster")
        return found

    async def locate(self, id: ProxmoxMachineId) -> ProxmoxLocatedMachine | None:
        """The machine of an id, on whatever node it is now."""
        known = self._nodes.get(id.vmid)
        found = await self._on(known, id.vmid) if known is not None else None
        if found is None:
            found = await self._searched(id)
        if found is None:
            return None
        if found.config.is_being_made and not found.config.is_machine(id):
            raise refusals.retry_later(f"machine {id.vmid} is being made")
        return found if found.config.is_machine(id) else None

    async def _searched(self, id: ProxmoxMachineId) -> ProxmoxLocatedMachine | None:
        listed = next((each for each in await self.resources("vm") if each.vmid == id.vmid), None)
        if listed is None:
            await self._check_free(id.vmid)
            return None
        if listed.type != "qemu":
            return None
        found = await self._on(listed.node, id.vmid)
        if found is None:
            raise refusals.retry_later(f"machine {id.vmid} is moving between nodes")
        return found

    async def _on(self, node: str, vmid: int) -> ProxmoxLocatedMachine | None:
        """The machine of a VMID on a node; None when that node does not have it, or is no node any more."""
        try:
            return ProxmoxLocatedMachine(node, await self.config(node, vmid))
        except ProxmoxRefusal as error:
            if failures.is_gone(error) or error.says(*_NO_NODE):
                return None
            raise

    async def _check_free(self, vmid: int) -> None:
        """Raise `ProviderError` if a VMID is taken all the same: lists leave out what the user may not see."""
        try:
            await self.api.get("/cluster/nextid", vmid=vmid)
        except ProxmoxRefusal as error:
            if not failures.is_taken(error) and not (error.status == 400 and "vmid" in error.errors):
                raise
            what = f"machine {vmid} cannot be seen by this user or token"
            raise ProviderError(
                ErrorKind.UNAUTHORIZED, what, fix="give it a role with VM.Audit on /vms or on the machine's pool"
            ) from error

    def moved(self, vmid: int, node: str) -> None:
        """Note where a machine is."""
        self._nodes[vmid] = node

    def of(self, machine: ProxmoxLocatedMachine, *parts: str | int) -> str:
        """The path of something of a machine."""
        return path("nodes", machine.node, "qemu", machine.config.vmid, *parts)

    async def reread(self, machine: ProxmoxLocatedMachine) -> ProxmoxLocatedMachine:
        """The same machine as it is now; raises NotFound when it has gone."""
        found = await self.locate(machine.id)
        if found is None:
            raise refusals.not_found(f"machine {machine.id} has been deleted meanwhile")
        return found

    async def change(self, machine: ProxmoxLocatedMachine, form: Mapping[str, FormValue]) -> None:
        """Change a machine's configuration, disks included, and wait until the cluster has done so."""
        if not form:
            return
        answer = await self.api.post(self.of(machine, "config"), form)
        if (upid := Upid.parse(answer)) is not None:
            await self.wait(upid)

    async def set(self, machine: ProxmoxLocatedMachine, form: Mapping[str, FormValue]) -> None:
        """Set values of a machine that takes no time: nothing is plugged, and no disk is made."""
        if form:
            await self.api.put(self.of(machine, "config"), form)

    # --- tasks ----------------------------------------------------------------------------------------------------------------

    async def progress(self, upid: Upid) -> TaskProgress | None:
        """Return the progress of a task; None for one that the cluster does not know any more."""
        try:
            found = await self.api.get(path("nodes", upid.node, "tasks", upid.text, "status"), seconds=_TASK_SECONDS)
        except ProxmoxRefusal as error:
            if failures.is_gone(error) or error.says("no such task", "unable to read task", *_NO_NODE):
                return None
            raise
        if found.get("status") == _RUNNING:
            return RUNNING
        end = str(found.get("exitstatus") or "")
        if end == "OK" or end.startswith(_WARNINGS):
            return DONE
        return failed(f"Proxmox VE's task {upid.type} {upid.id} failed: {end[:500] or 'it ended without a word'}")

    async def wait(self, upid: Upid) -> None:
        """Wait for the end of a task; raises `ProviderError` if it fails. A cluster that does not answer meanwhile is waited for."""
        pause = self.settings.poll_seconds
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, self.settings.most_poll_seconds)
            found: TaskProgress | None = RUNNING
            try:
                with failures.mapped():
                    found = await self.progress(upid)
            except ProviderError as error:
                if error.kind not in (ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.UNAUTHORIZED):
                    raise
            if found is None:
                return
            if found.error:
                raise ProviderError(ErrorKind.INTERNAL, found.error)
            if found.done:
                return

    async def finish(self, answer: Any) -> None:
        """Wait for the task that a call has answered with, if it has."""
        if (upid := Upid.parse(answer)) is not None:
            await self.wait(upid)


def _present(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}
