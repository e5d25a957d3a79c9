"""A run of a machine, as long as Paddock follows it. What outlives Paddock is in `RunRecord`."""

import asyncio
from dataclasses import dataclass

from paddock.engine.machine.process import Process
from paddock.engine.machine.qmp import Qmp


@dataclass(slots=True, eq=False)
class MachineRun:
    """One run, from the queue of starts until its process is gone."""

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
