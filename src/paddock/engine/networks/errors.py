"""What goes wrong with networks."""

from paddock.base.errors import Terminal, Transient


class NetworkUnusable(Terminal):
    """The host, or what was asked for, has to be changed first."""


class NetworkBusy(Transient):
    """Something on the host failed that may work the next time."""


class GuestUnreachable(Transient):
    """A guest cannot be reached at a port now."""
