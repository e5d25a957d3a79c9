"""Snapshots: taken, deleted, and gone back to. The id of a snapshot is its name at the machine."""

import msgspec

from paddock.contract import messages as m
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import naming
from paddock_drivers.proxmox.api import FormValue, path
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine
from paddock_drivers.proxmox.identifiers import ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.power import OFF, ProxmoxPowerControl, state_of
from paddock_drivers.proxmox.upid import Upid

# The cluster's entry for the machine as it is.
_CURRENT = "current"


class ProxmoxMachineSnapshot(msgspec.Struct, frozen=True):
    """A snapshot of a machine."""

    name: str
    description: str = ""
    # with the memory of the guest
    vmstate: bool = False
    # not complete: it is being taken, deleted, or one of these has failed
    state: str = ""


class ProxmoxSnapshotControl:
    """Takes, deletes and restores snapshots."""

    def __init__(self, cluster: ProxmoxCluster, power: ProxmoxPowerControl) -> None:
        self._cluster = cluster
        self._power = power

    async def create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot. The same name of the same machine is the same snapshot."""
        machine = await self._cluster.machine(request.vm_id)
        name = naming.snapshot(request.name_hint)
        found = await self.find(machine, name)
        if found is not None and not found.state:
            return m.SnapshotCreateResponse(snapshot_id=name)
        if found is not None:
            raise refusals.retry_later(f"snapshot {name} is not complete ({found.state}); the machine is locked meanwhile")
        form: dict[str, FormValue] = {"snapname": name, "description": request.description or None}
        if request.include_memory and state_of(await self._power.status(machine)) != OFF:
            form["vmstate"] = True
        upid = Upid.parse(await self._cluster.api.post(self._cluster.of(machine, "snapshot"), form))
        task = ProxmoxTaskId(ProxmoxTaskGoal.SNAPSHOTTED, upid, machine.id, name)
        return m.SnapshotCreateResponse(snapshot_id=name, task=m.TaskRef(id=str(task)))

    async def delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot. One that is gone is deleted."""
        machine = await self._cluster.find(request.vm_id)
        if machine is None or await self.find(machine, request.snapshot_id) is None:
            return m.TaskResponse()
        upid = Upid.parse(await self._cluster.api.delete(self._cluster.of(machine, "snapshot", request.snapshot_id)))
        return m.TaskResponse(
            task=m.TaskRef(id=str(ProxmoxTaskId(ProxmoxTaskGoal.SNAPSHOT_DELETED, upid, machine.id, request.snapshot_id)))
        )

    async def revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot. The cluster stops it for that, and starts it again if the snapshot has memory."""
        machine = await self._cluster.machine(request.vm_id)
        found = await self.find(machine, request.snapshot_id)
        if found is None:
            raise refusals.not_found(f"machine {machine.config.name} has no snapshot {request.snapshot_id[:64]}")
        if found.state:
            raise refusals.conflict(f"snapshot {found.name} cannot be restored", why=f"it is not complete ({found.state})")
        upid = Upid.parse(await self._cluster.api.post(self._cluster.of(machine, "snapshot", found.name, "rollback")))
        return m.TaskResponse(task=m.TaskRef(id=str(ProxmoxTaskId(ProxmoxTaskGoal.REVERTED, upid, machine.id, found.name))))

    async def every(self, machine: ProxmoxLocatedMachine) -> tuple[ProxmoxMachineSnapshot, ...]:
        """The snapshots of a machine."""
        listed = await self._cluster.api.get(path("nodes", machine.node, "qemu", machine.config.vmid, "snapshot"))
        return tuple(
            ProxmoxMachineSnapshot(
                str(each["name"]), str(each.get("description") or ""), bool(each.get("vmstate")), str(each.get("snapstate") or "")
            )
            for each in listed or ()
            if each.get("name") != _CURRENT
        )

    async def find(self, machine: ProxmoxLocatedMachine, name: str) -> ProxmoxMachineSnapshot | None:
        """The snapshot of a name; None for none."""
        return next((each for each in await self.every(machine) if each.name == name), None)
