"""Brings a machine back to a snapshot, once for each reference (docs/spec/virtrigaud.md 2.1.8; `plan.virtrigaud.reverting` has the states).

The machine's power is left alone until the provider has confirmed. A provider that cannot revert a running machine says so with a Conflict;
then the machine, whose present state is given up anyway, is powered off first.
"""

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers.context import MachinePass, RetryHold, VirtrigaudParts, hold, said
from paddock.dialects.virtrigaud.controllers.machines.actions import MachineActions
from paddock.dialects.virtrigaud.controllers.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.plan import power, reasons, references, resizing, retries, reverting
from paddock.dialects.virtrigaud.plan.conditions import POWER, READY, RECONFIGURING, AspectValue, false, true
from paddock.dialects.virtrigaud.plan.power import PowerDecision
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.reverting import REVERTED, RevertRecord
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.kubernetes.runtime.controller import Outcome, again

# A revert that nobody can carry out is not repeated until the reference is cleared.
_HOPELESS = (ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC, ErrorKind.NOT_FOUND)


class MachineReversion:
    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, actions: MachineActions) -> None:
        self._parts = parts
        self._statuses = statuses
        self._actions = actions

    def blocker(self, machine_pass: MachinePass) -> AspectValue | None:
        """The condition of a machine that is not, and cannot go, where its reference says."""
        if not reverting.wanted(machine_pass.vm):
            return None
        snapshot = self._parts.caches.of_snapshots.reverted(machine_pass.vm)
        record = reverting.record(machine_pass.status)
        if record is not None and snapshot is not None and record.uid == snapshot.metadata.uid:
            return false(READY, record.reason or reasons.PROVIDER_ERROR, record.problem) if record.state == "failed" else None
        if record is not None and snapshot is None and record.name == reverting.wanted(machine_pass.vm) and record.state == "done":
            # The snapshot was deleted after the machine went back to it.
            return None
        blocked = reverting.blocker(machine_pass.vm, machine_pass.status, snapshot)
        if blocked is None and not machine_pass.capabilities.supportsSnapshots:
            text = f"{references.provider_of(machine_pass.vm)} does not report that it supports snapshots; clear spec.snapshot.revertToRef"
            return false(READY, reasons.UNSUPPORTED, text)
        return blocked

    async def advance(self, machine_pass: MachinePass, observed: str) -> Outcome | None:
        """Bring a revert a step on; None when the machine may be changed otherwise."""
        record = reverting.record(machine_pass.status)
        if record is not None and record.state == "requested":
            return await self._follow(machine_pass, record)
        if record is not None and record.state == "sizes":
            return await self._restore_sizes(machine_pass, record)
        if not reverting.wanted(machine_pass.vm):
            if record is not None or reverting.is_recorded(machine_pass.status.conditions):
                machine_pass.status = reverting.with_record(machine_pass.status, None)
                machine_pass.drop(REVERTED)
            return None
        snapshot = self._parts.caches.of_snapshots.reverted(machine_pass.vm)
        if snapshot is None or self.blocker(machine_pass) is not None:
            return None
        if record is not None and record.uid == snapshot.metadata.uid:
            return await self._request(machine_pass, record, observed) if record.state == "begun" else None
        begun = RevertRecord(snapshot.metadata.uid or "", snapshot.metadata.name, records.of(snapshot).snapshotID or "")
        return await self._request(machine_pass, begun, observed)

    # --- steps ------------------------------------------------------------------------------------------------------------

    async def _request(self, machine_pass: MachinePass, record: RevertRecord, observed: str) -> Outcome:
        text = f"the machine goes back to VMSnapshot {machine_pass.key.namespace}/{record.name}"
        if reverting.record(machine_pass.status) != record:
            self._parts.recorder.tell(machine_pass.about, "Normal", reasons.REVERTING, text)
        self._say(machine_pass, record, text)
        await self._statuses.write(machine_pass)
        try:
            ask = m.SnapshotRevertRequest(vm_id=machine_pass.status.id or "", snapshot_id=record.id)
            answer = await machine_pass.provider.snapshot_revert(ask)
        except ProviderError as error:
            if error.kind == ErrorKind.CONFLICT and observed in (power.ON, power.SUSPENDED):
                return again(await self._actions.power(machine_pass, PowerDecision("off")))
            if error.kind not in _HOPELESS:
                raise
            return await self._failed(machine_pass, record, said(machine_pass, error), retries.rule(error.kind).reason)
        machine_pass.memory.answer = None
        task = answer.task.id if answer.task is not None else ""
        if not task:
            return await self._confirmed(machine_pass, record)
        self._say(machine_pass, msgspec.structs.replace(record, state="requested", task=task), text)
        pause = self._parts.settings.polls.first
        machine_pass.memory.task_due = self._parts.now() + pause
        await self._statuses.write(machine_pass)
        return again(pause)

    async def _follow(self, machine_pass: MachinePass, record: RevertRecord) -> Outcome:
        now, pause = self._parts.now(), self._parts.settings.polls.task
        if now < machine_pass.memory.task_due:
            return again(machine_pass.memory.task_due - now)
        problem = ""
        try:
            answer = await machine_pass.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=record.task)))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem = f"the provider does not know the task {record.task}: {error}"
        else:
            if not answer.error and not answer.done:
                machine_pass.memory.task_due = now + pause
                machine_pass.say(false(READY, reasons.REVERTING, f"task {record.task} brings the machine back to VMSnapshot {record.name}"))
                return again(pause)
            problem = answer.error
        machine_pass.memory.answer = None
        if not problem:
            return await self._confirmed(machine_pass, record)
        record = msgspec.structs.replace(record, state="begun", task="", failures=record.failures + 1)
        failure = ProviderError(ErrorKind.INTERNAL, f"a task failed: {problem[:1024]}")
        if record.failures >= reverting.MOST_FAILURES:
            return await self._failed(machine_pass, record, said(machine_pass, failure), reasons.PROVIDER_ERROR)
        machine_pass.status = reverting.with_record(machine_pass.status, record)
        raise failure

    async def _confirmed(self, machine_pass: MachinePass, record: RevertRecord) -> Outcome:
        """The provider has brought the machine back: now it gets its sizes and its power again."""
        text = f"the machine is back at VMSnapshot {machine_pass.key.namespace}/{record.name}"
        done = msgspec.structs.replace(record, state="sizes", task="", at=self._parts.timestamp())
        machine_pass.status = reverting.with_record(machine_pass.status, done)
        machine_pass.drop(POWER)
        machine_pass.say(true(REVERTED, reasons.REVERTED, text), false(READY, reasons.UPDATING, text))
        machine_pass.memory.due = 0.0
        await self._statuses.write(machine_pass)
        self._parts.recorder.tell(machine_pass.about, "Normal", reasons.REVERTED, text)
        return again(0.1)

    async def _restore_sizes(self, machine_pass: MachinePass, record: RevertRecord) -> Outcome | None:
        """The machine has the hardware that it had at the time of the snapshot, so it gets the sizes again that it had since."""
        if machine_pass.found.vmclass is None or machine_pass.found.missing or machine_pass.found.refused:
            return None
        sizes = resizing.confirmed(machine_pass.status)
        machine_pass.status = reverting.with_record(machine_pass.status, msgspec.structs.replace(record, state="done"))
        machine_pass.say(false(RECONFIGURING, reasons.SUCCESS, "the machine is back at its snapshot"))
        if not sizes.cpu:
            # An adopted machine of which nobody knows the sizes keeps them.
            return None
        try:
            await self._actions.reconfigure(machine_pass, sizes)
        except ProviderError as error:
            if not retries.rule(error.kind).terminal:
                machine_pass.status = reverting.with_record(machine_pass.status, record)
                raise
            machine_pass.memory.resize_hold = hold(self._parts, machine_pass, error)
        except Refusal as refusal:
            until = self._parts.now() + self._parts.settings.polls.off
            machine_pass.memory.resize_hold = RetryHold(until, machine_pass.inputs, refusal.reason, str(refusal), refusal.reason)
        machine_pass.memory.answer = None
        return again(0.1)

    async def _failed(self, machine_pass: MachinePass, record: RevertRecord, problem: str, reason: str) -> Outcome:
        text = f"the machine did not go back to VMSnapshot {record.name}: {problem}; clear spec.snapshot.revertToRef"
        failed = msgspec.structs.replace(record, state="failed", problem=text, reason=reason)
        machine_pass.status = reverting.with_record(machine_pass.status, failed)
        machine_pass.say(false(REVERTED, reason, text), false(RECONFIGURING, reason, text), false(READY, reason, text))
        await self._statuses.write(machine_pass)
        self._parts.recorder.tell(machine_pass.about, "Warning", reasons.REVERT_FAILED, text)
        return again(0.1)

    @staticmethod
    def _say(machine_pass: MachinePass, record: RevertRecord, text: str) -> None:
        machine_pass.status = reverting.with_record(machine_pass.status, record)
        machine_pass.say(
            false(REVERTED, reasons.REVERTING, text),
            true(RECONFIGURING, reasons.REVERTING, text),
            false(READY, reasons.REVERTING, text),
        )
