"""Suspends machines whose instances ask for it, and resumes them when they do no longer.

Writing the memory of a guest takes as long as it is large, so that is a task. Where it fails, the guest runs on, and the wish is taken
back: a guest should not be suspended an hour later because there is room by then. A resume that fails is tried again, as a start is.
"""

import asyncio
import logging
import random
from collections.abc import Callable

from paddock.base import reasons
from paddock.base.backoff import Backoff
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubevirt.controllers.virtualmachineinstance.preparer import Preparer
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES, key_of, reference_to
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import prerequisites, suspension
from paddock.kubevirt.plan.instance.grace import grace_of

_LOG = logging.getLogger(__name__)
_BACKOFF = Backoff(10.0, 300.0)


class GuestSuspensions:
    """The suspensions of all machines. `request` asks for a reconcile of a machine."""

    def __init__(self, client: Client, preparer: Preparer, recorder: EventRecorder, clock: Clock, request: Callable[[str], None]) -> None:
        self._client = client
        self._preparer = preparer
        self._recorder = recorder
        self._clock = clock
        self._request = request
        self._chance = random.Random()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._refusals: dict[str, str] = {}
        # resumes that failed in a row, and when the next one is due
        self._failures: dict[str, tuple[int, float]] = {}

    def refusal(self, machine: str) -> str:
        """Return the reason why a machine was not suspended; empty: it was, or nobody asked."""
        return self._refusals.get(machine, "")

    def begin(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Have a machine that runs suspended, if that is not under way."""
        if machine.id not in self._tasks:
            self._refusals.pop(machine.id, None)
            self._tasks[machine.id] = asyncio.create_task(self._suspend(instance, machine), name=f"suspend {machine.id}")

    async def resume(self, instance: VirtualMachineInstance, machine: QemuMachine, machines: Machines) -> None:
        """Have a suspended machine go on. Raises `MissingPrerequisite`."""
        now, (count, due) = self._clock.seconds(), self._failures.get(machine.id, (0, 0.0))
        why = machine.observed.end.text if machine.observed.end is not None else ""
        if why and due == 0.0:
            due = now + _BACKOFF.pause(count, self._chance) if count else now
            self._failures[machine.id] = (count, due)
        if why and due > now:
            raise prerequisites.failed(reasons.RESUME_FAILED, f"the suspended machine cannot be resumed: {why}", again=due - now)
        config = await self._preparer.resumed(instance, machine.config)
        await machines.define(machine.id, config)
        self._failures[machine.id] = (count + 1, 0.0)
        await machine.start(priority=self._preparer.priority(instance), grace=grace_of(instance))

    def runs(self, machine: str) -> None:
        """A machine runs: its resume is over."""
        self._failures.pop(machine, None)

    def forget(self, machine: str) -> None:
        """Drop what is known of a machine that is gone."""
        self._refusals.pop(machine, None)
        self._failures.pop(machine, None)

    async def _suspend(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        try:
            await machine.suspend()
        except PaddockError as error:
            if machine.observed.phase == "running":
                self._refusals[machine.id] = str(error)
                self._recorder.tell(reference_to(instance), "Warning", reasons.SUSPEND_FAILED, f"{error}; the guest runs on")
                await self._withdraw(instance)
        finally:
            del self._tasks[machine.id]
            self._request(machine.id)

    async def _withdraw(self, instance: VirtualMachineInstance) -> None:
        metadata = {"annotations": {suspension.WISH: None}, "uid": instance.metadata.uid}
        try:
            await self._client.patch(INSTANCES, key_of(instance), merge_patch({"metadata": metadata}))
        except NotFound:
            return
        except PaddockError as error:
            _LOG.warning("request to suspend not withdrawn", extra={"machine": instance.metadata.name, "error": str(error)})
