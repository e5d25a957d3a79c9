"""Reconciles migrations: one phase at a time, from the status alone."""

from collections.abc import Awaitable, Callable

import msgspec

from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.migrations.cleanup import MigrationCleanup
from paddock.dialects.virtrigaud.controllers.migrations.leftovers import TransferObjects
from paddock.dialects.virtrigaud.controllers.migrations.migrationpass import MigrationFailure, MigrationHeld, MigrationPass
from paddock.dialects.virtrigaud.controllers.migrations.source import SourceFence
from paddock.dialects.virtrigaud.controllers.migrations.target import MigratedMachine, Reach, reach
from paddock.dialects.virtrigaud.controllers.migrations.transfers import MigrationTransfers
from paddock.dialects.virtrigaud.controllers.migrations.validation import HostAddresses, MigrationValidation, addresses_of
from paddock.dialects.virtrigaud.kinds.vmmigration import StorageInfo
from paddock.dialects.virtrigaud.plan import marks, reasons, retries
from paddock.dialects.virtrigaud.plan.conditions import AspectValue, false, find, true
from paddock.dialects.virtrigaud.plan.migrations import phases
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.statuses import StatusWriter

Step = Callable[[MigrationPass], Awaitable[None]]


class NetworkChecks(msgspec.Struct, frozen=True):
    """The attempts of migrations on the network: finding the addresses of the storage's host, and asking a guest for an answer."""

    addresses: HostAddresses = addresses_of
    reach: Reach = reach


