"""The end of a machine: hook, power off, delete, and the finalizer goes when the provider has confirmed (docs/spec/virtrigaud.md 2.1.9).

orphan-on-delete  the machine stays at the provider, and the object goes
provider gone     the object waits: nobody knows what became of the machine
error             the object waits, and the deletion is tried again; force-delete lets it go
no id             the provider's list says whether a create without an answer has made the machine; no create is sent to find out
"""

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import MachinePass, VirtrigaudParts, hold
from paddock.dialects.virtrigaud.controllers.machines.actions import MachineActions
from paddock.dialects.virtrigaud.controllers.machines.hooks import HookRunner
from paddock.dialects.virtrigaud.controllers.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.plan import attempts, hooks, marks, power, reasons, references, requests, retries
from paddock.dialects.virtrigaud.plan.conditions import DELETING, PROVISIONING, READY, false, find, holds, true
from paddock.dialects.virtrigaud.plan.power import PowerDecision
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.deleting import delete_seen

_POWER_OFF_SECONDS, _LOOK_SECONDS = 30.0, 1.0
# A machine that as many lists in a row do not have was not made: a create whose answer got lost may still be at work.
_ABSENT_TIMES = 3
# The record of the power off; it may only be tried so long.
_POWERED_OFF = "PoweredOff"
# The answers about a task that a provider does not know.
_NO_TASK = (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC)


