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
from paddock.dialects.virtrigaud.controllers.context import MachinePass, VirtrigaudParts, hold
from paddock.dialects.virtrigaud.controllers.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage
from paddock.dialects.virtrigaud.plan import attempts, marks, power, preparation, reasons, references, requests, resizing, rootdisk, status
from paddock.dialects.virtrigaud.plan.conditions import (
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
from paddock.dialects.virtrigaud.plan.power import PowerDecision
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.world import namespace_of

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

    async def create(self, machine_pass: MachinePass) -> None:
        """Create the machine; its id is written before anything else is done. Raises `Refusal` for what cannot be requested."""
        request = requests.create(machine_pass.vm, machine_pass.found, self.prepared(machine_pass))
        assert machine_pass.found.vmclass is not None
        sizes, unanswered = resizing.wanted(machine_pass.vm, machine_pass.found.vmclass), attempts.of(machine_pass.status)
        machine_pass.status = attempts.recorded(machine_pass.status, sizes)
        machine_pass.say(
            true(PROVISIONING, reasons.CREATING, f"creating the machine at {self._provider(machine_pass)}"),
            false(READY, reasons.CREATING, f"the machine is being created at {self._provider(machine_pass)}"),
        )
        await self._statuses.write(machine_pass)
        try:
            answer = await self._request_create(machine_pass, request)
        except ProviderError as error:
            if not unanswered and (not error.sent or error.kind in attempts.REFUSALS_OF_CREATE):
                machine_pass.status = attempts.forgotten(machine_pass.status)
            raise
        task = _task(answer.task)
        if not answer.id and task is None:
            raise ProviderError(ErrorKind.INTERNAL, "the answer to Create has neither an id nor a task")
        machine_pass.change(id=answer.id or None, lastTaskRef=task)
        if task is None:
            self._created(machine_pass)
            if self.starts(machine_pass):
                # The record of the first start is written with the id.
                machine_pass.say(*_power_values("on", _power_message(PowerDecision("on"), 0.0)))
        else:
            machine_pass.memory.task_due = self._parts.now() + self._parts.settings.polls.first
            machine_pass.say(self._under_way(machine_pass, task))
        machine_pass.memory.answer = None
        await self._statuses.write(machine_pass)
        self._tell(machine_pass, "Created", f"{self._provider(machine_pass)} has created the machine {answer.id}".strip())

    async def _request_create(self, machine_pass: MachinePass, request: m.CreateRequest) -> m.CreateResponse:
        """Send a create. An answer with the machine of another object is an error: both would fight over it."""
        try:
            answer = await machine_pass.provider.create(request)
        except ProviderError as error:
            # Drivers get an imported disk as the image that the machine is made from.
            if error.reason_code != causes.TEMPLATE_MISSING or machine_pass.vm.spec.importedDisk is None:
                raise
            raise error.with_reason(causes.VOLUME_MISSING) from error
        others = [
            each for each in self._parts.caches.with_id(references.provider_of(machine_pass.vm), answer.id) if each != machine_pass.key
        ]
        if others:
            raise ProviderError(ErrorKind.CONFLICT, f"the answer to Create has the id of another machine, {others[0]}")
        return answer

    def prepared(self, machine_pass: MachinePass) -> ProviderImage | None:
        """The machine's image at its Provider, if that has prepared it."""
        image = machine_pass.found.image
        if image is None:
            return None
        ref = machine_pass.vm.spec.providerRef
        place = ref.namespace or machine_pass.key.namespace
        return preparation.prepared(image, preparation.provider_key(namespace_of(image), place, ref.name))

    async def judge_imported(self, machine_pass: MachinePass) -> None:
        """Compare an imported disk with the size that is expected, once; a provider that describes no disks leaves it open."""
        disk = machine_pass.vm.spec.importedDisk
        # An adopted machine has the size that its provider listed.
        adopted = (machine_pass.vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE
        if disk is None or disk.sizeGiB is None or adopted:
            machine_pass.drop(IMPORTED_DISK)
            return
        if machine_pass.memory.imported_bytes is None:
            request = m.GetDiskInfoRequest(vm_id=machine_pass.status.id or "", target_host_id=requests.host_of(machine_pass.vm))
            try:
                machine_pass.memory.imported_bytes = (await machine_pass.provider.get_disk_info(request)).virtual_size_bytes
            except ProviderError as error:
                if error.kind is not ErrorKind.NOT_SUPPORTED:
                    return
                machine_pass.memory.imported_bytes = 0
        problem = rootdisk.size_problem(disk, machine_pass.found.vmclass, machine_pass.memory.imported_bytes)
        if problem:
            machine_pass.say(false(IMPORTED_DISK, reasons.SIZE_DIFFERS, problem))
        else:
            machine_pass.drop(IMPORTED_DISK)

    # --- tasks ------------------------------------------------------------------------------------------------------------

    async def follow(self, machine_pass: MachinePass, name: TaskField) -> float | None:
        """Poll a task; the seconds until the next poll, or None when none is under way any more."""
        task = getattr(machine_pass.status, name)
        if not task:
            return None
        now = self._parts.now()
        if now < machine_pass.memory.task_due:
            return machine_pass.memory.task_due - now
        problem, reason = "", ""
        try:
            answer = await machine_pass.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=task)))
        except ProviderError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC):
                raise
            problem, reason = f"the provider does not know the task {task}: {error}", reasons.PROVIDER_TASK_LOST
        else:
            if not answer.error and not answer.done:
                machine_pass.memory.task_due = now + self._parts.settings.polls.task
                machine_pass.say(self._under_way(machine_pass, task))
                return self._parts.settings.polls.task
            problem, reason = answer.error, answer.reason
        creating = holds(machine_pass.status.conditions, PROVISIONING)
        machine_pass.change(**{name: None})
        machine_pass.memory.due = 0.0
        if problem:
            failure = ProviderError(ErrorKind.INTERNAL, f"a task failed: {problem[:1024]}", reason=reason)
            self._task_failed(machine_pass, name, failure, creating=creating)
        else:
            self._task_done(machine_pass, name, creating=creating)
        if problem or name == "reconfigureTaskRef":
            # Else the rest of the pass has more to write.
            await self._statuses.write(machine_pass)
        return None

    def _task_done(self, machine_pass: MachinePass, name: TaskField, *, creating: bool) -> None:
        if name == "reconfigureTaskRef":
            self._reconfigured(machine_pass, next(reversed(attempts.of(machine_pass.status)), None))
        elif creating:
            self._created(machine_pass)

    def _task_failed(self, machine_pass: MachinePass, name: TaskField, error: ProviderError, *, creating: bool) -> None:
        """The task is forgotten; what is really there, the next description says."""
        failure = hold(self._parts, machine_pass, error)
        machine_pass.say(false(READY, failure.code, failure.message))
        if name == "reconfigureTaskRef":
            machine_pass.memory.resize_hold = failure
            machine_pass.say(false(RECONFIGURING, reasons.PROVIDER_ERROR, failure.message))
        else:
            machine_pass.memory.hold = failure
            if self._age(machine_pass, _POWER_REASONS["shutdown"]) is None:
                # The operation is due again; the guest of a shutdown keeps its deadline.
                machine_pass.drop(POWER)
            if creating:
                machine_pass.say(false(PROVISIONING, reasons.PROVIDER_ERROR, failure.message))
        self._tell(machine_pass, failure.code, failure.message, warning=True)

    # --- observing --------------------------------------------------------------------------------------------------------

    async def observe(self, machine_pass: MachinePass) -> m.DescribeResponse:
        """Describe the machine when that is due, and take the answer over into the status."""
        now = self._parts.now()
        answer = machine_pass.memory.answer
        if answer is None or now >= machine_pass.memory.due:
            answer = await machine_pass.provider.describe(requests.describe(machine_pass.vm, machine_pass.status.id or ""))
            machine_pass.memory.answer, machine_pass.memory.described = answer, now
            machine_pass.memory.due = now + self._parts.settings.polls.transition
        if answer.exists:
            machine_pass.status = status.observed(machine_pass.status, answer)
            if not machine_pass.status.currentResources and not machine_pass.status.lastTaskRef:
                # Its create task got lost, and the machine is there.
                self._made(machine_pass)
        return answer

    # --- power ------------------------------------------------------------------------------------------------------------

    def shutdown_age(self, machine_pass: MachinePass) -> float | None:
        """Seconds since the guest was asked to shut down, in the present transition; without end once its power is being cut."""
        if self._age(machine_pass, _POWER_REASONS["off"]) is not None:
            return math.inf
        return self._age(machine_pass, _POWER_REASONS["shutdown"])

    def _age(self, machine_pass: MachinePass, reason: str) -> float | None:
        found = find(machine_pass.status.conditions, POWER)
        if found is None or found.status != "True" or found.reason != reason:
            return None
        since = ages.seconds_of(found.lastTransitionTime)
        return max(0.0, self._parts.now() - since) if since is not None else None

    async def power(self, machine_pass: MachinePass, decision: PowerDecision) -> float:
        """Carry out a decision; returns the seconds until the machine is observed again."""
        reason = _POWER_REASONS[decision.operation]
        age = self._age(machine_pass, reason)
        if age is not None and age < _AGAIN_SECONDS and not machine_pass.created:
            return _AGAIN_SECONDS - age
        answer = await machine_pass.provider.power(requests.power(machine_pass.vm, machine_pass.status.id or "", decision.operation))
        task = _task(answer.task)
        message = _power_message(decision, requests.shutdown_seconds(machine_pass.vm))
        if task is not None:
            machine_pass.change(lastTaskRef=task)
            machine_pass.memory.task_due = self._parts.now() + self._parts.settings.polls.task
        machine_pass.memory.due = self._parts.now() + (self._parts.settings.polls.task if decision.operation == "shutdown" else 1.0)
        if not (machine_pass.created and holds(machine_pass.status.conditions, POWER, reason)):
            machine_pass.say(*_power_values(decision.operation, message))
        await self._statuses.write(machine_pass)
        self._tell(machine_pass, "ShutdownTimedOut" if decision.forced else reason, message, warning=decision.forced)
        return machine_pass.memory.due - self._parts.now()

    # --- sizes ------------------------------------------------------------------------------------------------------------

    async def reconfigure(self, machine_pass: MachinePass, sizes: MachineSizes) -> None:
        """Ask for sizes. Raises `Refusal` for what cannot be requested."""
        request = requests.reconfigure(machine_pass.vm, machine_pass.found, sizes, self.prepared(machine_pass))
        unanswered = attempts.of(machine_pass.status)
        machine_pass.status = attempts.recorded(machine_pass.status, sizes)
        await self._statuses.write(machine_pass)
        try:
            answer = await machine_pass.provider.reconfigure(msgspec.structs.replace(request, id=machine_pass.status.id or ""))
        except ProviderError as error:
            if not unanswered and (not error.sent or error.kind in attempts.REFUSALS):
                machine_pass.status = attempts.forgotten(machine_pass.status)
            raise
        task = _task(answer.task)
        if task is None:
            self._reconfigured(machine_pass, sizes)
        else:
            machine_pass.change(reconfigureTaskRef=task)
            machine_pass.memory.task_due = self._parts.now() + self._parts.settings.polls.task
            message = f"{self._provider(machine_pass)} changes the machine's sizes"
            machine_pass.say(true(RECONFIGURING, reasons.UPDATING, message), false(READY, reasons.UPDATING, message))
        await self._statuses.write(machine_pass)
        self._tell(machine_pass, "Reconfiguring" if task else "Reconfigured", f"{self._provider(machine_pass)} was asked for other sizes")

    def _reconfigured(self, machine_pass: MachinePass, sizes: MachineSizes | None) -> None:
        if sizes is not None:
            machine_pass.status = attempts.confirmed(machine_pass.status, sizes)
        machine_pass.memory.resize_hold, machine_pass.memory.due = None, 0.0
        machine_pass.change(lastReconfigureTime=self._parts.timestamp())
        machine_pass.say(false(RECONFIGURING, reasons.SUCCESS, "the provider has confirmed the sizes"))

    def _created(self, machine_pass: MachinePass) -> None:
        machine_pass.created = True
        machine_pass.say(false(PROVISIONING, reasons.SUCCESS, "the machine is created"))
        self._made(machine_pass)

    @staticmethod
    def _made(machine_pass: MachinePass) -> None:
        """Take over the sizes of a new machine. After creates with several sizes nobody knows which of them it has."""
        requested = attempts.of(machine_pass.status)
        if len(requested) == 1:
            machine_pass.status = attempts.confirmed(machine_pass.status, requested[0])

    @staticmethod
    def starts(machine_pass: MachinePass) -> bool:
        """Return whether a new machine is powered on without a description before: one that runs stays as it is."""
        return machine_pass.created and power.desired(machine_pass.vm.spec.powerState) == power.ON and not attempts.of(machine_pass.status)

    # --- words ------------------------------------------------------------------------------------------------------------

    def _under_way(self, machine_pass: MachinePass, task: str) -> AspectValue:
        return false(READY, reasons.IN_PROGRESS, f"task {task} of {self._provider(machine_pass)} is under way")

    def _provider(self, machine_pass: MachinePass) -> str:
        ref = machine_pass.vm.spec.providerRef
        return f"Provider {ref.namespace or machine_pass.key.namespace}/{ref.name}"

    def _tell(self, machine_pass: MachinePass, reason: str, note: str, *, warning: bool = False) -> None:
        self._parts.recorder.tell(machine_pass.about, "Warning" if warning else "Normal", reason, note)


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
