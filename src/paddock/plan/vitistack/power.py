"""Who decides whether a machine runs: we, when it is made; users, from then on; the annotation, where there is one.

`running` or `runStrategy` is written when the VirtualMachine is made. From then on the one that is there is said again as it is while
it is ours, because a field that an apply leaves out is taken away, and is left to whoever has changed it.
"""

from collections.abc import Container
from typing import Any

from paddock.dialects.vitistack.boot import annotation
from paddock.dialects.vitistack.machine import Machine
from paddock.dialects.vitistack.marks import POWER_STATE, POWER_STATES

RUNNING, STRATEGY = "running", "runStrategy"
_RUNS = ("Always", "RerunOnFailure", "Once")


def declared(machine: Machine) -> bool | None:
    """Whether the annotation says that the machine is on, or off; None when it says neither."""
    state = annotation(machine, POWER_STATE)
    return None if state not in POWER_STATES else state == "running"


def powered(spec: dict[str, Any], there: dict[str, Any] | None, ours: Container[str], on: bool | None) -> dict[str, Any]:
    """The spec of a VirtualMachine with what it has to say of power; `there` is the spec that is stored, `ours` the members we applied."""
    if there is None:
        return spec
    wanted = {name: value for name, value in spec.items() if name not in (RUNNING, STRATEGY)}
    member = STRATEGY if there.get(STRATEGY) is not None else RUNNING
    if on is not None:
        return {**wanted, member: _value(member, there.get(member), on=on)}
    if member in ours and there.get(member) is not None:
        return {**wanted, member: there[member]}
    return wanted


def _value(member: str, now: Any, *, on: bool) -> Any:
    if member == RUNNING:
        return on
    if on:
        return now if now in _RUNS else "Always"
    return "Halted"
