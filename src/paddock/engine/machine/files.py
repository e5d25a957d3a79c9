"""What is kept of a machine: its config, and the record of its run."""

import asyncio
from collections.abc import Callable

from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory, RunRecord


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
