"""One pass over a VMClone, from its key alone.

    finalizer --> judged --> source, class, driver --> clone --> customized --> object with id --> power --> ready
                                                         |
                                                       failed --> removed --> again, or Failed

A settled clone costs nothing. What a provider may have and nobody owns yet is on record before it is asked for, and is removed when the
attempt fails or the VMClone is deleted.
"""

from paddock.client.target import Key
from paddock.contract.errors import ProviderError
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.binding import MachineBinding
from paddock.controllers.virtrigaud.clones.cleanup import CloneCleanup, is_forced
from paddock.controllers.virtrigaud.clones.copying import CloneCopying
from paddock.controllers.virtrigaud.clones.following import CloneAttemptFailed, TaskFollowing
from paddock.controllers.virtrigaud.clones.passes import CloneMemory, ClonePass, CloneWriter
from paddock.controllers.virtrigaud.clones.prerequisites import ClonePrerequisites, CloneWaits
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.plan.virtrigaud import marks, reasons, retries
from paddock.plan.virtrigaud.clones import judging, origin, progress
from paddock.plan.virtrigaud.conditions import READY, AspectValue, false, find, holds, true
from paddock.plan.virtrigaud.refusals import Refusal
from paddock.runtime import finalizers
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.kindreconciler import KindReconciler, ObjectFinalizer, ObjectMemories

_SOON, _BLOCKED_SECONDS = 0.1, 30.0


