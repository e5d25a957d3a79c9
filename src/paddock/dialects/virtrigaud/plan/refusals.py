"""What cannot be requested of a provider, because the contract or the Provider's type has no place for it."""

from paddock.base.errors import Terminal
from paddock.dialects.virtrigaud.plan import reasons


class Refusal(Terminal):
    """A machine that cannot be requested as its spec says; `reason` is that of its condition."""

    def __init__(self, what: str, *, why: str = "", fix: str = "", reason: str = reasons.VALIDATION_ERROR) -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason = reason
