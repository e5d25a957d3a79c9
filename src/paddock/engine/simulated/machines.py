"""All simulated machines of a server."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from paddock.base.clock import Clock
from paddock.engine.machine.config import DiskLayer, MachineConfig
from paddock.engine.machine.directory import tame
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.unmanaged import UnmanagedMachine
from paddock.engine.networks.nics import AttachedNic
from paddock.engine.simulated.behaviour import Behaviour
from paddock.engine.simulated.machine import MachineRecord, SimulatedMachine
from paddock.engine.simulated.records import Records


def plain(id: str) -> Behaviour:
    """Return the behaviour of guests that nobody asked anything of."""
    return Behaviour()


class SimulatedMachines:
    """The machines, written down at each change."""

    def __init__(
        self, records: Records, clock: Clock, attached: Callable[[str], AttachedNic | None], size_of: Callable[[DiskLayer], int]
    ) -> None:
        self.clock = clock
        self.attached = attached
        self.size_of = size_of
        # the behaviour that the instance of a machine asks for; the server's wiring sets it
        self.behaviour: Callable[[str], Behaviour] = plain
        self._table = records.table("machines", MachineRecord)
        self._machines: dict[str, SimulatedMachine] = {}
        # the directories of its disks by machine, and how many machines hold each
        self._directories: dict[str, frozenset[Path]] = {}
        self._holders: Counter[Path] = Counter()
        self._suspended: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []

    async def adopt(self) -> None:
        """Go on with the machines of the records: once, at the start."""
        for machine_id, record in self._table:
            self._machines[machine_id] = SimulatedMachine(self, machine_id, record)
            self._note(machine_id, record)
        for machine in self._machines.values():
            machine.wake()

    def get(self, id: str) -> SimulatedMachine | None:
        """The machine, if it is defined."""
        return self._machines.get(id)

    def __iter__(self) -> Iterator[SimulatedMachine]:
        return iter(tuple(self._machines.values()))

    async def define(self, id: str, config: MachineConfig) -> SimulatedMachine:
        """The machine with this config. Repeated it finds it; another config replaces that of a machine that does not run."""
        if not tame(id):
            raise RequestRefused(f"cannot define machine {id!r}", reason="BadName", why="its id cannot name a directory")
        machine = self._machines.get(id)
        if machine is None:
            record = MachineRecord(config)
            machine = self._machines[id] = SimulatedMachine(self, id, record)
            self._table.put(id, record)
        elif machine.config != config:
            if machine.observed.live:
                what = f"cannot change the config of machine {id}"
                raise RequestRefused(what, reason="StillRunning", why="it runs", fix="stop it first")
            machine.reconfigure(config)
        return machine

    def unmanaged(self, id: str) -> UnmanagedMachine | None:
        """None: every record can be read, or the start fails."""
        return None

    async def recover(self, id: str) -> SimulatedMachine | None:
        """None: there is nothing to recover."""
        return None

    def discard(self, id: str) -> None:
        """Nothing is left of unmanaged machines."""

    def leftovers(self) -> set[str]:
        """Return the ids of unmanaged machines: none."""
        return set()

    def holds_disks(self, id: str) -> bool:
        """Return whether a machine has its disks open, or a saved guest that goes on with them."""
        machine = self._machines.get(id)
        return machine is not None and machine.observed.holds_disks

    def living(self) -> Mapping[str, MachineConfig]:
        """Return the configs of the machines that live."""
        return {machine.id: machine.config for machine in self._machines.values() if machine.observed.live}

    def will_open(self, layer: Path) -> bool:
        """Return whether a suspended machine goes on with a disk in this layer."""
        disks = (disk for machine_id in self._suspended for disk in self._machines[machine_id].config.disks)
        return any(disk.layer is not None and disk.layer.path == layer for disk in disks)

    def uses(self, directory: Path) -> bool:
        """Return whether a machine has a disk in this directory."""
        return self._holders[directory] > 0

    def listen(self, tell: Callable[[str], None]) -> None:
        """`tell` gets the id of a machine whenever its observation changed."""
        self._listeners.append(tell)

    def close(self) -> None:
        """The server goes; the guests stay."""
        for machine in self._machines.values():
            machine.close()

    # --- for machines -----------------------------------------------------------------------------------------------------

    def keep(self, id: str, record: MachineRecord) -> None:
        """Keep a record, and tell listeners."""
        self._table.put(id, record)
        self._note(id, record)
        self._changed(id)

    def drop(self, id: str) -> None:
        """The machine is no more."""
        if self._machines.pop(id, None) is not None:
            self._table.delete(id)
            self._hold(id, frozenset())
            self._suspended.discard(id)
        self._changed(id)

    def _note(self, id: str, record: MachineRecord) -> None:
        """Note who holds disks: this is asked of every volume, and must not look at every machine."""
        layers = (disk.layer for disk in record.config.disks if disk.layer is not None) if record.observed.holds_disks else ()
        self._hold(id, frozenset(layer.path.parent for layer in layers))
        if record.observed.phase == "suspended":
            self._suspended.add(id)
        else:
            self._suspended.discard(id)

    def _hold(self, id: str, directories: frozenset[Path]) -> None:
        before = self._directories.get(id, frozenset())
        if directories != before:
            self._holders.subtract(before)
            self._holders.update(directories)
            for gone in [each for each in before if not self._holders[each]]:
                del self._holders[gone]
            self._directories[id] = directories
            if not directories:
                del self._directories[id]

    def _changed(self, id: str) -> None:
        for tell in self._listeners:
            tell(id)
