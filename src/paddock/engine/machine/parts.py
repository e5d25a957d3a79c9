"""A machine, put together: its owner, and what acts on the machine beside it."""

from pathlib import Path

from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.blockjobs import BlockJobs
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.host import SharedHost
from paddock.engine.machine.hotplug import Hotplug
from paddock.engine.machine.liveness import Liveness
from paddock.engine.machine.livesource import LiveSource
from paddock.engine.machine.livetarget import LiveTarget
from paddock.engine.machine.memorysnapshots import MemorySnapshots
from paddock.engine.machine.mirrors import DiskMirrors
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.ownerparts import OwnerParts
from paddock.engine.machine.reboots import Reboots
from paddock.engine.machine.renewal import Renewals
from paddock.engine.machine.sessions import GuestSessions
from paddock.engine.machine.suspension import Suspensions


class MachineParts:
    """All that one machine consists of. Whoever has it asks the table of `requests` first."""

    def __init__(self, directory: Directory, config: MachineConfig, shared: SharedHost) -> None:
        self.owner = MachineOwner(directory, config, shared, self._of)

    def _of(self, owner: MachineOwner) -> OwnerParts:
        """Make the parts, and say in which order they hear of events and mend what was cut short."""
        self.hotplug = Hotplug(owner)
        self.layers = BlockJobs(owner)
        self.memory = MemorySnapshots(owner, self.layers)
        self.mirrors = DiskMirrors(owner)
        self.reboots = Reboots(owner)
        self.renewals = Renewals(owner)
        self.suspensions = Suspensions(owner)
        self.sessions = GuestSessions(owner)
        self.source = LiveSource(owner)
        self.target = LiveTarget(owner)
        watcher = Liveness(owner)
        return OwnerParts(
            watcher=watcher,
            followers=(
                self.hotplug.follow,
                self.layers.follow,
                self.mirrors.follow,
                watcher.follow,
                self.sessions.follow,
                self.source.follow,
                self.target.follow,
            ),
            # A move comes first: the guest may stand still for it.
            recovery=(
                self.source.adopt,
                self.renewals.adopt,
                self.suspensions.adopt,
                self.mirrors.adopt,
                self.sessions.find_agent,
                self.layers.adopt,
                self.hotplug.repair,
            ),
            line=self._line,
            restore=self._restore,
            returns=self.reboots.returns,
        )

    def _line(self) -> tuple[MachineConfig, Command]:
        return self.target.line() if self.owner.record.arriving else self.suspensions.line()

    async def _restore(self, path: Path) -> None:
        await (self.target.restore() if self.owner.record.arriving else self.sessions.identities.restore(path))
