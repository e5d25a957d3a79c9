"""Disks of a simulated guest that move into other files: each is copied at once."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from paddock.engine.machine.config import DiskLayer, MachineConfig
from paddock.engine.machine.mirrors import KIND
from paddock.engine.machine.observation import JobState, Observation
from paddock.engine.machine.requests import Verb


class DiskMoves:
    """The part of a simulated machine that moves its disks."""

    def __init__(self) -> None:
        self._targets: dict[str, DiskLayer] = {}

    @property
    @abstractmethod
    def config(self) -> MachineConfig: ...

    @property
    @abstractmethod
    def observed(self) -> Observation: ...

    @abstractmethod
    def _admit(self, verb: Verb, what: str = "") -> bool: ...

    @abstractmethod
    def _replace(self, **changes: Any) -> None: ...

    @abstractmethod
    def _observe(self, **changes: Any) -> None: ...

    async def move_disks(self, targets: Mapping[str, DiskLayer], speed: int = 0) -> None:
        """Begin to copy disks into other files; they are copied at once."""
        self._admit(Verb.CHANGE, "move disks of")
        self._targets = dict(targets)
        self._observe(jobs={**self.observed.jobs, **dict.fromkeys(targets, JobState(KIND, "ready"))})

    async def change_over(self) -> None:
        """All disks that were copied go on in their new files."""
        self._admit(Verb.CHANGE, "move disks of")
        disks = tuple(replace(one, layer=self._targets.get(one.name, one.layer)) for one in self.config.disks)
        self._replace(config=replace(self.config, disks=disks))
        self._forget()

    async def keep_disks(self) -> None:
        """Call off what `move_disks` began."""
        self._admit(Verb.CHANGE, "move disks of")
        self._forget()

    def _forget(self) -> None:
        self._targets = {}
        self._observe(jobs={name: job for name, job in self.observed.jobs.items() if job.kind != KIND})
