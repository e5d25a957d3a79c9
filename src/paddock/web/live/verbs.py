"""The verbs that make sense for a machine in its state. The server judges whether the user may."""

from collections.abc import Iterator

from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.kinds import VMI
from paddock.fleet.machines import facts, waiting
from paddock.fleet.machines.finding import MachineView


def of(machine: MachineView) -> Iterator[str]:
    """Yield the verbs in the order of a menu."""
    if texts(machine.data, "metadata", "deletionTimestamp"):
        return
    live, suspended = waiting.is_live(machine), waiting.is_suspended(machine)
    if suspended:
        yield "resume"
    else:
        yield from _of_power(machine, live)
    if machine.kind is not VMI and not suspended:
        yield from ("snapshot", "clone")
        if not live:
            yield "restore"
    protected = facts.is_protected(machine.data)
    yield "unprotect" if protected else "protect"
    if not protected:
        yield "delete"


def _of_power(machine: MachineView, live: bool) -> Iterator[str]:
    if machine.kind is not VMI:
        yield "start" if not live else "stop"
        if live:
            yield "restart"
    if live and machine.vmi is not None:
        yield "unpause" if waiting.is_paused(machine) else "pause"
        if machine.vm is not None:
            yield "suspend"
        yield "reset"
