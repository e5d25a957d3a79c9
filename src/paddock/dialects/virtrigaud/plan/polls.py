"""How often machines are observed. `paddock why` says by it how old a Provider's word may be."""

import msgspec


class MachinePolls(msgspec.Struct, frozen=True):
    """Seconds between two observations of a machine, by how it is."""

    task: float = 5.0
    # the first poll of a task that is mostly short: of creations, snapshots and reverts
    first: float = 1.0
    # something is under way, or an address is waited for
    transition: float = 10.0
    running: float = 120.0
    off: float = 300.0
    suspended: float = 120.0
    # of all machines at once, where that costs little
    listed: float = 10.0
    # no place is left for the machine
    placement: float = 30.0
