"""A backup of a machine's disks: what is asked for, and how far it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec


class BackupRequest(msgspec.Struct, frozen=True):
    """Disks that go into files, all as they are at one moment."""

    # unique among all backups of the machine
    name: str
    # disk -> the file that is made for it
    targets: Mapping[str, Path]
    # disk -> the checkpoint since which it is to have the changes; a disk without one is whole
    since: Mapping[str, str] = {}
    # begins with this moment; "": none
    checkpoint: str = ""
    # the guest's file systems stand still at this moment
    quiesce: bool = True
    # bytes per second and disk; 0: as fast as it goes
    speed: int = 0


class BackupState(msgspec.Struct, frozen=True):
    """A backup that began. It is in the machine's record until it is forgotten."""

    name: str
    targets: dict[str, Path]
    checkpoint: str = ""
    state: Literal["preparing", "running", "done", "failed"] = "preparing"
    # the guest's file systems may stand still
    quiet: bool = False
    quiesced: Literal["", "succeeded", "failed", "skipped"] = ""
    # why they did not stand still
    problem: str = ""
    # why it failed
    error: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed")
