"""A machine, put together: its owner, and what acts on the machine beside it."""

from pathlib import Path

from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.backups import DiskBackups
from paddock.engine.machine.blockjobs import BlockJobs
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.gueststatus import GuestStatus
from paddock.engine.machine.host import SharedHost
from paddock.engine.machine.hotplug import Hotplug
from paddock.engine.machine.liveness import Liveness
from paddock.engine.machine.livesource import LiveSource
from paddock.engine.machine.livetarget import LiveTarget
from paddock.engine.machine.memorysnapshots import MemorySnapshots
from paddock.engine.machine.mirrors import DiskMirrors
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.ownerparts import Follower, Recovery
from paddock.engine.machine.reboots import Reboots
from paddock.engine.machine.renewal import Renewals
from paddock.engine.machine.sessions import GuestSessions
from paddock.engine.machine.suspension import Suspensions
from paddock.engine.machine.tracking import ChangeTracking


class MachineParts:
    """All that one machine consists of. Whoever has it asks the table of `requests` first."""

    def __init__(self, directory: Directory, config: MachineConfig, shared: SharedHost) -> None:
        # It turns to the others here only when something happens, and nothing does before all are made.
        self.owner = owner = MachineOwner(directory, config, shared, self)
        self.hotplug = Hotplug(owner)
        self.layers = BlockJobs(owner)
        self.memory = MemorySnapshots(owner, self.layers)
        self.mirrors = DiskMirrors(owner)
        self.reboots = Reboots(owner)
        self.status = GuestStatus(owner, self.reboots)
        self.renewals = Renewals(owner)
        self.suspensions = Suspensions(owner)
        self.sessions = GuestSessions(owner)
        self.source = LiveSource(owner)
        self.target = LiveTarget(owner)
        self.watcher = Liveness(owner)
        self.tracking = ChangeTracking(owner)
        self.backups = DiskBackups(owner, self.sessions)

    @property
    def followers(self) -> tuple[Follower, ...]:
        """Those that hear of events, in this order."""
        return (
            self.status.follow,
            self.hotplug.follow,
            self.layers.follow,
            self.mirrors.follow,
            self.backups.follow,
            self.tracking.follow,
            self.watcher.follow,
            self.sessions.follow,
            self.source.follow,
            self.target.follow,
        )

    @property
    def recovery(self) -> tuple[Recovery, ...]:
        """What mends what was cut short. A move comes first: the guest may stand still for it."""
        return (
            self.source.adopt,
            self.renewals.adopt,
            self.suspensions.adopt,
            self.mirrors.adopt,
            self.sessions.find_agent,
            self.layers.adopt,
            self.tracking.adopt,
            self.backups.adopt,
            self.hotplug.repair,
        )

    def line(self) -> tuple[MachineConfig, Command]:
        """Return the config that a start is made with, and its command line."""
        return self.target.line() if self.owner.record.arriving else self.suspensions.line()

    async def restore(self, path: Path) -> None:
        """Read the state of a saved machine."""
        await (self.target.restore() if self.owner.record.arriving else self.sessions.identities.restore(path))

    async def before_guest(self) -> None:
        """QEMU is ready, and the guest does not run yet."""
        await self.tracking.take_up()

    async def before_end(self) -> None:
        """The guest has ended, and QEMU is about to."""
        await self.backups.cancel()
        await self.tracking.keep()
