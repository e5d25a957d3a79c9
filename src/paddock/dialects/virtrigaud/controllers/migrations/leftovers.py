"""Deletes exports from their storage, and imported disks that no machine has.

The calls belong to Paddock's extension of the contract, so upstream's providers do not have them. An export is deleted by either Provider,
because both reach the storage.
"""

from collections.abc import Sequence

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers.migrations import validation
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import POLL_SECONDS, MigrationHeld, MigrationPass, MigrationSide
from paddock.dialects.virtrigaud.kinds.vmmigration import MigratedDisk
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.migrations import transfer


class TransferObjects:
    """Removes what calls for exports and imports have made."""

    async def remove(self, migration_pass: MigrationPass, urls: Sequence[str]) -> list[str]:
        """Delete exports; returns those that nobody can delete."""
        ends = _able(migration_pass, features.TRANSFER_DELETE)
        if not ends:
            return list(urls)
        credentials = validation.credentials(migration_pass)
        for url in urls:
            request = x.TransferDeleteRequest(
                source_url=url,
                credentials=credentials,
                backend_type=transfer.backend(migration_pass.migration),
                transfer_mode=transfer.RELAY,
                storage_options_json=transfer.options_json(migration_pass.migration),
            )
            await _deleted(await _first_able(ends, request), url)
        return []

    async def remove_imports(self, migration_pass: MigrationPass, disks: Sequence[MigratedDisk]) -> list[str]:
        """Delete imported disks; returns the paths of those that the Provider cannot delete."""
        end = migration_pass.target_end()
        if not features.has(end.capabilities.features, features.IMAGE_DELETE):
            return [each.targetPath or each.importID or each.name for each in disks]
        for each in disks:
            request = x.ImageDeleteRequest(image_id=each.importID or "", image_path=each.targetPath or "")
            await _deleted(await extensions(end.driver).image_delete(request), each.name)
        return []


def _able(migration_pass: MigrationPass, feature: str) -> list[MigrationSide]:
    """The Providers that report a feature. One that cannot be reached now may have it, so the cleanup waits for both."""
    machine = migration_pass.machine(migration_pass.namespace, migration_pass.migration.spec.source.vmRef.name)
    found = [migration_pass.target_end()]
    if machine is not None:
        found.append(migration_pass.source_end(machine))
    return [each for each in found if features.has(each.capabilities.features, feature)]


async def _first_able(ends: Sequence[MigrationSide], request: x.TransferDeleteRequest) -> m.TaskResponse:
    """Have one Provider delete an export; another one that reaches the storage may do as well."""
    for end in ends[:-1]:
        try:
            return await extensions(end.driver).transfer_delete(request)
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_SUPPORTED, ErrorKind.UNAVAILABLE):
                raise
    return await extensions(ends[-1].driver).transfer_delete(request)


async def _deleted(answer: m.TaskResponse, what: str) -> None:
    """Come back while a deletion is under way: the same call answers without a task when it has ended."""
    if answer.task is not None and answer.task.id:
        raise MigrationHeld(reasons.CLEANUP_PENDING, f"{what} is being deleted", POLL_SECONDS)
