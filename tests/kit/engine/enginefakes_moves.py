"""The part of a machine in memory that moves its disks into other files."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from paddock.engine.machine.config import DiskLayer, MachineConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.observation import JobState, Observation
from paddock.engine.machine.requests import Verb


class FakeMoves:
    """`copies_slowly`: copies wait for `copied`. `unmovable`: why disks cannot move."""

    id: str
    config: MachineConfig
    observed: Observation

    def __init__(self) -> None:
        self.moving: dict[str, DiskLayer] = {}
        self.copies_slowly = False
        self.speed = 0
        self.unmovable = ""

    @abstractmethod
    def _admit(self, verb: Verb) -> bool: ...

    @abstractmethod
    def observe(self, *, milestone: str = "", **changes: Any) -> None: ...

    async def move_disks(self, targets: Mapping[str, DiskLayer], speed: int = 0) -> None:
        self._admit(Verb.CHANGE)
        if self.unmovable:
            raise RequestRefused(f"cannot move disks of machine {self.id}", reason="NotMovable", why=self.unmovable)
        self.moving, self.speed = dict(targets), speed
        self.copied("running")
        if not self.copies_slowly:
            self.copied("ready")

    def copied(self, state: Literal["running", "ready", "failed"], error: str = "") -> None:
        """The copies of its disks are so far."""
        jobs = {name: JobState("mirror", state, 100 if state == "ready" else 40, 100, error) for name in self.moving}
        self.observe(jobs={**self.observed.jobs, **jobs})

    async def change_over(self) -> None:
        self._admit(Verb.CHANGE)
        moving = self.moving
        self.config = replace(self.config, disks=tuple(replace(one, layer=moving.get(one.name, one.layer)) for one in self.config.disks))
        await self.keep_disks()

    async def keep_disks(self) -> None:
        self._admit(Verb.CHANGE)
        self.moving = {}
        self.observe(jobs={name: job for name, job in self.observed.jobs.items() if job.kind != "mirror"})
