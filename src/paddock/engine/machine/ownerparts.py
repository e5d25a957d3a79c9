"""The parts of a machine's owner: what it keeps itself, and those beside it, as far as it calls them, which act on it by its methods."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory, RunRecord
from paddock.engine.machine.process import Process
from paddock.engine.machine.qmp import Qmp

# Gets an event's name and data, and ("", {}) when the run is over.
Follower = Callable[[str, Mapping[str, Any]], None]
Recovery = Callable[[], Coroutine[Any, Any, None]]


class MachineFiles:
    """The config and the record of one machine, in memory as in its directory."""

    def __init__(self, directory: Directory, config: MachineConfig) -> None:
        self.directory = directory
        self.config = config
        # the config that the present run was started with: what was plugged since is the difference
        self.started = config
        self.record = RunRecord()
        self._config_lock = asyncio.Lock()

    def recall(self, record: RunRecord | None, started: MachineConfig | None) -> None:
        """Go on with what an earlier Paddock kept."""
        self.record, self.started = record or self.record, started or self.started

    def write(self, record: RunRecord) -> None:
        """Replace the record."""
        self.record = record
        self.directory.write_record(record)

    def write_started(self, config: MachineConfig) -> None:
        """Keep the config that a run is started with."""
        self.started = config
        self.directory.write_started(config)

    async def reconfigure(self, change: Callable[[MachineConfig], MachineConfig]) -> bool:
        """Change the config, on disk first; `change` gets the config of that moment. Return whether that changed anything."""
        async with self._config_lock:
            config = change(self.config)
            if config == self.config:
                return False
            await asyncio.to_thread(self.directory.write_config, config)
            self.config = config
            return True


@dataclass(slots=True, eq=False)
class MachineRun:
    """One run of a machine as long as Paddock follows it, from the queue of starts until its process is gone."""

    # what waits for the turn and starts QEMU; None: it is done
    starting: asyncio.Task[None] | None = None
    process: Process | None = None
    # the connection to the monitor; None: there is none just now
    qmp: Qmp | None = None
    # why the start failed; "": it did not
    failure: str = ""
    # what the process ended with, where that is known
    status: int | None = None

    def hang_up(self) -> None:
        """Close the connection to the monitor."""
        if self.qmp is not None:
            self.qmp.close()
            self.qmp = None

    def release(self) -> None:
        """Follow it no longer; the process stays."""
        self.hang_up()
        if self.process is not None:
            self.process.release()
            self.process = None


class MachineWatcher(Protocol):
    """Checks that a QEMU answers."""

    def arm(self) -> None:
        """The guest runs: look regularly from now on."""

    def suspect(self) -> None:
        """QEMU did not answer somebody."""

    def unreachable(self) -> None:
        """There is no connection to QEMU, and none could be made."""


class RunStates(Protocol):
    """Makes of QEMU's run states what others see of the guest."""

    async def ask(self) -> None:
        """Ask QEMU for its run state."""

    def take(self, status: str) -> None:
        """This is its run state."""


class OwnerParts(Protocol):
    """A machine around its owner. The owner asks for a part when it needs one, and for none while it is made."""

    @property
    def watcher(self) -> MachineWatcher:
        """What checks that QEMU answers."""

    @property
    def status(self) -> RunStates:
        """What knows how the guest is."""

    @property
    def followers(self) -> Sequence[Follower]:
        """Those that hear of events, in this order."""

    @property
    def recovery(self) -> Sequence[Recovery]:
        """What is left to do when a QEMU was found after Paddock was away, in this order."""

    def line(self) -> tuple[MachineConfig, Command]:
        """Return the config that a start is made with, and its command line."""

    async def restore(self, path: Path) -> None:
        """Read the state of a saved machine."""

    async def before_guest(self) -> None:
        """QEMU is ready, and the guest does not run yet."""

    async def before_end(self) -> None:
        """The guest has ended, and QEMU is about to."""
