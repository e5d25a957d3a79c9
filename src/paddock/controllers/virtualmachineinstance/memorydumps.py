"""Writing a guest's memory to a claim: a volume of the instance asks for it, once for as long as the volume is there.

The dump is a task of its own, since it takes as long as the memory is large. One that a restart of Paddock interrupted begins anew: the
file has its name only when it is whole.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.status import MemoryDumpInfo
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.storage.errors import VolumeMissing
from paddock.engine.storage.volumes import Volumes
from paddock.meta import ages
from paddock.plan.instance.volumes import DUMPED, DUMPING, NOT_DUMPED, Dump

_PART = ".part"


class Dumps:
    """Dumps that were asked for, by machine and volume."""

    def __init__(self, volumes: Volumes, lookups: Lookups, clock: Clock, tell: Callable[[str], None]) -> None:
        self._volumes = volumes
        self._lookups = lookups
        self._clock = clock
        self._tell = tell
        self._dumps: dict[str, dict[str, Dump]] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def known(self, instance: VirtualMachineInstance) -> Mapping[str, Dump]:
        """How far each dump is: what we know, and what the status says of those of an earlier process."""
        status = instance.status.volumeStatus if instance.status is not None else None
        said = {
            each.name: Dump(each.phase or "", each.memoryDumpVolume, each.message or "")
            for each in status or ()
            if each.memoryDumpVolume is not None
        }
        return {**said, **self._dumps.get(instance.metadata.uid or "", {})}

    async def carry_out(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Begin what is asked for and not begun; forget what is asked for no longer."""
        wanted = {each.name: each.memoryDump.claimName for each in instance.spec.volumes or () if each.memoryDump is not None}
        known, dumps = self.known(instance), self._dumps.setdefault(machine.id, {})
        for name in [name for name in dumps if name not in wanted]:
            await self._give_up(machine.id, name)
        for name, claim in wanted.items():
            if (machine.id, name) in self._tasks or (name in known and known[name].phase in (DUMPED, NOT_DUMPED)):
                continue
            now = self._clock.seconds()
            file = f"{instance.metadata.name}-{claim}-{ages.timestamp(now).replace(':', '').replace('-', '')}.memory.dump"
            info = MemoryDumpInfo(startTimestamp=ages.timestamp(now), claimName=claim, targetFileName=file)
            dumps[name] = Dump(DUMPING, info)
            where = Key(instance.metadata.namespace or "", claim)
            self._tasks[machine.id, name] = asyncio.create_task(self._dump(instance, machine, name, where), name=f"dump {machine.id}")

    def forget(self, machine: str) -> None:
        """The machine is gone; with it goes what was not whole yet."""
        self._dumps.pop(machine, None)
        for place in [place for place in self._tasks if place[0] == machine]:
            self._tasks.pop(place).cancel()

    async def _give_up(self, machine: str, name: str) -> None:
        task = self._tasks.pop((machine, name), None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        self._dumps.get(machine, {}).pop(name, None)

    async def _dump(self, instance: VirtualMachineInstance, machine: QemuMachine, name: str, where: Key) -> None:
        info = self._dumps[machine.id][name].info
        who = Key(instance.metadata.namespace or "", instance.metadata.name)
        try:
            claim = self._lookups.claim(who, where.name)
            if claim is None:
                raise VolumeMissing(f"there is no claim {where.name}")
            directory = await self._volumes.as_files(claim.metadata.uid or "")
            await _written(machine, directory / (info.targetFileName or ""))
            phase, message = DUMPED, ""
        except (PaddockError, OSError) as error:
            phase, message = NOT_DUMPED, f"the memory was not written to claim {where.name}: {error}"
        ended = msgspec.structs.replace(info, endTimestamp=ages.timestamp(self._clock.seconds()))
        if machine.id in self._dumps:
            self._dumps[machine.id][name] = Dump(phase, ended, message)
            self._tell(machine.id)


async def _written(machine: QemuMachine, target: Path) -> None:
    """The file, whole or not at all; what was there of earlier dumps goes."""
    part = target.with_name(_PART)
    try:
        await machine.dump_memory(part)
        for left in target.parent.glob("*.memory.dump"):
            left.unlink()
        part.rename(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
