import copy

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake import specs
from paddock_drivers.fake.inventory import FakeInventory, named, shown
from paddock_drivers.fake.machines import OFF, ON, FakeMachine, FakeSnapshot


class FakeSnapshots:
    """The calls about snapshots and clones."""

    def __init__(self, inventory: FakeInventory) -> None:
        self._inventory = inventory

    def create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot. A machine that is off has no memory to keep. The same name of the same machine is the same snapshot."""
        self._inventory.require("supports_snapshots")
        machine = self._inventory.machine(request.vm_id)
        if request.include_memory:
            self._inventory.require("supports_memory_snapshots")
        snapshot = machine.snapshot_ids.get(request.name_hint) or self._inventory.next_id("snapshot")
        if machine.snapshot(snapshot) is not None:
            return m.SnapshotCreateResponse(snapshot_id=snapshot)
        if request.name_hint:
            machine.snapshot_ids[request.name_hint] = snapshot

        def take() -> None:
            if machine.snapshot(snapshot) is not None:
                return
            memory = request.include_memory and machine.power == ON
            disks = [each.copy() for each in machine.disks]
            name = request.name_hint or snapshot
            machine.snapshots.append(FakeSnapshot(snapshot, name, request.description, memory, copy.copy(machine.hardware), disks))

        return m.SnapshotCreateResponse(snapshot_id=snapshot, task=self._inventory.work(machine, take))

    def delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot; one that does not exist is deleted already."""
        self._inventory.require("supports_snapshots")
        machine = self._inventory.machine(request.vm_id)
        if machine.busy_until <= self._inventory.clock.seconds() and machine.snapshot(request.snapshot_id) is None:
            return m.TaskResponse()

        def drop() -> None:
            machine.snapshots = [each for each in machine.snapshots if each.id != request.snapshot_id]
            machine.snapshot_ids = {name: each for name, each in machine.snapshot_ids.items() if each != request.snapshot_id}

        return m.TaskResponse(task=self._inventory.work(machine, drop))

    def revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot: hardware and disks, and it runs only if the snapshot has memory."""
        self._inventory.require("supports_snapshots")
        machine = self._inventory.machine(request.vm_id)
        if machine.busy_until <= self._inventory.clock.seconds():
            _snapshot(machine, request.snapshot_id)

        def revert() -> None:
            found = _snapshot(machine, request.snapshot_id)
            machine.hardware = copy.copy(found.hardware)
            machine.disks = [each.copy() for each in found.disks]
            machine.power = ON if found.memory else OFF

        return m.TaskResponse(task=self._inventory.work(machine, revert))

    # --- clones -----------------------------------------------------------------------------------------------------------

    def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine, or answer with the clone that the same request has made before, also if its source is gone. The clone is off."""
        specs.check_name("target_name", request.target_name)
        existing = self._existing(request)
        if existing is not None:
            running = existing.create_task and not self._inventory.tasks.status(existing.create_task).done
            return m.CloneResponse(target_vm_id=existing.id, task=m.TaskRef(id=existing.create_task) if running else None)
        source = self._inventory.machine(request.source_vm_id)
        if request.linked:
            self._inventory.require("supports_linked_clones")
        wanted = specs.decoded("class_json", lambda: payloads.decode(request.class_json, payloads.ClassPayload))
        specs.decoded("placement_json", lambda: payloads.decode(request.placement_json, payloads.PlacementPayload))
        given = specs.decoded("customize_json", lambda: payloads.decode_manifest(request.customize_json))
        if given.get("snapshotId"):
            _snapshot(source, str(given["snapshotId"]))
        return self._make(source, request, wanted, str(given.get("snapshotId") or ""))

    def _existing(self, request: m.CloneRequest) -> FakeMachine | None:
        found = self._inventory.named(request.target_name)
        if found is None or (found.cloned_from == request.source_vm_id and _same(found.owner, request.target_vm)):
            return found
        raise ProviderError(ErrorKind.CONFLICT, f"a machine named {found.name} exists", why=named(found.owner), fix="choose another name")

    def _make(self, source: FakeMachine, request: m.CloneRequest, machine_class: payloads.ClassPayload, snapshot: str) -> m.CloneResponse:
        hardware = copy.copy(source.hardware)
        hardware.cpu = machine_class.cpu or hardware.cpu
        hardware.memory_mib = machine_class.memory_mib or hardware.memory_mib
        specs.bounded("class_json", hardware.cpu, 1, 1024)
        specs.bounded("class_json", hardware.memory_mib, 1, 1 << 30)
        self._inventory.check_quota(hardware)
        clone = self._inventory.make(request.target_name, hardware)
        clone.owner, clone.cloned_from, clone.host = request.target_vm, source.id, source.host
        clone.nics = tuple(specs.interfaces(tuple(payloads.NetworkPayload(name=nic.name) for nic in source.nics), clone.number))
        for each in _snapshot(source, snapshot).disks if snapshot else source.disks:
            disk = self._inventory.make_disk(clone, each.name, each.size, each.type)
            disk.data, disk.backing = each.data, each.path if request.linked else ""
            clone.disks.append(disk)
        self._inventory.machines[clone.id] = clone
        task = self._inventory.work(clone, lambda: None, lambda: self._drop(clone))
        clone.create_task = task.id
        return m.CloneResponse(target_vm_id=clone.id, task=task)

    def _drop(self, clone: FakeMachine) -> None:
        self._inventory.machines.pop(clone.id, None)


def _snapshot(machine: FakeMachine, id: str) -> FakeSnapshot:
    found = machine.snapshot(id)
    if found is None:
        raise ProviderError(ErrorKind.NOT_FOUND, f"machine {machine.id} has no snapshot {shown(id)}")
    return found


def _same(owner: m.ObjectIdentity | None, other: m.ObjectIdentity | None) -> bool:
    """Return True if both are the same object, or neither is one. A clone's owner has no uid yet."""
    if owner is None or other is None:
        return owner is other
    return (owner.namespace, owner.name) == (other.namespace, other.name)
