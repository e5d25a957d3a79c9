"""Why a machine cannot go on now, as an exception: whoever prepares it stops there, and the controller reports it."""

from paddock.plan.instance.observed import StartBlocker


class MissingPrerequisite(Exception):
    """Something is missing. `hold` is what is said about it; `again` seconds later somebody should look, whatever happens."""

    def __init__(self, hold: StartBlocker, again: float | None = None) -> None:
        super().__init__(hold.message)
        self.hold = hold
        self.again = again


def volumes(reason: str, message: str, again: float | None = None) -> MissingPrerequisite:
    """Data is on its way."""
    return MissingPrerequisite(StartBlocker(reason, message, "volumes"), again)


def failed(reason: str, message: str, again: float | None = None) -> MissingPrerequisite:
    """Something went wrong, and is tried again."""
    return MissingPrerequisite(StartBlocker(reason, message, "sync"), again)


def unschedulable(message: str) -> MissingPrerequisite:
    """The host cannot take the machine."""
    return MissingPrerequisite(StartBlocker("Unschedulable", message, "unschedulable"))
