"""What is asked of a machine's provider: to make it, to describe it, to change its power and its sizes, and how its tasks are.

Each action asks first and records then, in one write that survives a conflict. Asking twice is harmless: a create finds the machine of its
owner, and the others name a state.
"""

import math
from typing import Literal

import msgspec

from paddock.base import reasons as causes
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud.context import MachinePass, VirtrigaudParts, hold
from paddock.controllers.virtrigaud.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.vmimage import ProviderImage
from paddock.meta import ages
from paddock.meta.world import namespace_of
from paddock.plan.virtrigaud import attempts, marks, power, preparation, reasons, references, requests, resizing, rootdisk, status
from paddock.plan.virtrigaud.conditions import (
    IMPORTED_DISK,
    POWER,
    PROVISIONING,
    READY,
    RECONFIGURING,
    AspectValue,
    false,
    find,
    holds,
    true,
)
from paddock.plan.virtrigaud.power import PowerDecision
from paddock.plan.virtrigaud.resizing import MachineSizes

_POWER_REASONS = {"on": "PoweringOn", "off": "PoweringOff", "shutdown": "ShuttingDown"}
# An operation that had no effect is tried again after so long.
_AGAIN_SECONDS = 30.0
TaskField = Literal["lastTaskRef", "reconfigureTaskRef"]


