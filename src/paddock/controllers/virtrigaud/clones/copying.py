"""The steps of a clone at its provider: the copy, its customization, and the VirtualMachine that gets it.

Each step asks first and writes then, and asking twice is harmless: a clone is known by its target, a reconfiguration names a state.
"""

import msgspec

from paddock.client.errors import Invalid
from paddock.client.target import Key
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.binding import MachineBinding
from paddock.controllers.virtrigaud.clones.following import CloneAttemptFailed, TaskFollowing, TaskPoll
from paddock.controllers.virtrigaud.clones.passes import ClonePass, CloneWriter
from paddock.controllers.virtrigaud.clones.prerequisites import CloneReady
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.dialects.virtrigaud.shared import LocalObjectReference
from paddock.dialects.virtrigaud.virtualmachine import VirtrigaudVirtualMachine
from paddock.meta.world import namespace_of
from paddock.plan.virtrigaud import attempts, power, reasons, requests, resizing, retries, status
from paddock.plan.virtrigaud.clones import judging, origin, progress, target
from paddock.plan.virtrigaud.clones import requests as clonerequests
from paddock.plan.virtrigaud.clones.origin import CloneOrigin
from paddock.plan.virtrigaud.conditions import READY, false, find, holds, true
from paddock.plan.virtrigaud.resizing import MachineSizes
from paddock.runtime.controller import DONE, Outcome, again

_SOON = 0.1


