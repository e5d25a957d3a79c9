"""The new machine: made off, checked, and started when the source is off (the phases Creating and Validating-Target)."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from paddock.contract import messages as m
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import POLL_SECONDS, MigrationFailure, MigrationHeld, MigrationPass
from paddock.dialects.virtrigaud.controllers.migrations.source import SourceFence
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmmigration import ValidationResults
from paddock.dialects.virtrigaud.plan import marks, power, reasons
from paddock.dialects.virtrigaud.plan.conditions import find
from paddock.dialects.virtrigaud.plan.migrations import documents, phases, transfer
from paddock.dialects.virtrigaud.rules import hosts
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, NotFound
from paddock.kubernetes.client.options import DeletionOptions, merge_patch
from paddock.kubernetes.client.target import Key

_PORTS = (22, 80, 443, 3389)
_REACH_SECONDS = 3.0
# Tries one address: whether anything answers there.
Reach = Callable[[str], Awaitable[bool]]


async def reach(address: str) -> bool:
    """Return whether a guest answers on any of the usual ports; a refusal is an answer, too."""
    results = await asyncio.gather(*(_answers(address, port) for port in _PORTS))
    return any(results)


async def _answers(address: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_REACH_SECONDS):
            _, writer = await asyncio.open_connection(address, port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


class MigratedMachine:
    """Makes and checks the new machine."""

    def __init__(self, source: SourceFence, reach: Reach = reach) -> None:
        self._source = source
        self._reach = reach

    async def create(self, migration_pass: MigrationPass) -> None:
        """Make the machine, and wait until its Provider has it."""
        self._source.check_fence(migration_pass)
        name, namespace = migration_pass.migration.spec.target.name, documents.target_namespace(migration_pass.migration)
        migration_pass.change(targetVMRef=phases.target_reference(migration_pass.migration))
        machine = migration_pass.target_machine
        if machine is None:
            wanted = documents.machine(migration_pass.migration, migration_pass.source_machine, migration_pass.disks, migration_pass.format)
            try:
                await migration_pass.parts.client.create(targets.MACHINES, wanted, namespace)
            except AlreadyExists:
                if migration_pass.machine(namespace, name) is not None:
                    text = f"VirtualMachine {namespace}/{name} exists, and this migration did not make it"
                    raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True) from None
            else:
                migration_pass.tell("TargetCreated", f"VirtualMachine {namespace}/{name} is made from the imported disks")
            raise MigrationHeld(reasons.CREATING, f"VirtualMachine {namespace}/{name} is being made", POLL_SECONDS)
        status = machine.status
        migration_pass.change(targetVMID=(status.id if status is not None else None) or None)
        ready = find(status.conditions if status is not None else None, "Ready")
        if status is None or not status.id or ready is None or ready.status != "True":
            failed = status is not None and status.phase == "Failed"
            said = ready.message if ready is not None else "its controller has not seen it yet"
            if failed:
                raise MigrationFailure(reasons.PROVIDER_ERROR, f"VirtualMachine {namespace}/{name}: {said}")
            raise MigrationHeld(reasons.CREATING, f"VirtualMachine {namespace}/{name} is not ready: {said}")

    # --- the checks -----------------------------------------------------------------------------------------------------------

    async def validate(self, migration_pass: MigrationPass) -> None:
        """Carry out the checks; returns when all have succeeded and the machine has the power state that it should have."""
        self._source.check_fence(migration_pass)
        machine = migration_pass.target_machine
        if machine is None or machine.status is None or not machine.status.id:
            name = f"{documents.target_namespace(migration_pass.migration)}/{migration_pass.migration.spec.target.name}"
            raise MigrationFailure(reasons.VALIDATION_FAILED, f"VirtualMachine {name} is gone")
        checks = phases.checks_of(migration_pass.migration)
        results = migration_pass.status.validationResults or ValidationResults()
        if checks.checkDiskSize and results.diskSizeMatch is None:
            results = await self._check_sizes(migration_pass, machine, results)
        if checks.checkChecksum and results.checksumMatch is None:
            results = _check_sums(migration_pass, results)
        migration_pass.change(validationResults=results)
        if results.validationErrors:
            raise MigrationFailure(reasons.VALIDATION_FAILED, "; ".join(results.validationErrors))
        if phases.starts_target(migration_pass.migration):
            await self._start(migration_pass, machine)
            if checks.checkBoot:
                migration_pass.change(validationResults=msgspec.structs.replace(results, bootSuccess=True))
            if checks.checkConnectivity and not results.connectivitySuccess:
                await self._check_connectivity(migration_pass, machine)
        await self._leave(migration_pass)

    async def _check_sizes(
        self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine, results: ValidationResults
    ) -> ValidationResults:
        """Compare the disks' sizes on both sides. A new disk may be larger."""
        end, problems = migration_pass.target_end(), []
        vm_id = (machine.status.id if machine.status is not None else None) or ""
        for disk in migration_pass.disks:
            ask = m.GetDiskInfoRequest(vm_id=vm_id, disk_id="" if disk.name == transfer.ROOT else disk.name)
            size = (await end.driver.get_disk_info(ask)).virtual_size_bytes
            migration_pass.put(msgspec.structs.replace(disk, targetSizeBytes=size))
            if size < (disk.sizeBytes or 0):
                problems.append(f"the disk {disk.name} has {size} bytes at the target and {disk.sizeBytes} at the source")
        return msgspec.structs.replace(results, diskSizeMatch=not problems, validationErrors=problems or None)

    async def _start(self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine) -> None:
        """Start the machine, once the source's Provider has said that the source is off."""
        if machine.spec.powerState != power.ON:
            source = migration_pass.source_machine
            await self._source.check_off(migration_pass, source, migration_pass.source_end(source))
            await _set_power(migration_pass, machine, power.ON)
        status = machine.status
        current = status is not None and status.observedGeneration == machine.metadata.generation
        if status is None or not current or status.powerState != power.ON:
            raise MigrationHeld(reasons.VALIDATION_STARTED, "the new machine is starting", POLL_SECONDS)

    async def _check_connectivity(self, migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine) -> None:
        addresses = [each for each in (machine.status.ips if machine.status is not None else None) or () if not hosts.refusal(each)]
        for each in addresses[:4]:
            if await self._reach(each):
                results = migration_pass.status.validationResults or ValidationResults()
                migration_pass.change(validationResults=msgspec.structs.replace(results, connectivitySuccess=True))
                return
        what = f"does not answer at {', '.join(addresses[:4])}" if addresses else "has no address yet"
        raise MigrationHeld(reasons.VALIDATION_STARTED, f"the new machine {what}", POLL_SECONDS)

    async def _leave(self, migration_pass: MigrationPass) -> None:
        """Give the machine its final power state, and note on it that the migration is complete."""
        machine = migration_pass.target_machine
        assert machine is not None
        annotations = machine.metadata.annotations or {}
        if annotations.get(marks.MIGRATION_COMPLETED):
            return
        change: dict[str, object] = {
            "metadata": {
                "annotations": {marks.MIGRATION_COMPLETED: marks.TRUE, marks.MIGRATION_COMPLETED_AT: migration_pass.parts.timestamp()},
                "resourceVersion": machine.metadata.resourceVersion,
            }
        }
        if not migration_pass.migration.spec.target.powerOn and machine.spec.powerState == power.ON:
            change["spec"] = {"powerState": "OffGraceful"}
        await _patch(migration_pass, machine, change)

    # --- the way back ---------------------------------------------------------------------------------------------------------

    async def remove(self, migration_pass: MigrationPass) -> None:
        """Delete the machine if this migration made it; returns when it is gone."""
        machine = migration_pass.target_machine
        if machine is None:
            return
        name = f"{machine.metadata.namespace}/{machine.metadata.name}"
        if machine.metadata.deletionTimestamp is None:
            key = Key(machine.metadata.namespace or migration_pass.namespace, machine.metadata.name)
            try:
                await migration_pass.parts.client.delete(targets.MACHINES, key, DeletionOptions(uid=machine.metadata.uid or ""))
            except (NotFound, Conflict):
                return
            migration_pass.tell("TargetDeleted", f"VirtualMachine {name} is deleted, because the migration did not succeed")
        raise MigrationHeld(reasons.CLEANUP_PENDING, f"VirtualMachine {name} is being deleted", POLL_SECONDS)


