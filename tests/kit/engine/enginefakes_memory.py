"""The memory of a machine in memory."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddock.engine.machine.config import DiskLayer, MachineConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.memorysnapshots import MemoryRequest, TakenMemory
from paddock.engine.machine.observation import Observation, SuspendedState
from paddock.engine.machine.requests import Verb

if TYPE_CHECKING:
    from tests.kit.engine.enginefakes import FakeMachines


class FakeMemory:
    """The part of a machine that snapshots with memory are about."""

    id: str
    config: MachineConfig
    observed: Observation
    immovable: tuple[str, ...]
    _machines: "FakeMachines"

    def __init__(self) -> None:
        super().__init__()
        self.saved_paused = False
        # why its state cannot be written
        self.unwritable = ""
        # saved guests that it began with
        self.continued: list[SavedMachine] = []

    def _admit(self, verb: Verb) -> bool:
        raise NotImplementedError

    def observe(self, **changes: Any) -> None:
        raise NotImplementedError

    async def overlay_disks(self, layers: Mapping[str, DiskLayer]) -> None:
        raise NotImplementedError

    async def demand_memory(self, included: Collection[str], folder: Path) -> None:
        self._admit(Verb.CHANGE)
        if self.immovable:
            why = "; ".join(self.immovable)
            raise RequestRefused(f"cannot take the memory of machine {self.id}", reason="MemoryNotPossible", why=why)

    async def take_memory(self, memory_request: MemoryRequest) -> TakenMemory:
        await self.demand_memory((), memory_request.path)
        if not self.unwritable:
            await self.overlay_disks(memory_request.layers)
            memory_request.path.write_bytes(b"the memory" * 1000)
        else:
            raise RequestRefused(f"cannot take the memory of machine {self.id}", reason="MigrationFailed", why=self.unwritable)
        now, paused = self._machines.clock.seconds(), bool(self.observed.paused)
        saved = SavedMachine(now, 38 << 20, self.config, self.config, {}, [], "tcg", "", paused, {}, agent=self.observed.agent)
        return TakenMemory(saved, 0.0425, "7.2.0")

    async def begin_suspended(self, saved: SavedMachine, fill: Callable[[Path], None]) -> None:
        if self._admit(Verb.RECEIVE):
            self.continued.append(saved)
            self.saved_paused = saved.paused
            self.observe(phase="suspended", suspended=SuspendedState(saved.at, saved.size))
