"""Removes what an attempt has left at a provider and nobody has yet: after a failure, and when an unfinished VMClone is deleted."""

from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.binding import MachineBinding
from paddock.dialects.virtrigaud.controllers.clones.following import TaskFollowing
from paddock.dialects.virtrigaud.controllers.clones.passes import ClonePass
from paddock.dialects.virtrigaud.controllers.clones.prerequisites import ClonePrerequisites, CloneWaits
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.plan import marks, reasons
from paddock.dialects.virtrigaud.plan import status as machinestatus
from paddock.dialects.virtrigaud.plan.clones import origin, progress, target
from paddock.dialects.virtrigaud.plan.clones.origin import CloneOrigin
from paddock.dialects.virtrigaud.plan.conditions import false, holds, true
from paddock.kubernetes.client.target import Key

# A provider that answers so to the same request, as often in a row, has nothing of this clone. One answer proves nothing: some judge a
# request before they look for what it has made.
_REFUSED_TIMES = 3
_NOTHING = (ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED, ErrorKind.CONFLICT, ErrorKind.QUOTA_EXCEEDED, ErrorKind.NOT_FOUND)
_SOON = 1.0


class CloneCleanup:
    """Removes machines that no VirtualMachine has."""

    def __init__(self, parts: VirtrigaudParts, looking: ClonePrerequisites, binding: MachineBinding, tasks: TaskFollowing) -> None:
        self._parts = parts
        self._looking = looking
        self._binding = binding
        self._tasks = tasks

    def begin(self, clone_pass: ClonePass, message: str) -> None:
        """Have what was made removed, from now on."""
        clone_pass.change(taskRef=None)
        clone_pass.say(true(progress.CLEANUP, reasons.DELETING, message))

    async def advance(self, clone_pass: ClonePass) -> float | None:
        """Bring the removal a step on: the seconds until the next step, or None when nothing is left."""
        begun = origin.of(clone_pass.status.conditions)
        if begun is None or clone_pass.status.targetRef is not None:
            return self._ended(clone_pass)
        if await self._remove_object(clone_pass, begun):
            return _SOON
        if not self._may_exist(clone_pass, begun):
            return self._ended(clone_pass)
        clone_pass.driver = self._driver(begun)
        poll = await self._tasks.follow(clone_pass)
        if poll.wait is not None:
            return poll.wait
        if not clone_pass.status.targetVMID and not await self._find(clone_pass, begun):
            return self._ended(clone_pass)
        made = clone_pass.status.targetVMID or ""
        if not (await clone_pass.provider.describe(m.DescribeRequest(id=made))).exists:
            return self._ended(clone_pass)
        try:
            answer = await clone_pass.provider.delete(m.DeleteRequest(id=made))
        except ProviderError as error:
            if error.kind == ErrorKind.NOT_FOUND:
                return self._ended(clone_pass)
            raise
        self._tasks.started(clone_pass, answer.task)
        return self._parts.settings.polls.task if clone_pass.status.taskRef else _SOON

    @staticmethod
    def _may_exist(clone_pass: ClonePass, begun: CloneOrigin) -> bool:
        """Return whether the provider may have a machine that nobody owns."""
        if clone_pass.status.targetRef is not None or not begun.source:
            return False
        return bool(clone_pass.status.targetVMID) or holds(clone_pass.status.conditions, progress.BEGUN)

    def _driver(self, begun: CloneOrigin) -> Driver:
        key = Key(begun.namespace, begun.provider)
        seen = self._parts.caches.providers.cache.get(key)
        if seen is None:
            raise CloneWaits(reasons.PROVIDER_ERROR, f"there is no Provider {key}, so nobody can remove the clone's machine; make it again")
        return self._looking.driver(key, seen.read(targets.PROVIDERS).spec.type)

    async def _remove_object(self, clone_pass: ClonePass, begun: CloneOrigin) -> bool:
        """Remove an object that has got no machine yet; return whether there was one."""
        found = await self._binding.find(Key(begun.target_namespace, begun.target))
        if found is None or not target.is_of(found, clone_pass.clone):
            return False
        if machinestatus.of(found).id:
            # It has its machine: it is a target like any other, and stays.
            clone_pass.change(targetVMID=machinestatus.of(found).id, targetRef=LocalObjectReference(name=begun.target))
            return False
        await self._binding.remove(found)
        return True

    async def _find(self, clone_pass: ClonePass, begun: CloneOrigin) -> bool:
        """The answer to a clone got lost: the same clone, asked for again, answers with its machine, so that it can be deleted.

        A list does not say as much: a copy under way is in none (KubeVirt's clones have no machine until their disks are copied), and
        a clone has no owner's uid that tells it from another machine of its name.
        """
        identity = m.ObjectIdentity(namespace=begun.target_namespace, name=begun.target)
        request = m.CloneRequest(source_vm_id=begun.source, target_name=begun.target, linked=begun.linked, target_vm=identity)
        try:
            answer = await clone_pass.provider.clone(request)
        except ProviderError as error:
            clone_pass.memory.refusals = clone_pass.memory.refusals + 1 if error.kind in _NOTHING else 0
            if clone_pass.memory.refusals >= _REFUSED_TIMES:
                return False
            raise
        clone_pass.memory.refusals = 0
        clone_pass.change(targetVMID=answer.target_vm_id or None)
        return bool(answer.target_vm_id)

    @staticmethod
    def _ended(clone_pass: ClonePass) -> None:
        clone_pass.change(taskRef=None, targetVMID=clone_pass.status.targetVMID if clone_pass.status.targetRef is not None else None)
        clone_pass.say(false(progress.CLEANUP, reasons.COMPLETED, "nothing of the attempt is left"))
        if holds(clone_pass.status.conditions, progress.BEGUN):
            clone_pass.say(false(progress.BEGUN, reasons.DELETING, "the attempt was given up"))


def is_forced(clone_pass: ClonePass) -> bool:
    """Return whether the object goes although its machine may still exist."""
    return (clone_pass.clone.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE
