"""Reconciles migrations: one phase at a time, from the status alone."""

from collections.abc import Awaitable, Callable

import msgspec

from paddock.contract.errors import ProviderError
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.controllers.virtrigaud.migrations.cleanup import MigrationCleanup
from paddock.controllers.virtrigaud.migrations.leftovers import TransferObjects
from paddock.controllers.virtrigaud.migrations.migrationpass import MigrationFailure, MigrationHeld, MigrationPass
from paddock.controllers.virtrigaud.migrations.source import SourceFence
from paddock.controllers.virtrigaud.migrations.target import MigratedMachine, Reach, reach
from paddock.controllers.virtrigaud.migrations.transfers import MigrationTransfers
from paddock.controllers.virtrigaud.migrations.validation import HostAddresses, MigrationValidation, addresses_of
from paddock.dialects.virtrigaud.vmmigration import StorageInfo
from paddock.plan.virtrigaud import marks, reasons, retries
from paddock.plan.virtrigaud.conditions import AspectValue, false, find, true
from paddock.plan.virtrigaud.migrations import phases
from paddock.runtime import finalizers
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.runtime.statuses import StatusWriter

Step = Callable[[MigrationPass], Awaitable[None]]


class NetworkChecks(msgspec.Struct, frozen=True):
    """The attempts of migrations on the network: finding the addresses of the storage's host, and asking a guest for an answer."""

    addresses: HostAddresses = addresses_of
    reach: Reach = reach


