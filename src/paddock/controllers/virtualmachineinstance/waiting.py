"""Why a machine cannot go on now, as an exception: whoever prepares it stops there, and the controller reports it."""

from paddock.plan.instance.sight import Hold


class NotYet(Exception):
    """Something is missing. `hold` is what is said about it; `again` seconds later somebody should look, whatever happens."""

    def __init__(self, hold: Hold, again: float | None = None) -> None:
        super().__init__(hold.message)
        self.hold = hold
        self.again = again


def volumes(reason: str, message: str, again: float | None = None) -> NotYet:
    """Data is on its way."""
    return NotYet(Hold(reason, message, "volumes"), again)


def failed(reason: str, message: str, again: float | None = None) -> NotYet:
    """Something went wrong, and is tried again."""
    return NotYet(Hold(reason, message, "sync"), again)


def unschedulable(message: str) -> NotYet:
    """The host cannot take the machine."""
    return NotYet(Hold("Unschedulable", message, "unschedulable"))
