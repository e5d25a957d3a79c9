"""Instances whose guest goes on from the memory of a snapshot: their machine begins as a suspended one."""

from collections.abc import Iterator

from paddock.base import reasons
from paddock.engine.engine import Engine
from paddock.engine.machine import forks, rehosting
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import UnreadableState
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.memorysnapshots import is_written
from paddock.engine.memorystates import MemoryState
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import prerequisites
from paddock.kubevirt.plan.instance.nics import hostname_of
from paddock.kubevirt.plan.snapshots import memory

_FIX = "stop and start the machine to boot it from the restored disks"


class GuestContinuations:
    """Gives the memories of snapshots to machines that have not run yet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Have a machine begin as a suspended one, if its instance says so. Raises `MissingPrerequisite` where its guest cannot go on."""
        name = (instance.metadata.annotations or {}).get(memory.CONTINUES)
        if not name or machine.observed.phase != "defined":
            return
        found, state = ["the memory of the snapshot is gone"], None
        try:
            if (state := self._engine.memories.get(name)) is not None:
                found = list(self._obstacles(state, machine.config, memory.unchanging(instance.spec.volumes or ())))
        except UnreadableState as error:
            found = [str(error)]
        if state is None or found:
            message = f"the guest cannot go on from its snapshot: {'; '.join(found)}; {_FIX}"
            raise prerequisites.failed(reasons.MEMORY_MISMATCH, message)
        saved = rehosting.rehosted(state.record.saved, machine.config, hostname=hostname_of(instance))
        await machine.begin_suspended(saved, self._engine.memories.filler(name))

    def _obstacles(self, state: MemoryState, config: MachineConfig, unchanging: frozenset[str]) -> Iterator[str]:
        saved = state.record.saved
        if forks.is_fork(saved.config, config):
            yield from forks.mismatches(saved.config, config, agent=saved.agent)
        yield from rehosting.mismatches(saved, state.record.qemu, self._engine.facts.view(config))
        if members := rehosting.differences(saved, config):
            yield f"the machine was changed since, in {', '.join(members)}"
        for disk in config.disks:
            if is_written(disk) and disk.name not in unchanging and disk.layer and not self._engine.volumes.is_unwritten(disk.layer):
                yield f"its disk {disk.name} was written since it was restored"
