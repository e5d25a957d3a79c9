"""Brings a machine back to a snapshot, once for each reference (docs/spec/virtrigaud.md 2.1.8; `plan.virtrigaud.reverting` has the states).

The machine's power is left alone until the provider has confirmed. A provider that cannot revert a running machine says so with a Conflict;
then the machine, whose present state is given up anyway, is powered off first.
"""

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud.context import MachinePass, RetryHold, VirtrigaudParts, hold, said
from paddock.controllers.virtrigaud.machines.actions import MachineActions
from paddock.controllers.virtrigaud.statuswriter import MachineStatusWriter
from paddock.plan.virtrigaud import power, reasons, references, resizing, retries, reverting
from paddock.plan.virtrigaud.conditions import POWER, READY, RECONFIGURING, AspectValue, false, true
from paddock.plan.virtrigaud.power import PowerDecision
from paddock.plan.virtrigaud.refusals import Refusal
from paddock.plan.virtrigaud.reverting import REVERTED, RevertRecord
from paddock.plan.virtrigaud.snapshots import records
from paddock.runtime.controller import Outcome, again

# A revert that nobody can carry out is not repeated until the reference is cleared.
_HOPELESS = (ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC, ErrorKind.NOT_FOUND)


class MachineReversion:
    """Carries out reverts."""

    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, actions: MachineActions) -> None:
        self._parts = parts
        self._statuses = statuses
        self._actions = actions

    def blocker(self, look: MachinePass) -> AspectValue | None:
        """The condition of a machine that is not, and cannot go, where its reference says."""
        if not reverting.wanted(look.vm):
            return None
        snapshot = self._parts.caches.of_snapshots.reverted(look.vm)
        record = reverting.record(look.status)
        if record is not None and snapshot is not None and record.uid == snapshot.metadata.uid:
            return false(READY, record.reason or reasons.PROVIDER_ERROR, record.problem) if record.state == "failed" else None
        if record is not None and snapshot is None and record.name == reverting.wanted(look.vm) and record.state == "done":
            # The snapshot was deleted after the machine went back to it.
            return None
        blocked = reverting.blocker(look.vm, look.status, snapshot)
        if blocked is None and not look.capabilities.supportsSnapshots:
            text = f"{references.provider_of(look.vm)} does not report that it supports snapshots; clear spec.snapshot.revertToRef"
            return false(READY, reasons.UNSUPPORTED, text)
        return blocked

    async def advance(self, look: MachinePass, observed: str) -> Outcome | None:
        """Bring a revert a step on; None when the machine may be changed otherwise."""
        record = reverting.record(look.status)
        if record is not None and record.state == "requested":
            return await self._follow(look, record)
        if record is not None and record.state == "sizes":
            return await self._restore_sizes(look, record)
        if not reverting.wanted(look.vm):
            if record is not None or reverting.is_recorded(look.status.conditions):
                look.status = reverting.with_record(look.status, None)
                look.drop(REVERTED)
            return None
        snapshot = self._parts.caches.of_snapshots.reverted(look.vm)
        if snapshot is None or self.blocker(look) is not None:
            return None
        if record is not None and record.uid == snapshot.metadata.uid:
            return await self._request(look, record, observed) if record.state == "begun" else None
        begun = RevertRecord(snapshot.metadata.uid or "", snapshot.metadata.name, records.of(snapshot).snapshotID or "")
        return await self._request(look, begun, observed)

    # --- steps ------------------------------------------------------------------------------------------------------------

    async def _request(self, look: MachinePass, record: RevertRecord, observed: str) -> Outcome:
        text = f"the machine goes back to VMSnapshot {look.key.namespace}/{record.name}"
        if reverting.record(look.status) != record:
            self._parts.recorder.tell(look.about, "Normal", reasons.REVERTING, text)
        self._say(look, record, text)
        await self._statuses.write(look)
        try:
            ask = m.SnapshotRevertRequest(vm_id=look.status.id or "", snapshot_id=record.id)
            answer = await look.provider.snapshot_revert(ask)
        except ProviderError as error:
            if error.kind == ErrorKind.CONFLICT and observed in (power.ON, power.SUSPENDED):
                return again(await self._actions.power(look, PowerDecision("off")))
            if error.kind not in _HOPELESS:
                raise
            return await self._failed(look, record, said(look, error), retries.rule(error.kind).reason)
        look.memory.answer = None
        task = answer.task.id if answer.task is not None else ""
        if not task:
            return await self._confirmed(look, record)
        self._say(look, msgspec.structs.replace(record, state="requested", task=task), text)
        pause = self._parts.settings.polls.first
        look.memory.task_due = self._parts.now() + pause
        await self._statuses.write(look)
        return again(pause)

    async def _follow(self, look: MachinePass, record: RevertRecord) -> Outcome:
        now, pause = self._parts.now(), self._parts.settings.polls.task
        if now < look.memory.task_due:
            return again(look.memory.task_due - now)
        problem = ""
        try:
            answer = await look.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=record.task)))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem = f"the provider does not know the task {record.task}: {error}"
        else:
            if not answer.error and not answer.done:
                look.memory.task_due = now + pause
                look.say(false(READY, reasons.REVERTING, f"task {record.task} brings the machine back to VMSnapshot {record.name}"))
                return again(pause)
            problem = answer.error
        look.memory.answer = None
        if not problem:
            return await self._confirmed(look, record)
        record = msgspec.structs.replace(record, state="begun", task="", failures=record.failures + 1)
        failure = ProviderError(ErrorKind.INTERNAL, f"a task failed: {problem[:1024]}")
        if record.failures >= reverting.MOST_FAILURES:
            return await self._failed(look, record, said(look, failure), reasons.PROVIDER_ERROR)
        look.status = reverting.with_record(look.status, record)
        raise failure

    async def _confirmed(self, look: MachinePass, record: RevertRecord) -> Outcome:
        """The provider has brought the machine back: now it gets its sizes and its power again."""
        text = f"the machine is back at VMSnapshot {look.key.namespace}/{record.name}"
        done = msgspec.structs.replace(record, state="sizes", task="", at=self._parts.timestamp())
        look.status = reverting.with_record(look.status, done)
        look.drop(POWER)
        look.say(true(REVERTED, reasons.REVERTED, text), false(READY, reasons.UPDATING, text))
        look.memory.due = 0.0
        await self._statuses.write(look)
        self._parts.recorder.tell(look.about, "Normal", reasons.REVERTED, text)
        return again(0.1)

    async def _restore_sizes(self, look: MachinePass, record: RevertRecord) -> Outcome | None:
        """The machine has the hardware that it had at the time of the snapshot, so it gets the sizes again that it had since."""
        if look.found.vmclass is None or look.found.missing or look.found.refused:
            return None
        sizes = resizing.confirmed(look.status)
        look.status = reverting.with_record(look.status, msgspec.structs.replace(record, state="done"))
        look.say(false(RECONFIGURING, reasons.SUCCESS, "the machine is back at its snapshot"))
        if not sizes.cpu:
            # An adopted machine of which nobody knows the sizes keeps them.
            return None
        try:
            await self._actions.reconfigure(look, sizes)
        except ProviderError as error:
            if not retries.rule(error.kind).terminal:
                look.status = reverting.with_record(look.status, record)
                raise
            look.memory.resize_hold = hold(self._parts, look, error)
        except Refusal as refusal:
            until = self._parts.now() + self._parts.settings.polls.off
            look.memory.resize_hold = RetryHold(until, look.inputs, refusal.reason, str(refusal), refusal.reason)
        look.memory.answer = None
        return again(0.1)

    async def _failed(self, look: MachinePass, record: RevertRecord, problem: str, reason: str) -> Outcome:
        text = f"the machine did not go back to VMSnapshot {record.name}: {problem}; clear spec.snapshot.revertToRef"
        failed = msgspec.structs.replace(record, state="failed", problem=text, reason=reason)
        look.status = reverting.with_record(look.status, failed)
        look.say(false(REVERTED, reason, text), false(RECONFIGURING, reason, text), false(READY, reason, text))
        await self._statuses.write(look)
        self._parts.recorder.tell(look.about, "Warning", reasons.REVERT_FAILED, text)
        return again(0.1)

    @staticmethod
    def _say(look: MachinePass, record: RevertRecord, text: str) -> None:
        look.status = reverting.with_record(look.status, record)
        look.say(
            false(REVERTED, reasons.REVERTING, text),
            true(RECONFIGURING, reasons.REVERTING, text),
            false(READY, reasons.REVERTING, text),
        )