class VirtrigaudMigrationReconciler(KindReconciler):
    def __init__(self, parts: VirtrigaudParts, checks: NetworkChecks = NetworkChecks()) -> None:  # noqa: B008 - frozen
        super().__init__(parts.caches.migrations, ObjectFinalizer(parts.client, marks.MIGRATION_FINALIZER))
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.MIGRATIONS, parts.caches.migrations.expectations)
        validation = MigrationValidation(checks.addresses)
        transfers = MigrationTransfers(validation)
        self._source = SourceFence()
        self._machine = MigratedMachine(self._source, checks.reach)
        self._cleanup = MigrationCleanup(TransferObjects(), self._source, self._machine)
        self._steps: dict[str, Step] = {
            phases.PENDING: self._begin,
            phases.VALIDATING: validation.carry_out,
            phases.SNAPSHOTTING: self._source.carry_out,
            phases.EXPORTING: transfers.export,
            phases.TRANSFERRING: _pass,
            phases.CONVERTING: _pass,
            phases.IMPORTING: transfers.import_,
            phases.CREATING: self._machine.create,
            phases.VALIDATING_TARGET: self._machine.validate,
        }
        # errors in a row, by uid
        self._errors: dict[str, int] = {}

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Bring one that is being deleted a step on, unless it never began."""
        return await self.work(seen) if marks.MIGRATION_FINALIZER in (seen.meta.finalizers or ()) else DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one migration a step on."""
        migration_pass = MigrationPass(self._parts, seen, seen.read(targets.MIGRATIONS))
        outcome = await self._advance(migration_pass)
        if outcome is None:
            self._errors.pop(seen.meta.uid, None)
            return DONE
        await migration_pass.write(self._statuses)
        return outcome

    async def _advance(self, migration_pass: MigrationPass) -> Outcome | None:
        if migration_pass.seen.meta.deleting:
            return await self._delete(migration_pass)
        if migration_pass.phase in phases.FINAL:
            return await self._clean(migration_pass)
        try:
            if phases.expired(migration_pass.migration, self._parts.now()):
                text = f"the migration took longer than spec.options.timeout in the phase {migration_pass.phase}"
                raise MigrationFailure(reasons.TIMEOUT, text, final=True)
            if migration_pass.phase in (phases.EXPORTING, phases.TRANSFERRING, phases.CONVERTING, phases.IMPORTING):
                self._source.check_fence(migration_pass)
            await self._steps[migration_pass.phase](migration_pass)
        except MigrationHeld as held:
            return self._held(migration_pass, held.reason, held.message, held.seconds)
        except ProviderError as error:
            return self._erred(migration_pass, error)
        except MigrationFailure as failure:
            return self._failed(migration_pass, failure)
        return self._entered(migration_pass, phases.after(migration_pass.phase))

    # --- the ways out of a pass -----------------------------------------------------------------------------------------------

    def _entered(self, migration_pass: MigrationPass, phase: str) -> Outcome:
        """Leave a phase for the next one."""
        done = phases.completed(migration_pass.phase)
        if done is not None:
            migration_pass.say(done)
        if phase == phases.IMPORTING:
            self._note_storage(migration_pass)
        self._errors.pop(migration_pass.seen.meta.uid, None)
        migration_pass.change(phase=phase)
        if phase == phases.READY:
            migration_pass.change(completionTime=self._parts.timestamp(), taskRef=None)
            target = migration_pass.migration.spec.target
            text = f"VirtualMachine {target.namespace or migration_pass.namespace}/{target.name} has taken over"
            migration_pass.say(true("Ready", reasons.MIGRATION_COMPLETE, text))
            migration_pass.drop("Failed")
            migration_pass.tell(reasons.MIGRATION_COMPLETE, text)
        else:
            migration_pass.say(*phases.entered(phase))
            if phase == phases.VALIDATING:
                # Phases are in the status; more events would crowd out those that matter.
                migration_pass.tell(
                    reasons.MIGRATION_STARTED,
                    f"VirtualMachine {migration_pass.namespace}/{migration_pass.migration.spec.source.vmRef.name} is moved",
                )
        return again(0.0)

    def _note_storage(self, migration_pass: MigrationPass) -> None:
        first = next(iter(migration_pass.disks), None)
        size = sum(each.exportedBytes or 0 for each in migration_pass.disks)
        migration_pass.change(
            storageInfo=StorageInfo(
                url=first.url if first is not None else None,
                size=str(size) if size else None,
                uploadedAt=self._parts.timestamp(),
                cleanedUp=False,
            )
        )

    def _held(self, migration_pass: MigrationPass, reason: str, message: str, seconds: float) -> Outcome:
        migration_pass.say(*phases.held(migration_pass.phase, reason, message))
        return again(min(seconds, phases.deadline(migration_pass.migration, self._parts.now())))

    def _erred(self, migration_pass: MigrationPass, error: ProviderError) -> Outcome:
        """A call that may succeed later is made again, with growing pauses and until the time is over."""
        rule = retries.rule(error.kind)
        if rule.terminal:
            return self._failed(migration_pass, MigrationFailure(retries.reason(error), error.reported))
        return self._held(migration_pass, retries.reason(error), error.reported, self._pause(migration_pass, error))

    def _pause(self, migration_pass: MigrationPass, error: ProviderError) -> float:
        count = self._errors[migration_pass.seen.meta.uid] = self._errors.get(migration_pass.seen.meta.uid, 0) + 1
        return self._parts.pause(count, error)

    def _failed(self, migration_pass: MigrationPass, failure: MigrationFailure) -> Outcome:
        """End an attempt: another one follows after a pause, or the migration has failed."""
        if failure.again is not None:
            migration_pass.put(phases.renewed(failure.again))
        elif migration_pass.phase == phases.IMPORTING:
            migration_pass.change(disks=[each if each.imported else phases.unimported(each) for each in migration_pass.disks])
        if migration_pass.phase in phases.CONDITIONS:
            migration_pass.say(false(phases.CONDITIONS[migration_pass.phase], failure.reason, failure.message))
        if not failure.final and phases.retries_left(migration_pass.migration) > 0:
            migration_pass.change(**_members(phases.retried(migration_pass.status, self._parts.timestamp())))
            wait = phases.retry_wait(migration_pass.migration, self._parts.now())
            migration_pass.say(
                false("Ready", reasons.RETRYING, f"attempt {migration_pass.status.retryCount} follows after {wait:g} s: {failure.message}")
            )
            migration_pass.tell(reasons.RETRYING, failure.message, "Warning")
            return again(max(0.1, wait))
        migration_pass.change(phase=phases.FAILED, completionTime=self._parts.timestamp(), taskRef=None)
        migration_pass.say(false("Ready", failure.reason, failure.message), true("Failed", failure.reason, failure.message))
        migration_pass.tell(reasons.MIGRATION_FAILED, failure.message, "Warning")
        return again(0.0)

    # --- phases without a module of their own ---------------------------------------------------------------------------------

    async def _begin(self, migration_pass: MigrationPass) -> None:
        """Begin an attempt, after the pause that a failed one leaves."""
        if not migration_pass.status.startTime:
            migration_pass.change(startTime=self._parts.timestamp())
        wait = phases.retry_wait(migration_pass.migration, self._parts.now())
        if migration_pass.status.retryCount:
            await self._machine.remove(migration_pass)
        if migration_pass.status.retryCount and wait > 0:
            ready = find(migration_pass.status.conditions, "Ready")
            said = ready.message if ready is not None and ready.reason == reasons.RETRYING else "the last attempt failed"
            raise MigrationHeld(reasons.RETRYING, said, wait)

    async def _clean(self, migration_pass: MigrationPass) -> Outcome:
        """Clean up after the end. A migration for which nothing is left to do is left alone."""
        done = find(migration_pass.status.conditions, phases.CLEANUP)
        generation = migration_pass.migration.metadata.generation
        clean = done is not None and done.reason in (reasons.CLEANED_UP, reasons.CLEANUP_INCOMPLETE)
        if clean and migration_pass.status.observedGeneration == generation:
            return DONE
        ready = find(migration_pass.status.conditions, "Ready")
        if ready is not None:
            # The end holds for a later generation, too.
            migration_pass.say(AspectValue(ready.type, ready.status, ready.reason, ready.message))
        step = self._cleanup.after_success if migration_pass.phase == phases.READY else self._cleanup.after_failure
        problem = await self._tried(migration_pass, step)
        if problem is None:
            return DONE
        migration_pass.say(false(phases.CLEANUP, reasons.CLEANUP_PENDING, problem.message))
        return again(problem.seconds)

    async def _delete(self, migration_pass: MigrationPass) -> Outcome | None:
        """Clean up and let the migration go; None when it is released."""
        forced = (migration_pass.migration.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE
        problem = await self._tried(migration_pass, self._cleanup.at_deletion)
        if problem is not None and not forced:
            migration_pass.say(false("Ready", reasons.DELETING, problem.message))
            return again(problem.seconds)
        if problem is not None:
            migration_pass.tell("ForceDeleted", f"the migration is released without its cleanup: {problem.message}", "Warning")
        await finalizers.take_off(self._parts.client, targets.MIGRATIONS, migration_pass.seen.meta, marks.MIGRATION_FINALIZER)
        return None

    async def _tried(self, migration_pass: MigrationPass, step: Step) -> MigrationHeld | None:
        """Carry out a cleanup; what stands against it comes back."""
        try:
            await step(migration_pass)
        except MigrationHeld as held:
            return held
        except ProviderError as error:
            return MigrationHeld(reasons.CLEANUP_PENDING, error.reported, self._pause(migration_pass, error))
        except MigrationFailure as failure:
            return MigrationHeld(reasons.CLEANUP_PENDING, failure.message)
        self._errors.pop(migration_pass.seen.meta.uid, None)
        return None


async def _pass(migration_pass: MigrationPass) -> None:
    """A phase in which the providers do nothing: they have converted and stored the exports already."""


def _members(status: object) -> dict[str, object]:
    return {name: getattr(status, name) for name in status.__struct_fields__}  # type: ignore[attr-defined]
