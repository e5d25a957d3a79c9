"""The reasons why a machine cannot start or go on now, as values for its status and as exceptions for the parts that prepare it."""

import msgspec

# The reason and the first words of a launcher pod that a quota or a limit refuses.
REFUSED, REFUSAL = "FailedCreate", "failed to create virtual machine pod: "
# Reasons of what the launcher pod of a machine waits for.
_OF_POD = ("ErrImagePull", "FailedMount", "ImagePullBackOff", "Pulling")


class StartBlocker(msgspec.Struct, frozen=True):
    """The reason why a machine waits. `reason` is that of the condition of its `kind`, `code` that of Ready, if it says more."""

    reason: str
    message: str
    # "unschedulable": the host cannot take it; "volumes": data is on its way; "sync": something failed and is tried again
    kind: str = "sync"
    code: str = ""

    @property
    def waits_for_host(self) -> bool:
        """True if the instance itself is complete, and the host cannot take it yet: KubeVirt has a pod for it by then."""
        return self.kind == "unschedulable" or self.reason in _OF_POD


class MissingPrerequisite(Exception):
    """A prerequisite is missing. `again`: try again after so many seconds, even if nothing changes."""

    def __init__(self, blocker: StartBlocker, again: float | None = None) -> None:
        super().__init__(blocker.message)
        self.blocker = blocker
        self.again = again


def volumes(reason: str, message: str, again: float | None = None) -> MissingPrerequisite:
    """Data is on its way."""
    return MissingPrerequisite(StartBlocker(reason, message, "volumes"), again)


def failed(reason: str, message: str, again: float | None = None, *, code: str = "") -> MissingPrerequisite:
    """Something went wrong, and is tried again. `code` says more than the reason does."""
    return MissingPrerequisite(StartBlocker(reason, message, "sync", code), again)


def unschedulable(message: str, again: float | None = None, *, code: str = "") -> MissingPrerequisite:
    """The host cannot take the machine."""
    return MissingPrerequisite(StartBlocker("Unschedulable", message, "unschedulable", code), again)
