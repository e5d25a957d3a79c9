"""The end of a snapshot: the finalizer goes when the provider has confirmed the deletion, or does not find the snapshot.

nothing requested  the object goes
outcome unknown    the request is repeated: it answers with the snapshot, which is then deleted
error              the object waits, and the deletion is tried again; force-delete lets it go
"""

from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.snapshots.context import SnapshotAccess, SnapshotPass
from paddock.dialects.virtrigaud.plan import marks, reasons, retries, reverting
from paddock.dialects.virtrigaud.plan.conditions import DELETING, READY, false, find, holds, true
from paddock.dialects.virtrigaud.plan.snapshots import records, taking
from paddock.dialects.virtrigaud.plan.snapshots.records import SnapshotPlace
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.controller import DONE, Outcome, again

# A repeated request that ends so, as often in a row, says that there is no snapshot. One answer proves nothing: some judge a request before
# they look for what it has made.
_NO_SNAPSHOT = (ErrorKind.NOT_FOUND, ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED)
_REFUSED_TIMES = 3
_UNKNOWN_TASK = (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC)


class SnapshotDeletion:
    """Deletes snapshots at their Providers."""

    def __init__(self, access: SnapshotAccess) -> None:
        self._access = access
        self._parts = access.parts

    async def advance(self, snapshot_pass: SnapshotPass) -> Outcome:
        """Bring the deletion of a snapshot a step on."""
        if marks.SNAPSHOT_FINALIZER not in (snapshot_pass.seen.meta.finalizers or ()):
            return DONE
        place = snapshot_pass.place
        if place is None:
            return await self._release(snapshot_pass)
        wait = snapshot_pass.memory.wait(snapshot_pass.inputs, self._parts.now())
        if wait > 0:
            return again(wait)
        if find(snapshot_pass.status.conditions, DELETING) is None:
            snapshot_pass.change(taskRef=None)
            self._access.tell(snapshot_pass, "SnapshotDeleting", f"{place} is asked to delete the snapshot")
        snapshot_pass.phase = records.PHASE_DELETING
        snapshot_pass.say(false(READY, reasons.DELETING, "the snapshot is being deleted"))
        if self._is_in_use(snapshot_pass) and not self._is_forced(snapshot_pass):
            snapshot_pass.say(
                true(DELETING, reasons.WAITING, f"waiting until VirtualMachine {snapshot_pass.machine} is back at the snapshot")
            )
            await self._access.write(snapshot_pass)
            return again(self._parts.settings.polls.transition)
        driver, problem = self._access.driver(place)
        if driver is None:
            return await self._blocked(snapshot_pass, problem)
        try:
            return await self._delete(snapshot_pass, driver, place)
        except ProviderError as error:
            return await self._failed(snapshot_pass, error)

    @staticmethod
    def _is_in_use(snapshot_pass: SnapshotPass) -> bool:
        """Return whether the machine is going back to the snapshot. One that is being deleted goes nowhere."""
        vm = snapshot_pass.vm
        if vm is None or vm.status is None or vm.metadata.deletionTimestamp is not None:
            return False
        record = reverting.record(vm.status)
        return record is not None and record.uid == snapshot_pass.snapshot.metadata.uid and record.state in ("begun", "requested")

    async def _delete(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> Outcome:
        if holds(snapshot_pass.status.conditions, DELETING, reasons.IN_PROGRESS) and snapshot_pass.status.taskRef:
            return await self._follow(snapshot_pass, driver, snapshot_place)
        found = snapshot_pass.status.snapshotID or await self._find(snapshot_pass, driver, snapshot_place)
        if not found:
            return await self._deleted(snapshot_pass, snapshot_place)
        snapshot_pass.change(snapshotID=found)
        try:
            answer = await driver.snapshot_delete(m.SnapshotDeleteRequest(vm_id=snapshot_place.machine_id, snapshot_id=found))
        except ProviderError as error:
            if error.kind == ErrorKind.NOT_FOUND:
                return await self._deleted(snapshot_pass, snapshot_place)
            raise
        task = answer.task.id if answer.task is not None else ""
        if not task:
            return await self._deleted(snapshot_pass, snapshot_place)
        snapshot_pass.change(taskRef=task)
        pause = self._parts.settings.polls.first
        snapshot_pass.memory.task_due = self._parts.now() + pause
        snapshot_pass.say(true(DELETING, reasons.IN_PROGRESS, f"task {task} of {snapshot_place} deletes the snapshot"))
        await self._access.write(snapshot_pass)
        return again(pause)

    async def _find(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> str:
        """The id of a snapshot whose request has an unknown outcome; empty if there is none."""
        try:
            answer = await driver.snapshot_create(taking.request(snapshot_pass.snapshot, snapshot_place.machine_id))
        except ProviderError as error:
            snapshot_pass.memory.refusals = snapshot_pass.memory.refusals + 1 if error.kind in _NO_SNAPSHOT else 0
            if snapshot_pass.memory.refusals >= _REFUSED_TIMES:
                return ""
            raise
        snapshot_pass.memory.refusals = 0
        return answer.snapshot_id

    async def _follow(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> Outcome:
        now, pause = self._parts.now(), self._parts.settings.polls.task
        if now < snapshot_pass.memory.task_due:
            return again(snapshot_pass.memory.task_due - now)
        try:
            answer = await driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=snapshot_pass.status.taskRef or "")))
        except ProviderError as error:
            if error.kind not in _UNKNOWN_TASK:
                raise
            # A provider that was started again does not know its tasks, and nobody knows how this one has ended.
            answer = m.TaskStatusResponse(done=True, error=str(error))
        if answer.done and not answer.error:
            return await self._deleted(snapshot_pass, snapshot_place)
        if not answer.error:
            snapshot_pass.memory.task_due = now + pause
            return again(pause)
        # Deleting what is gone succeeds, so the request is simply repeated.
        snapshot_pass.change(taskRef=None)
        raise ProviderError(ErrorKind.INTERNAL, f"a task failed: {answer.error[:1024]}")

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def _failed(self, snapshot_pass: SnapshotPass, error: ProviderError) -> Outcome:
        if self._is_forced(snapshot_pass):
            return await self._force(snapshot_pass, str(error))
        failure = snapshot_pass.memory.hold = self._access.hold(snapshot_pass, error, retries.DELETION)
        snapshot_pass.change(taskRef=None)
        snapshot_pass.say(true(DELETING, reasons.PROVIDER_ERROR, failure.message))
        await self._access.write(snapshot_pass)
        self._access.tell(snapshot_pass, "SnapshotDeleteFailed", failure.message, warning=True)
        return again(failure.until - self._parts.now())

    async def _blocked(self, snapshot_pass: SnapshotPass, problem: str) -> Outcome:
        if self._is_forced(snapshot_pass):
            return await self._force(snapshot_pass, problem)
        text = f"{problem}, or annotate the snapshot with {marks.FORCE_DELETE}: {marks.TRUE}"
        snapshot_pass.say(true(DELETING, reasons.PROVIDER_ERROR, text))
        await self._access.write(snapshot_pass)
        return again(self._parts.settings.polls.transition)

    @staticmethod
    def _is_forced(snapshot_pass: SnapshotPass) -> bool:
        return (snapshot_pass.snapshot.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE

    async def _force(self, snapshot_pass: SnapshotPass, problem: str) -> Outcome:
        text = f"the object goes although the snapshot {snapshot_pass.status.snapshotID or ''} may still exist: {problem}"
        self._access.tell(snapshot_pass, "ForceDeleted", text, warning=True)
        return await self._release(snapshot_pass)

    async def _deleted(self, snapshot_pass: SnapshotPass, snapshot_place: SnapshotPlace) -> Outcome:
        self._access.tell(
            snapshot_pass,
            "SnapshotDeleted",
            f"{snapshot_place} has no snapshot {snapshot_pass.status.snapshotID or ''} any more".replace("  ", " "),
        )
        return await self._release(snapshot_pass)

    async def _release(self, snapshot_pass: SnapshotPass) -> Outcome:
        await finalizers.take_off(self._parts.client, targets.SNAPSHOTS, snapshot_pass.seen.meta, marks.SNAPSHOT_FINALIZER)
        return DONE
