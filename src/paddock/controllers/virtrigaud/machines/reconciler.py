"""One pass over a machine, from its key alone.

    finalizer --> dependencies --> driver --> tasks --> made? --no--> image --> create
                                                         |
                                                        yes --> describe --> sizes --> power --> hooks --> ready

A pass that has nothing to request and nothing new to report makes no request to anybody. A provider is asked at most once per poll; news of
the API alone are judged by the last description.
"""

import math

from paddock.base.errors import PaddockError
from paddock.client.target import Key
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import DescribeResponse
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import MachinePass, PassMemory, RetryHold, VirtrigaudParts, hold
from paddock.controllers.virtrigaud.machines.actions import MachineActions
from paddock.controllers.virtrigaud.machines.deletion import MachineDeletion
from paddock.controllers.virtrigaud.machines.hooks import HookRunner, HttpExchange, exchange
from paddock.controllers.virtrigaud.machines.placements import MachinePlacement
from paddock.controllers.virtrigaud.machines.reverting import MachineReversion
from paddock.controllers.virtrigaud.statuswriter import MachineStatusWriter
from paddock.meta.world import namespace_of
from paddock.plan.virtrigaud import attempts, hooks, marks, power, preparation, reasons, references, requests, resizing, status, support
from paddock.plan.virtrigaud import unread as fields
from paddock.plan.virtrigaud.conditions import (
    POWER,
    PROVISIONING,
    READY,
    RECONFIGURING,
    RESTART_REQUIRED,
    UNSUPPORTED,
    AspectValue,
    false,
    find,
    holds,
    true,
)
from paddock.plan.virtrigaud.health import CAPABILITIES
from paddock.plan.virtrigaud.power import PowerDecision
from paddock.plan.virtrigaud.preparation import ImageUse
from paddock.plan.virtrigaud.refusals import Refusal
from paddock.plan.virtrigaud.resizing import ResizePlan
from paddock.plan.virtrigaud.snapshots import listing
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.kindreconciler import KindReconciler, ObjectFinalizer, ObjectMemories

_SOON = 1.0


