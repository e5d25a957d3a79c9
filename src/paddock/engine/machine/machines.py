"""All machines of this host."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from paddock.engine.machine.adoption import adopt
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory, UnreadableState, tame
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.host import MachineEnvironment, SharedHost
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import wanted_seconds
from paddock.engine.machine.startslots import StartSlots

_LOG = logging.getLogger(__name__)


class Machines:
    """The machines below one directory. One `Machines` at a time may use it; who runs it takes care of that."""

    def __init__(self, root: Path, surroundings: MachineEnvironment) -> None:
        self.root = root
        # directories that say nothing that can be understood: id -> why
        self.unreadable: dict[str, str] = {}
        self._surroundings = surroundings
        self._machines: dict[str, QemuMachine] = {}
        self._owners: dict[str, MachineOwner] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._shared = SharedHost(surroundings, StartSlots(surroundings.queue, self._wanted), self._changed)

    async def adopt(self) -> None:
        """Finds what is there: once, at the start. All machines at the same time; one that fails is no trouble to the others."""
        self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
        os.chmod(self.root, 0o711)
        found = [owner for name in sorted(os.listdir(self.root)) if tame(name) and (owner := self._find(name)) is not None]
        # Their records are read first: they tell which users are taken.
        results = await asyncio.gather(*(adopt(owner) for owner in found), return_exceptions=True)
        for owner, result in zip(found, results, strict=True):
            if isinstance(result, asyncio.CancelledError):
                raise result
            if isinstance(result, BaseException):
                _LOG.error("machine adoption failed", extra={"machine": owner.id}, exc_info=result)
        if any(owner.observed.end is not None and owner.observed.end.reason == "host-reboot" for owner in found):
            self._shared.turns.gather()

    def get(self, id: str) -> QemuMachine | None:
        """The machine, if it is defined."""
        return self._machines.get(id)

    def __iter__(self) -> Iterator[QemuMachine]:
        return iter(tuple(self._machines.values()))

    async def define(self, id: str, config: MachineConfig) -> QemuMachine:
        """The machine with this config. Repeated it finds it; another config replaces that of a machine that does not run."""
        if not tame(id):
            raise RequestRefused(f"cannot define machine {id!r}", reason="BadName", why="its id cannot name a directory")
        machine = self._machines.get(id)
        if machine is None:
            directory = Directory(self.root / id)
            directory.make()
            await asyncio.to_thread(directory.write_config, config)
            machine = self._add(owner := MachineOwner(directory, config, self._shared))
            if self.unreadable.pop(id, None) is not None:
                # What it is was lost; its process may live.
                await adopt(owner)
            return machine
        if machine.config != config:
            if machine.observed.live:
                raise RequestRefused(
                    f"cannot change the config of machine {id}", reason="StillRunning", why="its process lives", fix="stop it first"
                )
            await self._owners[id].reconfigure(lambda _: config)
        return machine

    def listen(self, tell: Callable[[str], None]) -> None:
        """`tell` gets the id of a machine whenever its observation changed."""
        self._listeners.append(tell)

    def close(self) -> None:
        """Paddock goes; the guests stay."""
        self._shared.turns.close()
        for machine in self._machines.values():
            machine.close()

    def user_for(self, owner: MachineOwner) -> int:
        """Return the user that its QEMU runs as: the same at each start, and no other machine's."""
        users = self._surroundings.users
        taken = {other.record.user for other in self._owners.values() if other is not owner}
        kept = owner.record.user
        return kept if kept in users and kept not in taken else users.choose(taken)

    def suspended_on(self, layer: Path) -> bool:
        """Return whether a suspended machine goes on with a disk in this layer."""
        return any(
            disk.layer is not None and disk.layer.path == layer
            for machine in self._machines.values()
            if machine.observed.phase == "suspended"
            for disk in machine.config.disks
        )

    def drop(self, id: str) -> None:
        """It is no more."""
        self._machines.pop(id, None)
        self._owners.pop(id, None)
        self._changed(id)

    def _wanted(self, id: str) -> float | None:
        owner = self._owners.get(id)
        return None if owner is None or not owner.observed.pid else wanted_seconds(owner.observed.pid)

    def _find(self, name: str) -> MachineOwner | None:
        directory = Directory(self.root / name)
        try:
            config = directory.read_config()
        except UnreadableState as error:
            _LOG.error("machine directory unreadable", extra={"machine": name, "error": str(error)})
            self.unreadable[name] = str(error)
            return None
        if config is None:
            # Its definition, or its removal, was cut short.
            if directory.path.is_dir() and not directory.locked():
                directory.remove()
            return None
        owner = MachineOwner(directory, config, self._shared)
        self._add(owner)
        return owner

    def _add(self, owner: MachineOwner) -> QemuMachine:
        machine = QemuMachine(owner, self)
        self._owners[owner.id] = owner
        self._machines[owner.id] = machine
        return machine

    def _changed(self, id: str) -> None:
        for tell in self._listeners:
            tell(id)
