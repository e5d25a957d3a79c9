"""Removes the remains of a migration: its exports, its snapshot, imported disks that no machine has, and at the end the source.

Every step can be repeated: what is gone is deleted. What cannot be deleted because a provider has no call for it is named in a condition.
"""

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.migrations import validation
from paddock.dialects.virtrigaud.controllers.migrations.leftovers import TransferObjects
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import POLL_SECONDS, MigrationHeld, MigrationPass, state_of
from paddock.dialects.virtrigaud.controllers.migrations.source import SourceFence, owns_snapshot
from paddock.dialects.virtrigaud.controllers.migrations.target import MigratedMachine
from paddock.dialects.virtrigaud.kinds.vmmigration import StorageInfo
from paddock.dialects.virtrigaud.plan import marks, reasons
from paddock.dialects.virtrigaud.plan.conditions import false, find, true
from paddock.dialects.virtrigaud.plan.migrations import documents, phases, transfer
from paddock.kubernetes.client.errors import Conflict, NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages

_LONGEST_TASK_SECONDS = 1800.0


class MigrationCleanup:
    """Removes what was made on the way."""

    def __init__(self, objects: TransferObjects, source: SourceFence, machine: MigratedMachine) -> None:
        self._objects = objects
        self._source = source
        self._machine = machine

    async def after_success(self, migration_pass: MigrationPass) -> None:
        """Clean up after a migration that is complete, and delete the source if that is wanted."""
        await self._source.release(migration_pass, restored=False)
        if phases.cleans_up(migration_pass.migration, phases.READY):
            await self._remove_transfers(migration_pass)
            await self._remove_snapshot(migration_pass)
        await self._delete_source(migration_pass)
        self._report(migration_pass)

    async def after_failure(self, migration_pass: MigrationPass) -> None:
        """Bring everything back to how it was: no new machine, no disks for it, and the source as it was."""
        await self._machine.remove(migration_pass)
        await self._remove_imports(migration_pass)
        await self._source.release(migration_pass, restored=True)
        if phases.cleans_up(migration_pass.migration, phases.FAILED):
            await self._remove_transfers(migration_pass)
            await self._remove_snapshot(migration_pass)
        self._report(migration_pass)

    async def at_deletion(self, migration_pass: MigrationPass) -> None:
        """Clean up before the migration is gone. One that has not ended is cancelled; only the policy Never keeps the exports."""
        if migration_pass.phase != phases.READY:
            await self._machine.remove(migration_pass)
            await self._remove_imports(migration_pass)
        await self._source.release(migration_pass, restored=migration_pass.phase != phases.READY)
        if transfer.options_of(migration_pass.migration).cleanupPolicy != "Never":
            await self._remove_transfers(migration_pass)
            await self._remove_snapshot(migration_pass)

    def _report(self, migration_pass: MigrationPass) -> None:
        before = find(migration_pass.status.conditions, phases.CLEANUP)
        if before is not None and before.reason == reasons.CLEANUP_INCOMPLETE:
            # What is left stays named.
            return
        if phases.CLEANUP not in migration_pass.values:
            policy = transfer.options_of(migration_pass.migration).cleanupPolicy
            migration_pass.say(true(phases.CLEANUP, reasons.CLEANED_UP, f"everything is removed that cleanupPolicy {policy} does not keep"))

    # --- exports --------------------------------------------------------------------------------------------------------------

    async def _remove_transfers(self, migration_pass: MigrationPass) -> None:
        info = migration_pass.status.storageInfo or StorageInfo()
        if info.cleanedUp:
            return
        await self._await_tasks(migration_pass)
        urls = [
            url
            for disk in migration_pass.disks
            if disk.url or disk.attempt
            for url in transfer.earlier_urls(migration_pass.migration, disk, disk.format or migration_pass.format)
        ]
        left = await self._objects.remove(migration_pass, urls) if urls else []
        if transfer.backend(migration_pass.migration) == transfer.PVC and transfer.owns_claim(migration_pass.migration):
            await self._delete_claim(migration_pass)
            left = []
        if left:
            self._leave(migration_pass, f"no provider can delete {', '.join(left)}; delete it by hand")
        migration_pass.change(storageInfo=StorageInfo(url=info.url, size=info.size, uploadedAt=info.uploadedAt, cleanedUp=not left))

    async def _await_tasks(self, migration_pass: MigrationPass) -> None:
        """Wait for the exports and imports that are under way, because what they write later would be left. One that hangs is given up."""
        for disk in migration_pass.disks:
            end = (
                migration_pass.source_end(migration_pass.source_machine)
                if disk.exportTask
                else migration_pass.target_end()
                if disk.importTask
                else None
            )
            if end is None or self._waited(migration_pass) > _LONGEST_TASK_SECONDS:
                continue
            state = await state_of(end, disk.exportTask or disk.importTask or "")
            if not state.done and not state.error:
                raise MigrationHeld(reasons.CLEANUP_PENDING, f"the transfer of the disk {disk.name} has not ended yet", POLL_SECONDS)
            migration_pass.put(msgspec.structs.replace(disk, exportTask=None, importTask=None))

    @staticmethod
    def _waited(migration_pass: MigrationPass) -> float:
        """Seconds since the migration ended or was deleted."""
        ends = [
            ages.seconds_of(each or "")
            for each in (migration_pass.status.completionTime, migration_pass.migration.metadata.deletionTimestamp)
        ]
        return migration_pass.parts.now() - max((each for each in ends if each is not None), default=migration_pass.parts.now())

    async def _delete_claim(self, migration_pass: MigrationPass) -> None:
        key = Key(migration_pass.namespace, transfer.claim_name(migration_pass.migration))
        try:
            found = await migration_pass.parts.client.get(validation.CLAIMS, key)
            if documents.is_ours(found.metadata.annotations, migration_pass.migration):
                await migration_pass.parts.client.delete(validation.CLAIMS, key, DeletionOptions(uid=found.metadata.uid or ""))
        except (NotFound, Conflict):
            return

    def _leave(self, migration_pass: MigrationPass, message: str) -> None:
        before = find(migration_pass.status.conditions, phases.CLEANUP)
        if before is None or before.message != message:
            migration_pass.tell(reasons.CLEANUP_INCOMPLETE, message, "Warning")
        migration_pass.say(false(phases.CLEANUP, reasons.CLEANUP_INCOMPLETE, message))

    # --- snapshot and imported disks --------------------------------------------------------------------------------------------

    async def _remove_snapshot(self, migration_pass: MigrationPass) -> None:
        """Delete the migration's own snapshot and wait until it is gone."""
        machine = migration_pass.machine(migration_pass.namespace, migration_pass.migration.spec.source.vmRef.name)
        vm_id = (machine.status.id if machine is not None and machine.status is not None else None) or ""
        if not owns_snapshot(migration_pass) or machine is None or not vm_id:
            # A snapshot goes with its machine.
            return
        end = migration_pass.source_end(machine)
        if migration_pass.status.snapshotRef or not migration_pass.status.taskRef:
            try:
                answer = await end.driver.snapshot_delete(
                    m.SnapshotDeleteRequest(vm_id=vm_id, snapshot_id=migration_pass.status.snapshotID or "")
                )
            except ProviderError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
                answer = m.TaskResponse()
            # Without its name it is on record as one that is being deleted.
            migration_pass.change(snapshotRef=None, taskRef=answer.task.id if answer.task is not None and answer.task.id else None)
        if migration_pass.status.taskRef:
            state = await state_of(end, migration_pass.status.taskRef)
            if state.error:
                migration_pass.change(taskRef=None)
                raise MigrationHeld(reasons.CLEANUP_PENDING, f"{end.place} could not delete the snapshot: {state.error}")
            if not state.done:
                raise MigrationHeld(reasons.CLEANUP_PENDING, "the snapshot of the source is being deleted", POLL_SECONDS)
        migration_pass.change(taskRef=None, snapshotID=None)

    async def _remove_imports(self, migration_pass: MigrationPass) -> None:
        """Delete imported disks. Those of a machine went with it, but a target that has an object may never have been made."""
        pending = [each for each in migration_pass.disks if each.importID]
        if not pending:
            return
        await self._await_tasks(migration_pass)
        left = await self._objects.remove_imports(migration_pass, pending)
        if left:
            what = (
                "delete them by hand"
                if migration_pass.status.targetVMRef is None
                else "if they did not go with the machine, delete them by hand"
            )
            self._leave(migration_pass, f"the target's Provider cannot delete the imported disks {', '.join(left)}; {what}")
        migration_pass.change(disks=[phases.unimported(each) for each in migration_pass.disks])

    # --- the source -----------------------------------------------------------------------------------------------------------

    async def _delete_source(self, migration_pass: MigrationPass) -> None:
        """Delete the source, if the migration says so and every check that it asks for has succeeded."""
        migration_pass.drop(phases.SOURCE_DELETED)
        if not migration_pass.migration.spec.source.deleteAfterMigration or migration_pass.phase != phases.READY:
            return
        key = Key(migration_pass.namespace, migration_pass.migration.spec.source.vmRef.name)
        try:
            # The mark that the machine was moved may be a moment old.
            machine = await migration_pass.parts.client.get(targets.MACHINES, key)
            if machine.metadata.deletionTimestamp is not None or not _was_moved(migration_pass, machine.metadata.annotations or {}):
                return
            if problem := phases.unproven(migration_pass.migration):
                self._keep_source(migration_pass, f"VirtualMachine {key} stays: {problem}")
                return
            await migration_pass.parts.client.delete(targets.MACHINES, key, DeletionOptions(uid=machine.metadata.uid or ""))
        except (NotFound, Conflict):
            return
        migration_pass.tell(
            "SourceDeleted", f"VirtualMachine {migration_pass.namespace}/{machine.metadata.name} is deleted; its successor is good"
        )

    @staticmethod
    def _keep_source(migration_pass: MigrationPass, message: str) -> None:
        migration_pass.say(false(phases.SOURCE_DELETED, reasons.SOURCE_KEPT, message))
        migration_pass.tell(reasons.SOURCE_KEPT, message, "Warning")


def _was_moved(migration_pass: MigrationPass, annotations: dict[str, str]) -> bool:
    """Return whether a machine is the source that was moved, and not another one that has its name by now."""
    target = migration_pass.migration.spec.target
    return annotations.get(marks.MIGRATED_TO) == f"{target.namespace or migration_pass.namespace}/{target.name}"
