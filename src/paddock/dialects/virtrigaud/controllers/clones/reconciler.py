"""One pass over a VMClone, from its key alone.

    finalizer --> judged --> source, class, driver --> clone --> customized --> object with id --> power --> ready
                                                         |
                                                       failed --> removed --> again, or Failed

A settled clone costs nothing. What a provider may have and nobody owns yet is on record before it is asked for, and is removed when the
attempt fails or the VMClone is deleted.
"""

from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.binding import MachineBinding
from paddock.dialects.virtrigaud.controllers.clones.cleanup import CloneCleanup, is_forced
from paddock.dialects.virtrigaud.controllers.clones.copying import CloneCopying
from paddock.dialects.virtrigaud.controllers.clones.following import CloneAttemptFailed, TaskFollowing
from paddock.dialects.virtrigaud.controllers.clones.passes import CloneMemory, ClonePass, CloneWriter
from paddock.dialects.virtrigaud.controllers.clones.prerequisites import ClonePrerequisites, CloneWaits
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.plan import marks, reasons, retries
from paddock.dialects.virtrigaud.plan.clones import judging, origin, progress
from paddock.dialects.virtrigaud.plan.conditions import READY, AspectValue, false, find, holds, true
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer, ObjectMemories

_SOON, _BLOCKED_SECONDS = 0.1, 30.0


