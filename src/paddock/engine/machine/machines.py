"""All machines of this host."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from paddock.engine.machine.adoption import adopt
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory, UnreadableState, tame
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.host import MachineEnvironment, SharedHost
from paddock.engine.machine.livefiles import DecidedMigrations
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.parts import MachineParts
from paddock.engine.machine.process import wanted_seconds
from paddock.engine.machine.shares import NamespaceShares
from paddock.engine.machine.startslots import StartSlots
from paddock.engine.machine.unmanaged import UnmanagedMachine, as_saved

_LOG = logging.getLogger(__name__)


class Machines:
    """The machines below one directory. One `Machines` at a time may use it; who runs it takes care of that."""

    def __init__(self, root: Path, surroundings: MachineEnvironment) -> None:
        self.root = root
        self._unmanaged: dict[str, UnmanagedMachine] = {}
        self._surroundings = surroundings
        self._machines: dict[str, QemuMachine] = {}
        self._owners: dict[str, MachineOwner] = {}
        self._listeners: list[Callable[[str], None]] = []
        self.migrations = DecidedMigrations(root.parent / "migrations")
        self.shares = NamespaceShares(surroundings.groups, root)
        self._shared = SharedHost(surroundings, StartSlots(surroundings.queue, self._wanted), self.shares, self._changed)

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
        await asyncio.to_thread(self.shares.sweep)
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
            owner = self._add(directory, config)
            if self._unmanaged.pop(id, None) is not None:
                await adopt(owner)
            return self._machines[id]
        if machine.config != config:
            if machine.observed.live:
                raise RequestRefused(
                    f"cannot change the config of machine {id}", reason="StillRunning", why="its process lives", fix="stop it first"
                )
            await self._owners[id].reconfigure(lambda _: config)
        return machine

    def unmanaged(self, id: str) -> UnmanagedMachine | None:
        """A machine that is left alone because its config cannot be read."""
        return self._unmanaged.get(id)

    async def recover(self, id: str) -> QemuMachine | None:
        """Take a machine over whose config can be read again; None: it cannot, or there is no such machine."""
        found = self._unmanaged.get(id)
        if found is None or (config := self._config(found.directory)) is None:
            return None
        parts = MachineParts(found.directory, config, self._shared)
        await adopt(parts.owner)
        del self._unmanaged[id]
        self._owners[id], self._machines[id] = parts.owner, QemuMachine(parts, self)
        _LOG.info("machine managed again", extra={"machine": id})
        self._changed(id)
        return self._machines[id]

    def discard(self, id: str) -> None:
        """Remove what an unmanaged machine left, unless its QEMU lives."""
        found = self._unmanaged.get(id)
        if found is not None and not found.lives:
            found.directory.remove()
            self._unmanaged.pop(id)

    def holds_disks(self, id: str) -> bool:
        """Return whether a machine, managed or not, has its disks open, or a saved guest that goes on with them."""
        machine, left = self._machines.get(id), self._unmanaged.get(id)
        return machine.observed.holds_disks if machine is not None else left is not None and left.holds_disks

    def living(self) -> Mapping[str, MachineConfig]:
        """Return the configs of the machines that live; of an unmanaged one that of its start, where it is known."""
        found = {machine.id: machine.config for machine in self if machine.observed.live}
        for left in self._unmanaged.values():
            if left.lives and (config := left.config) is not None:
                found[left.directory.id] = config
        return found

    def leftovers(self) -> set[str]:
        """Return the ids of unmanaged machines."""
        return set(self._unmanaged)

    def listen(self, tell: Callable[[str], None]) -> None:
        """`tell` gets the id of a machine whenever its observation or its config changed."""
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
        taken |= {other.user for other in self._unmanaged.values()}
        kept = owner.record.user
        return kept if kept in users and kept not in taken else users.choose(taken)

    def will_open(self, layer: Path) -> bool:
        """Return whether a machine that is about to start, or is suspended, goes on with a disk in this layer."""
        return any(
            disk.layer is not None and disk.layer.path == layer
            for machine in self._machines.values()
            if machine.observed.phase in ("defined", "queued", "starting", "suspended")
            for disk in machine.config.disks
        )

    def drop(self, id: str) -> None:
        self._machines.pop(id, None)
        self._owners.pop(id, None)
        self._changed(id)

    def _wanted(self, id: str) -> float | None:
        owner = self._owners.get(id)
        return None if owner is None or not owner.observed.pid else wanted_seconds(owner.observed.pid)

    def _find(self, name: str) -> MachineOwner | None:
        directory = Directory(self.root / name)
        config = self._config(directory)
        if config is None:
            if name not in self._unmanaged and directory.path.is_dir():
                # Its definition, or its removal, was cut short.
                directory.remove()
            return None
        return self._add(directory, config)

    def _config(self, directory: Directory) -> MachineConfig | None:
        """The config of a machine; None: there is none, and if there was a guest, the machine is unmanaged."""
        try:
            config = directory.read_config()
            if config is None and (directory.is_saved or (directory.path.is_dir() and directory.locked())):
                raise directory.lost()
        except UnreadableState as error:
            config = as_saved(directory)
            extra = {"machine": directory.id, "error": str(error)}
            if config is not None:
                _LOG.warning("config of a suspended machine taken from its saved state", extra=extra)
                directory.replace_config(config)
            elif directory.id not in self._unmanaged:
                _LOG.error("machine cannot be managed; leaving it alone", extra=extra)
                self._unmanaged[directory.id] = UnmanagedMachine(directory, error)
        return config

    def _add(self, directory: Directory, config: MachineConfig) -> MachineOwner:
        parts = MachineParts(directory, config, self._shared)
        owner = self._owners[parts.owner.id] = parts.owner
        self._machines[owner.id] = QemuMachine(parts, self)
        return owner

    def _changed(self, id: str) -> None:
        for tell in self._listeners:
            tell(id)
