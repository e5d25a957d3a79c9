"""Removes what an attempt has left at a provider and nobody has yet: after a failure, and when an unfinished VMClone is deleted."""

from paddock.client.target import Key
from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.binding import MachineBinding
from paddock.controllers.virtrigaud.clones.following import TaskFollowing
from paddock.controllers.virtrigaud.clones.passes import ClonePass
from paddock.controllers.virtrigaud.clones.prerequisites import ClonePrerequisites, CloneWaits
from paddock.controllers.virtrigaud.context import VirtrigaudParts
from paddock.dialects.virtrigaud.shared import LocalObjectReference
from paddock.plan.virtrigaud import marks, reasons
from paddock.plan.virtrigaud import status as machinestatus
from paddock.plan.virtrigaud.clones import origin, progress, target
from paddock.plan.virtrigaud.clones.origin import CloneOrigin
from paddock.plan.virtrigaud.conditions import false, holds, true

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

    def begin(self, look: ClonePass, message: str) -> None:
        """Have what was made removed, from now on."""
        look.change(taskRef=None)
        look.say(true(progress.CLEANUP, reasons.DELETING, message))

    async def advance(self, look: ClonePass) -> float | None:
        """Bring the removal a step on: the seconds until the next step, or None when nothing is left."""
        begun = origin.of(look.status.conditions)
        if begun is None or look.status.targetRef is not None:
            return self._ended(look)
        if await self._remove_object(look, begun):
            return _SOON
        if not self._may_exist(look, begun):
            return self._ended(look)
        look.driver = self._driver(begun)
        poll = await self._tasks.follow(look)
        if poll.wait is not None:
            return poll.wait
        if not look.status.targetVMID and not await self._find(look, begun):
            return self._ended(look)
        made = look.status.targetVMID or ""
        if not (await look.provider.describe(m.DescribeRequest(id=made))).exists:
            return self._ended(look)
        try:
            answer = await look.provider.delete(m.DeleteRequest(id=made))
        except ProviderError as error:
            if error.kind == ErrorKind.NOT_FOUND:
                return self._ended(look)
            raise
        self._tasks.started(look, answer.task)
        return self._parts.settings.polls.task if look.status.taskRef else _SOON

    @staticmethod
    def _may_exist(look: ClonePass, begun: CloneOrigin) -> bool:
        """Return whether the provider may have a machine that nobody owns."""
        if look.status.targetRef is not None or not begun.source:
            return False
        return bool(look.status.targetVMID) or holds(look.status.conditions, progress.BEGUN)

    def _driver(self, begun: CloneOrigin) -> Driver:
        key = Key(begun.namespace, begun.provider)
        seen = self._parts.caches.providers.cache.get(key)
        if seen is None:
            raise CloneWaits(reasons.PROVIDER_ERROR, f"there is no Provider {key}, so nobody can remove the clone's machine; make it again")
        return self._looking.driver(key, seen.read(targets.PROVIDERS).spec.type)

    async def _remove_object(self, look: ClonePass, begun: CloneOrigin) -> bool:
        """Remove an object that has got no machine yet; return whether there was one."""
        found = await self._binding.find(Key(begun.target_namespace, begun.target))
        if found is None or not target.is_of(found, look.clone):
            return False
        if machinestatus.of(found).id:
            # It has its machine: it is a target like any other, and stays.
            look.change(targetVMID=machinestatus.of(found).id, targetRef=LocalObjectReference(name=begun.target))
            return False
        await self._binding.remove(found)
        return True

    async def _find(self, look: ClonePass, begun: CloneOrigin) -> bool:
        """The answer to a clone got lost: the same clone, asked for again, answers with its machine, so that it can be deleted.

        A list does not say as much: a copy under way is in none (KubeVirt's clones have no machine until their disks are copied), and
        a clone has no owner's uid that tells it from another machine of its name.
        """
        identity = m.ObjectIdentity(namespace=begun.target_namespace, name=begun.target)
        request = m.CloneRequest(source_vm_id=begun.source, target_name=begun.target, linked=begun.linked, target_vm=identity)
        try:
            answer = await look.provider.clone(request)
        except ProviderError as error:
            look.memory.refusals = look.memory.refusals + 1 if error.kind in _NOTHING else 0
            if look.memory.refusals >= _REFUSED_TIMES:
                return False
            raise
        look.memory.refusals = 0
        look.change(targetVMID=answer.target_vm_id or None)
        return bool(answer.target_vm_id)

    @staticmethod
    def _ended(look: ClonePass) -> None:
        look.change(taskRef=None, targetVMID=look.status.targetVMID if look.status.targetRef is not None else None)
        look.say(false(progress.CLEANUP, reasons.COMPLETED, "nothing of the attempt is left"))
        if holds(look.status.conditions, progress.BEGUN):
            look.say(false(progress.BEGUN, reasons.DELETING, "the attempt was given up"))


def is_forced(look: ClonePass) -> bool:
    """Return whether the object goes although its machine may still exist."""
    return (look.clone.metadata.annotations or {}).get(marks.FORCE_DELETE) == marks.TRUE