class VirtrigaudMigrationReconciler(KindReconciler):
    """Reconciles VMMigrations."""

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
        look = MigrationPass(self._parts, seen, seen.read(targets.MIGRATIONS))
        outcome = await self._advance(look)
        if outcome is None:
            self._errors.pop(seen.meta.uid, None)
            return DONE
        await look.write(self._statuses)
        return outcome

    async def _advance(self, look: MigrationPass) -> Outcome | None:
        if look.seen.meta.going:
            return await self._delete(look)
        if look.phase in phases.FINAL:
            return await self._clean(look)
        try:
            if phases.expired(look.migration, self._parts.now()):
                text = f"the migration took longer than spec.options.timeout in the phase {look.phase}"
                raise MigrationFailure(reasons.TIMEOUT, text, final=True)
            if look.phase in (phases.EXPORTING, phases.TRANSFERRING, phases.CONVERTING, phases.IMPORTING):
                self._source.check_fence(look)
            await self._steps[look.phase](look)
        except MigrationHeld as held:
            return self._held(look, held.reason, held.message, held.seconds)
        except ProviderError as error:
            return self._erred(look, error)
        except MigrationFailure as failure:
            return self._failed(look, failure)
        return self._entered(look, phases.after(look.phase))

    # --- the ways out of a pass -----------------------------------------------------------------------------------------------

    def _entered(self, look: MigrationPass, phase: str) -> Outcome:
        """Leave a phase for the next one."""
        done = phases.completed(look.phase)
        if done is not None:
            look.say(done)
        if phase == phases.IMPORTING:
            self._note_storage(look)
        self._errors.pop(look.seen.meta.uid, None)
        look.change(phase=phase)
        if phase == phases.READY:
            look.change(completionTime=self._parts.timestamp(), taskRef=None)
            target = look.migration.spec.target
            text = f"VirtualMachine {target.namespace or look.namespace}/{target.name} has taken over"
            look.say(true("Ready", reasons.MIGRATION_COMPLETE, text))
            look.drop("Failed")
            look.tell(reasons.MIGRATION_COMPLETE, text)
        else:
            look.say(*phases.entered(phase))
            if phase == phases.VALIDATING:
                # Phases are in the status; more events would crowd out those that matter.
                look.tell(reasons.MIGRATION_STARTED, f"VirtualMachine {look.namespace}/{look.migration.spec.source.vmRef.name} is moved")
        return again(0.0)

    def _note_storage(self, look: MigrationPass) -> None:
        first = next(iter(look.disks), None)
        size = sum(each.exportedBytes or 0 for each in look.disks)
        look.change(
            storageInfo=StorageInfo(
                url=first.url if first is not None else None,
                size=str(size) if size else None,
                uploadedAt=self._parts.timestamp(),
                cleanedUp=False,
            )
        )

    def _held(self, look: MigrationPass, reason: str, message: str, seconds: float) -> Outcome:
        look.say(*phases.held(look.phase, reason, message))
        return again(min(seconds, phases.deadline(look.migration, self._parts.now())))

    def _erred(self, look: MigrationPass, error: ProviderError) -> Outcome:
        """A call that may succeed later is made again, with growing pauses and until the time is over."""
        rule = retries.rule(error.kind)
        if rule.terminal:
            return self._failed(look, MigrationFailure(retries.reason(error), error.reported))
        return self._held(look, retries.reason(error), error.reported, self._pause(look, error))

    def _pause(self, look: MigrationPass, error: ProviderError) -> float:
        count = self._errors[look.seen.meta.uid] = self._errors.get(look.seen.meta.uid, 0) + 1
        return self._parts.pause(count, error)

    def _failed(self, look: MigrationPass, failure: MigrationFailure) -> Outcome:
        """End an attempt: another one follows after a pause, or the migration has failed."""
        if failure.again is not None:
            look.put(phases.renewed(failure.again))
        elif look.phase == phases.IMPORTING:
            look.change(disks=[each if each.imported else phases.unimported(each) for each in look.disks])
        if look.phase in phases.CONDITIONS:
            look.say(false(phases.CONDITIONS[look.phase], failure.reason, failure.message))
        if not failure.final and phases.retries_left(look.migration) > 0:
            look.change(**_members(phases.retried(look.status, self._parts.timestamp())))
            wait = phases.retry_wait(look.migration, self._parts.now())
            look.say(false("Ready", reasons.RETRYING, f"attempt {look.status.retryCount} follows after {wait:g} s: {failure.message}"))
            look.tell(reasons.RETRYING, failure.message, "Warning")
            return again(max(0.1, wait))
        look.change(phase=phases.FAILED, completionTime=self._parts.timestamp(), taskRef=None)
        look.say(false("Ready", failure.reason, failure.message), true("Failed", failure.reason, failure.message))
        look.tell(reasons.MIGRATION_FAILED, failure.message, "Warning")
        return again(0.0)

    # --- phases without a module of their own ---------------------------------------------------------------------------------

    async def _begin(self, look: MigrationPass) -> None:
        """Begin an attempt, after the pause that a failed one leaves."""
        if not look.status.startTime:
            look.change(startTime=self._parts.timestamp())
        wait = phases.retry_wait(look.migration, self._parts.now())
        if look.status.retryCount:
            await self._machine.remove(look)
        if look.status.retryCount and wait > 0:
            ready = find(look.status.conditions, "Ready")
            said = ready.message if ready is not None and ready.reason == reasons.RETRYING else "the last attempt failed"
            raise MigrationHeld(reasons.RETRYING, said, wait)

    async def _clean(self, look: MigrationPass) -> Outcome:
        """Clean up after the end. A migration for which nothing is left to do is left alone."""
        done = find(look.status.conditions, phases.CLEANUP)
        generation = look.migration.metadata.generation
        clean = done is not None and done.reason in (reasons.CLEANED_UP, reasons.CLEANUP_INCOMPLETE)
        if clean and look.status.observedGeneration == generation:
            return DONE
        ready = find(look.status.conditions, "Ready")
        if ready is not None:
            # The end holds for a later generation, too.
            look.say(AspectValue(ready.type, ready.status, ready.reason, ready.message))
        step = self._cleanup.after_success if look.phase == phases.READY else self._cleanup.after_failure
        problem = await self._tried(look, step)
        if problem is None:
            return DONE
        look.say(false(phases.CLEANUP, reasons.CLEANUP_PENDING, problem.message))
        return again(problem.seconds)

    async def _delete(self, look: MigrationPass) -> Outcome | None:
        """Clean up and let the migration go; None when it is released."""
        forced = (look.migration.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE
        problem = await self._tried(look, self._cleanup.at_deletion)
        if problem is not None and not forced:
            look.say(false("Ready", reasons.DELETING, problem.message))
            return again(problem.seconds)
        if problem is not None:
            look.tell("ForceDeleted", f"the migration is released without its cleanup: {problem.message}", "Warning")
        await finalizers.take_off(self._parts.client, targets.MIGRATIONS, look.seen.meta, marks.MIGRATION_FINALIZER)
        return None

    async def _tried(self, look: MigrationPass, step: Step) -> MigrationHeld | None:
        """Carry out a cleanup; what stands against it comes back."""
        try:
            await step(look)
        except MigrationHeld as held:
            return held
        except ProviderError as error:
            return MigrationHeld(reasons.CLEANUP_PENDING, error.reported, self._pause(look, error))
        except MigrationFailure as failure:
            return MigrationHeld(reasons.CLEANUP_PENDING, failure.message)
        self._errors.pop(look.seen.meta.uid, None)
        return None


async def _pass(look: MigrationPass) -> None:
    """A phase in which the providers do nothing: they have converted and stored the exports already."""


def _members(status: object) -> dict[str, object]:
    return {name: getattr(status, name) for name in status.__struct_fields__}  # type: ignore[attr-defined]
