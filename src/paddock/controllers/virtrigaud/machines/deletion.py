"""The end of a machine: hook, power off, delete, and the finalizer goes when the provider has confirmed (docs/spec/virtrigaud.md 2.1.9).

orphan-on-delete  the machine stays at the provider, and the object goes
provider gone     the object waits: nobody knows what became of the machine
error             the object waits, and the deletion is tried again; force-delete lets it go
"""

from paddock.client.target import Key
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.context import MachinePass, VirtrigaudParts, hold
from paddock.controllers.virtrigaud.machines.actions import MachineActions
from paddock.controllers.virtrigaud.machines.hooks import HookRunner
from paddock.controllers.virtrigaud.statuswriter import MachineStatusWriter
from paddock.meta import ages
from paddock.plan.virtrigaud import attempts, hooks, marks, power, reasons, references, requests, retries
from paddock.plan.virtrigaud.conditions import DELETING, PROVISIONING, READY, false, find, holds, true
from paddock.plan.virtrigaud.power import PowerDecision
from paddock.plan.virtrigaud.refusals import Refusal
from paddock.plan.virtrigaud.snapshots import records
from paddock.runtime import finalizers
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.deleting import delete_seen

_POWER_OFF_SECONDS, _LOOK_SECONDS = 30.0, 1.0
# A provider that refuses a create as often in a row has not made the machine. Some judge a request before they look for its owner.
_REFUSED_TIMES = 3
# The record of the power off; it may only be tried so long.
_POWERED_OFF = "PoweredOff"


