"""The objects of a machine: what its VirtualMachine says of power, and the order in which all are cleared away (section 4.4).

`running` or `runStrategy` is written when the VirtualMachine is made. From then on each apply repeats the one that is there while
it is ours, because a field that an apply leaves out is taken away, and is left to whoever has changed it. In the end each step comes
only when the objects of the step before are gone.
"""

from collections.abc import Container
from typing import Any, Literal

import msgspec

from paddock.dialects.vitistack.kinds.boot import annotation
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.marks import POWER_STATE, POWER_STATES

Step = Literal["machine", "claims", "networks", "release"]
RUNNING, STRATEGY = "running", "runStrategy"
_RUNS = ("Always", "RerunOnFailure", "Once")


def declared_power(machine: Machine) -> bool | None:
    """Return whether the annotation says that the machine is on, or off; None when it says neither."""
    state = annotation(machine, POWER_STATE)
    return None if state not in POWER_STATES else state == "running"


def with_power(spec: dict[str, Any], there: dict[str, Any] | None, ours: Container[str], on: bool | None) -> dict[str, Any]:
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


# --- the order in which they go ---------------------------------------------------------------------------------------------


class RemainingObjects(msgspec.Struct, frozen=True):
    """The remaining objects of a machine under deletion."""

    vm: bool = False
    instance: bool = False
    claims: tuple[str, ...] = ()
    # the networks that still count it among their machines
    networks: tuple[str, ...] = ()

    @property
    def step(self) -> Step:
        if self.vm or self.instance:
            return "machine"
        if self.claims:
            return "claims"
        return "networks" if self.networks else "release"

    @property
    def uses_networks(self) -> bool:
        """True if something of it may be attached to a network."""
        return self.step in ("machine", "claims")

    def said(self) -> str:
        """Return the object of the wait."""
        if self.step == "machine":
            return "the VirtualMachine to stop"
        if self.step == "claims":
            return f"PersistentVolumeClaim {', '.join(self.claims)} to go"
        return f"NetworkConfiguration {', '.join(self.networks)} to let it go" if self.networks else "nothing"