def _check_sums(migration_pass: MigrationPass, results: ValidationResults) -> ValidationResults:
    """Compare the checksums of all disks. They match only if both Providers have reported that of every disk."""
    known = [each for each in migration_pass.disks if each.checksum and each.targetChecksum]
    wrong = [each.name for each in known if each.checksum != each.targetChecksum]
    if not wrong and (not known or len(known) < len(migration_pass.disks)):
        # A status does not claim a comparison that nobody made.
        return results
    problems = [*(results.validationErrors or ()), *(f"the disk {name} has another checksum at the target" for name in wrong)]
    return msgspec.structs.replace(results, checksumMatch=not wrong, validationErrors=problems or None)


async def _set_power(migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine, state: str) -> None:
    metadata = {"resourceVersion": machine.metadata.resourceVersion}
    await _patch(migration_pass, machine, {"metadata": metadata, "spec": {"powerState": state}})
    raise MigrationHeld(reasons.VALIDATION_STARTED, "the new machine is starting", POLL_SECONDS)


async def _patch(migration_pass: MigrationPass, machine: VirtrigaudVirtualMachine, change: dict[str, object]) -> None:
    key = Key(machine.metadata.namespace or migration_pass.namespace, machine.metadata.name)
    try:
        await migration_pass.parts.client.patch_raw(targets.MACHINES, key, merge_patch(change))
    except (Conflict, NotFound):
        raise MigrationHeld(reasons.VALIDATION_STARTED, "the new machine changed meanwhile", 1.0) from None
