"""One pass over a machine, from its key alone.

    finalizer --> dependencies --> driver --> tasks --> made? --no--> image --> create
                                                         |
                                                        yes --> describe --> sizes --> power --> hooks --> ready

A pass that has nothing to request and nothing new to report makes no request to anybody. A provider is asked at most once per poll; news of
the API alone are judged by the last description.
"""

import math

from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import DescribeResponse
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import MachinePass, PassMemory, RetryHold, VirtrigaudParts, hold
from paddock.dialects.virtrigaud.controllers.machines.actions import MachineActions
from paddock.dialects.virtrigaud.controllers.machines.deletion import MachineDeletion
from paddock.dialects.virtrigaud.controllers.machines.hooks import HookRunner, HttpExchange, exchange
from paddock.dialects.virtrigaud.controllers.machines.placements import MachinePlacement
from paddock.dialects.virtrigaud.controllers.machines.reverting import MachineReversion
from paddock.dialects.virtrigaud.controllers.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.plan import (
    attempts,
    hooks,
    marks,
    power,
    preparation,
    reasons,
    references,
    requests,
    resizing,
    status,
    support,
)
from paddock.dialects.virtrigaud.plan import unread as fields
from paddock.dialects.virtrigaud.plan.conditions import (
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
from paddock.dialects.virtrigaud.plan.health import CAPABILITIES
from paddock.dialects.virtrigaud.plan.power import PowerDecision
from paddock.dialects.virtrigaud.plan.preparation import ImageUse
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.resizing import ResizePlan
from paddock.dialects.virtrigaud.plan.snapshots import listing
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer, ObjectMemories

_SOON = 1.0


class VirtrigaudMachineReconciler(KindReconciler):
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
        machine_pass = MachinePass(seen, vm, memory, self._caches.inputs(vm))
        wait = memory.wait(machine_pass.inputs, self._parts.now())
        if wait > 0:
            return again(wait) if math.isfinite(wait) else DONE
        return await self._advance(machine_pass)

    async def _advance(self, machine_pass: MachinePass) -> Outcome:
        if machine_pass.seen.meta.deleting:
            await self._placement.settle(machine_pass)
        try:
            outcome = await (self._deletion.advance(machine_pass) if machine_pass.seen.meta.deleting else self._carry_out(machine_pass))
        except ProviderError as error:
            outcome = self._failed(machine_pass, error)
        except Refusal as refusal:
            outcome = self._refused(machine_pass, refusal)
        if outcome is None:
            # The machine is released.
            return DONE
        try:
            await self._statuses.write(machine_pass)
        except PaddockError:
            if machine_pass.memory.hold is not None and not math.isfinite(machine_pass.memory.hold.until):
                # Nobody has heard of the refusal, and nothing else would bring the machine here to report it.
                machine_pass.memory.hold = None
            raise
        return outcome

    # --- the way to a machine ---------------------------------------------------------------------------------------------

    async def _carry_out(self, machine_pass: MachinePass) -> Outcome:
        machine_pass.change(snapshots=listing.listed(machine_pass.status.id, self._caches.of_snapshots.all(machine_pass.key)))
        held = self._prerequisites(machine_pass)
        if held is not None:
            return held
        for name in ("lastTaskRef", "reconfigureTaskRef"):
            wait = await self._actions.follow(machine_pass, name)
            if wait is not None:
                return again(wait)
        if machine_pass.memory.hold is not None:
            return again(max(0.0, machine_pass.memory.hold.until - self._parts.now()))
        if not machine_pass.status.id:
            return await self._make(machine_pass)
        if self._actions.starts(machine_pass):
            return await self._start(machine_pass)
        if machine_pass.memory.start_due > self._parts.now():
            return again(machine_pass.memory.start_due - self._parts.now())
        answer = await self._actions.observe(machine_pass)
        if not answer.exists:
            return await self._lost(machine_pass)
        machine_pass.say(false(PROVISIONING, reasons.SUCCESS, "the machine is created"))
        return await self._keep(machine_pass, answer)

    def _prerequisites(self, machine_pass: MachinePass) -> Outcome | None:
        """Return the outcome of a pass that has to wait. A machine that exists is kept up without what only its creation needs."""
        machine_pass.found = found = references.resolve(machine_pass.vm, self._caches.objects_of(machine_pass.vm))
        made = bool(machine_pass.status.id)
        missing = [each for each in found.missing if not made or each.kind == "Provider"]
        refused = [each for each in found.refused if not made or each.kind == "Provider"]
        if missing or refused:
            reason = reasons.WAITING if missing else reasons.CONSUMER_NOT_ALLOWED
            text = references.listed(missing) if missing else references.refusal(refused, machine_pass.key.namespace)
            return self._wait(machine_pass, reason, text)
        assert found.provider is not None
        place = references.provider_of(machine_pass.vm)
        connection = self._parts.providers.find(Key(place.namespace, place.name), found.provider.spec.type)
        machine_pass.driver = connection.driver
        if connection.driver is None:
            return self._wait(machine_pass, connection.waiting, f"{place}: {connection.runtime.message}")
        return None

    def _wait(self, machine_pass: MachinePass, reason: str, message: str) -> Outcome:
        """Report what is waited for; the watches bring the machine here again."""
        machine_pass.say(false(READY, reason, message))
        begun = find(machine_pass.status.conditions, PROVISIONING)
        # A create whose outcome nobody knows stays on record: the deletion looks for its machine.
        if not machine_pass.status.id and (begun is None or begun.reason not in reasons.CREATE_BEGUN):
            machine_pass.say(false(PROVISIONING, reasons.WAITING, message))
        return DONE

    async def _make(self, machine_pass: MachinePass) -> Outcome:
        vm, found = machine_pass.vm, machine_pass.found
        if (vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE:
            return self._wait(
                machine_pass, reasons.WAITING, f"waiting for the id of the machine: the label {marks.ADOPTED_LABEL} says that it exists"
            )
        assert found.provider is not None
        place = references.provider_of(vm)
        reported = found.provider.status.reportedCapabilities if found.provider.status is not None else None
        if reported is None and support.has_vital_needs(vm, found):
            lacking = find(found.provider.status.conditions, CAPABILITIES) if found.provider.status is not None else None
            why = f": {lacking.message}" if lacking is not None and lacking.message else ""
            return self._wait(machine_pass, reasons.WAITING, f"{place} has not reported its capabilities yet{why}")
        if found.image is not None:
            name = preparation.provider_key(namespace_of(found.image), place.namespace, place.name)
            use = ImageUse(name, found.provider.spec.type, reported.supportsImageImport if reported is not None else None)
            blocker = preparation.blocker(found.image, use, begun=holds(machine_pass.status.conditions, PROVISIONING, reasons.CREATING))
            if blocker is not None and blocker.importing:
                machine_pass.say(
                    true(PROVISIONING, reasons.IN_PROGRESS, blocker.message), false(READY, reasons.IN_PROGRESS, blocker.message)
                )
                return DONE
            if blocker is not None:
                return self._wait(machine_pass, blocker.reason, blocker.message)
        unplaced = await self._placement.place(machine_pass)
        if unplaced:
            self._wait(machine_pass, reasons.WAITING, unplaced)
            return again(self._parts.settings.polls.placement)
        await self._actions.create(machine_pass)
        return await self._start(machine_pass) if self._actions.starts(machine_pass) else again(_SOON)

    async def _start(self, machine_pass: MachinePass) -> Outcome:
        """Power a new machine on."""
        try:
            pause = await self._actions.power(machine_pass, PowerDecision("on"))
        except ProviderError:
            machine_pass.drop(POWER)
            raise
        # The guest gets a moment, whatever else brings the machine here.
        machine_pass.memory.start_due = self._parts.now() + pause
        return again(pause)

    async def _lost(self, machine_pass: MachinePass) -> Outcome:
        """The provider positively does not have the machine."""
        place = references.provider_of(machine_pass.vm)
        message = f"{place} does not have the machine {machine_pass.status.id} any more"
        machine_pass.memory.answer = None
        if (machine_pass.vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE:
            machine_pass.say(false(READY, reasons.ADOPTED_LOST, f"{message}; an adopted machine is not made again"))
            return again(self._parts.settings.polls.running)
        machine_pass.status = status.forgotten(machine_pass.status)
        machine_pass.drop(POWER)
        machine_pass.drop(hooks.POST_START)
        machine_pass.drop(hooks.PRE_STOP)
        begun = find(machine_pass.status.conditions, PROVISIONING)
        if begun is not None and (begun.status, begun.reason) == ("False", reasons.PROVIDER_ERROR):
            # It never was: the task of its creation failed, and why says more than that it is not there.
            ready = find(machine_pass.status.conditions, READY)
            said_why = ready is not None and ready.message == begun.message
            machine_pass.say(false(READY, ready.reason if ready is not None and said_why else reasons.PROVIDER_ERROR, begun.message))
        else:
            machine_pass.say(false(READY, reasons.MACHINE_LOST, f"{message}; it is made again"))
            self._parts.recorder.tell(machine_pass.about, "Warning", reasons.MACHINE_LOST, f"{message}; it is made again")
        failure = hold(self._parts, machine_pass, ProviderError(ErrorKind.INTERNAL, message))
        machine_pass.memory.hold = failure
        return again(failure.until - self._parts.now())

    # --- a machine that exists --------------------------------------------------------------------------------------------

    async def _keep(self, machine_pass: MachinePass, answer: DescribeResponse) -> Outcome:
        observed = power.known(answer.power_state)
        reverting = await self._reversion.advance(machine_pass, observed)
        if reverting is not None:
            return reverting
        plan = self._plan_sizes(machine_pass, observed)
        if plan.request is not None:
            outcome = await self._resize(machine_pass, plan)
            if outcome is not None:
                return outcome
            # As it is now, and not as it was before the change.
            answer = await self._actions.observe(machine_pass)
            if not answer.exists:
                return await self._lost(machine_pass)
            observed = power.known(answer.power_state)
            plan = self._plan_sizes(machine_pass, observed)
        elif not plan.pending:
            # What could not be changed is as it should be, or another machine.
            machine_pass.memory.resize_hold = None
        wanted = power.desired(machine_pass.vm.spec.powerState)
        allowed = (machine_pass.vm.metadata.annotations or {}).get(marks.ALLOW_RESTART) == marks.TRUE
        if plan.pending and allowed and wanted == power.ON and machine_pass.memory.resize_hold is None:
            wanted = power.GRACEFUL
        outcome = await self._power(machine_pass, wanted, observed)
        if outcome is not None:
            return outcome
        if observed == power.ON and wanted == power.ON:
            self._hooks.forget(machine_pass, hooks.PRE_STOP)
            await self._hooks.run(machine_pass, hooks.POST_START)
        elif observed == power.OFF:
            self._hooks.forget(machine_pass, hooks.POST_START)
        await self._actions.judge_imported(machine_pass)
        return self._settle(machine_pass, answer, plan)

    def _plan_sizes(self, machine_pass: MachinePass, observed: str) -> ResizePlan:
        if machine_pass.found.vmclass is None or observed not in (power.ON, power.OFF):
            return ResizePlan()
        target, can = resizing.wanted(machine_pass.vm, machine_pass.found.vmclass), machine_pass.capabilities
        return resizing.decide(
            attempts.suspected(machine_pass.status, target), machine_pass.vm, machine_pass.found.vmclass, can, running=observed != power.OFF
        )

    async def _resize(self, machine_pass: MachinePass, plan: ResizePlan) -> Outcome | None:
        """Request sizes. A failure is reported and does not keep the power from being what it should be."""
        assert plan.request is not None
        held, now = machine_pass.memory.resize_hold, self._parts.now()
        if held is not None and held.inputs == machine_pass.inputs and now < held.until:
            return None
        machine_pass.memory.resize_hold = None
        if machine_pass.found.missing or machine_pass.found.refused:
            return None
        try:
            await self._actions.reconfigure(machine_pass, plan.request)
        except ProviderError as error:
            machine_pass.memory.resize_hold = hold(self._parts, machine_pass, error)
        except Refusal as refusal:
            machine_pass.memory.resize_hold = RetryHold(
                now + self._parts.settings.polls.off, machine_pass.inputs, refusal.reason, str(refusal), refusal.reason
            )
        if machine_pass.memory.resize_hold is not None:
            machine_pass.say(false(RECONFIGURING, machine_pass.memory.resize_hold.reason, machine_pass.memory.resize_hold.message))
            return None
        return again(self._parts.settings.polls.task) if machine_pass.status.reconfigureTaskRef else None

    async def _power(self, machine_pass: MachinePass, wanted: str, observed: str) -> Outcome | None:
        age = self._actions.shutdown_age(machine_pass)
        decision = power.decide(wanted, observed, shutdown_age=age, timeout=requests.shutdown_seconds(machine_pass.vm))
        if decision.settled:
            if find(machine_pass.status.conditions, POWER) is not None and observed != power.UNKNOWN:
                machine_pass.say(false(POWER, reasons.SUCCESS, "the power state is the desired one"))
            return None
        if decision.operation in ("off", "shutdown") and observed == power.ON:
            await self._hooks.run(machine_pass, hooks.PRE_STOP)
        wait = await self._actions.power(machine_pass, decision) if decision.operation else decision.wait
        now = self._parts.now()
        if not decision.operation:
            machine_pass.say(false(READY, reasons.UPDATING, "the guest is shutting down"))
        return again(max(0.1, min(wait, machine_pass.memory.due - now)))

    def _settle(self, machine_pass: MachinePass, answer: DescribeResponse, plan: ResizePlan) -> Outcome:
        """Report how a machine is for which nothing is left to do now."""
        machine_pass.say(self._readiness(machine_pass, answer, plan))
        if plan.pending:
            message = f"applied when the machine is off: {', '.join(plan.pending)}"
            machine_pass.say(true(RESTART_REQUIRED, reasons.RESTART_REQUIRED, message))
        elif find(machine_pass.status.conditions, RESTART_REQUIRED) is not None:
            machine_pass.say(false(RESTART_REQUIRED, reasons.SUCCESS, "nothing waits for a restart"))
        if machine_pass.memory.resize_hold is None and holds(machine_pass.status.conditions, RECONFIGURING):
            machine_pass.say(false(RECONFIGURING, reasons.SUCCESS, "the provider has confirmed the sizes"))
        assert machine_pass.found.provider is not None
        missing = support.unsupported(machine_pass.vm, machine_pass.found, machine_pass.capabilities.features)
        unread = fields.names(machine_pass.vm, machine_pass.found, self._actions.prepared(machine_pass))
        if text := support.message(machine_pass.vm, missing, support.limitations(answer), unread):
            machine_pass.say(true(UNSUPPORTED, reasons.UNSUPPORTED, text))
        else:
            machine_pass.drop(UNSUPPORTED)
        if machine_pass.memory.resize_hold is None:
            machine_pass.memory.failures = 0
        pause = status.pause(answer, self._parts.settings.polls, settled=True)
        machine_pass.memory.due = machine_pass.memory.described + pause
        until = machine_pass.memory.due
        if machine_pass.memory.resize_hold is not None:
            until = min(until, machine_pass.memory.resize_hold.until)
        return again(max(0.1, until - self._parts.now()))

    def _readiness(self, machine_pass: MachinePass, answer: DescribeResponse, plan: ResizePlan) -> AspectValue:
        held = machine_pass.memory.resize_hold
        if held is not None:
            return false(READY, held.code, held.message)
        if machine_pass.found.missing:
            return false(READY, reasons.WAITING, references.listed(machine_pass.found.missing))
        if machine_pass.found.refused:
            return false(READY, reasons.CONSUMER_NOT_ALLOWED, references.refusal(machine_pass.found.refused, machine_pass.key.namespace))
        if plan.refused:
            return false(READY, reasons.DISK_SHRINKS, ", ".join(plan.refused))
        if power.known(answer.power_state) == power.UNKNOWN:
            return false(READY, reasons.POWER_UNKNOWN, "the provider cannot tell the power state; it is left as it is")
        if (blocked := self._reversion.blocker(machine_pass)) is not None:
            return blocked
        if plan.pending:
            return true(READY, reasons.RESTART_REQUIRED, f"applied when the machine is off: {', '.join(plan.pending)}")
        return true(READY, reasons.SUCCESS, "the machine is as its spec says")

    # --- failures ---------------------------------------------------------------------------------------------------------

    def _failed(self, machine_pass: MachinePass, error: ProviderError) -> Outcome:
        """Report an error of the provider, and pause as its kind says."""
        if machine_pass.seen.meta.deleting:
            return self._deletion.failed(machine_pass, error)
        failure = machine_pass.memory.hold = hold(self._parts, machine_pass, error)
        machine_pass.memory.answer = None
        machine_pass.say(false(READY, failure.code, failure.message))
        if not machine_pass.status.id:
            machine_pass.say(false(PROVISIONING, failure.reason, failure.message))
            machine_pass.failed = not math.isfinite(failure.until)
        self._parts.recorder.tell(machine_pass.about, "Warning", failure.code, failure.message)
        pause = failure.until - self._parts.now()
        return again(pause) if math.isfinite(pause) else DONE

    def _refused(self, machine_pass: MachinePass, refusal: Refusal) -> Outcome:
        """Report what cannot be requested; nothing is tried until something changes."""
        machine_pass.say(false(READY, refusal.reason, str(refusal)))
        if not machine_pass.status.id:
            machine_pass.say(false(PROVISIONING, refusal.reason, str(refusal)))
            machine_pass.failed = True
        return DONE
