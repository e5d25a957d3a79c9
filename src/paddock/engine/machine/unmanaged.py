"""A machine whose config cannot be read. It is left alone: its lock and its record tell what is true of it."""

import contextlib

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine.machine import runends
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.directory import Directory, RunRecord, UnreadableState
from paddock.engine.machine.observation import GuestFault, Observation, RunEnd, SuspendedState
from paddock.engine.machine.process import boot_id
from paddock.engine.machine.runends import RunEvidence


class UnmanagedMachine(Struct, frozen=True):
    """A machine whose config cannot be read."""

    directory: Directory
    problem: UnreadableState

    @property
    def lives(self) -> bool:
        """Its QEMU has not ended."""
        return self.directory.locked()

    @property
    def holds_disks(self) -> bool:
        """A process has its disks open, or a saved guest goes on with them."""
        return self.directory.is_saved or self.lives

    @property
    def user(self) -> int:
        """The user that its QEMU runs as; 0 when nobody knows."""
        record = self.directory.read_record()
        return record.user if record is not None else 0

    @property
    def config(self) -> MachineConfig | None:
        """The config that its present run was started with, without what was plugged since; None: it cannot be known."""
        return self.directory.read_started()

    @property
    def observed(self) -> Observation:
        """The state that its files show, without a word to its QEMU."""
        record = self.directory.read_record() or RunRecord()
        seen = Observation(run=record.run, accelerator=record.accelerator, times=record.times)
        fault = GuestFault("MachineUnmanaged", str(self.problem))
        if self.lives:
            return replace(seen, phase="running", pid=record.pid, fault=fault)
        if self.directory.is_saved:
            return replace(seen, phase="suspended", suspended=SuspendedState(0.0, 0), fault=fault)
        return replace(seen, phase="ended", end=record.end or self._end(record))

    def _end(self, record: RunRecord) -> RunEnd:
        """The end of a run that nobody watched."""
        same_boot = record.boot in ("", boot_id())
        reason = runends.judge(RunEvidence(record.evidence, begun=record.begun or not record.run, same_boot=same_boot))
        said = runends.text_of(reason, "", None, self.directory.log_tail)
        return RunEnd(reason, "\n".join(filter(None, (f"nobody saw how it ended: {self.problem.why}", said))))


def as_saved(directory: Directory) -> MachineConfig | None:
    """The config of a suspended machine, which its saved state has, too; None of others."""
    with contextlib.suppress(UnreadableState):
        saved = directory.read_saved()
        return saved.config if saved is not None else None
    return None
