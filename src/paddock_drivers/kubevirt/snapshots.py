"""Snapshots: taken, deleted, and gone back to. A snapshot goes with its machine, as with other hypervisors."""

import contextlib
import hashlib

import msgspec

from paddock.base import ownnames
from paddock.contract import messages as m
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import EVERYTHING
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference, owned_by
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubevirt.kinds.restore import RestoreSpec, VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import SnapshotSpec, VirtualMachineSnapshot
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import marks, progress, targets
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of
from paddock_drivers.kubevirt.identifiers import ObjectId, TaskGoal, TaskId

GROUP = "kubevirt.io"
_SNAPSHOT, _RESTORE = "snapshot", "revert"


class SnapshotControl:
    """Takes, deletes and restores snapshots."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot. The same name of the same machine is the same snapshot, unless that failed, so a repeated call takes one."""
        machine = await self._cluster.machine(request.vm_id)
        notes = {marks.DESCRIPTION: request.description} if request.description else {}
        if request.include_memory:
            await self._check_memory(machine)
            notes[ownnames.MEMORY.name] = "true"
        name = snapshot_name(machine, request.name_hint)
        wanted = VirtualMachineSnapshot(
            apiVersion=targets.SNAPSHOTS.api_version,
            kind=targets.SNAPSHOTS.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=self._cluster.namespace,
                labels={marks.PURPOSE: _SNAPSHOT},
                annotations=notes or None,
                ownerReferences=_shared(machine),
            ),
            spec=SnapshotSpec(source=_reference(machine)),
        )
        found = await self._cluster.ensure(targets.SNAPSHOTS, wanted)
        if found.spec.source.name != machine.metadata.name or not _is_of(found, machine):
            raise refusals.conflict(f"snapshot {name} exists and is not of machine {machine.metadata.name}", fix="choose another name")
        if problem := progress.snapshotted(found).error:
            # KubeVirt does not try again what has failed.
            await self._cluster.delete(targets.SNAPSHOTS, id_of(found))
            raise refusals.retry_later(f"{problem}; it is removed, and the next call takes another one")
        task = TaskId(TaskGoal.SNAPSHOTTED, id_of(found))
        return m.SnapshotCreateResponse(snapshot_id=str(id_of(found)), task=m.TaskRef(id=str(task)))

    async def _check_memory(self, machine: VirtualMachine) -> None:
        """Raise `ProviderError` for a machine whose memory cannot be kept."""
        what = f"a snapshot of machine {machine.metadata.name} cannot include memory"
        if not await keeps_memory(self._cluster):
            raise refusals.not_supported(what, why="KubeVirt keeps disks only", fix="set includeMemory to false")
        if machine.status is None or not machine.status.created:
            raise refusals.conflict(what, why="the machine is off", fix="power it on, or set includeMemory to false")

    async def delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot. One that is gone is deleted."""
        identity = ObjectId.parse(request.snapshot_id)
        found = await self._cluster.find_id(targets.SNAPSHOTS, identity)
        if found is None or identity is None:
            return m.TaskResponse()
        self.check_machine(found, request.vm_id)
        await self._cluster.delete(targets.SNAPSHOTS, identity)
        return m.TaskResponse(task=m.TaskRef(id=str(TaskId(TaskGoal.SNAPSHOT_DELETED, identity))))

    async def revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot. It is stopped for that; whether it runs afterwards is the manager's matter."""
        machine = await self._cluster.machine(request.vm_id)
        snapshot = await self.find(request.snapshot_id)
        self.check_machine(snapshot, request.vm_id)
        if snapshot.status is None or not snapshot.status.readyToUse:
            raise refusals.conflict(f"snapshot {snapshot.metadata.name} cannot be restored yet", fix="wait until it is ready")
        restore = await self._under_way(machine, snapshot) or await self._restore(machine, snapshot)
        return m.TaskResponse(task=m.TaskRef(id=str(TaskId(TaskGoal.REVERTED, id_of(restore)))))

    async def find(self, text: str) -> VirtualMachineSnapshot:
        """The snapshot of an id; raises NotFound when there is none."""
        found = await self._cluster.find_id(targets.SNAPSHOTS, ObjectId.parse(text))
        if found is None:
            raise refusals.not_found(f"snapshot {text} does not exist in namespace {self._cluster.namespace}")
        return found

    async def _under_way(self, machine: VirtualMachine, snapshot: VirtualMachineSnapshot) -> VirtualMachineRestore | None:
        """The restore that a call before this one began. Those that have ended are cleared away."""
        found = None
        for each in await self._cluster.every(targets.RESTORES, f"{marks.PURPOSE}={_RESTORE}"):
            if each.spec.target.name != machine.metadata.name:
                continue
            if progress.restored(each).done:
                await self._cluster.delete(targets.RESTORES, id_of(each))
            elif each.spec.virtualMachineSnapshotName == snapshot.metadata.name:
                found = each
        return found

    async def _restore(self, machine: VirtualMachine, snapshot: VirtualMachineSnapshot) -> VirtualMachineRestore:
        await self._halt(machine)
        wanted = VirtualMachineRestore(
            apiVersion=targets.RESTORES.api_version,
            kind=targets.RESTORES.kind,
            metadata=ObjectMeta(
                generateName=f"{marks.object_name(machine.metadata.name)[:40]}-revert-",
                namespace=self._cluster.namespace,
                labels={marks.PURPOSE: _RESTORE},
                ownerReferences=_shared(machine),
            ),
            spec=RestoreSpec(
                target=_reference(machine),
                virtualMachineSnapshotName=snapshot.metadata.name,
                targetReadinessPolicy="StopTarget",
            ),
        )
        return await self._cluster.client.create(targets.RESTORES, wanted, self._cluster.namespace)

    async def _halt(self, machine: VirtualMachine) -> None:
        """Older versions of KubeVirt do not stop the target on their own."""
        spec = {"running": False} if machine.spec.running is not None else {"runStrategy": "Halted"}

        async def stop() -> None:
            found = await self._cluster.machine(str(id_of(machine)))
            await self._cluster.merge(targets.MACHINES, found, {"spec": spec})

        await self._cluster.retried(stop)

    def check_machine(self, snapshot: VirtualMachineSnapshot, vm_id: str) -> None:
        """Raise `ProviderError` for a snapshot of another machine."""
        machine = ObjectId.parse(vm_id)
        if machine is None or snapshot.spec.source.name != machine.name or not _was_of(snapshot, machine.uid):
            raise refusals.conflict(f"snapshot {snapshot.metadata.name} is not of machine {vm_id}", fix="name a snapshot of this machine")


