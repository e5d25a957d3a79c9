"""`SimulatedEngine`: stands where `paddock.engine.engine.Engine` does, and runs no machine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from paddock.base.clock import Clock, SystemClock
from paddock.engine.backups import Backups
from paddock.engine.consolelogs import ConsoleLogs
from paddock.engine.engine import EngineSettings
from paddock.engine.host.capacity import Room
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.users import UserRange
from paddock.engine.memorystates import MemoryStates
from paddock.engine.simulated import behaviour, host
from paddock.engine.simulated.behaviour import Behaviour
from paddock.engine.simulated.images import SimulatedImages
from paddock.engine.simulated.machines import SimulatedMachines
from paddock.engine.simulated.networks import SimulatedNetworks
from paddock.engine.simulated.records import Records
from paddock.engine.simulated.volumes import SimulatedVolumes
from paddock.engine.snapshots import Snapshots
from paddock.engine.states import States
from paddock.engine.storage.volumes import Volumes


class SimulatedEngine:
    """Machines in the records of one directory."""

    # by `start`
    machines: SimulatedMachines
    snapshots: Snapshots
    backups: Backups

    def __init__(self, root: Path, settings: EngineSettings = EngineSettings(), *, nodes: int = 1, clock: Clock | None = None) -> None:  # noqa: B008 - frozen
        self.root = root
        self.settings = settings
        self.facts = host.facts(nodes)
        self.room = Room.of(host.MEMORY * nodes, overcommit=settings.memory_overcommit)
        self.users = UserRange()
        self._clock = clock or SystemClock()
        self._records = Records(root)
        self.images = SimulatedImages(root / "images", settings.images)
        self.volumes = SimulatedVolumes(root, settings.pools, self._records)
        self.networks = SimulatedNetworks(settings.networks, self._records)
        self.states = States(root / "states")
        self.memories = MemoryStates(root / "memory")
        self.consoles = ConsoleLogs(root / "consoles")
        # the annotations of the instance of a machine; set by the wiring
        self.annotations: Callable[[str], Mapping[str, str]] = lambda id: {}

    async def start(self) -> None:
        """Go on with the machines of the records."""
        self.volumes.prepare()
        self.states.prepare()
        self.memories.prepare()
        machines = SimulatedMachines(self._records, self._clock, self.networks.plugged.get, self.volumes.size_of)
        machines.behaviour = self._behaviour
        self.volumes.uses, self.volumes.is_held = machines.uses, machines.will_open
        # What the engine's own `Snapshots` calls, both have.
        self.snapshots = Snapshots(cast(Machines, machines), cast(Volumes, self.volumes), self.memories)
        self.backups = Backups(cast(Volumes, self.volumes))
        await machines.adopt()
        self.machines = machines

    async def stop(self) -> None:
        """Let go of everything; the guests stay in the records."""
        if hasattr(self, "machines"):
            self.machines.close()
        self._records.close()

    def _behaviour(self, id: str) -> Behaviour:
        return behaviour.read(self.annotations(id))
