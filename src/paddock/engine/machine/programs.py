"""The QEMU that a machine runs on, and its difference from the host's present one."""

import os

from paddock.engine.machine.directory import QemuProgram, RunRecord


def identify(path: str) -> QemuProgram | None:
    """The program as it is now; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return QemuProgram(path, found.st_size, found.st_mtime_ns)


def is_outdated(record: RunRecord) -> bool:
    """The QEMU that the machine was started from was replaced since: by an upgrade, as a rule. False when nobody can know."""
    if record.program is None or not record.active:
        return False
    now = identify(record.program.path)
    return now is not None and now != record.program
