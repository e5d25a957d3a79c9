"""The phases Exporting and Importing: every disk in its order, each step once.

What a call answered is recorded before anything else happens. A manager that was killed in between makes the same call again: an export to
the same address and an import of the same name are the same for a provider, and answer with the task that is under way or with the
result. A provider that was restarted has lost its tasks, so a task that fails is begun again once before the attempt counts as failed.
"""

import re

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers.migrations import validation
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import (
    POLL_SECONDS,
    MigrationFailure,
    MigrationHeld,
    MigrationPass,
    MigrationSide,
    state_of,
    words_of,
)
from paddock.dialects.virtrigaud.kinds.vmmigration import MigratedDisk
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.migrations import documents, phases, transfer

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_MOST_RESTARTS = 1
_DAMAGED = ("checksum", "sha-256", "sha256")


class MigrationTransfers:
    """Exports and imports the disks."""

    def __init__(self, validation: validation.MigrationValidation) -> None:
        self._validation = validation

    # --- exporting ------------------------------------------------------------------------------------------------------------

    async def export(self, migration_pass: MigrationPass) -> None:
        """Bring the exports a step on; returns when all are complete."""
        machine = migration_pass.source_machine
        end = migration_pass.source_end(machine)
        await self._validation.check_host(migration_pass)
        for disk in migration_pass.disks:
            if not disk.exported:
                vm_id = (machine.status.id if machine.status is not None else None) or ""
                await self._export(migration_pass, disk, end, vm_id)

    async def _export(self, migration_pass: MigrationPass, disk: MigratedDisk, end: MigrationSide, vm_id: str) -> None:
        if disk.exportTask:
            state = await state_of(end, disk.exportTask)
            if state.error:
                self._restart(migration_pass, msgspec.structs.replace(disk, exportTask=None), _task_failure(end, state), disk)
            if not state.done:
                raise MigrationHeld(reasons.EXPORTING, f"the disk {disk.name} is being exported", POLL_SECONDS)
            disk = migration_pass.put(
                msgspec.structs.replace(disk, exportTask=None, exported=None if self._wants_sum(migration_pass, disk) else True)
            )
            if disk.exported:
                return
        request = self._export_request(migration_pass, disk, end, vm_id)
        # The address is on record before anything is written there, so a cleanup finds it.
        disk = migration_pass.put(msgspec.structs.replace(disk, url=request.destination_url))
        try:
            answer = await end.driver.export_disk(request)
        except ProviderError as error:
            raise _export_failure(end, disk, error) from error
        task = answer.task.id if answer.task is not None else None
        disk = migration_pass.put(
            msgspec.structs.replace(
                disk,
                exportID=answer.export_id or disk.exportID,
                exportTask=task or None,
                exported=None if task else True,
                exportedBytes=max(0, answer.estimated_size_bytes) or disk.exportedBytes,
                checksum=_digest(answer.checksum) or disk.checksum,
            )
        )
        if task:
            raise MigrationHeld(reasons.EXPORTING, f"the disk {disk.name} is being exported", POLL_SECONDS)

    def _export_request(self, migration_pass: MigrationPass, disk: MigratedDisk, end: MigrationSide, vm_id: str) -> m.ExportDiskRequest:
        migration = migration_pass.migration
        return m.ExportDiskRequest(
            vm_id=vm_id,
            disk_id="" if disk.name == transfer.ROOT else disk.sourceDiskID or disk.name,
            snapshot_id=migration_pass.status.snapshotID or "",
            destination_url=disk.url or transfer.url(migration, disk, migration_pass.format),
            format=migration_pass.format,
            compress=transfer.options_of(migration).compress,
            credentials=validation.credentials(migration_pass),
            backend_type=transfer.backend(migration),
            transfer_mode=transfer.mode(
                end.capabilities, migration_pass.target_end().capabilities, transfer.storage_of(migration).transferMode
            ),
            storage_options_json=transfer.options_json(migration),
        )

    @staticmethod
    def _wants_sum(migration_pass: MigrationPass, disk: MigratedDisk) -> bool:
        """Return whether a complete export has to be asked for its checksum: the same call again answers with it."""
        return phases.wants_sums(migration_pass.migration) and not disk.checksum

    # --- importing ------------------------------------------------------------------------------------------------------------

    async def import_(self, migration_pass: MigrationPass) -> None:
        """Bring the imports a step on; returns when all are complete."""
        end = migration_pass.target_end()
        await self._validation.check_host(migration_pass)
        for disk in migration_pass.disks:
            if not disk.imported:
                await self._import(migration_pass, disk, end)

    async def _import(self, migration_pass: MigrationPass, disk: MigratedDisk, end: MigrationSide) -> None:
        if disk.importTask:
            state = await state_of(end, disk.importTask)
            if state.error:
                if _is_damage(state.error):
                    raise _damaged(end, disk, state.error)
                self._restart(migration_pass, msgspec.structs.replace(disk, importTask=None), _task_failure(end, state), None)
            if not state.done:
                raise MigrationHeld(reasons.TRANSFERRING, f"the disk {disk.name} is being imported", POLL_SECONDS)
            asks = phases.wants_sums(migration_pass.migration) and not disk.targetChecksum
            disk = migration_pass.put(msgspec.structs.replace(disk, importTask=None, imported=None if asks else True))
            if disk.imported:
                return
        try:
            answer = await end.driver.import_disk(self._import_request(migration_pass, disk, end))
        except ProviderError as error:
            raise _import_failure(end, disk, error) from error
        self._check_sum(migration_pass, disk, end, answer.checksum)
        task = answer.task.id if answer.task is not None else None
        disk = migration_pass.put(
            msgspec.structs.replace(
                disk,
                importID=answer.disk_id or answer.path or None,
                targetPath=answer.path or None,
                importTask=task or None,
                imported=None if task else True,
                targetSizeBytes=max(0, answer.actual_size_bytes) or disk.targetSizeBytes,
                targetChecksum=_digest(answer.checksum) or disk.targetChecksum,
            )
        )
        if task:
            raise MigrationHeld(reasons.TRANSFERRING, f"the disk {disk.name} is being imported", POLL_SECONDS)

    def _import_request(self, migration_pass: MigrationPass, disk: MigratedDisk, end: MigrationSide) -> m.ImportDiskRequest:
        migration = migration_pass.migration
        verify = transfer.options_of(migration).verifyChecksums and bool(disk.checksum)
        source = migration_pass.source_end(migration_pass.source_machine)
        return m.ImportDiskRequest(
            source_url=disk.url or "",
            format=migration_pass.format,
            target_name=transfer.import_name(migration, disk),
            verify_checksum=verify,
            expected_checksum=(disk.checksum or "") if verify else "",
            credentials=validation.credentials(migration_pass),
            backend_type=transfer.backend(migration),
            transfer_mode=transfer.mode(source.capabilities, end.capabilities, transfer.storage_of(migration).transferMode),
            storage_options_json=transfer.options_json(migration),
            target_vm=m.ObjectIdentity(namespace=documents.target_namespace(migration), name=migration.spec.target.name),
        )

    @staticmethod
    def _check_sum(migration_pass: MigrationPass, disk: MigratedDisk, end: MigrationSide, found: str) -> None:
        """Compare what the target read with what the source wrote, whether or not the provider did."""
        if not transfer.options_of(migration_pass.migration).verifyChecksums or not disk.checksum or not _digest(found):
            return
        if _digest(found) != disk.checksum:
            raise _damaged(end, disk, f"its SHA-256 is {_digest(found)}, and that of the export {disk.checksum}")

    # --- failures -------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _restart(migration_pass: MigrationPass, disk: MigratedDisk, failure: MigrationFailure, again: MigratedDisk | None) -> None:
        """Begin a lost task again, or fail."""
        problem = failure.message
        restarts = disk.restarts or 0
        if restarts >= _MOST_RESTARTS:
            raise MigrationFailure(failure.reason, f"the disk {disk.name}: {problem}", again=again)
        migration_pass.put(msgspec.structs.replace(disk, restarts=restarts + 1))
        migration_pass.tell("TransferRestarted", f"the transfer of the disk {disk.name} begins again: {problem}", "Warning")
        raise MigrationHeld(failure.reason, f"the disk {disk.name}: {problem}", 1.0)


