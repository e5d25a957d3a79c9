"""The refusals of what needs a guest that exists."""

from paddock.engine.machine.errors import RequestRefused
from paddock.engine.networks.errors import GuestUnreachable
from paddock.engine.storage.errors import NotAllowed

SIMULATED = "SimulatedGuest"
WHY = "guests are simulated: nothing runs in them"
FIX = "use a server with real guests (paddock up without --guests simulated)"


def machine(what: str, *, reason: str = SIMULATED) -> RequestRefused:
    """A request to a machine."""
    return RequestRefused(what, reason=reason, why=WHY, fix=FIX)


def volume(what: str) -> NotAllowed:
    """A request for the content of a disk."""
    return NotAllowed(what, why="guests are simulated: their disks hold nothing", fix=FIX)


def connection(what: str) -> GuestUnreachable:
    """A connection to a guest."""
    return GuestUnreachable(what, why=WHY, fix=FIX)
