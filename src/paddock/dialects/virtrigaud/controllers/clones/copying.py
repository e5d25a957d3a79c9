"""The steps of a clone at its provider: the copy, its customization, and the VirtualMachine that gets it.

Each step asks first and writes then, and asking twice is harmless: a clone is known by its target, a reconfiguration names a state.
"""

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.binding import MachineBinding
from paddock.dialects.virtrigaud.controllers.clones.following import CloneAttemptFailed, TaskFollowing, TaskPoll
from paddock.dialects.virtrigaud.controllers.clones.passes import ClonePass, CloneWriter
from paddock.dialects.virtrigaud.controllers.clones.prerequisites import CloneReady
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import attempts, power, reasons, requests, resizing, retries, status
from paddock.dialects.virtrigaud.plan.clones import judging, origin, progress, target
from paddock.dialects.virtrigaud.plan.clones import requests as clonerequests
from paddock.dialects.virtrigaud.plan.clones.origin import CloneOrigin
from paddock.dialects.virtrigaud.plan.conditions import READY, false, find, holds, true
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.client.errors import Invalid
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.runtime.controller import DONE, Outcome, again

_SOON = 0.1


class CloneCopying:
    def __init__(self, parts: VirtrigaudParts, writer: CloneWriter, binding: MachineBinding, tasks: TaskFollowing) -> None:
        self._parts = parts
        self._writer = writer
        self._binding = binding
        self._tasks = tasks

    async def of_machine(self, clone_pass: ClonePass, ready: CloneReady) -> Outcome:
        """Bring the clone of a machine a step on."""
        clone_pass.driver = ready.driver
        poll = await self._tasks.follow(clone_pass)
        if poll.wait is not None:
            return again(poll.wait)
        if clone_pass.status.phase == progress.CUSTOMIZING:
            return await self._customize(clone_pass, ready, poll)
        if poll.problem:
            raise CloneAttemptFailed(reasons.PROVIDER_ERROR, f"Provider {ready.provider}: the clone failed: {poll.problem}", code=poll.code)
        if not clone_pass.status.targetVMID:
            return await self._copy(clone_pass, ready)
        return await self._copied(clone_pass, ready)

    async def of_image(self, clone_pass: ClonePass, ready: CloneReady) -> Outcome:
        """Bring a machine that is made from an image a step on: its own controller makes it, once."""
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        found = await self._binding.find(key)
        if found is None:
            await self._begin(clone_pass, ready, "")
            found = await self._make(clone_pass, ready)
        known = status.of(self._own(clone_pass, found, key))
        if known.id:
            clone_pass.change(targetVMID=known.id, actualCloneType=judging.FULL)
            clone_pass.status = progress.customized(clone_pass.clone, clone_pass.status, done=True)
            return self._bound(clone_pass, ready, f"VirtualMachine {key} is made")
        clone_pass.change(phase=progress.CLONING if known.phase == status.PROVISIONING else progress.PREPARING)
        if known.phase == status.FAILED:
            raise CloneAttemptFailed(reasons.PROVIDER_ERROR, f"VirtualMachine {key}: {known.message}")
        clone_pass.say(false(READY, reasons.CLONING, f"VirtualMachine {key} is being made: {known.message or 'it is new'}"))
        return DONE

    # --- the copy ---------------------------------------------------------------------------------------------------------

    async def _begin(self, clone_pass: ClonePass, ready: CloneReady, source: str) -> None:
        """Write down where and for what the clone is begun, so that it can be found again or removed."""
        place, name = namespace_of(ready.target), ready.target.metadata.name
        begun = CloneOrigin(
            namespace=ready.provider.namespace,
            provider=ready.provider.name,
            source=source,
            target_namespace=place,
            target=name,
            linked=judging.options(clone_pass.clone).type == judging.LINKED,
            generation=clone_pass.clone.metadata.generation or 0,
        )
        clone_pass.say(true(origin.ORIGIN, reasons.CLONING, str(begun)))
        now = self._parts.timestamp()
        if not holds(clone_pass.status.conditions, progress.BEGUN):
            self._tell(clone_pass, reasons.CLONING, f"VirtualMachine {place}/{name} is cloned at Provider {ready.provider}")
        clone_pass.change(startTime=clone_pass.status.startTime or now, phase=progress.PREPARING if not source else progress.CLONING)
        text = f"VirtualMachine {place}/{name} is being made at Provider {ready.provider}"
        clone_pass.say(true(progress.BEGUN, reasons.CLONING, text), false(READY, reasons.CLONING, text))
        clone_pass.say(false(progress.CUSTOMIZED, reasons.CLONING, text))
        disks = ready.target.spec.disks if ready.source is None else ready.source.spec.disks
        if clone_pass.status.progress is None:
            clone_pass.status = progress.copied_disks(clone_pass.status, 1 + len(disks or ()))
        clone_pass.status = progress.customized(clone_pass.clone, clone_pass.status, done=False)
        await self._writer.write(clone_pass)

    async def _copy(self, clone_pass: ClonePass, ready: CloneReady) -> Outcome:
        assert ready.source is not None and ready.parts is not None
        source = status.of(ready.source).id or ""
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        there = await self._binding.find(key)
        if there is not None:
            self._own(clone_pass, there, key)
        request = clonerequests.clone(clone_pass.clone, source, ready.parts)
        first = not holds(clone_pass.status.conditions, progress.BEGUN)
        await self._begin(clone_pass, ready, source)
        try:
            answer = await clone_pass.provider.clone(request)
        except ProviderError as error:
            failure = self._tasks.final(error, f"Provider {ready.provider}")
            if failure is None:
                if first and (not error.sent or error.kind in attempts.REFUSALS_OF_CREATE):
                    # Nothing is to be looked for: that would take another Clone, and make what is to be removed.
                    clone_pass.say(false(progress.BEGUN, retries.reason(error), "the provider has made nothing"))
                raise
            if failure.reason == reasons.UNSUPPORTED and request.linked:
                raise CloneAttemptFailed(reasons.LINKED_CLONE_UNSUPPORTED, str(failure), nothing_made=first) from error
            raise CloneAttemptFailed(failure.reason, str(failure), nothing_made=first, code=failure.code) from error
        if not answer.target_vm_id and (answer.task is None or not answer.task.id):
            raise ProviderError(ErrorKind.INTERNAL, "the answer to Clone has neither an id nor a task")
        clone_pass.memory.failures = 0
        clone_pass.change(targetVMID=answer.target_vm_id or None)
        self._tasks.started(clone_pass, answer.task)
        await self._writer.write(clone_pass)
        return again(self._parts.settings.polls.task if clone_pass.status.taskRef else _SOON)

    async def _copied(self, clone_pass: ClonePass, ready: CloneReady) -> Outcome:
        """The task has ended, or nobody knows it any more: what the provider has decides."""
        made = clone_pass.status.targetVMID or ""
        if not (await clone_pass.provider.describe(m.DescribeRequest(id=made))).exists:
            raise CloneAttemptFailed(reasons.PROVIDER_ERROR, f"Provider {ready.provider} does not have the clone {made}")
        kind = judging.LINKED if judging.options(clone_pass.clone).type == judging.LINKED else judging.FULL
        clone_pass.change(phase=progress.CUSTOMIZING, actualCloneType=kind)
        clone_pass.say(false(progress.BEGUN, reasons.COMPLETED, f"the machine {made} is cloned"))
        if not self._rebuilds(clone_pass, ready):
            clone_pass.status = progress.customized(clone_pass.clone, clone_pass.status, done=True)
            clone_pass.say(false(progress.CUSTOMIZED, reasons.COMPLETED, "the clone is as it is asked for"))
        await self._writer.write(clone_pass)
        return again(_SOON)

    # --- its customization ------------------------------------------------------------------------------------------------

    @staticmethod
    def _rebuilds(clone_pass: ClonePass, ready: CloneReady) -> bool:
        assert ready.source is not None
        return target.rewired(clone_pass.clone, ready.source) or target.resized_disks(clone_pass.clone, ready.source)

    async def _customize(self, clone_pass: ClonePass, ready: CloneReady, poll: TaskPoll) -> Outcome:
        """Give the clone, which is off, the disks and networks of its target; then it gets its object."""
        found = find(clone_pass.status.conditions, progress.CUSTOMIZED)
        if poll.problem:
            raise CloneAttemptFailed(reasons.CUSTOMIZATION_FAILED, f"Provider {ready.provider}: {poll.problem}")
        if found is not None and found.status == "False" and found.reason == reasons.COMPLETED:
            return await self._bind(clone_pass, ready)
        if holds(clone_pass.status.conditions, progress.CUSTOMIZED, reasons.CUSTOMIZING) and not poll.lost:
            clone_pass.status = progress.customized(clone_pass.clone, clone_pass.status, done=True)
            clone_pass.say(false(progress.CUSTOMIZED, reasons.COMPLETED, "the clone is as it is asked for"))
            await self._writer.write(clone_pass)
            return again(_SOON)
        assert ready.parts is not None
        sizes = resizing.wanted(ready.target, ready.parts.vmclass)
        request = requests.reconfigure(ready.target, ready.found, sizes, None)
        try:
            answer = await clone_pass.provider.reconfigure(
                msgspec.structs.replace(request, id=clone_pass.status.targetVMID or "", owner=None)
            )
        except ProviderError as error:
            if (failure := self._tasks.final(error, f"Provider {ready.provider}")) is None:
                raise
            raise CloneAttemptFailed(reasons.CUSTOMIZATION_FAILED, str(failure), code=failure.code) from error
        self._tasks.started(clone_pass, answer.task)
        text = "the clone gets the disks and networks of its target"
        clone_pass.say(true(progress.CUSTOMIZED, reasons.CUSTOMIZING, text), false(READY, reasons.CUSTOMIZING, text))
        await self._writer.write(clone_pass)
        return again(self._parts.settings.polls.task if clone_pass.status.taskRef else _SOON)

    # --- its object -------------------------------------------------------------------------------------------------------

    async def _bind(self, clone_pass: ClonePass, ready: CloneReady) -> Outcome:
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        found = self._own(clone_pass, await self._binding.find(key) or await self._make(clone_pass, ready), key)
        if found.metadata.deletionTimestamp is not None:
            return again(self._parts.settings.polls.task)
        await self._binding.give_id(key, found.metadata.uid or "", clone_pass.status.targetVMID or "", self._sizes(clone_pass, ready))
        outcome = self._bound(clone_pass, ready, f"VirtualMachine {key} has the machine {clone_pass.status.targetVMID}")
        await self._writer.write(clone_pass)
        return outcome

    def _sizes(self, clone_pass: ClonePass, ready: CloneReady) -> MachineSizes:
        """The sizes that the clone was made with."""
        assert ready.parts is not None and ready.source is not None
        wanted = resizing.wanted(ready.target, ready.parts.vmclass)
        # Nobody has written down which disks the machine had in a snapshot.
        known = resizing.confirmed(status.of(ready.source)).disks if not ready.parts.snapshot else None
        return wanted if self._rebuilds(clone_pass, ready) else msgspec.structs.replace(wanted, disks=known)

    async def _make(self, clone_pass: ClonePass, ready: CloneReady) -> VirtrigaudVirtualMachine | None:
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        try:
            made = await self._binding.make(ready.target)
        except Invalid as error:
            raise CloneAttemptFailed(reasons.VALIDATION_ERROR, f"VirtualMachine {key} cannot be made: {error}") from error
        return made if made is not None else await self._binding.find(key)

    def _own(self, clone_pass: ClonePass, vm: VirtrigaudVirtualMachine | None, key: Key) -> VirtrigaudVirtualMachine:
        """The machine, if this clone has made it."""
        if vm is None:
            raise ProviderError(ErrorKind.UNAVAILABLE, f"VirtualMachine {key} has been made and deleted in these moments")
        if target.is_of(vm, clone_pass.clone):
            return vm
        text = f"VirtualMachine {key} exists and is not of this clone: choose another spec.target.name"
        raise CloneAttemptFailed(reasons.TARGET_EXISTS, text, nothing_made=not progress.is_unfinished(clone_pass.clone))

    def _bound(self, clone_pass: ClonePass, ready: CloneReady, message: str) -> Outcome:
        on = judging.options(clone_pass.clone).powerOn
        clone_pass.change(
            targetRef=LocalObjectReference(name=ready.target.metadata.name),
            phase=progress.POWERING_ON if on else progress.CUSTOMIZING,
        )
        clone_pass.say(
            false(progress.BEGUN, reasons.COMPLETED, message),
            false(progress.CUSTOMIZED, reasons.COMPLETED, "the clone is as it is asked for"),
            false(READY, reasons.POWERING_ON if on else reasons.CUSTOMIZING, message),
        )
        return again(_SOON)

    def power(self, clone_pass: ClonePass) -> Outcome:
        """Wait until the new machine is observed as it should be."""
        key = Key(target.namespace(clone_pass.clone), clone_pass.clone.spec.target.name)
        begun = origin.of(clone_pass.status.conditions)
        if begun is not None:
            key = Key(begun.target_namespace, begun.target)
        seen = self._parts.caches.machines.expectations.latest(key)
        machine = seen.read(targets.MACHINES) if seen is not None else None
        if machine is None or not target.is_of(machine, clone_pass.clone) or machine.metadata.deletionTimestamp is not None:
            raise CloneAttemptFailed(reasons.TARGET_GONE, f"VirtualMachine {key} was deleted before it was ready")
        known, wanted = status.of(machine), power.ON if judging.options(clone_pass.clone).powerOn else power.OFF
        if known.powerState != wanted:
            clone_pass.say(false(READY, reasons.POWERING_ON, f"VirtualMachine {key}: {known.message or 'it has not been observed yet'}"))
            return DONE
        clone_pass.change(phase=progress.PHASE_READY, completionTime=self._parts.timestamp())
        text = f"VirtualMachine {key} is {wanted.lower()}"
        clone_pass.say(true(READY, reasons.COMPLETED, text))
        self._tell(clone_pass, reasons.COMPLETED, text)
        return DONE

    def _tell(self, clone_pass: ClonePass, reason: str, note: str) -> None:
        self._parts.recorder.tell(clone_pass.about, "Normal", reason, note)
