"""Ids of tasks: a goal, the machine that reaches it, and when its patience ends. So a driver that was started again knows the task."""

import enum
import re

import msgspec

_TEXT = re.compile(r"(?P<goal>[a-z-]+):(?P<uuid>[0-9a-f-]{36})(:(?P<detail>[A-Za-z0-9._-]{1,80}))?\Z", re.ASCII)


class MachineGoal(enum.StrEnum):
    """A state that a task of a machine waits for."""

    CREATED = "create"
    STOPPED = "off"
    RESTARTED = "restart"


class MachineTask(msgspec.Struct, frozen=True):
    """A task. `detail` is what else the goal needs: for a graceful end the second of the epoch when force is used."""

    goal: MachineGoal
    uuid: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.goal}:{self.uuid}:{self.detail}" if self.detail else f"{self.goal}:{self.uuid}"

    @classmethod
    def parse(cls, text: str) -> "MachineTask | None":
        """Return the task that a text identifies; None when it identifies none of a machine."""
        found = _TEXT.match(text)
        if found is None or found["goal"] not in frozenset(MachineGoal):
            return None
        return cls(MachineGoal(found["goal"]), found["uuid"], found["detail"] or "")
