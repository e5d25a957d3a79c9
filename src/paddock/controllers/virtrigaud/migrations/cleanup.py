"""Removes the remains of a migration: its exports, its snapshot, imported disks that no machine has, and at the end the source.

Every step can be repeated: what is gone is deleted. What cannot be deleted because a provider has no call for it is named in a condition.
"""

import msgspec

from paddock.client.errors import Conflict, NotFound
from paddock.client.options import DeletionOptions
from paddock.client.target import Key
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.migrations import validation
from paddock.controllers.virtrigaud.migrations.leftovers import TransferObjects
from paddock.controllers.virtrigaud.migrations.migrationpass import POLL_SECONDS, MigrationHeld, MigrationPass, state_of
from paddock.controllers.virtrigaud.migrations.source import SourceFence, owns_snapshot
from paddock.controllers.virtrigaud.migrations.target import MigratedMachine
from paddock.dialects.virtrigaud.vmmigration import StorageInfo
from paddock.meta import ages
from paddock.plan.virtrigaud import marks, reasons
from paddock.plan.virtrigaud.conditions import false, find, true
from paddock.plan.virtrigaud.migrations import documents, phases, transfer

_LONGEST_TASK_SECONDS = 1800.0


class MigrationCleanup:
    """Removes what was made on the way."""

    def __init__(self, objects: TransferObjects, source: SourceFence, machine: MigratedMachine) -> None:
        self._objects = objects
        self._source = source
        self._machine = machine

    async def after_success(self, look: MigrationPass) -> None:
        """Clean up after a migration that is complete, and delete the source if that is wanted."""
        await self._source.release(look, restored=False)
        if phases.cleans_up(look.migration, phases.READY):
            await self._remove_transfers(look)
            await self._remove_snapshot(look)
        await self._delete_source(look)
        self._report(look)

    async def after_failure(self, look: MigrationPass) -> None:
        """Bring everything back to how it was: no new machine, no disks for it, and the source as it was."""
        await self._machine.remove(look)
        await self._remove_imports(look)
        await self._source.release(look, restored=True)
        if phases.cleans_up(look.migration, phases.FAILED):
            await self._remove_transfers(look)
            await self._remove_snapshot(look)
        self._report(look)

    async def at_deletion(self, look: MigrationPass) -> None:
        """Clean up before the migration is gone. One that has not ended is cancelled; only the policy Never keeps the exports."""
        if look.phase != phases.READY:
            await self._machine.remove(look)
            await self._remove_imports(look)
        await self._source.release(look, restored=look.phase != phases.READY)
        if transfer.options_of(look.migration).cleanupPolicy != "Never":
            await self._remove_transfers(look)
            await self._remove_snapshot(look)

    def _report(self, look: MigrationPass) -> None:
        before = find(look.status.conditions, phases.CLEANUP)
        if before is not None and before.reason == reasons.CLEANUP_INCOMPLETE:
            # What is left stays named.
            return
        if phases.CLEANUP not in look.values:
            policy = transfer.options_of(look.migration).cleanupPolicy
            look.say(true(phases.CLEANUP, reasons.CLEANED_UP, f"everything is removed that cleanupPolicy {policy} does not keep"))

    # --- exports --------------------------------------------------------------------------------------------------------------

    async def _remove_transfers(self, look: MigrationPass) -> None:
        info = look.status.storageInfo or StorageInfo()
        if info.cleanedUp:
            return
        await self._await_tasks(look)
        urls = [
            url
            for disk in look.disks
            if disk.url or disk.attempt
            for url in transfer.earlier_urls(look.migration, disk, disk.format or look.format)
        ]
        left = await self._objects.remove(look, urls) if urls else []
        if transfer.backend(look.migration) == transfer.PVC and transfer.owns_claim(look.migration):
            await self._delete_claim(look)
            left = []
        if left:
            self._leave(look, f"no provider can delete {', '.join(left)}; delete it by hand")
        look.change(storageInfo=StorageInfo(url=info.url, size=info.size, uploadedAt=info.uploadedAt, cleanedUp=not left))

    async def _await_tasks(self, look: MigrationPass) -> None:
        """Wait for the exports and imports that are under way, because what they write later would be left. One that hangs is given up."""
        for disk in look.disks:
            end = look.source_end(look.source_machine) if disk.exportTask else look.target_end() if disk.importTask else None
            if end is None or self._waited(look) > _LONGEST_TASK_SECONDS:
                continue
            state = await state_of(end, disk.exportTask or disk.importTask or "")
            if not state.done and not state.error:
                raise MigrationHeld(reasons.CLEANUP_PENDING, f"the transfer of the disk {disk.name} has not ended yet", POLL_SECONDS)
            look.put(msgspec.structs.replace(disk, exportTask=None, importTask=None))

    @staticmethod
    def _waited(look: MigrationPass) -> float:
        """Seconds since the migration ended or was deleted."""
        ends = [ages.seconds_of(each or "") for each in (look.status.completionTime, look.migration.metadata.deletionTimestamp)]
        return look.parts.now() - max((each for each in ends if each is not None), default=look.parts.now())

    async def _delete_claim(self, look: MigrationPass) -> None:
        key = Key(look.namespace, transfer.claim_name(look.migration))
        try:
            found = await look.parts.client.get(validation.CLAIMS, key)
            if documents.is_ours(found.metadata.annotations, look.migration):
                await look.parts.client.delete(validation.CLAIMS, key, DeletionOptions(uid=found.metadata.uid or ""))
        except (NotFound, Conflict):
            return

    def _leave(self, look: MigrationPass, message: str) -> None:
        before = find(look.status.conditions, phases.CLEANUP)
        if before is None or before.message != message:
            look.tell(reasons.CLEANUP_INCOMPLETE, message, "Warning")
        look.say(false(phases.CLEANUP, reasons.CLEANUP_INCOMPLETE, message))

    # --- snapshot and imported disks --------------------------------------------------------------------------------------------

    async def _remove_snapshot(self, look: MigrationPass) -> None:
        """Delete the migration's own snapshot and wait until it is gone."""
        machine = look.machine(look.namespace, look.migration.spec.source.vmRef.name)
        vm_id = (machine.status.id if machine is not None and machine.status is not None else None) or ""
        if not owns_snapshot(look) or machine is None or not vm_id:
            # A snapshot goes with its machine.
            return
        end = look.source_end(machine)
        if look.status.snapshotRef or not look.status.taskRef:
            try:
                answer = await end.driver.snapshot_delete(m.SnapshotDeleteRequest(vm_id=vm_id, snapshot_id=look.status.snapshotID or ""))
            except ProviderError as error:
                if error.kind is not ErrorKind.NOT_FOUND:
                    raise
                answer = m.TaskResponse()
            # Without its name it is on record as one that is being deleted.
            look.change(snapshotRef=None, taskRef=answer.task.id if answer.task is not None and answer.task.id else None)
        if look.status.taskRef:
            state = await state_of(end, look.status.taskRef)
            if state.error:
                look.change(taskRef=None)
                raise MigrationHeld(reasons.CLEANUP_PENDING, f"{end.place} could not delete the snapshot: {state.error}")
            if not state.done:
                raise MigrationHeld(reasons.CLEANUP_PENDING, "the snapshot of the source is being deleted", POLL_SECONDS)
        look.change(taskRef=None, snapshotID=None)

    async def _remove_imports(self, look: MigrationPass) -> None:
        """Delete imported disks. Those of a machine went with it, but a target that has an object may never have been made."""
        pending = [each for each in look.disks if each.importID]
        if not pending:
            return
        await self._await_tasks(look)
        left = await self._objects.remove_imports(look, pending)
        if left:
            what = "delete them by hand" if look.status.targetVMRef is None else "if they did not go with the machine, delete them by hand"
            self._leave(look, f"the target's Provider cannot delete the imported disks {', '.join(left)}; {what}")
        look.change(disks=[phases.unimported(each) for each in look.disks])

    # --- the source -----------------------------------------------------------------------------------------------------------

    async def _delete_source(self, look: MigrationPass) -> None:
        """Delete the source, if the migration says so and every check that it asks for has succeeded."""
        look.drop(phases.SOURCE_DELETED)
        if not look.migration.spec.source.deleteAfterMigration or look.phase != phases.READY:
            return
        key = Key(look.namespace, look.migration.spec.source.vmRef.name)
        try:
            # The mark that the machine was moved may be a moment old.
            machine = await look.parts.client.get(targets.MACHINES, key)
            if machine.metadata.deletionTimestamp is not None or not _was_moved(look, machine.metadata.annotations or {}):
                return
            if problem := phases.unproven(look.migration):
                self._keep_source(look, f"VirtualMachine {key} stays: {problem}")
                return
            await look.parts.client.delete(targets.MACHINES, key, DeletionOptions(uid=machine.metadata.uid or ""))
        except (NotFound, Conflict):
            return
        look.tell("SourceDeleted", f"VirtualMachine {look.namespace}/{machine.metadata.name} is deleted; its successor is good")

    @staticmethod
    def _keep_source(look: MigrationPass, message: str) -> None:
        look.say(false(phases.SOURCE_DELETED, reasons.SOURCE_KEPT, message))
        look.tell(reasons.SOURCE_KEPT, message, "Warning")


def _was_moved(look: MigrationPass, annotations: dict[str, str]) -> bool:
    """Return whether a machine is the source that was moved, and not another one that has its name by now."""
    target = look.migration.spec.target
    return annotations.get(marks.MIGRATED_TO) == f"{target.namespace or look.namespace}/{target.name}"
