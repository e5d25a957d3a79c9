"""The order in which everything of a machine goes (4.4).

Service -> virtual machine -> (it and its instance gone) -> disks -> (disks gone) -> Secrets -> the machine itself
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec

# A clean end takes its grace and a little more; what takes longer is told.
_PATIENCE_SECONDS = 120


class ClearStep(Enum):
    """What comes next."""

    DELETE_SERVICE = auto()
    DELETE_MACHINE = auto()
    DELETE_DISKS = auto()
    DELETE_SECRETS = auto()
    WAIT = auto()
    LET_GO = auto()


class RemainingKinds(msgspec.Struct, frozen=True, kw_only=True):
    """What is there still, by kind: names, and those of them that are not going yet."""

    services: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    # kinds of which something has not been deleted yet
    standing: frozenset[str] = frozenset()

    def named(self) -> str:
        """For people."""
        words = (
            ("Service", self.services),
            ("VirtualMachine", self.machines),
            ("VirtualMachineInstance", self.instances),
            ("DataVolume", self.volumes),
            ("PersistentVolumeClaim", self.claims),
            ("Secret", self.secrets),
        )
        return ", ".join(f"{kind} {name}" for kind, names in words for name in names)


# In order: whether a row holds, what is done where something of it still stands, and which kind that is asked of.
_ROWS: Sequence[tuple[Callable[[RemainingKinds], bool], ClearStep, str]] = (
    (lambda left: bool(left.services), ClearStep.DELETE_SERVICE, "services"),
    (lambda left: bool(left.machines or left.instances), ClearStep.DELETE_MACHINE, "machines"),
    (lambda left: bool(left.volumes or left.claims), ClearStep.DELETE_DISKS, "volumes"),
    (lambda left: bool(left.secrets), ClearStep.DELETE_SECRETS, "secrets"),
)


def step(left: RemainingKinds) -> ClearStep:
    """What to do next."""
    for holds, act, kind in _ROWS:
        if holds(left):
            return act if kind in left.standing else ClearStep.WAIT
    return ClearStep.LET_GO


def stalls_at(deleted: float, grace_seconds: int) -> float:
    """When a deletion has taken too long."""
    return deleted + grace_seconds + _PATIENCE_SECONDS
