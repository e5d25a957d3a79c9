"""The source: kept off where it has to be, and its snapshot (the phase Snapshotting)."""

from typing import NoReturn

from paddock.contract import messages as m
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import (
    POLL_SECONDS,
    MigrationFailure,
    MigrationHeld,
    MigrationPass,
    MigrationSide,
    state_of,
)
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import marks, power, reasons
from paddock.dialects.virtrigaud.plan.migrations import phases
from paddock.kubernetes.client.errors import Conflict, NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key

_OFF = ("Off", "OffGraceful")
_MOST_RESTARTS = 1


class SourceFence:
    """Powers the source off, and takes what is exported out of reach of its guest."""

    def __init__(self) -> None:
        # snapshots that were requested again because their task failed or is lost, by the migration's uid
        self._restarts: dict[str, int] = {}

    async def carry_out(self, migration_pass: MigrationPass) -> None:
        """Bring the source to rest."""
        machine = migration_pass.source_machine
        end = migration_pass.source_end(machine)
        if phases.needs_fence(migration_pass.migration):
            await self.fence(migration_pass, machine)
            await self.check_off(migration_pass, machine, end)
        ref = migration_pass.migration.spec.source.snapshotRef
        if ref is not None:
            self._select(migration_pass, ref)
        elif migration_pass.migration.spec.source.createSnapshot:
            await self._take(migration_pass, machine, end)

    # --- power ----------------------------------------------------------------------------------------------------------------

    async def fence(self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine) -> None:
        """Have the source powered off, and note what its spec said before. The guest is asked first, so that it writes what it has."""
        annotations = machine.metadata.annotations or {}
        holder = annotations.get(marks.FENCED_BY)
        if holder not in (None, migration_pass.migration.metadata.uid):
            text = f"another migration keeps VirtualMachine {migration_pass.namespace}/{machine.metadata.name} off"
            raise MigrationHeld(reasons.SOURCE_NOT_READY, text)
        if holder is not None:
            return
        before = machine.spec.powerState or power.ON
        document = {
            "metadata": {
                "annotations": {marks.FENCED_BY: migration_pass.migration.metadata.uid, marks.POWER_BEFORE: before},
                "resourceVersion": machine.metadata.resourceVersion,
            },
            "spec": {"powerState": before if before in _OFF else "OffGraceful"},
        }
        try:
            await migration_pass.parts.client.patch_raw(
                targets.MACHINES, Key(migration_pass.namespace, machine.metadata.name), merge_patch(document)
            )
        except (Conflict, NotFound):
            raise MigrationHeld(reasons.POWERING_OFF, "the source changed meanwhile", 1.0) from None
        migration_pass.tell(
            "SourcePoweringOff", f"VirtualMachine {migration_pass.namespace}/{machine.metadata.name} is kept off while it moves"
        )
        raise MigrationHeld(reasons.POWERING_OFF, "the source is being powered off", POLL_SECONDS)

    async def check_off(self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine, end: MigrationSide) -> None:
        """Wait until the source's Provider says that it is off."""
        status = machine.status
        settled = status is not None and status.observedGeneration == machine.metadata.generation and status.powerState == power.OFF
        if settled and status is not None:
            answer = await end.driver.describe(m.DescribeRequest(id=status.id or ""))
            if answer.exists and power.known(answer.power_state) == power.OFF:
                return
        raise MigrationHeld(reasons.POWERING_OFF, "the source is being powered off", POLL_SECONDS)

    def check_fence(self, migration_pass: MigrationPass) -> None:
        """Fail if somebody has started the source: what its guest writes now is in no export."""
        if not phases.needs_fence(migration_pass.migration):
            return
        name = migration_pass.migration.spec.source.vmRef.name
        machine = migration_pass.machine(migration_pass.namespace, name)
        if machine is None:
            return
        wanted, seen = machine.spec.powerState or power.ON, machine.status.powerState if machine.status is not None else None
        fenced = (machine.metadata.annotations or {}).get(marks.FENCED_BY) == migration_pass.migration.metadata.uid
        if wanted not in _OFF or seen == power.ON or not fenced:
            text = f"VirtualMachine {migration_pass.namespace}/{name} was started while it moved; its disks have changed since the export"
            raise MigrationFailure(reasons.SOURCE_STARTED, text, final=True)

    async def release(self, migration_pass: MigrationPass, *, restored: bool) -> None:
        """Let go of the source; with `restored` it gets the power state that it had."""
        machine = migration_pass.machine(migration_pass.namespace, migration_pass.migration.spec.source.vmRef.name)
        annotations = (machine.metadata.annotations if machine is not None else None) or {}
        if machine is None or annotations.get(marks.FENCED_BY) != migration_pass.migration.metadata.uid:
            return
        document: dict[str, object] = {
            "metadata": {
                "annotations": {marks.FENCED_BY: None, marks.POWER_BEFORE: None},
                "resourceVersion": machine.metadata.resourceVersion,
            }
        }
        before = annotations.get(marks.POWER_BEFORE, "")
        if restored and before and machine.spec.powerState in _OFF:
            document["spec"] = {"powerState": before}
        if not restored:
            target = migration_pass.migration.spec.target
            moved = {marks.MIGRATED_TO: f"{target.namespace or migration_pass.namespace}/{target.name}"}
            document["metadata"]["annotations"] |= moved  # type: ignore[index]
        try:
            await migration_pass.parts.client.patch_raw(
                targets.MACHINES, Key(migration_pass.namespace, machine.metadata.name), merge_patch(document)
            )
        except NotFound:
            return
        except Conflict:
            raise MigrationHeld(reasons.CLEANUP_PENDING, "the source changed meanwhile", 1.0) from None

    # --- the snapshot ---------------------------------------------------------------------------------------------------------

    def _select(self, migration_pass: MigrationPass, ref: LocalObjectReference) -> None:
        """Find the snapshot that the migration names: a VMSnapshot of the same machine."""
        key = Key(migration_pass.namespace, ref.name)
        seen = migration_pass.parts.caches.snapshots.cache.get(key)
        if seen is None:
            raise MigrationHeld(reasons.SOURCE_NOT_READY, f"there is no VMSnapshot {key}")
        snapshot = seen.read(targets.SNAPSHOTS)
        if snapshot.spec.vmRef.name != migration_pass.migration.spec.source.vmRef.name:
            text = f"VMSnapshot {key} is of VirtualMachine {snapshot.spec.vmRef.name}, not of the source"
            raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True)
        status = snapshot.status
        if status is None or status.phase != "Ready" or not status.snapshotID:
            raise MigrationHeld(reasons.SOURCE_NOT_READY, f"VMSnapshot {key} is not ready")
        migration_pass.change(snapshotRef=ref.name, snapshotID=status.snapshotID)

    async def _take(self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine, end: MigrationSide) -> None:
        """Take a snapshot of the migration's own and wait for its end. The same request again answers with the same snapshot."""
        requested = bool(migration_pass.status.snapshotID and migration_pass.status.snapshotRef)
        if requested and not migration_pass.status.taskRef:
            return
        if not requested:
            if not end.capabilities.supportsSnapshots:
                if phases.needs_fence(migration_pass.migration):
                    return
                text = f"{end.place} does not take snapshots; set spec.source.powerOffBeforeMigration to move a machine without one"
                raise MigrationFailure(reasons.UNSUPPORTED, text, final=True)
            name = f"{machine.metadata.name}-migration-{(migration_pass.migration.metadata.uid or '')[:8]}"
            request = m.SnapshotCreateRequest(
                vm_id=(machine.status.id if machine.status is not None else None) or "",
                name_hint=name,
                description=f"VMMigration {migration_pass.key}",
            )
            answer = await end.driver.snapshot_create(request)
            migration_pass.change(
                snapshotRef=name, snapshotID=answer.snapshot_id, taskRef=answer.task.id if answer.task is not None else None
            )
            migration_pass.tell("SnapshotCreated", f"the snapshot {name} of the source is being taken")
            if not migration_pass.status.taskRef:
                return
        state = await state_of(end, migration_pass.status.taskRef or "")
        if state.error:
            self._again(migration_pass, f"{end.place} could not take the snapshot: {state.error}")
        if not state.done:
            raise MigrationHeld(reasons.SNAPSHOTTING, "the snapshot of the source is being taken", POLL_SECONDS)
        self._restarts.pop(migration_pass.seen.meta.uid, None)
        migration_pass.change(taskRef=None)

    def _again(self, migration_pass: MigrationPass, problem: str) -> NoReturn:
        """Have the snapshot requested again, or fail. Its id stays on record: without its name it is one that a cleanup deletes."""
        migration_pass.change(snapshotRef=None, taskRef=None)
        restarts = self._restarts.pop(migration_pass.seen.meta.uid, 0)
        if restarts >= _MOST_RESTARTS:
            raise MigrationFailure(reasons.PROVIDER_ERROR, problem)
        self._restarts[migration_pass.seen.meta.uid] = restarts + 1
        raise MigrationHeld(reasons.SNAPSHOTTING, problem, 1.0)


def owns_snapshot(migration_pass: MigrationPass) -> bool:
    """Return whether the snapshot is the migration's own, and not one that it names."""
    return migration_pass.migration.spec.source.snapshotRef is None and bool(migration_pass.status.snapshotID)