class VirtrigaudCloneReconciler(KindReconciler):
    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts.caches.clones, ObjectFinalizer(parts.client, marks.CLONE_FINALIZER))
        self._parts = parts
        self._writer = CloneWriter(parts, parts.caches.clones)
        self._looking = ClonePrerequisites(parts)
        binding, self._tasks = MachineBinding(parts.client, parts.caches.machines), TaskFollowing(parts)
        self._cleanup = CloneCleanup(parts, self._looking, binding, self._tasks)
        self._copying = CloneCopying(parts, self._writer, binding, self._tasks)
        self._memories = ObjectMemories(
            lambda seen: CloneMemory(seen.meta.uid, seen.meta.generation), lambda seen: (seen.meta.uid, seen.meta.generation)
        )

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one clone a step on."""
        clone_pass = self._pass(seen)
        if progress.is_settled(clone_pass.clone):
            return await self._settled(clone_pass)
        if clone_pass.memory.until > self._parts.now():
            return again(clone_pass.memory.until - self._parts.now())
        outcome = await self._attempt(clone_pass)
        await self._writer.write(clone_pass)
        return self._bounded(clone_pass, outcome)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Remove what a provider may have and nobody owns."""
        return await self._delete(self._pass(seen))

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether a provider may have, or may get, what nobody owns."""
        return not progress.is_settled(seen.read(targets.CLONES))

    async def forget(self, key: Key) -> None:
        """Drop what is remembered of a clone that is gone."""
        self._memories.forget(key)

    def _pass(self, seen: CachedObject) -> ClonePass:
        return ClonePass(seen, seen.read(targets.CLONES), self._memories.of(seen))

    async def _settled(self, clone_pass: ClonePass) -> Outcome:
        """A clone is made once: a later change of its spec is only noted."""
        if clone_pass.status.observedGeneration != clone_pass.clone.metadata.generation:
            found = find(clone_pass.status.conditions, READY)
            text = f"{found.message.partition(';')[0]}; the spec has changed since, and the target is its own" if found is not None else ""
            clone_pass.say(true(READY, reasons.COMPLETED, text))
            await self._writer.write(clone_pass)
        return DONE

    async def _attempt(self, clone_pass: ClonePass) -> Outcome:
        """Bring the clone a step on, and turn what goes wrong into what is reported."""
        try:
            return await self._advance(clone_pass)
        except CloneWaits as waits:
            clone_pass.say(false(READY, waits.reason, str(waits)))
            return DONE
        except Refusal as refusal:
            nothing_made = not progress.is_unfinished(clone_pass.clone)
            return self._failed(clone_pass, CloneAttemptFailed(refusal.reason, str(refusal), nothing_made=nothing_made))
        except CloneAttemptFailed as failure:
            return self._failed(clone_pass, failure)
        except ProviderError as error:
            clone_pass.say(false(READY, retries.reason(error), f"the provider of the clone: {error.reported}"))
            return again(self._tasks.hold(clone_pass, error))

    async def _advance(self, clone_pass: ClonePass) -> Outcome:
        now = self._parts.now()
        if holds(clone_pass.status.conditions, progress.CLEANUP):
            return await self._clean(clone_pass)
        begun = origin.of(clone_pass.status.conditions)
        if begun is not None and begun.generation != clone_pass.clone.metadata.generation and progress.is_unfinished(clone_pass.clone):
            self._cleanup.begin(clone_pass, "the spec has changed: what was made for the former one is removed")
            return again(_SOON)
        ends = progress.deadline(clone_pass.clone, clone_pass.status)
        if ends is not None and now >= ends:
            text = f"the clone took longer than options.timeout, {judging.options(clone_pass.clone).timeout}"
            raise CloneAttemptFailed(reasons.TIMEOUT, text)
        due = progress.retry_at(clone_pass.clone, clone_pass.status)
        if due is not None:
            if now < due:
                return again(due - now)
            clone_pass.change(retryCount=(clone_pass.status.retryCount or 0) + 1, lastRetryTime=self._parts.timestamp())
            clone_pass.say(false(progress.FAILURE, reasons.RETRYING, f"attempt {(clone_pass.status.retryCount or 0) + 1}"))
            self._parts.recorder.tell(clone_pass.about, "Normal", reasons.RETRYING, clone_pass.values[progress.FAILURE].message)
        if clone_pass.status.targetRef is not None:
            return self._copying.power(clone_pass)
        judging.check(clone_pass.clone)
        self._report_unsent(clone_pass)
        if judging.copies_machine(clone_pass.clone):
            return await self._copying.of_machine(clone_pass, await self._looking.of_machine(clone_pass.clone))
        return await self._copying.of_image(clone_pass, await self._looking.of_image(clone_pass.clone))

    def _bounded(self, clone_pass: ClonePass, outcome: Outcome) -> Outcome:
        """Come back by the time at which the clone has to be ready."""
        ends = progress.deadline(clone_pass.clone, clone_pass.status)
        if ends is None or clone_pass.status.phase in (progress.PHASE_READY, progress.FAILED):
            return outcome
        left = ends - self._parts.now()
        return again(left if left > 0 else _BLOCKED_SECONDS) if outcome == DONE else outcome

    def _report_unsent(self, clone_pass: ClonePass) -> None:
        unsent = judging.unsent(clone_pass.clone)
        if unsent:
            clone_pass.say(true(progress.UNSENT, reasons.UNSUPPORTED, f"the provider contract has no field for {', '.join(unsent)}"))

    # --- failures ---------------------------------------------------------------------------------------------------------

    def _failed(self, clone_pass: ClonePass, failure: CloneAttemptFailed) -> Outcome:
        """An attempt has failed: what it made is removed, and then it is decided whether there is another one."""
        text = str(failure)
        clone_pass.say(AspectValue(progress.FAILURE, "True", failure.reason, text, anew=True), false(READY, failure.code, text))
        self._parts.recorder.tell(clone_pass.about, "Warning", failure.reason, text)
        if failure.nothing_made:
            clone_pass.say(false(progress.BEGUN, failure.reason, text))
            clone_pass.change(taskRef=None)
            return self._conclude(clone_pass, failure.reason)
        if clone_pass.status.targetRef is not None:
            # The machine has its object, and is that one's from now on.
            return self._conclude(clone_pass, failure.reason)
        self._cleanup.begin(clone_pass, "what the failed attempt has made is removed")
        return again(_SOON)

    async def _clean(self, clone_pass: ClonePass) -> Outcome:
        wait = await self._cleanup.advance(clone_pass)
        if wait is not None:
            return again(wait)
        failure = find(clone_pass.status.conditions, progress.FAILURE)
        if failure is None or failure.status != "True":
            # The spec has changed: everything begins anew.
            clone_pass.change(phase=progress.PENDING, startTime=None, progress=None, actualCloneType=None)
            return again(_SOON)
        return self._conclude(clone_pass, failure.reason)

    def _conclude(self, clone_pass: ClonePass, reason: str) -> Outcome:
        if clone_pass.status.targetRef is None and progress.may_retry(clone_pass.clone, clone_pass.status, reason):
            clone_pass.change(phase=progress.PENDING, actualCloneType=None)
            return again(_SOON)
        clone_pass.change(phase=progress.FAILED, completionTime=self._parts.timestamp())
        return DONE

    # --- deletion ---------------------------------------------------------------------------------------------------------

    async def _delete(self, clone_pass: ClonePass) -> Outcome:
        """Let the VMClone go. Its target stays; a machine that no VirtualMachine has got goes with it."""
        if marks.CLONE_FINALIZER not in (clone_pass.seen.meta.finalizers or ()):
            return DONE
        if clone_pass.memory.until > self._parts.now():
            return again(clone_pass.memory.until - self._parts.now())
        if not is_forced(clone_pass) and not progress.is_settled(clone_pass.clone):
            try:
                if not holds(clone_pass.status.conditions, progress.CLEANUP):
                    self._cleanup.begin(clone_pass, "the VMClone is being deleted: what is unfinished is removed")
                    clone_pass.apply(self._parts.timestamp())
                wait = await self._cleanup.advance(clone_pass)
            except CloneWaits as waits:
                clone_pass.say(false(READY, waits.reason, f"{waits}, or annotate the VMClone with {marks.FORCE_DELETE}: {marks.TRUE}"))
                wait = _BLOCKED_SECONDS
            except ProviderError as error:
                clone_pass.say(false(READY, retries.reason(error), f"the provider of the clone: {error.reported}"))
                wait = self._tasks.hold(clone_pass, error)
            if wait is not None:
                await self._writer.write(clone_pass)
                return again(wait)
        elif not progress.is_settled(clone_pass.clone):
            text = "the VMClone goes although a machine of it may still exist at its provider"
            self._parts.recorder.tell(clone_pass.about, "Warning", "ForceDeleted", text)
        await finalizers.take_off(self._parts.client, targets.CLONES, clone_pass.seen.meta, marks.CLONE_FINALIZER)
        return DONE
