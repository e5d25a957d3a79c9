"""Takes a snapshot: it waits for the machine, records what it is about to request, requests it, and follows the task.

The request has the same name each time, so a provider answers a repeated one with the snapshot that it has. Only the provider's word makes
a snapshot Ready: an answer with an id and without a task, or a task that has ended well.
"""

from paddock.base import quantity
from paddock.client.target import Key
from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud.snapshots.context import SnapshotAccess, SnapshotPass
from paddock.dialects.virtrigaud.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.plan.virtrigaud import reasons, references, retries, reverting
from paddock.plan.virtrigaud.conditions import PROVISIONING, READY, false, holds, true
from paddock.plan.virtrigaud.refusals import Refusal
from paddock.plan.virtrigaud.snapshots import lineage, records, taking
from paddock.plan.virtrigaud.snapshots.records import SnapshotPlace
from paddock.runtime.controller import DONE, Outcome, again

_MOST_FAILED_TASKS = 3


class SnapshotTaking:
    """Takes snapshots."""

    def __init__(self, access: SnapshotAccess) -> None:
        self._access = access
        self._parts = access.parts

    async def advance(self, look: SnapshotPass) -> Outcome:
        """Bring a snapshot that is not complete a step on."""
        if records.is_ended(look.snapshot):
            return DONE
        wait = look.memory.wait(look.inputs, self._parts.now())
        if wait > 0:
            return again(wait)
        try:
            return await self._advance(look)
        except ProviderError as error:
            return await self._failed(look, error)
        except Refusal as refusal:
            return await self._end(look, refusal.reason, str(refusal))

    async def _advance(self, look: SnapshotPass) -> Outcome:
        place = look.place
        if place is not None and (look.vm is None or (look.vm.status is not None and look.vm.status.id not in (None, place.machine_id))):
            found = records.gone(str(look.machine))
            return await self._end(look, found.reason, found.message)
        if not look.status.taskRef:
            place = self._checked(look, place or self._place(look))
        if place is None:
            await self._access.write(look)
            return DONE
        driver, problem = self._access.driver(place)
        if driver is None:
            look.say(false(READY, reasons.PROVIDER_ERROR, problem))
            await self._access.write(look)
            return DONE
        if look.status.taskRef:
            return await self._follow(look, driver, place)
        return await self._request(look, driver, place)

    # --- prerequisites ----------------------------------------------------------------------------------------------------

    def _place(self, look: SnapshotPass) -> SnapshotPlace | None:
        """The machine that the snapshot is of; None while it has to be waited for."""
        vm, name = look.vm, f"VirtualMachine {look.machine}"
        if vm is None:
            return self._wait(look, f"{name} does not exist")
        status = vm.status or VirtrigaudMachineStatus()
        if not status.id or holds(status.conditions, PROVISIONING):
            return self._wait(look, f"{name} is not created yet")
        if reverting.is_under_way(status):
            return self._wait(look, f"{name} is going back to a snapshot")
        provider = references.provider_of(vm)
        return SnapshotPlace(provider.namespace, provider.name, status.id)

    def _checked(self, look: SnapshotPass, place: SnapshotPlace | None) -> SnapshotPlace | None:
        """The machine, if its Provider can take the snapshot. Raises `Refusal`."""
        if place is None:
            return None
        can = self._parts.caches.capabilities(Key(place.provider_namespace, place.provider_name))
        if can is None:
            return self._wait(look, f"{place} has not reported what it can do")
        taking.check(look.snapshot, str(place), can)
        return place

    @staticmethod
    def _wait(look: SnapshotPass, what: str) -> None:
        if look.place is None:
            look.phase = records.PENDING
        look.say(false(READY, reasons.WAITING, what))

    # --- requesting -------------------------------------------------------------------------------------------------------

    async def _request(self, look: SnapshotPass, driver: Driver, place: SnapshotPlace) -> Outcome:
        now = self._parts.timestamp()
        text = f"{place} takes the snapshot"
        if look.place is None:
            look.change(
                creationTime=now,
                completionTime=None,
                snapshotID=None,
                providerStatus=records.recorded(look.snapshot, place, "", now, available=False),
            )
            look.say(*taking.remarks(records.config(look.snapshot), _machine_status(look.vm)))
            self._access.tell(look, "SnapshotCreating", text)
        look.phase = records.PHASE_CREATING
        look.say(true(records.CREATING, reasons.CREATING, text), false(READY, reasons.CREATING, text))
        await self._access.write(look)
        answer = await driver.snapshot_create(taking.request(look.snapshot, place.machine_id))
        if not answer.snapshot_id:
            raise ProviderError(ErrorKind.INTERNAL, "the answer to SnapshotCreate has no id")
        look.change(
            snapshotID=answer.snapshot_id,
            providerStatus=records.recorded(look.snapshot, place, answer.snapshot_id, now, available=False),
        )
        if answer.task is None or not answer.task.id:
            return await self._complete(look, driver, place)
        look.change(taskRef=answer.task.id)
        pause = self._parts.settings.polls.first
        look.memory.task_due = self._parts.now() + pause
        await self._access.write(look)
        return again(pause)

    async def _follow(self, look: SnapshotPass, driver: Driver, place: SnapshotPlace) -> Outcome:
        now, pause = self._parts.now(), self._parts.settings.polls.task
        if now < look.memory.task_due:
            return again(look.memory.task_due - now)
        problem, reason = "", ""
        try:
            answer = await driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=look.status.taskRef or "")))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem, reason = f"the provider does not know the task {look.status.taskRef}: {error}", reasons.PROVIDER_TASK_LOST
        else:
            if not answer.error and not answer.done:
                look.memory.task_due = now + pause
                return again(pause)
            problem, reason = answer.error, answer.reason
        look.change(taskRef=None)
        if not problem:
            return await self._complete(look, driver, place)
        # The task is forgotten: a repeated request finds the snapshot if there is one.
        look.memory.failed_tasks += 1
        text = f"a task failed: {problem[:1024]}"
        if look.memory.failed_tasks >= _MOST_FAILED_TASKS:
            return await self._end(look, reason or reasons.PROVIDER_ERROR, f"{place}: {text}")
        return await self._failed(look, ProviderError(ErrorKind.INTERNAL, text, reason=reason))

    # --- outcomes ---------------------------------------------------------------------------------------------------------

    async def _complete(self, look: SnapshotPass, driver: Driver, place: SnapshotPlace) -> Outcome:
        """Report a snapshot that the provider has confirmed."""
        now = self._parts.timestamp()
        await self._measure(look, driver, place)
        revert = reverting.record(_machine_status(look.vm))
        siblings = self._parts.caches.of_snapshots.all(look.machine)
        above = lineage.parent(look.snapshot, siblings, revert.uid if revert else "", revert.at if revert else "")
        look.change(
            completionTime=now,
            taskRef=None,
            parent=above,
            providerStatus=records.recorded(look.snapshot, place, look.status.snapshotID or "", now, available=True),
        )
        look.phase = records.PHASE_READY
        look.memory.failures = look.memory.failed_tasks = 0
        text = f"{place} has the snapshot {look.status.snapshotID}"
        look.say(true(READY, reasons.CREATED, text), false(records.CREATING, reasons.CREATED, text))
        await self._access.write(look)
        self._access.tell(look, "SnapshotReady", text)
        return again(0.1)

    async def _measure(self, look: SnapshotPass, driver: Driver, place: SnapshotPlace) -> None:
        """Fill in the sizes, if the provider tells those of each disk."""
        names = ["", *(disk.name for disk in (look.vm.spec.disks if look.vm is not None else None) or ())]
        taken, held = 0, 0
        for name in names:
            ask = m.GetDiskInfoRequest(vm_id=place.machine_id, disk_id=name, snapshot_id=look.status.snapshotID or "")
            try:
                answer = await driver.get_disk_info(ask)
            except ProviderError:
                return
            taken, held = taken + answer.actual_size_bytes, held + answer.virtual_size_bytes
        look.change(size=quantity.binary(taken) if taken else None, virtualSize=quantity.binary(held) if held else None)

    async def _failed(self, look: SnapshotPass, error: ProviderError) -> Outcome:
        """Report an error of the provider: some are tried again, and the others end the snapshot."""
        if retries.rule(error.kind).terminal:
            return await self._end(look, retries.reason(error), f"{look.place}: {error.reported}")
        failure = look.memory.hold = self._access.hold(look, error)
        look.say(false(READY, failure.code, failure.message))
        await self._access.write(look)
        self._access.tell(look, failure.code, failure.message, warning=True)
        return again(failure.until - self._parts.now())

    async def _end(self, look: SnapshotPass, reason: str, message: str) -> Outcome:
        """Report a snapshot that is not taken.

        A change of its spec begins anew, and so does, if nothing was requested, a change of what the Provider reports.
        """
        known = look.status.phase == records.FAILED and look.status.message == message
        look.phase = records.FAILED
        look.memory.failed_tasks = 0
        look.say(false(READY, reason, message))
        if look.place is not None:
            look.say(false(records.CREATING, reason, message))
        await self._access.write(look)
        if not known:
            self._access.tell(look, "SnapshotFailed", message, warning=True)
        return DONE


def _machine_status(vm: VirtrigaudVirtualMachine | None) -> VirtrigaudMachineStatus:
    return (vm.status if vm is not None else None) or VirtrigaudMachineStatus()
