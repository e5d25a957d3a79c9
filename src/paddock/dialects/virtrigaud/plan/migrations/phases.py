"""The phases of a migration: their order, their conditions, the progress, and when a failed one is tried again.

    Pending → Validating → Snapshotting → Exporting → Transferring → Converting → Importing → Creating → Validating-Target → Ready

A failure ends in Failed, or in Pending with one more retry. Each phase is left by one write of the status, so a manager that was killed
goes on in the phase that stands there.
"""

import math
from collections.abc import Iterable

import msgspec

from paddock.base import duration, quantity
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds.vmmigration import (
    DiskInfo,
    MigratedDisk,
    MigrationProgress,
    ValidationChecks,
    ValidationResults,
    VMMigration,
    VMMigrationStatus,
)
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.conditions import AspectValue, false, settled, true
from paddock.dialects.virtrigaud.plan.migrations import transfer
from paddock.kubernetes.meta import ages

PENDING, VALIDATING, SNAPSHOTTING, EXPORTING = "Pending", "Validating", "Snapshotting", "Exporting"
TRANSFERRING, CONVERTING, IMPORTING = "Transferring", "Converting", "Importing"
CREATING, VALIDATING_TARGET, READY, FAILED = "Creating", "Validating-Target", "Ready", "Failed"
ORDER = (PENDING, VALIDATING, SNAPSHOTTING, EXPORTING, TRANSFERRING, CONVERTING, IMPORTING, CREATING, VALIDATING_TARGET, READY)
FINAL = (READY, FAILED)
# The condition of each phase.
CONDITIONS = {
    VALIDATING: "Validating",
    SNAPSHOTTING: "Snapshotting",
    EXPORTING: "Exporting",
    TRANSFERRING: "Transferring",
    CONVERTING: "Transferring",
    IMPORTING: "Importing",
    CREATING: "Creating",
    VALIDATING_TARGET: "ValidatingTarget",
}
_COMPLETE = {
    VALIDATING: (reasons.VALIDATION_COMPLETE, "both Providers can carry the migration out"),
    SNAPSHOTTING: (reasons.SNAPSHOT_COMPLETE, "the disks to move are at rest"),
    EXPORTING: (reasons.EXPORT_COMPLETE, "every disk is exported"),
    TRANSFERRING: (reasons.TRANSFER_COMPLETE, "the exports are in the storage that both Providers reach"),
    CONVERTING: (reasons.TRANSFER_COMPLETE, "the exports are in the storage that both Providers reach"),
    IMPORTING: (reasons.IMPORT_COMPLETE, "every disk is imported"),
    CREATING: (reasons.MIGRATION_COMPLETE, "the new machine exists"),
    VALIDATING_TARGET: (reasons.VALIDATION_COMPLETE, "the checks succeeded"),
}
CLEANUP, SOURCE_DELETED = "CleanedUp", "SourceDeleted"
_LONGEST_DELAY = 1800.0


def after(phase: str) -> str:
    return ORDER[ORDER.index(phase) + 1]


def completed(phase: str) -> AspectValue | None:
    """The condition of a phase that has ended."""
    if phase not in CONDITIONS:
        return None
    reason, message = _COMPLETE[phase]
    return false(CONDITIONS[phase], reason, message)


def entered(phase: str) -> tuple[AspectValue, ...]:
    """The conditions of a migration that enters a phase."""
    if phase not in CONDITIONS:
        return (false("Ready", phase, f"the migration is in the phase {phase}"),)
    reason = reasons.VALIDATION_STARTED if phase == VALIDATING else CONDITIONS[phase]
    text = f"the migration is in the phase {phase}"
    return (true(CONDITIONS[phase], reason, text), false("Ready", reason, text))


def held(phase: str, reason: str, message: str) -> tuple[AspectValue, ...]:
    """The conditions of a migration that waits in a phase."""
    found = false("Ready", reason, message)
    return (true(CONDITIONS[phase], reason, message), found) if phase in CONDITIONS else (found,)


def checks_of(migration: VMMigration) -> ValidationChecks:
    """The checks at the end."""
    return transfer.options_of(migration).validationChecks or ValidationChecks()


