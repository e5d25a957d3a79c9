"""The errors of a machine. Callers decide by type and `reason`, never by text."""

from paddock.base.errors import Terminal, Transient


class RequestRefused(Terminal):
    """The machine does not take this request as it is now. `reason` is a word that stays the same: `NotRunning`, `Stopping`, ..."""

    def __init__(self, what: str, *, reason: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason = reason


class QemuRefused(Terminal):
    """QEMU answered a command with an error. `kind` is QEMU's class of error, `description` its words."""

    def __init__(self, what: str, *, kind: str, description: str, fix: str = "") -> None:
        super().__init__(what, why=description, fix=fix)
        self.kind = kind
        self.description = description


class Unanswered(Transient):
    """QEMU, or a guest, did not answer in time, or went while it was asked."""


class StartFailed(Transient):
    """QEMU could not be started; `text` is what it said."""

    def __init__(self, what: str, *, why: str = "", fix: str = "", text: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.text = text


class AgentError(Transient):
    """The guest's agent did not do what it was asked to.

    `reason`: `NotConnected`, `Unanswered`, `Malformed` (its answer is not one), `RequestRefused` (it said so).
    """

    def __init__(self, what: str, *, reason: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason = reason