class VirtrigaudMachineReconciler(KindReconciler):
    """Reconciles VirtRigaud's machines."""

    def __init__(self, parts: VirtrigaudParts, http: HttpExchange = exchange) -> None:
        super().__init__(parts.caches.machines, ObjectFinalizer(parts.client, marks.MACHINE_FINALIZER))
        self._parts = parts
        self._caches = parts.caches
        self._statuses = MachineStatusWriter(parts)
        self._actions = MachineActions(parts, self._statuses)
        self._hooks = HookRunner(parts, self._statuses, http)
        self._reversion = MachineReversion(parts, self._statuses, self._actions)
        self._placement = MachinePlacement(parts, self._statuses, parts.caches.namespaces)
        self._deletion = MachineDeletion(parts, self._statuses, self._actions, self._hooks)
        self._memories = ObjectMemories(lambda seen: PassMemory(seen.meta.uid))

    def suspect(self, key: Key) -> None:
        """Describe a machine in its next pass, whatever is remembered of it."""
        if (memory := self._memories.known(key)) is not None:
            memory.due = 0.0

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Clear a machine away that waits for us."""
        return await self.work(seen) if marks.MACHINE_FINALIZER in (seen.meta.finalizers or ()) else DONE

    async def forget(self, key: Key) -> None:
        """Drop the memory of a machine that is gone."""
        self._memories.forget(key)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one machine a step on."""
        memory = self._memories.of(seen)
        vm = seen.read(targets.MACHINES)
        look = MachinePass(seen, vm, memory, self._caches.inputs(vm))
        wait = memory.wait(look.inputs, self._parts.now())
        if wait > 0:
            return again(wait) if math.isfinite(wait) else DONE
        return await self._advance(look)

    async def _advance(self, look: MachinePass) -> Outcome:
        if look.seen.meta.going:
            await self._placement.settle(look)
        try:
            outcome = await (self._deletion.advance(look) if look.seen.meta.going else self._carry_out(look))
        except ProviderError as error:
            outcome = self._failed(look, error)
        except Refusal as refusal:
            outcome = self._refused(look, refusal)
        if outcome is None:
            # The machine is released.
            return DONE
        try:
            await self._statuses.write(look)
        except PaddockError:
            if look.memory.hold is not None and not math.isfinite(look.memory.hold.until):
                # Nobody has heard of the refusal, and nothing else would bring the machine here to report it.
                look.memory.hold = None
            raise
        return outcome

    # --- the way to a machine ---------------------------------------------------------------------------------------------

    async def _carry_out(self, look: MachinePass) -> Outcome:
        look.change(snapshots=listing.listed(look.status.id, self._caches.of_snapshots.all(look.key)))
        held = self._prerequisites(look)
        if held is not None:
            return held
        for name in ("lastTaskRef", "reconfigureTaskRef"):
            wait = await self._actions.follow(look, name)
            if wait is not None:
                return again(wait)
        if look.memory.hold is not None:
            return again(max(0.0, look.memory.hold.until - self._parts.now()))
        if not look.status.id:
            return await self._make(look)
        if self._actions.starts(look):
            return await self._start(look)
        if look.memory.start_due > self._parts.now():
            return again(look.memory.start_due - self._parts.now())
        answer = await self._actions.observe(look)
        if not answer.exists:
            return await self._lost(look)
        look.say(false(PROVISIONING, reasons.SUCCESS, "the machine is created"))
        return await self._keep(look, answer)

    def _prerequisites(self, look: MachinePass) -> Outcome | None:
        """Return the outcome of a pass that has to wait. A machine that exists is kept up without what only its creation needs."""
        look.found = found = references.resolve(look.vm, self._caches.world(look.vm))
        made = bool(look.status.id)
        missing = [each for each in found.missing if not made or each.kind == "Provider"]
        refused = [each for each in found.refused if not made or each.kind == "Provider"]
        if missing or refused:
            reason = reasons.WAITING if missing else reasons.CONSUMER_NOT_ALLOWED
            text = references.listed(missing) if missing else references.refusal(refused, look.key.namespace)
            return self._wait(look, reason, text)
        assert found.provider is not None
        place = references.provider_of(look.vm)
        connection = self._parts.providers.find(Key(place.namespace, place.name), found.provider.spec.type)
        look.driver = connection.driver
        if connection.driver is None:
            return self._wait(look, connection.waiting, f"{place}: {connection.runtime.message}")
        return None

    def _wait(self, look: MachinePass, reason: str, message: str) -> Outcome:
        """Report what is waited for; the watches bring the machine here again."""
        look.say(false(READY, reason, message))
        begun = find(look.status.conditions, PROVISIONING)
        # A create whose outcome nobody knows stays on record: the deletion looks for its machine.
        if not look.status.id and (begun is None or begun.reason not in reasons.CREATE_BEGUN):
            look.say(false(PROVISIONING, reasons.WAITING, message))
        return DONE

    async def _make(self, look: MachinePass) -> Outcome:
        vm, found = look.vm, look.found
        if (vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE:
            return self._wait(
                look, reasons.WAITING, f"waiting for the id of the machine: the label {marks.ADOPTED_LABEL} says that it exists"
            )
        assert found.provider is not None
        place = references.provider_of(vm)
        reported = found.provider.status.reportedCapabilities if found.provider.status is not None else None
        if reported is None and support.has_vital_needs(vm, found):
            lacking = find(found.provider.status.conditions, CAPABILITIES) if found.provider.status is not None else None
            why = f": {lacking.message}" if lacking is not None and lacking.message else ""
            return self._wait(look, reasons.WAITING, f"{place} has not reported its capabilities yet{why}")
        if found.image is not None:
            name = preparation.provider_key(namespace_of(found.image), place.namespace, place.name)
            use = ImageUse(name, found.provider.spec.type, reported.supportsImageImport if reported is not None else None)
            blocker = preparation.blocker(found.image, use, begun=holds(look.status.conditions, PROVISIONING, reasons.CREATING))
            if blocker is not None and blocker.importing:
                look.say(true(PROVISIONING, reasons.IN_PROGRESS, blocker.message), false(READY, reasons.IN_PROGRESS, blocker.message))
                return DONE
            if blocker is not None:
                return self._wait(look, blocker.reason, blocker.message)
        unplaced = await self._placement.place(look)
        if unplaced:
            self._wait(look, reasons.WAITING, unplaced)
            return again(self._parts.settings.polls.placement)
        await self._actions.create(look)
        return await self._start(look) if self._actions.starts(look) else again(_SOON)

    async def _start(self, look: MachinePass) -> Outcome:
        """Power a new machine on."""
        try:
            pause = await self._actions.power(look, PowerDecision("on"))
        except ProviderError:
            look.drop(POWER)
            raise
        # The guest gets a moment, whatever else brings the machine here.
        look.memory.start_due = self._parts.now() + pause
        return again(pause)

    async def _lost(self, look: MachinePass) -> Outcome:
        """The provider positively does not have the machine."""
        place = references.provider_of(look.vm)
        message = f"{place} does not have the machine {look.status.id} any more"
        look.memory.answer = None
        if (look.vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE:
            look.say(false(READY, reasons.ADOPTED_LOST, f"{message}; an adopted machine is not made again"))
            return again(self._parts.settings.polls.running)
        look.status = status.forgotten(look.status)
        look.drop(POWER)
        look.drop(hooks.POST_START)
        look.drop(hooks.PRE_STOP)
        begun = find(look.status.conditions, PROVISIONING)
        if begun is not None and (begun.status, begun.reason) == ("False", reasons.PROVIDER_ERROR):
            # It never was: the task of its creation failed, and why says more than that it is not there.
            ready = find(look.status.conditions, READY)
            said_why = ready is not None and ready.message == begun.message
            look.say(false(READY, ready.reason if ready is not None and said_why else reasons.PROVIDER_ERROR, begun.message))
        else:
            look.say(false(READY, reasons.MACHINE_LOST, f"{message}; it is made again"))
            self._parts.recorder.tell(look.about, "Warning", reasons.MACHINE_LOST, f"{message}; it is made again")
        failure = hold(self._parts, look, ProviderError(ErrorKind.INTERNAL, message))
        look.memory.hold = failure
        return again(failure.until - self._parts.now())

    # --- a machine that exists --------------------------------------------------------------------------------------------

    async def _keep(self, look: MachinePass, answer: DescribeResponse) -> Outcome:
        observed = power.known(answer.power_state)
        reverting = await self._reversion.advance(look, observed)
        if reverting is not None:
            return reverting
        plan = self._plan_sizes(look, observed)
        if plan.request is not None:
            outcome = await self._resize(look, plan)
            if outcome is not None:
                return outcome
            # As it is now, and not as it was before the change.
            answer = await self._actions.observe(look)
            if not answer.exists:
                return await self._lost(look)
            observed = power.known(answer.power_state)
            plan = self._plan_sizes(look, observed)
        elif not plan.pending:
            # What could not be changed is as it should be, or another machine.
            look.memory.resize_hold = None
        wanted = power.desired(look.vm.spec.powerState)
        allowed = (look.vm.metadata.annotations or {}).get(marks.ALLOW_RESTART) == marks.TRUE
        if plan.pending and allowed and wanted == power.ON and look.memory.resize_hold is None:
            wanted = power.GRACEFUL
        outcome = await self._power(look, wanted, observed)
        if outcome is not None:
            return outcome
        if observed == power.ON and wanted == power.ON:
            self._hooks.forget(look, hooks.PRE_STOP)
            await self._hooks.run(look, hooks.POST_START)
        elif observed == power.OFF:
            self._hooks.forget(look, hooks.POST_START)
        await self._actions.judge_imported(look)
        return self._settle(look, answer, plan)

    def _plan_sizes(self, look: MachinePass, observed: str) -> ResizePlan:
        if look.found.vmclass is None or observed not in (power.ON, power.OFF):
            return ResizePlan()
        target, can = resizing.wanted(look.vm, look.found.vmclass), look.capabilities
        return resizing.decide(attempts.suspected(look.status, target), look.vm, look.found.vmclass, can, running=observed != power.OFF)

    async def _resize(self, look: MachinePass, plan: ResizePlan) -> Outcome | None:
        """Request sizes. A failure is reported and does not keep the power from being what it should be."""
        assert plan.request is not None
        held, now = look.memory.resize_hold, self._parts.now()
        if held is not None and held.inputs == look.inputs and now < held.until:
            return None
        look.memory.resize_hold = None
        if look.found.missing or look.found.refused:
            return None
        try:
            await self._actions.reconfigure(look, plan.request)
        except ProviderError as error:
            look.memory.resize_hold = hold(self._parts, look, error)
        except Refusal as refusal:
            look.memory.resize_hold = RetryHold(
                now + self._parts.settings.polls.off, look.inputs, refusal.reason, str(refusal), refusal.reason
            )
        if look.memory.resize_hold is not None:
            look.say(false(RECONFIGURING, look.memory.resize_hold.reason, look.memory.resize_hold.message))
            return None
        return again(self._parts.settings.polls.task) if look.status.reconfigureTaskRef else None

    async def _power(self, look: MachinePass, wanted: str, observed: str) -> Outcome | None:
        age = self._actions.shutdown_age(look)
        decision = power.decide(wanted, observed, shutdown_age=age, timeout=requests.shutdown_seconds(look.vm))
        if decision.settled:
            if find(look.status.conditions, POWER) is not None and observed != power.UNKNOWN:
                look.say(false(POWER, reasons.SUCCESS, "the power state is the desired one"))
            return None
        if decision.operation in ("off", "shutdown") and observed == power.ON:
            await self._hooks.run(look, hooks.PRE_STOP)
        wait = await self._actions.power(look, decision) if decision.operation else decision.wait
        now = self._parts.now()
        if not decision.operation:
            look.say(false(READY, reasons.UPDATING, "the guest is shutting down"))
        return again(max(0.1, min(wait, look.memory.due - now)))

    def _settle(self, look: MachinePass, answer: DescribeResponse, plan: ResizePlan) -> Outcome:
        """Report how a machine is for which nothing is left to do now."""
        look.say(self._readiness(look, answer, plan))
        if plan.pending:
            message = f"applied when the machine is off: {', '.join(plan.pending)}"
            look.say(true(RESTART_REQUIRED, reasons.RESTART_REQUIRED, message))
        elif find(look.status.conditions, RESTART_REQUIRED) is not None:
            look.say(false(RESTART_REQUIRED, reasons.SUCCESS, "nothing waits for a restart"))
        if look.memory.resize_hold is None and holds(look.status.conditions, RECONFIGURING):
            look.say(false(RECONFIGURING, reasons.SUCCESS, "the provider has confirmed the sizes"))
        assert look.found.provider is not None
        missing = support.unsupported(look.vm, look.found, look.capabilities.features)
        unread = fields.names(look.vm, look.found, self._actions.prepared(look))
        if text := support.message(look.vm, missing, support.limitations(answer), unread):
            look.say(true(UNSUPPORTED, reasons.UNSUPPORTED, text))
        else:
            look.drop(UNSUPPORTED)
        if look.memory.resize_hold is None:
            look.memory.failures = 0
        pause = status.pause(answer, self._parts.settings.polls, settled=True)
        look.memory.due = look.memory.described + pause
        until = look.memory.due
        if look.memory.resize_hold is not None:
            until = min(until, look.memory.resize_hold.until)
        return again(max(0.1, until - self._parts.now()))

    def _readiness(self, look: MachinePass, answer: DescribeResponse, plan: ResizePlan) -> AspectValue:
        held = look.memory.resize_hold
        if held is not None:
            return false(READY, held.code, held.message)
        if look.found.missing:
            return false(READY, reasons.WAITING, references.listed(look.found.missing))
        if look.found.refused:
            return false(READY, reasons.CONSUMER_NOT_ALLOWED, references.refusal(look.found.refused, look.key.namespace))
        if plan.refused:
            return false(READY, reasons.DISK_SHRINKS, ", ".join(plan.refused))
        if power.known(answer.power_state) == power.UNKNOWN:
            return false(READY, reasons.POWER_UNKNOWN, "the provider cannot tell the power state; it is left as it is")
        if (blocked := self._reversion.blocker(look)) is not None:
            return blocked
        if plan.pending:
            return true(READY, reasons.RESTART_REQUIRED, f"applied when the machine is off: {', '.join(plan.pending)}")
        return true(READY, reasons.SUCCESS, "the machine is as its spec says")

    # --- failures ---------------------------------------------------------------------------------------------------------

    def _failed(self, look: MachinePass, error: ProviderError) -> Outcome:
        """Report an error of the provider, and pause as its kind says."""
        if look.seen.meta.going:
            return self._deletion.failed(look, error)
        failure = look.memory.hold = hold(self._parts, look, error)
        look.memory.answer = None
        look.say(false(READY, failure.code, failure.message))
        if not look.status.id:
            look.say(false(PROVISIONING, failure.reason, failure.message))
            look.failed = not math.isfinite(failure.until)
        self._parts.recorder.tell(look.about, "Warning", failure.code, failure.message)
        pause = failure.until - self._parts.now()
        return again(pause) if math.isfinite(pause) else DONE

    def _refused(self, look: MachinePass, refusal: Refusal) -> Outcome:
        """Report what cannot be requested; nothing is tried until something changes."""
        look.say(false(READY, refusal.reason, str(refusal)))
        if not look.status.id:
            look.say(false(PROVISIONING, refusal.reason, str(refusal)))
            look.failed = True
        return DONE