class MachineDeletion:
    """Deletes machines at their providers."""

    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, actions: MachineActions, runner: HookRunner) -> None:
        self._parts = parts
        self._statuses = statuses
        self._actions = actions
        self._hooks = runner

    async def advance(self, machine_pass: MachinePass) -> Outcome | None:
        """Bring the deletion a step on; None when the machine is released."""
        annotations = machine_pass.vm.metadata.annotations or {}
        machine_pass.say(false(READY, reasons.DELETING, "the machine is being deleted"))
        if annotations.get(marks.ORPHAN_ON_DELETE) == marks.TRUE:
            if machine_pass.status.id:
                text = f"the machine {machine_pass.status.id} stays at its Provider, as {marks.ORPHAN_ON_DELETE} says"
                self._parts.recorder.tell(machine_pass.about, "Normal", "Orphaned", text)
            return await self._release(machine_pass)
        if not machine_pass.status.id and not self._may_exist(machine_pass):
            await self._delete_snapshots(machine_pass)
            return await self._release(machine_pass)
        problem = self._find_driver(machine_pass)
        if problem:
            return await self._blocked(machine_pass, problem)
        return await self._delete(machine_pass)

    def failed(self, machine_pass: MachinePass, error: ProviderError) -> Outcome:
        """Report an error of the provider; the deletion is tried again."""
        failure = machine_pass.memory.hold = hold(self._parts, machine_pass, error, retries.DELETION)
        text = f"{failure.message}; it is tried again, or annotate the machine with {marks.FORCE_DELETE}: {marks.TRUE}"
        machine_pass.say(true(DELETING, failure.reason, text), false(READY, failure.code, failure.message))
        self._parts.recorder.tell(machine_pass.about, "Warning", failure.code, failure.message)
        return again(failure.until - self._parts.now())

    # --- the steps --------------------------------------------------------------------------------------------------------

    @staticmethod
    def _may_exist(machine_pass: MachinePass) -> bool:
        """Return whether a create was begun that may have left something."""
        found = find(machine_pass.status.conditions, PROVISIONING)
        begun = found is not None and found.reason in reasons.CREATE_BEGUN
        return begun or MachineDeletion._is_unanswered(machine_pass)

    @staticmethod
    def _is_unanswered(machine_pass: MachinePass) -> bool:
        """Return whether a create may have made the machine."""
        return bool(attempts.of(machine_pass.status) or machine_pass.status.lastTaskRef)

    def _find_driver(self, machine_pass: MachinePass) -> str:
        machine_pass.found = references.resolve(machine_pass.vm, self._parts.caches.objects_of(machine_pass.vm))
        place = references.provider_of(machine_pass.vm)
        if machine_pass.found.provider is None:
            return f"there is no {place}, so nobody can delete the machine; make it again"
        connection = self._parts.providers.find(Key(place.namespace, place.name), machine_pass.found.provider.spec.type)
        machine_pass.driver = connection.driver
        return "" if connection.driver is not None else f"{place}: {connection.runtime.message}"

    async def _blocked(self, machine_pass: MachinePass, problem: str) -> Outcome | None:
        if self._is_forced(machine_pass):
            return await self._force(machine_pass, problem)
        if not machine_pass.status.id and not self._is_unanswered(machine_pass):
            return await self._give_up(machine_pass, problem)
        text = f"{problem}, or annotate the machine with {marks.FORCE_DELETE}: {marks.TRUE}"
        machine_pass.say(true(DELETING, reasons.PROVIDER_ERROR, text))
        return DONE

    async def _find_machine(self, machine_pass: MachinePass) -> Outcome | None:
        """Look for the machine that a create may have made: only then is there anything to delete."""
        now, place, unanswered = self._parts.now(), references.provider_of(machine_pass.vm), self._is_unanswered(machine_pass)
        if now < machine_pass.memory.task_due:
            return again(machine_pass.memory.task_due - now)
        try:
            if await self._is_under_way(machine_pass):
                machine_pass.memory.task_due = now + self._parts.settings.polls.task
                machine_pass.say(
                    true(
                        DELETING, reasons.WAITING, f"waiting for the end of task {machine_pass.status.lastTaskRef}, which makes the machine"
                    )
                )
                return again(self._parts.settings.polls.task)
            listed = (await machine_pass.provider.list_vms(m.ListVMsRequest())).vms
        except ProviderError as error:
            if self._is_forced(machine_pass) or unanswered:
                raise
            return await self._give_up(machine_pass, error.reported)
        made = [
            each.id
            for each in attempts.made(listed, machine_pass.vm, unanswered=unanswered)
            if not self._parts.caches.with_id(place, each.id)
        ]
        if made:
            machine_pass.change(id=made[0])
            return again(_LOOK_SECONDS)
        machine_pass.memory.absent += 1
        if not unanswered or machine_pass.memory.absent >= _ABSENT_TIMES:
            return await self._release(machine_pass)
        machine_pass.memory.task_due = now + retries.DELETION.first
        text = f"looking for the machine at {place}: a create of it has no answer, and may be at work"
        machine_pass.say(true(DELETING, reasons.WAITING, text))
        return again(retries.DELETION.first)

    async def _is_under_way(self, machine_pass: MachinePass) -> bool:
        """Return whether the task of a create goes on. One that the provider does not know has ended."""
        if not machine_pass.status.lastTaskRef:
            return False
        try:
            state = await machine_pass.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=machine_pass.status.lastTaskRef)))
        except ProviderError as error:
            if error.kind not in _NO_TASK:
                raise
            return False
        return not state.error and not state.done

    async def _give_up(self, machine_pass: MachinePass, problem: str) -> Outcome | None:
        """Release an object whose machine was certainly not made, although nobody can look for parts of it."""
        await self._delete_snapshots(machine_pass)
        place = references.provider_of(machine_pass.vm)
        text = f"{place} has not made the machine; if a part of {machine_pass.key.name} is left there, delete it there: {problem}"
        self._parts.recorder.tell(machine_pass.about, "Warning", reasons.PROVIDER_ERROR, text)
        return await self._release(machine_pass)

    async def _delete(self, machine_pass: MachinePass) -> Outcome | None:
        try:
            return await (self._delete_at_provider(machine_pass) if machine_pass.status.id else self._find_machine(machine_pass))
        except ProviderError as error:
            if self._is_forced(machine_pass):
                return await self._force(machine_pass, str(error))
            raise

    async def _delete_at_provider(self, machine_pass: MachinePass) -> Outcome | None:
        if holds(machine_pass.status.conditions, DELETING, reasons.IN_PROGRESS) and machine_pass.status.lastTaskRef:
            wait = await self._follow(machine_pass)
            if wait is not None:
                return again(wait)
        else:
            outcome = await self._stopped(machine_pass)
            if outcome is not None:
                return outcome
        left = await self._delete_snapshots(machine_pass)
        if left and not self._is_forced(machine_pass):
            machine_pass.say(true(DELETING, reasons.WAITING, f"waiting until VMSnapshot {', '.join(left)} is deleted"))
            return again(self._parts.settings.polls.transition)
        if machine_pass.memory.answer is not None and not machine_pass.memory.answer.exists:
            return await self._release(machine_pass)
        try:
            answer = await machine_pass.provider.delete(requests.delete(machine_pass.vm, machine_pass.status.id or ""))
        except ProviderError as error:
            if error.kind == ErrorKind.NOT_FOUND:
                return await self._release(machine_pass)
            raise
        task = answer.task.id if answer.task is not None else ""
        if not task:
            return await self._release(machine_pass)
        machine_pass.change(lastTaskRef=task)
        machine_pass.memory.task_due = self._parts.now() + self._parts.settings.polls.task
        machine_pass.say(true(DELETING, reasons.IN_PROGRESS, f"task {task} deletes the machine"))
        return again(self._parts.settings.polls.task)

    async def _delete_snapshots(self, machine_pass: MachinePass) -> list[str]:
        """Delete the snapshots that go with their machine; return the names of those that are not gone yet."""
        informer, left = self._parts.caches.snapshots, []
        for key in self._parts.caches.of_snapshots.keys(machine_pass.key):
            seen = informer.cache.get(key)
            if seen is None or not (seen.meta.deleting or records.policy(seen.read(targets.SNAPSHOTS)).deleteOnVMDelete):
                continue
            left.append(key.name)
            if not informer.expectations.is_leaving(seen.meta.uid):
                await delete_seen(self._parts.client, targets.SNAPSHOTS, seen)
                informer.expectations.deleted(seen)
        return sorted(left)

    async def _follow(self, machine_pass: MachinePass) -> float | None:
        """Poll the task of the deletion; when it has ended, the machine is described."""
        now = self._parts.now()
        if now < machine_pass.memory.task_due:
            return machine_pass.memory.task_due - now
        task = machine_pass.status.lastTaskRef or ""
        problem = ""
        try:
            state = await machine_pass.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=task)))
        except ProviderError as error:
            if error.kind not in _NO_TASK:
                raise
            problem = str(error)
        else:
            if not state.error and not state.done:
                machine_pass.memory.task_due = now + self._parts.settings.polls.task
                return self._parts.settings.polls.task
            problem = state.error
        machine_pass.change(lastTaskRef=None)
        machine_pass.memory.due = 0.0
        machine_pass.say(true(DELETING, reasons.DELETING, "the machine is being deleted"))
        answer = await self._actions.observe(machine_pass)
        if problem and answer.exists:
            raise ProviderError(ErrorKind.INTERNAL, f"the deletion failed: {problem}")
        return None if not answer.exists else self._parts.settings.polls.task

    async def _stopped(self, machine_pass: MachinePass) -> Outcome | None:
        """Power the machine off. One that is not found is deleted all the same: only the answer to that says that it is gone."""
        try:
            return await self._stop(machine_pass)
        except ProviderError as error:
            if error.kind != ErrorKind.NOT_FOUND:
                raise
        return None

    async def _stop(self, machine_pass: MachinePass) -> Outcome | None:
        """Run the hook and power the machine off; the provider stops it, too, if that does not help in time."""
        machine_pass.say(true(DELETING, reasons.DELETING, "the machine is being deleted"))
        answer = await self._actions.observe(machine_pass)
        if not answer.exists or power.known(answer.power_state) != power.ON:
            return None
        await self._hooks.run(machine_pass, hooks.PRE_STOP)
        record = find(machine_pass.status.conditions, _POWERED_OFF)
        if record is not None:
            now = self._parts.now()
            machine_pass.memory.due = min(machine_pass.memory.due, now + _LOOK_SECONDS)
            gone_by = (ages.seconds_of(record.lastTransitionTime) or 0.0) + _POWER_OFF_SECONDS
            return again(max(0.1, machine_pass.memory.due - now)) if now < gone_by else None
        machine_pass.say(true(_POWERED_OFF, reasons.DELETING, "the machine is powered off before it is deleted"))
        machine_pass.change(lastTaskRef=None)
        await self._actions.power(machine_pass, PowerDecision("off"))
        machine_pass.change(lastTaskRef=None)
        return again(_LOOK_SECONDS)

    # --- the end ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def _is_forced(machine_pass: MachinePass) -> bool:
        return (machine_pass.vm.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE

    async def _force(self, machine_pass: MachinePass, problem: str) -> Outcome | None:
        await self._delete_snapshots(machine_pass)
        text = f"the object goes although the machine {machine_pass.status.id or ''} may still exist: {problem}"
        self._parts.recorder.tell(machine_pass.about, "Warning", "ForceDeleted", text)
        return await self._release(machine_pass)

    async def _release(self, machine_pass: MachinePass) -> Outcome | None:
        """Let the object go; there is no outcome, because there is nothing left to reconcile."""
        if machine_pass.status.id:
            self._parts.recorder.tell(machine_pass.about, "Normal", "Deleted", f"the machine {machine_pass.status.id} is released")
        await finalizers.take_off(self._parts.client, targets.MACHINES, machine_pass.seen.meta, marks.MACHINE_FINALIZER)
        return None
