from paddock.base.errors import Terminal, Transient


class NetworkUnusable(Terminal):
    """The host, or what was asked for, has to be changed first. `reason` is its code, if it has one."""

    def __init__(self, what: str, *, why: str = "", fix: str = "", reason: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason_code = reason


class NetworkBusy(Transient):
    """Something on the host failed that may work the next time."""


class GuestUnreachable(Transient):
    """A guest cannot be reached at a port now."""