def _task_failure(end: MigrationSide, state: m.TaskStatusResponse) -> MigrationFailure:
    return MigrationFailure(state.reason or reasons.PROVIDER_ERROR, f"{end.place}: {state.error}")


def _digest(text: str) -> str:
    """A SHA-256 in hex; empty for anything else."""
    plain = text.strip().lower().removeprefix("sha256:")
    return plain if _SHA256.match(plain) else ""


def _is_damage(text: str) -> bool:
    return any(word in text.lower() for word in _DAMAGED)


def _damaged(end: MigrationSide, disk: MigratedDisk, problem: str) -> MigrationFailure:
    return MigrationFailure(reasons.VALIDATION_FAILED, f"{end.place}: the disk {disk.name} arrived damaged: {problem}", again=disk)


def _export_failure(end: MigrationSide, disk: MigratedDisk, error: ProviderError) -> Exception:
    """The failure of an attempt, or the error itself if the call may succeed later."""
    if error.kind in (ErrorKind.INVALID_SPEC, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT):
        reason = error.reason_code or reasons.PROVIDER_ERROR
        return MigrationFailure(reason, f"the disk {disk.name}: {words_of(end.place, error)}", again=disk)
    if error.kind is ErrorKind.NOT_SUPPORTED:
        return MigrationFailure(error.reason_code or reasons.UNSUPPORTED, words_of(end.place, error), final=True)
    return error


def _import_failure(end: MigrationSide, disk: MigratedDisk, error: ProviderError) -> Exception:
    if error.kind is ErrorKind.INVALID_SPEC and _is_damage(str(error)):
        return _damaged(end, disk, str(error))
    if error.kind is ErrorKind.NOT_FOUND:
        # The export is gone from the storage.
        return MigrationFailure(reasons.STORAGE_ERROR, f"the disk {disk.name}: {words_of(end.place, error)}", again=disk)
    if error.kind in (ErrorKind.INVALID_SPEC, ErrorKind.CONFLICT):
        return MigrationFailure(reasons.PROVIDER_ERROR, f"the disk {disk.name}: {words_of(end.place, error)}")
    if error.kind is ErrorKind.NOT_SUPPORTED:
        return MigrationFailure(error.reason_code or reasons.UNSUPPORTED, words_of(end.place, error), final=True)
    return error
