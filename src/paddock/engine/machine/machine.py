"""A machine, as others know it: each request is held against the table of `requests`, then done by its owner."""

from typing import Protocol

from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.observation import Observation
from paddock.engine.machine.owner import Owner
from paddock.engine.machine.requests import Verb, admit


class Registry(Protocol):
    """All machines, as far as one of them needs them."""

    def user_for(self, owner: Owner) -> int:
        """Whom its QEMU runs as; 0: as whoever runs Paddock."""

    def drop(self, id: str) -> None:
        """The machine is no more."""


class Machine:
    """A machine of this host. What it does is done when the call returns, except where the docstring says else."""

    def __init__(self, owner: Owner, registry: "Registry") -> None:
        self._owner = owner
        self._registry = registry
        self.id = owner.id

    @property
    def config(self) -> MachineConfig:
        """As it is now, with what was plugged."""
        return self._owner.config

    @property
    def observed(self) -> Observation:
        """What is seen of it."""
        return self._owner.observed

    @property
    def directory(self) -> Directory:
        """Its files."""
        return self._owner.directory

    async def start(self, *, paused: bool = False) -> None:
        """Returns when the start is queued; the observation tells the rest. `paused`: its guest waits for `resume`."""
        if self._admit(Verb.START):
            self._owner.start(paused=paused, user=self._registry.user_for(self._owner))

    async def forget(self) -> None:
        """Its directory goes, and with it all that was known of it. Its disks are elsewhere and stay."""
        self._admit(Verb.FORGET)
        self._owner.release()
        self._owner.directory.remove()
        self._registry.drop(self.id)

    async def pause(self) -> None:
        """The guest stands still."""
        if self._admit(Verb.PAUSE):
            await self._owner.inbox.offer(self._pause)

    async def resume(self) -> None:
        """The guest goes on."""
        if self._admit(Verb.RESUME):
            await self._owner.inbox.offer(self._resume)

    async def reset(self) -> None:
        """Like the button."""
        if self._admit(Verb.RESET):
            await self._owner.inbox.offer(self._reset)

    async def press_power(self) -> None:
        """Once, without consequences if the guest does not listen."""
        if self._admit(Verb.PRESS):
            await self._owner.inbox.offer(self._press)

    async def stop(self, grace_seconds: float) -> None:
        """Returns when the stop has begun: the power button at once, again each 5 s, then the end. Repeated it may shorten the grace."""
        if self._admit(Verb.STOP):
            self._owner.stop(grace_seconds)

    async def _pause(self) -> None:
        if self._admit(Verb.PAUSE):
            self._owner.user_paused = True
            self._owner.save(paused=True)
            await self._owner.execute("stop")
            self._owner.observe(paused="user")

    async def _resume(self) -> None:
        if self._admit(Verb.RESUME):
            self._owner.user_paused = False
            self._owner.save(paused=False, start_paused=False)
            await self._owner.execute("cont")
            self._owner.observe(paused="", disk_errors={})

    async def _reset(self) -> None:
        if self._admit(Verb.RESET):
            await self._owner.execute("system_reset")

    async def _press(self) -> None:
        if self._admit(Verb.PRESS):
            await self._owner.execute("system_powerdown")

    def _admit(self, verb: Verb, action: str = "") -> bool:
        return admit(verb, self._owner.observed, self.id, action)
