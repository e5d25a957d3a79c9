import msgspec

from paddock.base.errors import PaddockError


class TaskProgress(msgspec.Struct, frozen=True):
    """A task's state: running, done, or failed with a reason."""

    done: bool = False
    error: str = ""
    # the reason code of the error
    reason: str = ""


RUNNING, DONE = TaskProgress(), TaskProgress(done=True)


def failed(error: str | PaddockError) -> TaskProgress:
    """Return the end of a task that did not reach its goal."""
    reason = error.reason_code if isinstance(error, PaddockError) else ""
    return TaskProgress(done=True, error=str(error), reason=reason)