class MachineDeletion:
    """Deletes machines at their providers."""

    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, actions: MachineActions, runner: HookRunner) -> None:
        self._parts = parts
        self._statuses = statuses
        self._actions = actions
        self._hooks = runner

    async def advance(self, look: MachinePass) -> Outcome | None:
        """Bring the deletion a step on; None when the machine is released."""
        annotations = look.vm.metadata.annotations or {}
        look.say(false(READY, reasons.DELETING, "the machine is being deleted"))
        if annotations.get(marks.ORPHAN_ON_DELETE) == marks.TRUE:
            if look.status.id:
                text = f"the machine {look.status.id} stays at its Provider, as {marks.ORPHAN_ON_DELETE} says"
                self._parts.teller.tell(look.about, "Normal", "Orphaned", text)
            return await self._release(look)
        if not look.status.id and not self._may_exist(look):
            await self._delete_snapshots(look)
            return await self._release(look)
        problem = self._find_driver(look)
        if problem:
            return await self._blocked(look, problem)
        if not look.status.id:
            return await self._find_machine(look)
        return await self._delete(look)

    def failed(self, look: MachinePass, error: ProviderError) -> Outcome:
        """Report an error of the provider; the deletion is tried again."""
        failure = look.memory.hold = hold(self._parts, look, error, retries.DELETION)
        look.say(true(DELETING, failure.reason, failure.message), false(READY, failure.code, failure.message))
        self._parts.teller.tell(look.about, "Warning", failure.code, failure.message)
        return again(failure.until - self._parts.now())

    # --- the steps --------------------------------------------------------------------------------------------------------

    @staticmethod
    def _may_exist(look: MachinePass) -> bool:
        """Return whether a create was begun whose outcome nobody knows."""
        found = find(look.status.conditions, PROVISIONING)
        return bool(attempts.of(look.status)) or (found is not None and found.reason in reasons.CREATE_BEGUN)

    def _find_driver(self, look: MachinePass) -> str:
        look.found = references.resolve(look.vm, self._parts.caches.world(look.vm))
        place = references.provider_of(look.vm)
        if look.found.provider is None:
            return f"there is no {place}, so nobody can delete the machine; make it again"
        connection = self._parts.providers.find(Key(place.namespace, place.name), look.found.provider.spec.type)
        look.driver = connection.driver
        return "" if connection.driver is not None else f"{place}: {connection.runtime.message}"

    async def _blocked(self, look: MachinePass, problem: str) -> Outcome | None:
        if self._is_forced(look):
            return await self._force(look, problem)
        text = f"{problem}, or annotate the machine with {marks.FORCE_DELETE}: {marks.TRUE}"
        look.say(true(DELETING, reasons.PROVIDER_ERROR, text))
        return DONE

    async def _find_machine(self, look: MachinePass) -> Outcome | None:
        """The answer to a create got lost: a create of the same owner answers with the machine, so that it can be deleted."""
        try:
            request = requests.create(look.vm, look.found, None)
        except (Refusal, AssertionError) as problem:
            return await self._blocked(look, f"a create was begun and its outcome is not known: {problem}")
        try:
            answer = await self._actions.request_create(look, request)
        except ProviderError as error:
            if self._is_forced(look):
                return await self._force(look, str(error))
            look.memory.refusals = look.memory.refusals + 1 if error.kind in attempts.REFUSALS else 0
            if look.memory.refusals >= _REFUSED_TIMES:
                # The provider has no machine of this owner, and makes none.
                return await self._release(look)
            raise
        look.change(id=answer.id or None)
        return again(1.0)

    async def _delete(self, look: MachinePass) -> Outcome | None:
        try:
            return await self._delete_at_provider(look)
        except ProviderError as error:
            if self._is_forced(look):
                return await self._force(look, str(error))
            raise

    async def _delete_at_provider(self, look: MachinePass) -> Outcome | None:
        if holds(look.status.conditions, DELETING, reasons.IN_PROGRESS) and look.status.lastTaskRef:
            wait = await self._follow(look)
            if wait is not None:
                return again(wait)
        else:
            outcome = await self._stopped(look)
            if outcome is not None:
                return outcome
        left = await self._delete_snapshots(look)
        if left and not self._is_forced(look):
            look.say(true(DELETING, reasons.WAITING, f"waiting until VMSnapshot {', '.join(left)} is deleted"))
            return again(self._parts.settings.polls.transition)
        if look.memory.answer is not None and not look.memory.answer.exists:
            return await self._release(look)
        try:
            answer = await look.provider.delete(requests.delete(look.vm, look.status.id or ""))
        except ProviderError as error:
            if error.kind == ErrorKind.NOT_FOUND:
                return await self._release(look)
            raise
        task = answer.task.id if answer.task is not None else ""
        if not task:
            return await self._release(look)
        look.change(lastTaskRef=task)
        look.memory.task_due = self._parts.now() + self._parts.settings.polls.task
        look.say(true(DELETING, reasons.IN_PROGRESS, f"task {task} deletes the machine"))
        return again(self._parts.settings.polls.task)

    async def _delete_snapshots(self, look: MachinePass) -> list[str]:
        """Delete the snapshots that go with their machine; return the names of those that are not gone yet."""
        informer, left = self._parts.caches.snapshots, []
        for key in self._parts.caches.of_snapshots.keys(look.key):
            seen = informer.cache.get(key)
            if seen is None or not (seen.meta.going or records.policy(seen.read(targets.SNAPSHOTS)).deleteOnVMDelete):
                continue
            left.append(key.name)
            if not informer.expectations.is_leaving(seen.meta.uid):
                await delete_seen(self._parts.client, targets.SNAPSHOTS, seen)
                informer.expectations.deleted(seen)
        return sorted(left)

    async def _follow(self, look: MachinePass) -> float | None:
        """Poll the task of the deletion; when it has ended, the machine is described."""
        now = self._parts.now()
        if now < look.memory.task_due:
            return look.memory.task_due - now
        task = look.status.lastTaskRef or ""
        problem = ""
        try:
            state = await look.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=task)))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem = str(error)
        else:
            if not state.error and not state.done:
                look.memory.task_due = now + self._parts.settings.polls.task
                return self._parts.settings.polls.task
            problem = state.error
        look.change(lastTaskRef=None)
        look.memory.due = 0.0
        look.say(true(DELETING, reasons.DELETING, "the machine is being deleted"))
        answer = await self._actions.observe(look)
        if problem and answer.exists:
            raise ProviderError(ErrorKind.INTERNAL, f"the deletion failed: {problem}")
        return None if not answer.exists else self._parts.settings.polls.task

    async def _stopped(self, look: MachinePass) -> Outcome | None:
        """Power the machine off. One that is not found is deleted all the same: only the answer to that says that it is gone."""
        try:
            return await self._stop(look)
        except ProviderError as error:
            if error.kind != ErrorKind.NOT_FOUND:
                raise
        return None

    async def _stop(self, look: MachinePass) -> Outcome | None:
        """Run the hook and power the machine off; the provider stops it, too, if that does not help in time."""
        look.say(true(DELETING, reasons.DELETING, "the machine is being deleted"))
        answer = await self._actions.observe(look)
        if not answer.exists or power.known(answer.power_state) != power.ON:
            return None
        await self._hooks.run(look, hooks.PRE_STOP)
        record = find(look.status.conditions, _POWERED_OFF)
        if record is not None:
            now = self._parts.now()
            look.memory.due = min(look.memory.due, now + _LOOK_SECONDS)
            gone_by = (ages.seconds_of(record.lastTransitionTime) or 0.0) + _POWER_OFF_SECONDS
            return again(max(0.1, look.memory.due - now)) if now < gone_by else None
        look.say(true(_POWERED_OFF, reasons.DELETING, "the machine is powered off before it is deleted"))
        look.change(lastTaskRef=None)
        await self._actions.power(look, PowerDecision("off"))
        look.change(lastTaskRef=None)
        return again(_LOOK_SECONDS)

    # --- the end ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def _is_forced(look: MachinePass) -> bool:
        return (look.vm.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE

    async def _force(self, look: MachinePass, problem: str) -> Outcome | None:
        await self._delete_snapshots(look)
        text = f"the object goes although the machine {look.status.id or ''} may still exist: {problem}"
        self._parts.teller.tell(look.about, "Warning", "ForceDeleted", text)
        return await self._release(look)

    async def _release(self, look: MachinePass) -> Outcome | None:
        """Let the object go; there is no outcome, because there is nothing left to reconcile."""
        if look.status.id:
            self._parts.teller.tell(look.about, "Normal", "Deleted", f"the machine {look.status.id} is released")
        await finalizers.take_off(self._parts.client, targets.MACHINES, look.seen.meta, marks.MACHINE_FINALIZER)
        return None
