"""The events of a change of the status: each thing once, when it comes. Nothing is remembered for it but the status."""

from collections.abc import Iterator

import msgspec

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machinespec import MachineStatus
from paddock.dialects.vitistack.plan import problems, report
from paddock.dialects.vitistack.plan.observed import is_new


class EventMessage(msgspec.Struct, frozen=True):
    kind: str
    reason: str
    note: str


def news(machine: Machine, after: MachineStatus) -> Iterator[EventMessage]:
    """The events of a change of the status; the machine still has the one before."""
    before = machine.status or MachineStatus()
    ready_before, ready = _condition(before, report.READY), _condition(after, report.READY)
    if ready[0] in problems.ERROR_TYPES and ready != ready_before:
        yield EventMessage("Warning", ready[0], ready[1])
    for aspect, part, kind, reason in (
        (report.MACHINE, report.RESTART_NEEDED, "Normal", "RestartRequired"),
        (report.MACHINE, report.NOTHING_TO_BOOT, "Warning", "NoBootSource"),
        (report.STORAGE, report.DISK_LOST, "Warning", "DiskLost"),
    ):
        said = _condition(after, aspect)[1]
        if part in said and part not in _condition(before, aspect)[1]:
            yield EventMessage(kind, reason, said)
    cloud_init = machine.spec.cloudInit
    if is_new(machine) and cloud_init is not None and cloud_init.userData and cloud_init.secretRef is not None:
        note = (
            f"cloudInit.userData is used, and Secret {cloud_init.secretRef.name} of cloudInit.secretRef is not read; leave one of them out"
        )
        yield EventMessage("Warning", "CloudInitSourceAmbiguous", note)


def _condition(status: MachineStatus, aspect: str) -> tuple[str, str]:
    """Reason and message of a condition."""
    return next(((each.reason or "", each.message or "") for each in status.conditions or () if each.type == aspect), ("", ""))
