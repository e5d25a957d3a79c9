"""Takes a snapshot: it waits for the machine, records what it is about to request, requests it, and follows the task.

The request has the same name each time, so a provider answers a repeated one with the snapshot that it has. Only the provider's word makes
a snapshot Ready: an answer with an id and without a task, or a task that has ended well.
"""

from paddock.base import quantity
from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers.snapshots.context import SnapshotAccess, SnapshotPass
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import reasons, references, retries, reverting
from paddock.dialects.virtrigaud.plan.conditions import PROVISIONING, READY, false, holds, true
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.snapshots import lineage, records, taking
from paddock.dialects.virtrigaud.plan.snapshots.records import SnapshotPlace
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.controller import DONE, Outcome, again

_MOST_FAILED_TASKS = 3


class SnapshotTaking:
    def __init__(self, access: SnapshotAccess) -> None:
        self._access = access
        self._parts = access.parts

    async def advance(self, snapshot_pass: SnapshotPass) -> Outcome:
        """Bring a snapshot that is not complete a step on."""
        if records.is_ended(snapshot_pass.snapshot):
            return DONE
        wait = snapshot_pass.memory.wait(snapshot_pass.inputs, self._parts.now())
        if wait > 0:
            return again(wait)
        try:
            return await self._advance(snapshot_pass)
        except ProviderError as error:
            return await self._failed(snapshot_pass, error)
        except Refusal as refusal:
            return await self._end(snapshot_pass, refusal.reason, str(refusal))

    async def _advance(self, snapshot_pass: SnapshotPass) -> Outcome:
        place = snapshot_pass.place
        if place is not None and (
            snapshot_pass.vm is None or (snapshot_pass.vm.status is not None and snapshot_pass.vm.status.id not in (None, place.machine_id))
        ):
            found = records.gone(str(snapshot_pass.machine))
            return await self._end(snapshot_pass, found.reason, found.message)
        if not snapshot_pass.status.taskRef:
            place = self._checked(snapshot_pass, place or self._place(snapshot_pass))
        if place is None:
            await self._access.write(snapshot_pass)
            return DONE
        driver, problem = self._access.driver(place)
        if driver is None:
            snapshot_pass.say(false(READY, reasons.PROVIDER_ERROR, problem))
            await self._access.write(snapshot_pass)
            return DONE
        if snapshot_pass.status.taskRef:
            return await self._follow(snapshot_pass, driver, place)
        return await self._request(snapshot_pass, driver, place)

    # --- prerequisites ----------------------------------------------------------------------------------------------------

    def _place(self, snapshot_pass: SnapshotPass) -> SnapshotPlace | None:
        """The machine that the snapshot is of; None while it has to be waited for."""
        vm, name = snapshot_pass.vm, f"VirtualMachine {snapshot_pass.machine}"
        if vm is None:
            return self._wait(snapshot_pass, f"{name} does not exist")
        status = vm.status or VirtrigaudMachineStatus()
        if not status.id or holds(status.conditions, PROVISIONING):
            return self._wait(snapshot_pass, f"{name} is not created yet")
        if reverting.is_under_way(status):
            return self._wait(snapshot_pass, f"{name} is going back to a snapshot")
        provider = references.provider_of(vm)
        return SnapshotPlace(provider.namespace, provider.name, status.id)

    def _checked(self, snapshot_pass: SnapshotPass, snapshot_place: SnapshotPlace | None) -> SnapshotPlace | None:
        """The machine, if its Provider can take the snapshot. Raises `Refusal`."""
        if snapshot_place is None:
            return None
        can = self._parts.caches.capabilities(Key(snapshot_place.provider_namespace, snapshot_place.provider_name))
        if can is None:
            return self._wait(snapshot_pass, f"{snapshot_place} has not reported what it can do")
        taking.check(snapshot_pass.snapshot, str(snapshot_place), can)
        return snapshot_place

    @staticmethod
    def _wait(snapshot_pass: SnapshotPass, what: str) -> None:
        if snapshot_pass.place is None:
            snapshot_pass.phase = records.PENDING
        snapshot_pass.say(false(READY, reasons.WAITING, what))

    # --- requesting -------------------------------------------------------------------------------------------------------

    async def _request(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> Outcome:
        now = self._parts.timestamp()
        text = f"{snapshot_place} takes the snapshot"
        if snapshot_pass.place is None:
            snapshot_pass.change(
                creationTime=now,
                completionTime=None,
                snapshotID=None,
                providerStatus=records.recorded(snapshot_pass.snapshot, snapshot_place, "", now, available=False),
            )
            snapshot_pass.say(*taking.remarks(records.config(snapshot_pass.snapshot), _machine_status(snapshot_pass.vm)))
            self._access.tell(snapshot_pass, "SnapshotCreating", text)
        snapshot_pass.phase = records.PHASE_CREATING
        snapshot_pass.say(true(records.CREATING, reasons.CREATING, text), false(READY, reasons.CREATING, text))
        await self._access.write(snapshot_pass)
        answer = await driver.snapshot_create(taking.request(snapshot_pass.snapshot, snapshot_place.machine_id))
        if not answer.snapshot_id:
            raise ProviderError(ErrorKind.INTERNAL, "the answer to SnapshotCreate has no id")
        snapshot_pass.change(
            snapshotID=answer.snapshot_id,
            providerStatus=records.recorded(snapshot_pass.snapshot, snapshot_place, answer.snapshot_id, now, available=False),
        )
        if answer.task is None or not answer.task.id:
            return await self._complete(snapshot_pass, driver, snapshot_place)
        snapshot_pass.change(taskRef=answer.task.id)
        pause = self._parts.settings.polls.first
        snapshot_pass.memory.task_due = self._parts.now() + pause
        await self._access.write(snapshot_pass)
        return again(pause)

    async def _follow(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> Outcome:
        now, pause = self._parts.now(), self._parts.settings.polls.task
        if now < snapshot_pass.memory.task_due:
            return again(snapshot_pass.memory.task_due - now)
        problem, reason = "", ""
        try:
            answer = await driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=snapshot_pass.status.taskRef or "")))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem, reason = f"the provider does not know the task {snapshot_pass.status.taskRef}: {error}", reasons.PROVIDER_TASK_LOST
        else:
            if not answer.error and not answer.done:
                snapshot_pass.memory.task_due = now + pause
                return again(pause)
            problem, reason = answer.error, answer.reason
        snapshot_pass.change(taskRef=None)
        if not problem:
            return await self._complete(snapshot_pass, driver, snapshot_place)
        # The task is forgotten: a repeated request finds the snapshot if there is one.
        snapshot_pass.memory.failed_tasks += 1
        text = f"a task failed: {problem[:1024]}"
        if snapshot_pass.memory.failed_tasks >= _MOST_FAILED_TASKS:
            return await self._end(snapshot_pass, reason or reasons.PROVIDER_ERROR, f"{snapshot_place}: {text}")
        return await self._failed(snapshot_pass, ProviderError(ErrorKind.INTERNAL, text, reason=reason))

    # --- outcomes ---------------------------------------------------------------------------------------------------------

    async def _complete(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> Outcome:
        """Report a snapshot that the provider has confirmed."""
        now = self._parts.timestamp()
        await self._measure(snapshot_pass, driver, snapshot_place)
        revert = reverting.record(_machine_status(snapshot_pass.vm))
        siblings = self._parts.caches.of_snapshots.all(snapshot_pass.machine)
        above = lineage.parent(snapshot_pass.snapshot, siblings, revert.uid if revert else "", revert.at if revert else "")
        snapshot_pass.change(
            completionTime=now,
            taskRef=None,
            parent=above,
            providerStatus=records.recorded(
                snapshot_pass.snapshot, snapshot_place, snapshot_pass.status.snapshotID or "", now, available=True
            ),
        )
        snapshot_pass.phase = records.PHASE_READY
        snapshot_pass.memory.failures = snapshot_pass.memory.failed_tasks = 0
        text = f"{snapshot_place} has the snapshot {snapshot_pass.status.snapshotID}"
        snapshot_pass.say(true(READY, reasons.CREATED, text), false(records.CREATING, reasons.CREATED, text))
        await self._access.write(snapshot_pass)
        self._access.tell(snapshot_pass, "SnapshotReady", text)
        return again(0.1)

    async def _measure(self, snapshot_pass: SnapshotPass, driver: Driver, snapshot_place: SnapshotPlace) -> None:
        """Fill in the sizes, if the provider tells those of each disk."""
        names = ["", *(disk.name for disk in (snapshot_pass.vm.spec.disks if snapshot_pass.vm is not None else None) or ())]
        taken, held = 0, 0
        for name in names:
            ask = m.GetDiskInfoRequest(vm_id=snapshot_place.machine_id, disk_id=name, snapshot_id=snapshot_pass.status.snapshotID or "")
            try:
                answer = await driver.get_disk_info(ask)
            except ProviderError:
                return
            taken, held = taken + answer.actual_size_bytes, held + answer.virtual_size_bytes
        snapshot_pass.change(size=quantity.binary(taken) if taken else None, virtualSize=quantity.binary(held) if held else None)

    async def _failed(self, snapshot_pass: SnapshotPass, error: ProviderError) -> Outcome:
        """Report an error of the provider: some are tried again, and the others end the snapshot."""
        if retries.rule(error.kind).terminal:
            return await self._end(snapshot_pass, retries.reason(error), f"{snapshot_pass.place}: {error.reported}")
        failure = snapshot_pass.memory.hold = self._access.hold(snapshot_pass, error)
        snapshot_pass.say(false(READY, failure.code, failure.message))
        await self._access.write(snapshot_pass)
        self._access.tell(snapshot_pass, failure.code, failure.message, warning=True)
        return again(failure.until - self._parts.now())

    async def _end(self, snapshot_pass: SnapshotPass, reason: str, message: str) -> Outcome:
        """Report a snapshot that is not taken.

        A change of its spec begins anew, and so does, if nothing was requested, a change of what the Provider reports.
        """
        known = snapshot_pass.status.phase == records.FAILED and snapshot_pass.status.message == message
        snapshot_pass.phase = records.FAILED
        snapshot_pass.memory.failed_tasks = 0
        snapshot_pass.say(false(READY, reason, message))
        if snapshot_pass.place is not None:
            snapshot_pass.say(false(records.CREATING, reason, message))
        await self._access.write(snapshot_pass)
        if not known:
            self._access.tell(snapshot_pass, "SnapshotFailed", message, warning=True)
        return DONE


def _machine_status(vm: VirtrigaudVirtualMachine | None) -> VirtrigaudMachineStatus:
    return (vm.status if vm is not None else None) or VirtrigaudMachineStatus()