class VirtrigaudCloneReconciler(KindReconciler):
    """Reconciles VMClones."""

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
        look = self._pass(seen)
        if progress.is_settled(look.clone):
            return await self._settled(look)
        if look.memory.until > self._parts.now():
            return again(look.memory.until - self._parts.now())
        outcome = await self._attempt(look)
        await self._writer.write(look)
        return self._bounded(look, outcome)

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

    async def _settled(self, look: ClonePass) -> Outcome:
        """A clone is made once: a later change of its spec is only noted."""
        if look.status.observedGeneration != look.clone.metadata.generation:
            found = find(look.status.conditions, READY)
            text = f"{found.message.partition(';')[0]}; the spec has changed since, and the target is its own" if found is not None else ""
            look.say(true(READY, reasons.COMPLETED, text))
            await self._writer.write(look)
        return DONE

    async def _attempt(self, look: ClonePass) -> Outcome:
        """Bring the clone a step on, and turn what goes wrong into what is reported."""
        try:
            return await self._advance(look)
        except CloneWaits as waits:
            look.say(false(READY, waits.reason, str(waits)))
            return DONE
        except Refusal as refusal:
            nothing_made = not progress.is_unfinished(look.clone)
            return self._failed(look, CloneAttemptFailed(refusal.reason, str(refusal), nothing_made=nothing_made))
        except CloneAttemptFailed as failure:
            return self._failed(look, failure)
        except ProviderError as error:
            look.say(false(READY, retries.reason(error), f"the provider of the clone: {error.reported}"))
            return again(self._tasks.hold(look, error))

    async def _advance(self, look: ClonePass) -> Outcome:
        now = self._parts.now()
        if holds(look.status.conditions, progress.CLEANUP):
            return await self._clean(look)
        begun = origin.of(look.status.conditions)
        if begun is not None and begun.generation != look.clone.metadata.generation and progress.is_unfinished(look.clone):
            self._cleanup.begin(look, "the spec has changed: what was made for the former one is removed")
            return again(_SOON)
        ends = progress.deadline(look.clone, look.status)
        if ends is not None and now >= ends:
            text = f"the clone took longer than options.timeout, {judging.options(look.clone).timeout}"
            raise CloneAttemptFailed(reasons.TIMEOUT, text)
        due = progress.retry_at(look.clone, look.status)
        if due is not None:
            if now < due:
                return again(due - now)
            look.change(retryCount=(look.status.retryCount or 0) + 1, lastRetryTime=self._parts.timestamp())
            look.say(false(progress.FAILURE, reasons.RETRYING, f"attempt {(look.status.retryCount or 0) + 1}"))
            self._parts.recorder.tell(look.about, "Normal", reasons.RETRYING, look.values[progress.FAILURE].message)
        if look.status.targetRef is not None:
            return self._copying.power(look)
        judging.check(look.clone)
        self._report_unsent(look)
        if judging.copies_machine(look.clone):
            return await self._copying.of_machine(look, await self._looking.of_machine(look.clone))
        return await self._copying.of_image(look, await self._looking.of_image(look.clone))

    def _bounded(self, look: ClonePass, outcome: Outcome) -> Outcome:
        """Come back by the time at which the clone has to be ready."""
        ends = progress.deadline(look.clone, look.status)
        if ends is None or look.status.phase in (progress.PHASE_READY, progress.FAILED):
            return outcome
        left = ends - self._parts.now()
        return again(left if left > 0 else _BLOCKED_SECONDS) if outcome == DONE else outcome

    def _report_unsent(self, look: ClonePass) -> None:
        unsent = judging.unsent(look.clone)
        if unsent:
            look.say(true(progress.UNSENT, reasons.UNSUPPORTED, f"the provider contract has no field for {', '.join(unsent)}"))

    # --- failures ---------------------------------------------------------------------------------------------------------

    def _failed(self, look: ClonePass, failure: CloneAttemptFailed) -> Outcome:
        """An attempt has failed: what it made is removed, and then it is decided whether there is another one."""
        text = str(failure)
        look.say(AspectValue(progress.FAILURE, "True", failure.reason, text, anew=True), false(READY, failure.code, text))
        self._parts.recorder.tell(look.about, "Warning", failure.reason, text)
        if failure.nothing_made:
            look.say(false(progress.BEGUN, failure.reason, text))
            look.change(taskRef=None)
            return self._conclude(look, failure.reason)
        if look.status.targetRef is not None:
            # The machine has its object, and is that one's from now on.
            return self._conclude(look, failure.reason)
        self._cleanup.begin(look, "what the failed attempt has made is removed")
        return again(_SOON)

    async def _clean(self, look: ClonePass) -> Outcome:
        wait = await self._cleanup.advance(look)
        if wait is not None:
            return again(wait)
        failure = find(look.status.conditions, progress.FAILURE)
        if failure is None or failure.status != "True":
            # The spec has changed: everything begins anew.
            look.change(phase=progress.PENDING, startTime=None, progress=None, actualCloneType=None)
            return again(_SOON)
        return self._conclude(look, failure.reason)

    def _conclude(self, look: ClonePass, reason: str) -> Outcome:
        if look.status.targetRef is None and progress.may_retry(look.clone, look.status, reason):
            look.change(phase=progress.PENDING, actualCloneType=None)
            return again(_SOON)
        look.change(phase=progress.FAILED, completionTime=self._parts.timestamp())
        return DONE

    # --- deletion ---------------------------------------------------------------------------------------------------------

    async def _delete(self, look: ClonePass) -> Outcome:
        """Let the VMClone go. Its target stays; a machine that no VirtualMachine has got goes with it."""
        if marks.CLONE_FINALIZER not in (look.seen.meta.finalizers or ()):
            return DONE
        if look.memory.until > self._parts.now():
            return again(look.memory.until - self._parts.now())
        if not is_forced(look) and not progress.is_settled(look.clone):
            try:
                if not holds(look.status.conditions, progress.CLEANUP):
                    self._cleanup.begin(look, "the VMClone is being deleted: what is unfinished is removed")
                    look.apply(self._parts.timestamp())
                wait = await self._cleanup.advance(look)
            except CloneWaits as waits:
                look.say(false(READY, waits.reason, f"{waits}, or annotate the VMClone with {marks.FORCE_DELETE}: {marks.TRUE}"))
                wait = _BLOCKED_SECONDS
            except ProviderError as error:
                look.say(false(READY, retries.reason(error), f"the provider of the clone: {error.reported}"))
                wait = self._tasks.hold(look, error)
            if wait is not None:
                await self._writer.write(look)
                return again(wait)
        elif not progress.is_settled(look.clone):
            text = "the VMClone goes although a machine of it may still exist at its provider"
            self._parts.recorder.tell(look.about, "Warning", "ForceDeleted", text)
        await finalizers.take_off(self._parts.client, targets.CLONES, look.seen.meta, marks.CLONE_FINALIZER)
        return DONE
