"""Changing a machine that runs: what its instance says now and did not when it was started.

The instance is the goal: disks and cards that it names and the machine does not have are plugged, plugged ones that it no longer names
are unplugged; links go up and down; sockets and memory grow; disks grow with their claims. One step that fails does not keep the
others; what it said stands in the status of the volume, in a condition, or in an event.
"""

import logging

from paddock.base import quantity
from paddock.base.errors import PaddockError
from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance.events import MachineEvents
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.controllers.virtualmachineinstance.memorydumps import Dumps
from paddock.controllers.virtualmachineinstance.nics import Cards
from paddock.controllers.virtualmachineinstance.preparer import Preparer
from paddock.controllers.virtualmachineinstance.prerequisites import MissingPrerequisite
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.volumes import Volume
from paddock.engine.engine import Engine
from paddock.engine.machine.config import DiskConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from paddock.plan.instance import volumes as volume_plan
from paddock.plan.storage import claimsizes

_LOG = logging.getLogger(__name__)


class LiveChanges:
    """Carries out changes."""

    def __init__(self, engine: Engine, preparer: Preparer, lookups: Lookups, cards: Cards, telling: MachineEvents, dumps: Dumps) -> None:
        self._engine = engine
        self._preparer = preparer
        self._lookups = lookups
        self._cards = cards
        self._telling = telling
        self.dumps = dumps
        # why a hot-plugged volume is not there yet, by machine and volume
        self.waiting: dict[str, dict[str, str]] = {}
        # why sockets or memory are not what they should be, by machine and condition; tried again at each look
        self.refused: dict[str, dict[str, str]] = {}
        # what was told already, by machine
        self._told: dict[str, set[str]] = {}

    async def carry_out(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Bring the machine to what its instance says."""
        await self._disks(instance, machine)
        await self._links(instance, machine)
        await self._size(instance, machine)
        await self._grow(instance, machine)
        await self.dumps.carry_out(instance, machine)

    def forget(self, machine: str) -> None:
        """The machine is gone."""
        self.waiting.pop(machine, None)
        self.refused.pop(machine, None)
        self._told.pop(machine, None)
        self.dumps.forget(machine)

    # --- disks and cards --------------------------------------------------------------------------------------------------

    async def _disks(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        hot = [each for each in instance.spec.volumes or () if volume_plan.is_hotplugged(each) and each.memoryDump is None]
        there = {disk.name: disk for disk in machine.config.disks}
        named = {each.name for each in instance.spec.volumes or ()}
        said: dict[str, str] = {}
        for volume in hot:
            if volume.name not in there:
                said |= await self._plug(instance, machine, volume)
        for disk in there.values():
            if disk.hotplugged and disk.name not in named:
                await self._unplug(instance, machine, disk)
        self.waiting[machine.id] = said

    async def _plug(self, instance: VirtualMachineInstance, machine: QemuMachine, volume: Volume) -> dict[str, str]:
        """Plug one volume; why it is not there yet, by its name."""
        try:
            config = await self._preparer.wanted(instance, [volume.name])
            disk = next((each for each in config.disks if each.name == volume.name), None)
            if disk is None:
                return {volume.name: f"there is no disk for volume {volume.name}"}
            await machine.plug_disk(disk)
        except MissingPrerequisite as waits:
            return {volume.name: waits.hold.message}
        except PaddockError as error:
            self._once(instance, machine, "HotplugFailed", f"volume {volume.name}: {error}")
            return {volume.name: str(error)}
        self._telling.note(instance, "VolumeReady", f"Successfully attach hotplugged volume {volume.name} to VM", warning=False)
        return {}

    async def _unplug(self, instance: VirtualMachineInstance, machine: QemuMachine, disk: DiskConfig) -> None:
        try:
            await machine.unplug_disk(disk.name)
        except PaddockError as error:
            self._once(instance, machine, "HotplugFailed", f"volume {disk.name} cannot be unplugged: {error}")
        else:
            self._telling.note(instance, "VolumeUnplugged", f"Volume {disk.name} has been unplugged", warning=False)

    async def _links(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        there = {nic.name: nic for nic in machine.config.nics}
        wanted = {each.name: each for each in instance.spec.domain.devices.interfaces or ()}
        try:
            for name, card in wanted.items():
                nic = there.get(name)
                if nic is None and card.state != "absent":
                    config = await self._preparer.wanted(instance, ())
                    for each in config.nics:
                        if each.name == name:
                            await machine.plug_nic(each)
                elif nic is not None and card.state == "absent":
                    await machine.unplug_nic(name)
                    await self._cards.unplug_one(instance, name)
                elif nic is not None and nic.link_up == (card.state == "down"):
                    await machine.set_link(name, card.state != "down")
        except (PaddockError, MissingPrerequisite) as error:
            self._once(instance, machine, "HotplugFailed", f"network card: {error}")

    # --- processors, memory, sizes ----------------------------------------------------------------------------------------

    async def _size(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        cpu, memory, observed = instance.spec.domain.cpu, instance.spec.domain.memory, machine.observed
        sockets = cpu.sockets if cpu is not None else None
        guest = quantity.whole(memory.guest) if memory is not None and memory.guest is not None else 0
        refused: dict[str, str] = {}
        try:
            if sockets and observed.sockets and sockets > observed.sockets:
                await machine.set_sockets(sockets)
        except PaddockError as error:
            refused |= _refusal("HotVCPUChange", error)
            self._once(instance, machine, "HotPlugCPUError", str(error))
        try:
            if guest and observed.memory and guest != machine.config.memory.size and guest <= machine.config.memory.max_size:
                await machine.set_memory(guest)
        except PaddockError as error:
            refused |= _refusal("HotMemoryChange", error)
            self._once(instance, machine, "HotPlugMemoryError", str(error))
        self.refused[machine.id] = refused

    async def _grow(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """A disk grows with its claim while the machine runs."""
        for volume in instance.spec.volumes or ():
            name = volume_plan.claim_of(volume)
            if not name or volume.ephemeral is not None or volume.memoryDump is not None:
                continue
            claim = self._lookups.claim(Key(instance.metadata.namespace or "", instance.metadata.name), name)
            disk = machine.observed.disks.get(volume.name)
            held = self._engine.volumes.get(claim.metadata.uid or "") if claim is not None else None
            if claim is None or held is None or disk is None or not disk.size:
                continue
            wanted = claimsizes.guest_size(claim)
            try:
                if wanted > disk.size:
                    await machine.resize_disk(volume.name, wanted)
                if max(wanted, disk.size) > held.size:
                    await self._engine.volumes.grown(held.id, wanted)
            except PaddockError as error:
                self._once(instance, machine, "VolumeResizeFailed", f"volume {volume.name} cannot grow: {error}")

    def _once(self, instance: VirtualMachineInstance, machine: QemuMachine, reason: str, text: str) -> None:
        told = self._told.setdefault(machine.id, set())
        if text not in told:
            told.add(text)
            _LOG.warning("live change failed", extra={"machine": machine.id, "error": text})
            self._telling.note(instance, reason, text)


def _refusal(condition: str, error: PaddockError) -> dict[str, str]:
    """Only what the machine refuses needs a restart; what went wrong by chance is tried again."""
    return {condition: str(error)} if isinstance(error, RequestRefused) else {}