def wants_sums(migration: VMMigration) -> bool:
    """Return whether the Providers are asked for the checksums of the disks."""
    return transfer.options_of(migration).verifyChecksums or checks_of(migration).checkChecksum


def unproven(migration: VMMigration) -> str:
    """Return which requested check has not succeeded, and what to do; empty when the source may be deleted."""
    checks, status = checks_of(migration), transfer.status_of(migration)
    results = status.validationResults or ValidationResults()
    if results.validationErrors:
        return f"{'; '.join(results.validationErrors)}; check the new machine, and delete the source by hand"
    by_hand = "delete the source by hand, or set spec.options.validationChecks"
    if checks.checkDiskSize and not results.diskSizeMatch:
        return f"nobody compared the sizes of the disks; {by_hand}.checkDiskSize to false"
    if checks.checkChecksum and not results.checksumMatch:
        names = ", ".join(each.name for each in status.disks or () if not (each.checksum and each.targetChecksum))
        why = f"the Providers reported no pair of checksums for {names}" if names else "nobody compared the checksums of the disks"
        return f"{why}; {by_hand}.checkChecksum to false"
    return ""


def starts_target(migration: VMMigration) -> bool:
    """Return whether the new machine is started, now or for a check."""
    checks = checks_of(migration)
    return migration.spec.target.powerOn or checks.checkBoot or checks.checkConnectivity


def needs_fence(migration: VMMigration) -> bool:
    """Return whether the source has to be off from before its disks are exported until the migration has ended.

    What a running source writes after its snapshot is in no export. That is lost as soon as the new machine takes the source's place,
    and both must never run at once. Only a copy that stays off leaves its source running, and then it needs a snapshot.
    """
    source = migration.spec.source
    frozen = source.createSnapshot or source.snapshotRef is not None
    return source.powerOffBeforeMigration or source.deleteAfterMigration or starts_target(migration) or not frozen


def expired(migration: VMMigration, now: float) -> bool:
    """Return whether the migration has taken longer than it may."""
    began = ages.seconds_of(transfer.status_of(migration).startTime or "")
    return began is not None and now - began > transfer.timeout_seconds(migration)


def deadline(migration: VMMigration, now: float) -> float:
    """Seconds until the migration has taken too long."""
    began = ages.seconds_of(transfer.status_of(migration).startTime or "")
    return max(1.0, (began if began is not None else now) + transfer.timeout_seconds(migration) - now + 1.0)


def retries_left(migration: VMMigration) -> int:
    """The number of times that a failed migration may be tried again."""
    policy = transfer.options_of(migration).retryPolicy
    return 0 if policy is None else policy.maxRetries - (transfer.status_of(migration).retryCount or 0)


def retry_delay(migration: VMMigration) -> float:
    """Seconds between a failure and the retry that its status counts: delay * multiplier^n, half an hour at most."""
    policy, count = transfer.options_of(migration).retryPolicy, transfer.status_of(migration).retryCount or 0
    if policy is None or not count:
        return 0.0
    delay = duration.parse(policy.retryDelay) / duration.SECOND
    return min(_LONGEST_DELAY, delay * math.pow(policy.backoffMultiplier, count - 1))


def retry_wait(migration: VMMigration, now: float) -> float:
    """Seconds that a migration waits for its retry."""
    failed = ages.seconds_of(transfer.status_of(migration).lastRetryTime or "")
    return 0.0 if failed is None else failed + retry_delay(migration) - now


def cleans_up(migration: VMMigration, phase: str) -> bool:
    """Return whether what was made on the way is removed."""
    policy = transfer.options_of(migration).cleanupPolicy
    return policy == "Always" or (policy == "OnSuccess" and phase == READY)


# --- the status -----------------------------------------------------------------------------------------------------------------


