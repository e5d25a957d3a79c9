"""The root of every error Paddock raises on purpose.

An error tells three things: what cannot be done, why, and what to do about it. The varying parts are attributes, so that
callers decide by type and field, never by text. Whether trying again can help is part of the type: see `Transient`.
"""


class PaddockError(Exception):
    """Something Paddock could not do; subclasses set `what`, `why` and `fix`."""

    # the code that conditions carry and `paddock why` knows (base/reasons.py); empty: none
    reason_code: str = ""

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        text = self.what
        if self.why:
            text += f": {self.why}"
        if self.fix:
            text += f"; {self.fix}"
        return text


class Transient(PaddockError):
    """Trying again later, unchanged, may succeed."""


class Terminal(PaddockError):
    """Trying again unchanged fails again: somebody has to change something first."""


class UsageError(Terminal):
    """The command line, or a word of it, is wrong."""
