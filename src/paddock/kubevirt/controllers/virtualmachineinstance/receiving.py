"""Instances whose guest comes from another server: their machine is prepared and defined, and never booted.

A guest that did not come after all leaves a machine that has ended: it is forgotten, and another one waits in its place.
"""

import contextlib

from paddock.engine.machine.directory import UnreadableState
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.kubevirt.controllers.virtualmachineinstance.preparer import Preparer
from paddock.kubevirt.controllers.virtualmachineinstance.quotas import PlaceRequest
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import prerequisites
from paddock.kubevirt.plan.instance.phases import FINAL, RUNNING
from paddock.kubevirt.plan.machine.receivers import is_receiver


class GuestReceivers:
    """Prepares machines for guests of other servers."""

    def __init__(self, preparer: Preparer, machines: Machines) -> None:
        self._preparer = preparer
        self._machines = machines
        # those that were prepared by this process: the networks know their interfaces
        self._prepared: set[str] = set()

    def forget(self, machine: str) -> None:
        """Drop what is known of a machine that is gone."""
        self._prepared.discard(machine)

    def awaits(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> bool:
        """Return whether the guest of an instance is still elsewhere."""
        phase = (instance.status.phase if instance.status is not None else "") or ""
        if not is_receiver(instance) or instance.metadata.deletionTimestamp or phase in (RUNNING, *FINAL):
            return False
        with contextlib.suppress(UnreadableState):
            arrival = machine.arrival if machine is not None else None
            return arrival is None or arrival.state != "taken"
        return True

    async def expect(self, instance: VirtualMachineInstance, machine: QemuMachine | None, place_request: PlaceRequest) -> QemuMachine:
        """Return the machine that waits. Raises `MissingPrerequisite`."""
        uid = instance.metadata.uid or ""
        if machine is not None and machine.observed.phase == "ended":
            await machine.forget()
            self.forget(uid)
            machine = None
        if machine is not None and (uid in self._prepared or machine.observed.phase != "defined"):
            return machine
        place_request.check()
        return await self._prepare(instance, place_request)

    async def admit(self, instance: VirtualMachineInstance) -> QemuMachine:
        """Return the machine of an instance that waits, prepared a moment ago. Raises `MissingPrerequisite`."""
        uid = instance.metadata.uid or ""
        machine = self._machines.get(uid)
        if uid not in self._prepared or machine is None or not self.awaits(instance, machine):
            conditions = (instance.status.conditions if instance.status is not None else None) or ()
            why = next((each.message for each in conditions if each.type == "Ready" and each.message), "") or "it is being prepared"
            raise prerequisites.volumes("NotPrepared", f"its machine is not prepared: {why}")
        if machine.observed.phase != "defined":
            raise prerequisites.volumes("NotPrepared", "its machine is in use")
        # The host may have given its memory to others meanwhile.
        return await self._prepare(instance, None)

    async def _prepare(self, instance: VirtualMachineInstance, place_request: PlaceRequest | None) -> QemuMachine:
        uid = instance.metadata.uid or ""
        try:
            config = await self._preparer.prepare(instance, place_request.ask if place_request is not None else _asked)
            machine = await self._machines.define(uid, config)
            await self._preparer.check_disks(config)
        finally:
            self._preparer.started(instance)
        self._prepared.add(uid)
        return machine


async def _asked() -> None:
    """The quotas were asked when it was prepared first."""
