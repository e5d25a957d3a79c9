"""Identifiers that the manager keeps: of objects, and of tasks.

An object is identified by its name, to be read by, and its uid, so that another object of the name is never taken for it. A task is
identified by its goal and the object that reaches it. So a driver that was started again knows the task, and looks at the object.
"""

import enum
import re

import msgspec

_TEXT = re.compile(r"(?P<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)/(?P<uid>[A-Za-z0-9-]{1,64})\Z", re.ASCII)


class ObjectId(msgspec.Struct, frozen=True):
    """An object of the driver's namespace."""

    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.name}/{self.uid}"

    @classmethod
    def parse(cls, text: str) -> "ObjectId | None":
        """Return the object that a text identifies; None when it identifies none."""
        found = _TEXT.match(text)
        return cls(found["name"], found["uid"]) if found is not None else None


class TaskGoal(enum.StrEnum):
    """A state that a task waits for."""

    CREATED = "create"
    DELETED = "delete"
    RUNNING = "on"
    STOPPED = "off"
    RESTARTED = "restart"
    RECONFIGURED = "reconfigure"
    SNAPSHOTTED = "snapshot"
    SNAPSHOT_DELETED = "snapshot-delete"
    REVERTED = "revert"
    CLONED = "clone"
    PREPARED = "image"
    UNPREPARED = "image-delete"
    IMPORTED = "import"
    # Work of the driver itself: the object is the transfer.
    EXPORTED = "export"
    RECEIVED = "receive"


class TaskId(msgspec.Struct, frozen=True):
    """A goal, and the object that reaches it. `detail` is what else the goal needs: a uid, a generation."""

    goal: TaskGoal
    object: ObjectId
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.goal}:{self.object}:{self.detail}" if self.detail else f"{self.goal}:{self.object}"

    @classmethod
    def parse(cls, text: str) -> "TaskId | None":
        """Return the task that a text identifies; None when it identifies none."""
        goal, _, rest = text.partition(":")
        place, _, detail = rest.partition(":")
        found = ObjectId.parse(place)
        if found is None or goal not in frozenset(TaskGoal):
            return None
        return cls(TaskGoal(goal), found, detail)
