"""The backups of a machine in memory."""

import struct
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from paddock.engine.machine.backupstate import BackupRequest, BackupState
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.requests import Verb

_EMPTY = struct.pack(">4sIQ56xQ", b"QFI\xfb", 3, 0, 0)


class FakeBackups:
    """The part of a machine that backups are about. A test ends a backup with `end_backup`."""

    id: str
    config: MachineConfig

    def __init__(self) -> None:
        self.backup: BackupState | None = None
        self.requests: list[BackupRequest] = []
        self.known: dict[str, set[str]] = {}
        # the reason for which the next one is refused; no checkpoint is left then
        self.backup_refusal = ""

    def _admit(self, verb: Verb) -> bool:
        raise NotImplementedError

    async def take_backup(self, request: BackupRequest) -> None:
        self._admit(Verb.CHANGE)
        if self.backup is not None and self.backup.name == request.name:
            return
        if refusal := self.backup_refusal:
            self.backup_refusal = ""
            self.known.clear()
            raise RequestRefused(f"cannot back up machine {self.id}", reason=refusal, why="a test says so")
        if any(since not in self.known.get(disk, ()) for disk, since in request.since.items()):
            raise RequestRefused(f"cannot back up machine {self.id}", reason="NoCheckpoint", why="not all changes are known")
        for path in request.targets.values():
            path.write_bytes(_EMPTY)
        self.requests.append(request)
        quiesced = "succeeded" if request.quiesce else "skipped"
        self.backup = BackupState(request.name, dict(request.targets), request.checkpoint, "running", quiesced=quiesced)  # type: ignore[arg-type]
        for disk in request.targets:
            self.known.setdefault(disk, set()).update({request.checkpoint} - {""})

    def end_backup(self, error: str = "") -> None:
        """What QEMU does is over."""
        assert self.backup is not None
        self.backup = replace(self.backup, state="failed" if error else "done", error=error)

    async def cancel_backup(self, name: str) -> None:
        if self.backup is not None and self.backup.name == name:
            if not self.backup.ended:
                for known in self.known.values():
                    known.discard(self.backup.checkpoint)
            self.backup = None

    async def checkpoints(self) -> Mapping[str, frozenset[str]]:
        self._admit(Verb.LOOK)
        return {disk.name: frozenset(self.known.get(disk.name, ())) for disk in self.config.disks if disk.tracked}

    async def retain_checkpoints(self, checkpoints: Collection[str]) -> None:
        self._admit(Verb.CHANGE)
        self.known = {disk: known & set(checkpoints) for disk, known in self.known.items()}
