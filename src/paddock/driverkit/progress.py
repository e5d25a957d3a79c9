"""The progress of tasks."""

import msgspec


class TaskProgress(msgspec.Struct, frozen=True):
    """A task's state: running, done, or failed with a reason."""

    done: bool = False
    error: str = ""


RUNNING, DONE = TaskProgress(), TaskProgress(done=True)


def failed(reason: str) -> TaskProgress:
    """Return the end of a task that did not reach its goal."""
    return TaskProgress(done=True, error=reason)
