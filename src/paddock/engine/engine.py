"""`Engine`: the parts of the engine, constructed and started in order."""

import asyncio
import logging
import os
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from paddock.base.clock import Clock, SystemClock
from paddock.base.images.cleanup import ImageUpkeep
from paddock.base.images.library import ImageLibrary
from paddock.base.images.settings import ImageSettings
from paddock.engine.backups import Backups
from paddock.engine.claims import HostReservations
from paddock.engine.consolelogs import ConsoleLogs
from paddock.engine.host import facts
from paddock.engine.host.capacity import Room
from paddock.engine.host.facts import HostFacts
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import Forwarded, MachineConfig, UserNetwork
from paddock.engine.machine.host import MachineEnvironment
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.process import apart
from paddock.engine.machine.startqueue import LONGEST, StartQueue, places
from paddock.engine.machine.users import UserRange, on_this_host
from paddock.engine.memorystates import MemoryStates
from paddock.engine.networks.errors import GuestUnreachable
from paddock.engine.networks.networks import Networks, NetworkSettings
from paddock.engine.networks.nics import Protocol
from paddock.engine.snapshots import Snapshots
from paddock.engine.states import States
from paddock.engine.storage.volumes import Volumes

_LOG = logging.getLogger(__name__)


class EngineSettings(Struct, frozen=True):
    """The operator's settings for machines on this host."""

    images: ImageSettings = field(default_factory=ImageSettings)
    networks: NetworkSettings = field(default_factory=NetworkSettings)
    # further places for volumes, by name
    pools: dict[str, Path] = field(default_factory=dict)
    # directories that machines may use files of
    host_paths: tuple[Path, ...] = ()
    # directories that PersistentVolumes may share with machines, free of links
    shares: tuple[Path, ...] = ()
    # directories with the server's own data, which no machine shares
    private: tuple[Path, ...] = ()
    # guests may be promised that many times the memory there is
    memory_overcommit: float = 1.0


class Engine:
    """Everything that runs machines on this host, below one directory."""

    facts: HostFacts
    machines: Machines
    snapshots: Snapshots
    backups: Backups
    room: Room
    users: UserRange

    def __init__(self, root: Path, settings: EngineSettings = EngineSettings(), *, clock: Clock | None = None) -> None:  # noqa: B008 - frozen
        self.root = root
        self.settings = settings
        self._clock = clock or SystemClock()
        self.images = ImageLibrary(root / "images", settings.images)
        self._upkeep = ImageUpkeep(self.images, root, settings.pools.values(), settings.images.keep_seconds)
        self.volumes = Volumes(root, settings.pools)
        self._claims = HostReservations()
        self.networks = Networks(root / "networks", settings.networks, claims=self._claims)
        self.states = States(root / "states")
        self.consoles = ConsoleLogs(root / "consoles")
        self.memories = MemoryStates(root / "memory")

    async def start(self) -> None:
        """Look at the host, then take over what runs."""
        self.root.mkdir(mode=0o711, parents=True, exist_ok=True)
        # QEMU runs as another user and passes through to the files it was given, by paths below this one.
        os.chmod(self.root, 0o711)
        self.facts = await facts.collect(self.root / "cache")
        self.facts.check()
        self.room = Room.of(self.facts.memory_bytes, overcommit=self.settings.memory_overcommit)
        self.volumes.prepare()
        self.states.prepare()
        self.memories.prepare()
        accelerator = self.facts.accelerator_for("bios", smm=False).accelerator
        self.users = users = on_this_host(lambda: self._claims.users(self.root), self.root / "layer-group")
        if users.first:
            if why := (await asyncio.to_thread(apart, offline=False))[1]:
                _LOG.warning("machines share the namespaces of the host", extra={"why": why})
            # The first machine waits for neither answer, nor the event loop with it.
            await asyncio.to_thread(apart, offline=True)
        self.networks.users = (users.first, users.shared)
        queue = StartQueue(places(len(self.facts.cpus), accelerator), LONGEST[accelerator])
        surroundings = MachineEnvironment(host_view=self._host_view, queue=queue, users=users, clock=self._clock)
        self.machines = Machines(self.root / "machines", surroundings)
        self.snapshots = Snapshots(self.machines, self.volumes, self.memories)
        self.backups = Backups(self.volumes)
        self.volumes.is_held = self.machines.will_open
        self.networks.forward_by(self._forward)
        self.networks.runs_in_user_mode = self._runs_in_user_mode
        await self.networks.open()
        await self.machines.adopt()
        # Volumes in a pool that is not mounted have images below them that nobody else names.
        if self.volumes.is_whole:
            self._upkeep.start()

    def _host_view(self, config: MachineConfig) -> HostView:
        return replace(self.facts.view(config), root=self.root)

    async def _forward(self, owner: str, name: str, protocol: Protocol, address: str, outside: int, inside: int) -> None:
        """Open a port of a machine that is on a network of its own. Its cards are known by their MAC."""
        mac = self.networks.mac(owner, name)
        for machine in self.machines:
            if machine.observed.live and any((nic.name, nic.mac) == (name, mac) for nic in machine.config.nics):
                await machine.forward(name, Forwarded(protocol, address, outside, inside))
                return
        raise GuestUnreachable(f"cannot reach port {inside} of {name}", why="the machine does not run")

    def _runs_in_user_mode(self, mac: str) -> bool:
        """Return whether a machine runs that QEMU's own network connects, as a former server started it."""
        running = (nic for machine in self.machines if machine.observed.live for nic in machine.config.nics)
        return any(mac and nic.mac == mac and isinstance(nic.backend, UserNetwork) for nic in running)

    async def stop(self) -> None:
        """Let go of everything; the guests stay."""
        await self._upkeep.stop()
        await self.images.close()
        if hasattr(self, "machines"):
            self.machines.close()
        await self.networks.close()
