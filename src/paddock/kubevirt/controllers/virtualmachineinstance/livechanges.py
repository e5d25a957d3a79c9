"""Changes of a machine that runs: what its instance asks for now and did not ask for when the machine was started.

The instance is the goal: disks and interfaces that it names and the machine lacks are plugged, plugged ones that it no longer names are
unplugged; drives get the media that it names; links go up and down; sockets and memory grow; disks grow with their claims; its memory is
dumped to a claim. A step that fails does not keep the others from running; its error stands in the status of the volume, in a condition,
or in an event.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from paddock.base import quantity
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.engine.machine.config import DiskConfig
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.storage.errors import VolumeMissing
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, is_bound
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.controllers.virtualmachineinstance.nics import InstanceNics
from paddock.kubevirt.controllers.virtualmachineinstance.preparer import Preparer
from paddock.kubevirt.controllers.virtualmachineinstance.reader import InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of, reference_to
from paddock.kubevirt.controllers.virtualmachineinstance.volumemoves import VolumeMoves
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import MemoryDumpInfo
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.instance.prerequisites import MissingPrerequisite
from paddock.kubevirt.plan.instance.volumes import DUMPED, DUMPING, NOT_DUMPED, Dump, claim_of, is_hotplugged, plugged

_LOG = logging.getLogger(__name__)
_PART = ".part"
# QEMU does not say that a guest unlocks a tray.
_TRAY_SECONDS = 10.0


class GuestMemoryDumps:
    """Dumps of the memory of guests to claims, by machine and volume.

    A volume of the instance asks for a dump, once for as long as the volume is there. The dump waits until its claim is bound. It is a
    task, since it takes as long as the memory is large. One that a restart of Paddock interrupted begins anew: the file gets its name when
    it is whole. `request` asks for a reconcile of a machine.
    """

    def __init__(self, volumes: Volumes, objects: InstanceReferences, clock: Clock, request: Callable[[str], None]) -> None:
        self._volumes = volumes
        self._objects = objects
        self._clock = clock
        self._request = request
        self._dumps: dict[str, dict[str, Dump]] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def progress(self, instance: VirtualMachineInstance) -> Mapping[str, Dump]:
        """The progress of each dump, by volume; the status has that of dumps of an earlier process."""
        status = instance.status.volumeStatus if instance.status is not None else None
        said = {
            each.name: Dump(each.phase or "", each.memoryDumpVolume, each.message or "")
            for each in status or ()
            if each.memoryDumpVolume is not None
        }
        return {**said, **self._dumps.get(instance.metadata.uid or "", {})}

    async def carry_out(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Start the dumps that volumes ask for, and cancel those that no volume asks for any more."""
        wanted = {each.name: each.memoryDump.claimName for each in instance.spec.volumes or () if each.memoryDump is not None}
        known, dumps = self.progress(instance), self._dumps.setdefault(machine.id, {})
        for name in [name for name in dumps if name not in wanted]:
            await self._cancel(machine.id, name)
        for name, claim in wanted.items():
            if (machine.id, name) in self._tasks or (name in known and known[name].phase in (DUMPED, NOT_DUMPED)):
                continue
            held = self._objects.claim(key_of(instance), claim)
            if held is not None and not is_bound(held):
                continue
            now = self._clock.seconds()
            file = f"{instance.metadata.name}-{claim}-{ages.timestamp(now).replace(':', '').replace('-', '')}.memory.dump"
            info = MemoryDumpInfo(startTimestamp=ages.timestamp(now), claimName=claim, targetFileName=file)
            dumps[name] = Dump(DUMPING, info)
            self._tasks[machine.id, name] = asyncio.create_task(self._dump(instance, machine, name, claim), name=f"dump {machine.id}")

    def forget(self, machine: str) -> None:
        """Cancel the dumps of a machine that is gone."""
        self._dumps.pop(machine, None)
        for place in [place for place in self._tasks if place[0] == machine]:
            self._tasks.pop(place).cancel()

    async def _cancel(self, machine: str, name: str) -> None:
        task = self._tasks.pop((machine, name), None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        self._dumps.get(machine, {}).pop(name, None)

    async def _dump(self, instance: VirtualMachineInstance, machine: QemuMachine, name: str, claim_name: str) -> None:
        info = self._dumps[machine.id][name].info
        try:
            claim = self._objects.claim(key_of(instance), claim_name)
            if claim is None:
                raise VolumeMissing(f"there is no claim {claim_name}")
            directory = await self._volumes.as_files(claim.metadata.uid or "")
            await _dump_whole(machine, directory / (info.targetFileName or ""))
            phase, message = DUMPED, ""
        except (PaddockError, OSError) as error:
            phase, message = NOT_DUMPED, f"the memory was not written to claim {claim_name}: {error}"
        ended = msgspec.structs.replace(info, endTimestamp=ages.timestamp(self._clock.seconds()))
        if machine.id in self._dumps:
            self._dumps[machine.id][name] = Dump(phase, ended, message)
            self._request(machine.id)


class LiveChangeParts(msgspec.Struct, frozen=True):
    """Changes that take long, and go on beside the others."""

    dumps: GuestMemoryDumps
    moves: VolumeMoves


class LiveChanges:
    """Brings machines that run to what their instances ask for."""

    def __init__(
        self,
        volumes: Volumes,
        preparer: Preparer,
        objects: InstanceReferences,
        nics: InstanceNics,
        recorder: EventRecorder,
        parts: "LiveChangeParts",
    ) -> None:
        self._volumes = volumes
        self._preparer = preparer
        self._objects = objects
        self._nics = nics
        self._recorder = recorder
        self._dumps, self.moves = parts.dumps, parts.moves
        # why a hot-plugged volume is not there yet, by machine and volume
        self._pending: dict[str, dict[str, str]] = {}
        # machines of which a guest keeps the tray of a drive locked
        self._locked: set[str] = set()
        # why sockets or memory are not what they should be, by machine and condition; tried again at each reconcile
        self._refused: dict[str, dict[str, str]] = {}
        # the failures that were recorded, by machine
        self._recorded: dict[str, set[str]] = {}

    def pending(self, machine: str) -> Mapping[str, str]:
        """Return the reasons why hot-plugged volumes of a machine are not there yet, by volume."""
        return self._pending.get(machine, {})

    def retry_seconds(self, machine: str) -> float | None:
        """Return the pause before the next attempt, where nothing tells that it may succeed."""
        return _TRAY_SECONDS if machine in self._locked else None

    def refused(self, machine: str) -> Mapping[str, str]:
        """Return the reasons why a machine cannot have more sockets or memory while it runs, by condition."""
        return self._refused.get(machine, {})

    def dumps(self, instance: VirtualMachineInstance) -> Mapping[str, Dump]:
        """The progress of the dumps of its memory, by volume."""
        return self._dumps.progress(instance)

    async def carry_out(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Bring the machine to what its instance asks for."""
        await self.moves.carry_out(instance, machine)
        await self._disks(instance, machine)
        await self._links(instance, machine)
        await self._size(instance, machine)
        await self._grow(instance, machine)
        await self._dumps.carry_out(instance, machine)

    def forget(self, machine: str) -> None:
        """Drop what is known of a machine that is gone."""
        self._pending.pop(machine, None)
        self._locked.discard(machine)
        self._refused.pop(machine, None)
        self._recorded.pop(machine, None)
        self._dumps.forget(machine)
        self.moves.forget(machine)

    # --- disks and interfaces ---------------------------------------------------------------------------------------------

    async def _disks(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        hot = [each for each in plugged(instance.spec) if each.memoryDump is None]
        there = {disk.name: disk for disk in machine.config.disks}
        named = {each.name for each in instance.spec.volumes or ()}
        pending: dict[str, str] = {}
        for volume in hot:
            if volume.name not in there:
                pending |= await self._plug(instance, machine, volume)
        for disk in there.values():
            if disk.hotplugged and disk.name not in named:
                await self._unplug(instance, machine, disk)
        self._pending[machine.id] = pending | await self._media(instance, machine)

    async def _media(self, instance: VirtualMachineInstance, machine: QemuMachine) -> dict[str, str]:
        """Give each drive the medium that the instance names; return the reasons why some are not there yet, by volume."""
        volumes = {each.name: each for each in instance.spec.volumes or ()}
        pending: dict[str, str] = {}
        self._locked.discard(machine.id)
        for drive in machine.config.disks:
            volume = volumes.get(drive.name)
            if drive.role != "cdrom" or (volume is None and drive.layer is None):
                continue
            try:
                if volume is None:
                    await machine.change_medium(msgspec.structs.replace(drive, layer=None))
                elif is_hotplugged(volume) and not self._holds(instance, drive, volume):
                    config = await self._preparer.hotplugged(instance, [volume.name])
                    await machine.change_medium(next(each for each in config.disks if each.name == drive.name))
            except MissingPrerequisite as waits:
                pending[drive.name] = waits.blocker.message
            except PaddockError as error:
                if isinstance(error, Unanswered):
                    self._locked.add(machine.id)
                self._once(instance, machine, "HotplugFailed", f"volume {drive.name}: {error}")
                pending[drive.name] = str(error)
        return pending

    def _holds(self, instance: VirtualMachineInstance, drive: DiskConfig, volume: Volume) -> bool:
        """Return whether the medium in a drive is the volume's. The layers of a claim lie in one folder."""
        claim = self._objects.claim(key_of(instance), claim_of(volume))
        held = self._volumes.get(claim.metadata.uid or "") if claim is not None else None
        return held is not None and drive.layer is not None and drive.layer.path.parent == held.layer.path.parent

    async def _plug(self, instance: VirtualMachineInstance, machine: QemuMachine, volume: Volume) -> dict[str, str]:
        """Plug one volume; why it is not there yet, by its name."""
        try:
            config = await self._preparer.hotplugged(instance, [volume.name])
            disk = next((each for each in config.disks if each.name == volume.name), None)
            if disk is None:
                return {volume.name: f"there is no disk for volume {volume.name}"}
            async with self._volumes.opening(disk.layer):
                await machine.plug_disk(disk)
        except MissingPrerequisite as waits:
            return {volume.name: waits.blocker.message}
        except PaddockError as error:
            self._once(instance, machine, "HotplugFailed", f"volume {volume.name}: {error}")
            return {volume.name: str(error)}
        note = f"Successfully attach hotplugged volume {volume.name} to VM"
        self._recorder.tell(reference_to(instance), "Normal", "VolumeReady", note)
        return {}

    async def _unplug(self, instance: VirtualMachineInstance, machine: QemuMachine, disk: DiskConfig) -> None:
        try:
            await machine.unplug_disk(disk.name)
        except PaddockError as error:
            self._once(instance, machine, "HotplugFailed", f"volume {disk.name} cannot be unplugged: {error}")
        else:
            self._recorder.tell(reference_to(instance), "Normal", "VolumeUnplugged", f"Volume {disk.name} has been unplugged")

    async def _links(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        there = {nic.name: nic for nic in machine.config.nics}
        # An interface that leaves the spec is unplugged, as one that stays there with the state absent.
        wanted = {each.name: each for each in instance.spec.domain.devices.interfaces or () if each.state != "absent"}
        try:
            for name in [name for name in there if name not in wanted]:
                await machine.unplug_nic(name)
                await self._nics.unplug(instance, name)
            for name, own_nic in wanted.items():
                nic = there.get(name)
                if nic is None:
                    config = await self._preparer.hotplugged(instance, ())
                    for each in config.nics:
                        if each.name == name:
                            await machine.plug_nic(each)
                elif nic.link_up == (own_nic.state == "down"):
                    await machine.set_link(name, own_nic.state != "down")
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
        self._refused[machine.id] = refused

    async def _grow(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """A disk grows with its claim while the machine runs."""
        for volume in instance.spec.volumes or ():
            name = claim_of(volume)
            if not name or volume.ephemeral is not None or volume.memoryDump is not None:
                continue
            claim = self._objects.claim(key_of(instance), name)
            disk = machine.observed.disks.get(volume.name)
            if claim is None or disk is None or not disk.size or not self._is_on(machine, volume.name, claim):
                continue
            wanted = claimsizes.guest_size(claim)
            try:
                held = self._volumes.get(claim.metadata.uid or "")
                if held is None:
                    continue
                if wanted > disk.size:
                    await machine.resize_disk(volume.name, wanted)
                if max(wanted, disk.size) > held.size:
                    await self._volumes.grown(held.id, wanted)
            except PaddockError as error:
                self._once(instance, machine, "VolumeResizeFailed", f"volume {volume.name} cannot grow: {error}")

    def _is_on(self, machine: QemuMachine, name: str, claim: PersistentVolumeClaim) -> bool:
        """Return whether a disk is on its claim, and stays: one that moves grows when it is there."""
        held = self._volumes.get(claim.metadata.uid or "")
        disk = next((each for each in machine.config.disks if each.name == name), None)
        moves = name in machine.observed.jobs and machine.observed.jobs[name].state != "failed"
        on = held is None or disk is None or disk.layer is None or disk.layer.path.parent == held.layer.path.parent
        return on and not moves

    def _once(self, instance: VirtualMachineInstance, machine: QemuMachine, reason: str, text: str) -> None:
        recorded = self._recorded.setdefault(machine.id, set())
        if text not in recorded:
            recorded.add(text)
            _LOG.warning("live change failed", extra={"machine": machine.id, "error": text})
            self._recorder.tell(reference_to(instance), "Warning", reason, text)


def _refusal(condition: str, error: PaddockError) -> dict[str, str]:
    """Only what the machine refuses needs a restart; what went wrong by chance is tried again."""
    return {condition: str(error)} if isinstance(error, RequestRefused) else {}


async def _dump_whole(machine: QemuMachine, target: Path) -> None:
    """Write the file, whole or not at all, in place of the earlier dumps."""
    part = target.with_name(_PART)
    try:
        await machine.dump_memory(part)
        for left in target.parent.glob("*.memory.dump"):
            left.unlink()
        part.rename(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