def progress(status: VMMigrationStatus, now: str) -> MigrationProgress:
    """The progress: half of a disk's bytes count for its export, half for its import."""
    before = status.progress or MigrationProgress()
    total = sum(each.sizeBytes or 0 for each in status.disks or ())
    moved = sum((each.sizeBytes or 0) * (bool(each.exported) + bool(each.imported)) // 2 for each in status.disks or ())
    percentage = 100 if status.phase == READY else min(99, 100 * moved // total) if total else 0
    since = before.phaseStartTime if before.currentPhase == status.phase and before.phaseStartTime else now
    began, present = ages.seconds_of(status.startTime or ""), ages.seconds_of(now)
    rate, eta = before.transferRate, before.eta
    if moved != (before.transferredBytes or 0) and began is not None and present is not None and present > began:
        rate = int(moved / (present - began))
        eta = f"{math.ceil((total - moved) / rate)}s" if rate else None
    if percentage == 100:
        eta = None
    return MigrationProgress(
        currentPhase=status.phase,
        totalBytes=total or None,
        transferredBytes=moved or None,
        percentage=percentage,
        eta=eta,
        transferRate=rate,
        phaseStartTime=since,
    )


def disk_info(disks: Iterable[MigratedDisk] | None) -> DiskInfo | None:
    """The first disk on both sides."""
    first = next(iter(disks or ()), None)
    if first is None:
        return None
    return DiskInfo(
        sourceDiskID=first.sourceDiskID,
        sourceFormat=first.format,
        sourceSize=_bytes(first.sizeBytes),
        targetDiskID=first.importID if first.imported else None,
        targetFormat=first.format if first.imported else None,
        targetPath=first.targetPath if first.imported else None,
        targetSize=_bytes(first.targetSizeBytes),
        checksum=first.checksum,
        sourceChecksum=first.checksum,
        targetChecksum=first.targetChecksum,
    )


def _bytes(size: int | None) -> str | None:
    return quantity.binary(size) if size else None


def settle(migration: VMMigration, status: VMMigrationStatus, values: Iterable[AspectValue], now: str) -> VMMigrationStatus:
    """The status with these conditions and everything that follows from its phase and its disks."""
    generation = migration.metadata.generation
    made = msgspec.structs.replace(
        status,
        conditions=settled(status.conditions, values, now, generation),
        observedGeneration=generation,
        disks=status.disks or None,
    )
    first = next(iter(made.disks or ()), None)
    busy = next((each for each in made.disks or () if not each.imported), None)
    task = (busy.importTask or busy.exportTask) if busy is not None else None
    # A snapshot without a name is being deleted.
    deleting = bool(made.snapshotID) and not made.snapshotRef
    ready = next((each.message for each in made.conditions or () if each.type == "Ready"), "")
    return msgspec.structs.replace(
        made,
        message=ready or None,
        progress=progress(made, now),
        diskInfo=disk_info(made.disks),
        exportID=first.exportID if first is not None else None,
        importID=first.importID if first is not None else None,
        taskRef=made.taskRef if deleting or made.phase == SNAPSHOTTING else task,
    )


def retried(status: VMMigrationStatus, now: str) -> VMMigrationStatus:
    """The status of a migration that begins anew after a pause.

    Complete exports are kept, incomplete ones get another address. Imported disks are kept until a machine had them: they go with it.
    """
    disks = [unimported(disk) if status.targetVMRef is not None else disk for disk in status.disks or ()]
    return msgspec.structs.replace(
        status,
        phase=PENDING,
        retryCount=(status.retryCount or 0) + 1,
        lastRetryTime=now,
        taskRef=None,
        targetVMRef=None,
        targetVMID=None,
        validationResults=None,
        disks=[disk if disk.exported else renewed(disk) for disk in disks] or None,
    )


def renewed(disk: MigratedDisk) -> MigratedDisk:
    """A disk that is exported anew."""
    begun = disk.url is not None
    return MigratedDisk(
        name=disk.name,
        sourceDiskID=disk.sourceDiskID,
        sizeBytes=disk.sizeBytes,
        format=disk.format,
        attempt=(disk.attempt or 0) + begun or None,
    )


def unimported(disk: MigratedDisk) -> MigratedDisk:
    """A disk whose import is forgotten."""
    return msgspec.structs.replace(
        disk, importID=None, targetPath=None, importTask=None, imported=None, targetChecksum=None, targetSizeBytes=None, restarts=None
    )


def target_reference(migration: VMMigration) -> LocalObjectReference:
    """The reference to the new machine."""
    return LocalObjectReference(name=migration.spec.target.name)