class CloneCopying:
    """Carries out clones."""

    def __init__(self, parts: VirtrigaudParts, writer: CloneWriter, binding: MachineBinding, tasks: TaskFollowing) -> None:
        self._parts = parts
        self._writer = writer
        self._binding = binding
        self._tasks = tasks

    async def of_machine(self, look: ClonePass, ready: CloneReady) -> Outcome:
        """Bring the clone of a machine a step on."""
        look.driver = ready.driver
        poll = await self._tasks.follow(look)
        if poll.wait is not None:
            return again(poll.wait)
        if look.status.phase == progress.CUSTOMIZING:
            return await self._customize(look, ready, poll)
        if poll.problem:
            raise CloneAttemptFailed(reasons.PROVIDER_ERROR, f"Provider {ready.provider}: the clone failed: {poll.problem}", code=poll.code)
        if not look.status.targetVMID:
            return await self._copy(look, ready)
        return await self._copied(look, ready)

    async def of_image(self, look: ClonePass, ready: CloneReady) -> Outcome:
        """Bring a machine that is made from an image a step on: its own controller makes it, once."""
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        found = await self._binding.find(key)
        if found is None:
            await self._begin(look, ready, "")
            found = await self._make(look, ready)
        known = status.of(self._own(look, found, key))
        if known.id:
            look.change(targetVMID=known.id, actualCloneType=judging.FULL)
            look.status = progress.customized(look.clone, look.status, done=True)
            return self._bound(look, ready, f"VirtualMachine {key} is made")
        look.change(phase=progress.CLONING if known.phase == status.PROVISIONING else progress.PREPARING)
        if known.phase == status.FAILED:
            raise CloneAttemptFailed(reasons.PROVIDER_ERROR, f"VirtualMachine {key}: {known.message}")
        look.say(false(READY, reasons.CLONING, f"VirtualMachine {key} is being made: {known.message or 'it is new'}"))
        return DONE

    # --- the copy ---------------------------------------------------------------------------------------------------------

    async def _begin(self, look: ClonePass, ready: CloneReady, source: str) -> None:
        """Write down where and for what the clone is begun, so that it can be found again or removed."""
        place, name = namespace_of(ready.target), ready.target.metadata.name
        begun = CloneOrigin(
            namespace=ready.provider.namespace,
            provider=ready.provider.name,
            source=source,
            target_namespace=place,
            target=name,
            linked=judging.options(look.clone).type == judging.LINKED,
            generation=look.clone.metadata.generation or 0,
        )
        look.say(true(origin.ORIGIN, reasons.CLONING, str(begun)))
        now = self._parts.timestamp()
        if not holds(look.status.conditions, progress.BEGUN):
            self._tell(look, reasons.CLONING, f"VirtualMachine {place}/{name} is cloned at Provider {ready.provider}")
        look.change(startTime=look.status.startTime or now, phase=progress.PREPARING if not source else progress.CLONING)
        text = f"VirtualMachine {place}/{name} is being made at Provider {ready.provider}"
        look.say(true(progress.BEGUN, reasons.CLONING, text), false(READY, reasons.CLONING, text))
        look.say(false(progress.CUSTOMIZED, reasons.CLONING, text))
        disks = ready.target.spec.disks if ready.source is None else ready.source.spec.disks
        if look.status.progress is None:
            look.status = progress.copied_disks(look.status, 1 + len(disks or ()))
        look.status = progress.customized(look.clone, look.status, done=False)
        await self._writer.write(look)

    async def _copy(self, look: ClonePass, ready: CloneReady) -> Outcome:
        assert ready.source is not None and ready.parts is not None
        source = status.of(ready.source).id or ""
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        there = await self._binding.find(key)
        if there is not None:
            self._own(look, there, key)
        request = clonerequests.clone(look.clone, source, ready.parts)
        first = not holds(look.status.conditions, progress.BEGUN)
        await self._begin(look, ready, source)
        try:
            answer = await look.provider.clone(request)
        except ProviderError as error:
            failure = self._tasks.final(error, f"Provider {ready.provider}")
            if failure is None:
                if first and (not error.sent or error.kind in attempts.REFUSALS_OF_CREATE):
                    # Nothing is to be looked for: that would take another Clone, and make what is to be removed.
                    look.say(false(progress.BEGUN, retries.reason(error), "the provider has made nothing"))
                raise
            if failure.reason == reasons.UNSUPPORTED and request.linked:
                raise CloneAttemptFailed(reasons.LINKED_CLONE_UNSUPPORTED, str(failure), nothing_made=first) from error
            raise CloneAttemptFailed(failure.reason, str(failure), nothing_made=first, code=failure.code) from error
        if not answer.target_vm_id and (answer.task is None or not answer.task.id):
            raise ProviderError(ErrorKind.INTERNAL, "the answer to Clone has neither an id nor a task")
        look.memory.failures = 0
        look.change(targetVMID=answer.target_vm_id or None)
        self._tasks.started(look, answer.task)
        await self._writer.write(look)
        return again(self._parts.settings.polls.task if look.status.taskRef else _SOON)

    async def _copied(self, look: ClonePass, ready: CloneReady) -> Outcome:
        """The task has ended, or nobody knows it any more: what the provider has decides."""
        made = look.status.targetVMID or ""
        if not (await look.provider.describe(m.DescribeRequest(id=made))).exists:
            raise CloneAttemptFailed(reasons.PROVIDER_ERROR, f"Provider {ready.provider} does not have the clone {made}")
        kind = judging.LINKED if judging.options(look.clone).type == judging.LINKED else judging.FULL
        look.change(phase=progress.CUSTOMIZING, actualCloneType=kind)
        look.say(false(progress.BEGUN, reasons.COMPLETED, f"the machine {made} is cloned"))
        if not self._rebuilds(look, ready):
            look.status = progress.customized(look.clone, look.status, done=True)
            look.say(false(progress.CUSTOMIZED, reasons.COMPLETED, "the clone is as it is asked for"))
        await self._writer.write(look)
        return again(_SOON)

    # --- its customization ------------------------------------------------------------------------------------------------

    @staticmethod
    def _rebuilds(look: ClonePass, ready: CloneReady) -> bool:
        assert ready.source is not None
        return target.rewired(look.clone, ready.source) or target.resized_disks(look.clone, ready.source)

    async def _customize(self, look: ClonePass, ready: CloneReady, poll: TaskPoll) -> Outcome:
        """Give the clone, which is off, the disks and networks of its target; then it gets its object."""
        found = find(look.status.conditions, progress.CUSTOMIZED)
        if poll.problem:
            raise CloneAttemptFailed(reasons.CUSTOMIZATION_FAILED, f"Provider {ready.provider}: {poll.problem}")
        if found is not None and found.status == "False" and found.reason == reasons.COMPLETED:
            return await self._bind(look, ready)
        if holds(look.status.conditions, progress.CUSTOMIZED, reasons.CUSTOMIZING) and not poll.lost:
            look.status = progress.customized(look.clone, look.status, done=True)
            look.say(false(progress.CUSTOMIZED, reasons.COMPLETED, "the clone is as it is asked for"))
            await self._writer.write(look)
            return again(_SOON)
        assert ready.parts is not None
        sizes = resizing.wanted(ready.target, ready.parts.vmclass)
        request = requests.reconfigure(ready.target, ready.found, sizes, None)
        try:
            answer = await look.provider.reconfigure(msgspec.structs.replace(request, id=look.status.targetVMID or "", owner=None))
        except ProviderError as error:
            if (failure := self._tasks.final(error, f"Provider {ready.provider}")) is None:
                raise
            raise CloneAttemptFailed(reasons.CUSTOMIZATION_FAILED, str(failure), code=failure.code) from error
        self._tasks.started(look, answer.task)
        text = "the clone gets the disks and networks of its target"
        look.say(true(progress.CUSTOMIZED, reasons.CUSTOMIZING, text), false(READY, reasons.CUSTOMIZING, text))
        await self._writer.write(look)
        return again(self._parts.settings.polls.task if look.status.taskRef else _SOON)

    # --- its object -------------------------------------------------------------------------------------------------------

    async def _bind(self, look: ClonePass, ready: CloneReady) -> Outcome:
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        found = self._own(look, await self._binding.find(key) or await self._make(look, ready), key)
        if found.metadata.deletionTimestamp is not None:
            return again(self._parts.settings.polls.task)
        await self._binding.give_id(key, found.metadata.uid or "", look.status.targetVMID or "", self._sizes(look, ready))
        outcome = self._bound(look, ready, f"VirtualMachine {key} has the machine {look.status.targetVMID}")
        await self._writer.write(look)
        return outcome

    def _sizes(self, look: ClonePass, ready: CloneReady) -> MachineSizes:
        """The sizes that the clone was made with."""
        assert ready.parts is not None and ready.source is not None
        wanted = resizing.wanted(ready.target, ready.parts.vmclass)
        # Nobody has written down which disks the machine had in a snapshot.
        known = resizing.confirmed(status.of(ready.source)).disks if not ready.parts.snapshot else None
        return wanted if self._rebuilds(look, ready) else msgspec.structs.replace(wanted, disks=known)

    async def _make(self, look: ClonePass, ready: CloneReady) -> VirtrigaudVirtualMachine | None:
        key = Key(namespace_of(ready.target), ready.target.metadata.name)
        try:
            made = await self._binding.make(ready.target)
        except Invalid as error:
            raise CloneAttemptFailed(reasons.VALIDATION_ERROR, f"VirtualMachine {key} cannot be made: {error}") from error
        return made if made is not None else await self._binding.find(key)

    def _own(self, look: ClonePass, found: VirtrigaudVirtualMachine | None, key: Key) -> VirtrigaudVirtualMachine:
        """The machine, if this clone has made it."""
        if found is None:
            raise ProviderError(ErrorKind.UNAVAILABLE, f"VirtualMachine {key} has been made and deleted in these moments")
        if target.is_of(found, look.clone):
            return found
        text = f"VirtualMachine {key} exists and is not of this clone: choose another spec.target.name"
        raise CloneAttemptFailed(reasons.TARGET_EXISTS, text, nothing_made=not progress.is_unfinished(look.clone))

    def _bound(self, look: ClonePass, ready: CloneReady, message: str) -> Outcome:
        on = judging.options(look.clone).powerOn
        look.change(
            targetRef=LocalObjectReference(name=ready.target.metadata.name),
            phase=progress.POWERING_ON if on else progress.CUSTOMIZING,
        )
        look.say(
            false(progress.BEGUN, reasons.COMPLETED, message),
            false(progress.CUSTOMIZED, reasons.COMPLETED, "the clone is as it is asked for"),
            false(READY, reasons.POWERING_ON if on else reasons.CUSTOMIZING, message),
        )
        return again(_SOON)

    def power(self, look: ClonePass) -> Outcome:
        """Wait until the new machine is observed as it should be."""
        key = Key(target.namespace(look.clone), look.clone.spec.target.name)
        begun = origin.of(look.status.conditions)
        if begun is not None:
            key = Key(begun.target_namespace, begun.target)
        seen = self._parts.caches.machines.expectations.latest(key)
        machine = seen.read(targets.MACHINES) if seen is not None else None
        if machine is None or not target.is_of(machine, look.clone) or machine.metadata.deletionTimestamp is not None:
            raise CloneAttemptFailed(reasons.TARGET_GONE, f"VirtualMachine {key} was deleted before it was ready")
        known, wanted = status.of(machine), power.ON if judging.options(look.clone).powerOn else power.OFF
        if known.powerState != wanted:
            look.say(false(READY, reasons.POWERING_ON, f"VirtualMachine {key}: {known.message or 'it has not been observed yet'}"))
            return DONE
        look.change(phase=progress.PHASE_READY, completionTime=self._parts.timestamp())
        text = f"VirtualMachine {key} is {wanted.lower()}"
        look.say(true(READY, reasons.COMPLETED, text))
        self._tell(look, reasons.COMPLETED, text)
        return DONE

    def _tell(self, look: ClonePass, reason: str, note: str) -> None:
        self._parts.recorder.tell(look.about, "Normal", reason, note)