async def keeps_memory(cluster: TargetCluster) -> bool:
    """Return whether the target takes snapshots with memory: that is Paddock, which makes the volumes itself."""
    with contextlib.suppress(NotFound, Forbidden):
        found = await cluster.client.list(targets.SNAPSHOT_CLASSES, EVERYTHING)
        return any(each.get("driver") == ownnames.DIRECTORY.name for each in found.items)
    return False


def snapshot_name(machine: VirtualMachine, hint: str) -> str:
    """Return the name of a snapshot's object: the machine's and the hint, which stay apart by a sum."""
    name = hint or "snapshot"
    digest = hashlib.sha256(f"{machine.metadata.uid}/{name}".encode()).hexdigest()[:8]
    return f"{marks.object_name(machine.metadata.name, name)[:54].rstrip('-')}-{digest}"


def _reference(machine: VirtualMachine) -> TypedLocalReference:
    return TypedLocalReference(apiGroup=GROUP, kind=targets.MACHINES.kind, name=machine.metadata.name)


def _shared(machine: VirtualMachine) -> list[OwnerReference]:
    """The reference by which an object goes with a machine whose controller is another one."""
    return [msgspec.structs.replace(each, controller=None) for each in owned_by(machine) or ()]


def _is_of(snapshot: VirtualMachineSnapshot, machine: VirtualMachine) -> bool:
    return _was_of(snapshot, machine.metadata.uid or "")


def _was_of(snapshot: VirtualMachineSnapshot, uid: str) -> bool:
    """Return whether a snapshot shows the machine of a uid, as far as it says."""
    source_uid = snapshot.status.sourceUID if snapshot.status is not None else None
    owners = [each.uid for each in snapshot.metadata.ownerReferences or ()]
    return source_uid == uid if source_uid else uid in owners or not owners
