"""Snapshots: taken, deleted, and gone back to.

vSphere tells the reference of a snapshot when it is complete, and the manager has to know an identifier before. So a snapshot of ours has
one that follows from its machine and its name, and that stands in its description: who renames it changes nothing. Others are identified
by their references.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from pyVmomi import vim

from paddock.contract import messages as m
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, TaskProgress, failed
from paddock_drivers.vsphere.identifiers import VSphereGoal, VSphereTaskId
from paddock_drivers.vsphere.lookups import ON, FoundMachine, MachineLookup

_PREFIX, _LONGEST_NAME = "paddock-", 80
_CREATING = "VirtualMachine.createSnapshot"
_RUNNING = ("queued", "running")
_TOOLS = "guest.toolsRunningStatus"
_TOOLS_RUN = "guestToolsRunning"


class MachineSnapshot(msgspec.Struct, frozen=True):
    """A snapshot in the tree of its machine."""

    id: str
    name: str
    ref: Any
    # the power of the machine when it was taken; On: it has memory, or was taken while the guest ran
    state: str
    parent: str = ""


def every(roots: Iterable[Any], parent: str = "") -> Iterator[MachineSnapshot]:
    """Return the snapshots of a tree, parents first."""
    for node in roots:
        own = _identity(node)
        yield MachineSnapshot(own, node.name, node.snapshot, str(node.state), parent)
        yield from every(node.childSnapshotList or (), own)


def _identity(node: Any) -> str:
    last = (node.description or "").rpartition("\n")[2]
    if last.startswith(f"[{_PREFIX}") and last.endswith("]"):
        return str(last[1:-1])
    return str(node.snapshot._moId)


def snapshot_id(uuid: str, name: str) -> str:
    """Return the identifier of a machine's snapshot of a name."""
    return _PREFIX + hashlib.sha256(f"{uuid}\0{name}".encode()).hexdigest()[:20]


class VSphereSnapshots:
    """Takes, deletes and restores snapshots. For threads."""

    def __init__(self, lookup: MachineLookup, *, quiesce: bool = True) -> None:
        self._lookup = lookup
        self._quiesce = quiesce

    def machine(self, id: str) -> FoundMachine:
        """Return a machine with its snapshots; raises NotFound."""
        return self._lookup.machine(id)

    def create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot. The same name of the same machine is the same snapshot."""
        machine = self._lookup.machine(request.vm_id, (_TOOLS, "recentTask"))
        hint = request.name_hint or "snapshot"
        key = snapshot_id(machine.uuid, hint)
        name = hint if len(hint) <= _LONGEST_NAME else f"{hint[:50]}-{key}"
        there = next((each for each in every(machine.snapshots) if key == each.id or name == each.name), None)
        if there is not None:
            return m.SnapshotCreateResponse(snapshot_id=there.id)
        self._check_idle(machine)
        runs = str(machine.row.get("runtime.powerState")) == ON
        if request.include_memory and not runs:
            what = f"a snapshot of machine {machine.name} cannot include memory"
            raise refusals.conflict(what, why="the machine is off", fix="power it on, or set includeMemory to false")
        # Memory is consistent by itself. A guest without tools cannot be asked to rest.
        rests = self._quiesce and runs and not request.include_memory and machine.row.get(_TOOLS) == _TOOLS_RUN
        description = f"{request.description}\n[{key}]".lstrip("\n")
        task = machine.ref.CreateSnapshot_Task(name, description, request.include_memory, rests)
        made = VSphereTaskId(VSphereGoal.SNAPSHOTTED, machine.id, task._moId, key)
        return m.SnapshotCreateResponse(snapshot_id=key, task=m.TaskRef(id=str(made)))

    def _check_idle(self, machine: FoundMachine) -> None:
        """Raise Unavailable while a snapshot is taken: it may be the one of a call before this, whose answer was lost."""
        for task in machine.row.get("recentTask", ()):
            info = task.info
            if info.descriptionId.startswith(_CREATING) and str(info.state) in _RUNNING:
                raise refusals.retry_later(f"a snapshot of machine {machine.name} is being taken")

    def delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot, and keep those that are based on it. One that is gone is deleted."""
        machine = self._lookup.find(request.vm_id)
        if machine is None:
            return m.TaskResponse()
        there = find(machine, request.snapshot_id)
        if there is None:
            return m.TaskResponse()
        task = there.ref.RemoveSnapshot_Task(False, True)
        return _response(VSphereTaskId(VSphereGoal.SNAPSHOT_DELETED, machine.id, task._moId, there.id))

    def revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot. It is on afterwards if the snapshot has memory."""
        machine = self._lookup.machine(request.vm_id)
        there = named(machine, request.snapshot_id)
        task = there.ref.RevertToSnapshot_Task(None, False)
        return _response(VSphereTaskId(VSphereGoal.REVERTED, machine.id, task._moId, there.id))

    def judge(self, task: VSphereTaskId) -> TaskProgress:
        """Return the end of a task that vSphere has forgotten, as the machine shows it."""
        machine = self._lookup.find(task.machine)
        if machine is None:
            return DONE if task.goal is VSphereGoal.SNAPSHOT_DELETED else failed("the machine is gone")
        there = find(machine, task.detail)
        if task.goal is VSphereGoal.SNAPSHOTTED:
            return DONE if there is not None else failed("the snapshot was not taken")
        if task.goal is VSphereGoal.SNAPSHOT_DELETED:
            return DONE if there is None else failed("the snapshot was not deleted")
        current = machine.row.get("snapshot")
        is_current = there is not None and current is not None and current.currentSnapshot == there.ref
        return DONE if is_current else failed("it is not known whether the machine went back to the snapshot; revert it again")


def find(machine: FoundMachine, id: str) -> MachineSnapshot | None:
    """Return a snapshot of a machine, or None."""
    return next((each for each in every(machine.snapshots) if id and id in (each.id, each.ref._moId)), None)


def named(machine: FoundMachine, id: str) -> MachineSnapshot:
    """Return a snapshot of a machine; raises NotFound."""
    found = find(machine, id)
    if found is None:
        raise refusals.not_found(f"machine {machine.name} has no such snapshot")
    return found


def configuration(snapshot: MachineSnapshot) -> vim.vm.ConfigInfo:
    """Return the machine as it was in a snapshot."""
    return snapshot.ref.config


def _response(task: VSphereTaskId) -> m.TaskResponse:
    return m.TaskResponse(task=m.TaskRef(id=str(task)))