class MachineActions:
    """Performs the actions of passes over machines."""

    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter) -> None:
        self._parts = parts
        self._statuses = statuses

    # --- making -----------------------------------------------------------------------------------------------------------

    async def create(self, look: MachinePass) -> None:
        """Create the machine; its id is written before anything else is done. Raises `Refusal` for what cannot be requested."""
        request = requests.create(look.vm, look.found, self.prepared(look))
        assert look.found.vmclass is not None
        sizes, unanswered = resizing.wanted(look.vm, look.found.vmclass), attempts.of(look.status)
        look.status = attempts.recorded(look.status, sizes)
        look.say(
            true(PROVISIONING, reasons.CREATING, f"creating the machine at {self._provider(look)}"),
            false(READY, reasons.CREATING, f"the machine is being created at {self._provider(look)}"),
        )
        await self._statuses.write(look)
        try:
            answer = await self._request_create(look, request)
        except ProviderError as error:
            if not unanswered and (not error.sent or error.kind in attempts.REFUSALS_OF_CREATE):
                look.status = attempts.forgotten(look.status)
            raise
        task = _task(answer.task)
        if not answer.id and task is None:
            raise ProviderError(ErrorKind.INTERNAL, "the answer to Create has neither an id nor a task")
        look.change(id=answer.id or None, lastTaskRef=task)
        if task is None:
            self._created(look)
            if self.starts(look):
                # The record of the first start is written with the id.
                look.say(*_power_values("on", _power_message(PowerDecision("on"), 0.0)))
        else:
            look.memory.task_due = self._parts.now() + self._parts.settings.polls.first
            look.say(self._under_way(look, task))
        look.memory.answer = None
        await self._statuses.write(look)
        self._tell(look, "Created", f"{self._provider(look)} has created the machine {answer.id}".strip())

    async def _request_create(self, look: MachinePass, request: m.CreateRequest) -> m.CreateResponse:
        """Send a create. An answer with the machine of another object is an error: both would fight over it."""
        try:
            answer = await look.provider.create(request)
        except ProviderError as error:
            # Drivers get an imported disk as the image that the machine is made from.
            if error.reason_code != causes.TEMPLATE_MISSING or look.vm.spec.importedDisk is None:
                raise
            raise error.with_reason(causes.VOLUME_MISSING) from error
        others = [each for each in self._parts.caches.with_id(references.provider_of(look.vm), answer.id) if each != look.key]
        if others:
            raise ProviderError(ErrorKind.CONFLICT, f"the answer to Create has the id of another machine, {others[0]}")
        return answer

    def prepared(self, look: MachinePass) -> ProviderImage | None:
        """The machine's image at its Provider, if that has prepared it."""
        image = look.found.image
        if image is None:
            return None
        ref = look.vm.spec.providerRef
        place = ref.namespace or look.key.namespace
        return preparation.prepared(image, preparation.provider_key(namespace_of(image), place, ref.name))

    async def judge_imported(self, look: MachinePass) -> None:
        """Compare an imported disk with the size that is expected, once; a provider that describes no disks leaves it open."""
        disk = look.vm.spec.importedDisk
        # An adopted machine has the size that its provider listed.
        adopted = (look.vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE
        if disk is None or disk.sizeGiB is None or adopted:
            look.drop(IMPORTED_DISK)
            return
        if look.memory.imported_bytes is None:
            request = m.GetDiskInfoRequest(vm_id=look.status.id or "", target_host_id=requests.host_of(look.vm))
            try:
                look.memory.imported_bytes = (await look.provider.get_disk_info(request)).virtual_size_bytes
            except ProviderError as error:
                if error.kind is not ErrorKind.NOT_SUPPORTED:
                    return
                look.memory.imported_bytes = 0
        problem = rootdisk.size_problem(disk, look.found.vmclass, look.memory.imported_bytes)
        if problem:
            look.say(false(IMPORTED_DISK, reasons.SIZE_DIFFERS, problem))
        else:
            look.drop(IMPORTED_DISK)

    # --- tasks ------------------------------------------------------------------------------------------------------------

    async def follow(self, look: MachinePass, name: TaskField) -> float | None:
        """Poll a task; the seconds until the next poll, or None when none is under way any more."""
        task = getattr(look.status, name)
        if not task:
            return None
        now = self._parts.now()
        if now < look.memory.task_due:
            return look.memory.task_due - now
        problem, reason = "", ""
        try:
            answer = await look.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=task)))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem, reason = f"the provider does not know the task {task}: {error}", reasons.PROVIDER_TASK_LOST
        else:
            if not answer.error and not answer.done:
                look.memory.task_due = now + self._parts.settings.polls.task
                look.say(self._under_way(look, task))
                return self._parts.settings.polls.task
            problem, reason = answer.error, answer.reason
        creating = holds(look.status.conditions, PROVISIONING)
        look.change(**{name: None})
        look.memory.due = 0.0
        if problem:
            failure = ProviderError(ErrorKind.INTERNAL, f"a task failed: {problem[:1024]}", reason=reason)
            self._task_failed(look, name, failure, creating=creating)
        else:
            self._task_done(look, name, creating=creating)
        if problem or name == "reconfigureTaskRef":
            # Else the rest of the pass has more to write.
            await self._statuses.write(look)
        return None

    def _task_done(self, look: MachinePass, name: TaskField, *, creating: bool) -> None:
        if name == "reconfigureTaskRef":
            self._reconfigured(look, next(reversed(attempts.of(look.status)), None))
        elif creating:
            self._created(look)

    def _task_failed(self, look: MachinePass, name: TaskField, error: ProviderError, *, creating: bool) -> None:
        """The task is forgotten; what is really there, the next description says."""
        failure = hold(self._parts, look, error)
        look.say(false(READY, failure.code, failure.message))
        if name == "reconfigureTaskRef":
            look.memory.resize_hold = failure
            look.say(false(RECONFIGURING, reasons.PROVIDER_ERROR, failure.message))
        else:
            look.memory.hold = failure
            if self._age(look, _POWER_REASONS["shutdown"]) is None:
                # The operation is due again; the guest of a shutdown keeps its deadline.
                look.drop(POWER)
            if creating:
                look.say(false(PROVISIONING, reasons.PROVIDER_ERROR, failure.message))
        self._tell(look, failure.code, failure.message, warning=True)

    # --- observing --------------------------------------------------------------------------------------------------------

    async def observe(self, look: MachinePass) -> m.DescribeResponse:
        """Describe the machine when that is due, and take the answer over into the status."""
        now = self._parts.now()
        answer = look.memory.answer
        if answer is None or now >= look.memory.due:
            answer = await look.provider.describe(requests.describe(look.vm, look.status.id or ""))
            look.memory.answer, look.memory.described = answer, now
            look.memory.due = now + self._parts.settings.polls.transition
        if answer.exists:
            look.status = status.observed(look.status, answer)
            if not look.status.currentResources and not look.status.lastTaskRef:
                # Its create task got lost, and the machine is there.
                self._made(look)
        return answer

    # --- power ------------------------------------------------------------------------------------------------------------

    def shutdown_age(self, look: MachinePass) -> float | None:
        """Seconds since the guest was asked to shut down, in the present transition; without end once its power is being cut."""
        if self._age(look, _POWER_REASONS["off"]) is not None:
            return math.inf
        return self._age(look, _POWER_REASONS["shutdown"])

    def _age(self, look: MachinePass, reason: str) -> float | None:
        found = find(look.status.conditions, POWER)
        if found is None or found.status != "True" or found.reason != reason:
            return None
        since = ages.seconds_of(found.lastTransitionTime)
        return max(0.0, self._parts.now() - since) if since is not None else None

    async def power(self, look: MachinePass, decision: PowerDecision) -> float:
        """Carry out a decision; returns the seconds until the machine is observed again."""
        reason = _POWER_REASONS[decision.operation]
        age = self._age(look, reason)
        if age is not None and age < _AGAIN_SECONDS and not look.created:
            return _AGAIN_SECONDS - age
        answer = await look.provider.power(requests.power(look.vm, look.status.id or "", decision.operation))
        task = _task(answer.task)
        message = _power_message(decision, requests.shutdown_seconds(look.vm))
        if task is not None:
            look.change(lastTaskRef=task)
            look.memory.task_due = self._parts.now() + self._parts.settings.polls.task
        look.memory.due = self._parts.now() + (self._parts.settings.polls.task if decision.operation == "shutdown" else 1.0)
        if not (look.created and holds(look.status.conditions, POWER, reason)):
            look.say(*_power_values(decision.operation, message))
        await self._statuses.write(look)
        self._tell(look, "ShutdownTimedOut" if decision.forced else reason, message, warning=decision.forced)
        return look.memory.due - self._parts.now()

    # --- sizes ------------------------------------------------------------------------------------------------------------

    async def reconfigure(self, look: MachinePass, sizes: MachineSizes) -> None:
        """Ask for sizes. Raises `Refusal` for what cannot be requested."""
        request = requests.reconfigure(look.vm, look.found, sizes, self.prepared(look))
        unanswered = attempts.of(look.status)
        look.status = attempts.recorded(look.status, sizes)
        await self._statuses.write(look)
        try:
            answer = await look.provider.reconfigure(msgspec.structs.replace(request, id=look.status.id or ""))
        except ProviderError as error:
            if not unanswered and (not error.sent or error.kind in attempts.REFUSALS):
                look.status = attempts.forgotten(look.status)
            raise
        task = _task(answer.task)
        if task is None:
            self._reconfigured(look, sizes)
        else:
            look.change(reconfigureTaskRef=task)
            look.memory.task_due = self._parts.now() + self._parts.settings.polls.task
            message = f"{self._provider(look)} changes the machine's sizes"
            look.say(true(RECONFIGURING, reasons.UPDATING, message), false(READY, reasons.UPDATING, message))
        await self._statuses.write(look)
        self._tell(look, "Reconfiguring" if task else "Reconfigured", f"{self._provider(look)} was asked for other sizes")

    def _reconfigured(self, look: MachinePass, sizes: MachineSizes | None) -> None:
        if sizes is not None:
            look.status = attempts.confirmed(look.status, sizes)
        look.memory.resize_hold, look.memory.due = None, 0.0
        look.change(lastReconfigureTime=self._parts.timestamp())
        look.say(false(RECONFIGURING, reasons.SUCCESS, "the provider has confirmed the sizes"))

    def _created(self, look: MachinePass) -> None:
        look.created = True
        look.say(false(PROVISIONING, reasons.SUCCESS, "the machine is created"))
        self._made(look)

    @staticmethod
    def _made(look: MachinePass) -> None:
        """Take over the sizes of a new machine. After creates with several sizes nobody knows which of them it has."""
        requested = attempts.of(look.status)
        if len(requested) == 1:
            look.status = attempts.confirmed(look.status, requested[0])

    @staticmethod
    def starts(look: MachinePass) -> bool:
        """Return whether a new machine is powered on without a description before: one that runs stays as it is."""
        return look.created and power.desired(look.vm.spec.powerState) == power.ON and not attempts.of(look.status)

    # --- words ------------------------------------------------------------------------------------------------------------

    def _under_way(self, look: MachinePass, task: str) -> AspectValue:
        return false(READY, reasons.IN_PROGRESS, f"task {task} of {self._provider(look)} is under way")

    def _provider(self, look: MachinePass) -> str:
        ref = look.vm.spec.providerRef
        return f"Provider {ref.namespace or look.key.namespace}/{ref.name}"

    def _tell(self, look: MachinePass, reason: str, note: str, *, warning: bool = False) -> None:
        self._parts.recorder.tell(look.about, "Warning" if warning else "Normal", reason, note)


def _task(ref: m.TaskRef | None) -> str | None:
    return ref.id if ref is not None and ref.id else None


def _power_values(operation: str, message: str) -> tuple[AspectValue, AspectValue]:
    record = true(POWER, _POWER_REASONS[operation], message)
    return msgspec.structs.replace(record, anew=True), false(READY, reasons.UPDATING, message)


def _power_message(decision: PowerDecision, seconds: float) -> str:
    if decision.forced:
        return f"the guest did not shut down in {seconds:g} s: its power is cut"
    return {
        "on": "the machine is being powered on",
        "off": "the machine is being powered off",
        "shutdown": f"the guest was asked to shut down; its power is cut after {seconds:g} s",
    }[decision.operation]
