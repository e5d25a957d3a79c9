"""Identifiers that the manager keeps: of machines, and of tasks.

A machine is identified by its instance UUID, which vCenter keeps unique. It is chosen before the machine is made, so a create has an id
at once, and neither another machine of the name nor a reference that was given anew is ever taken for it. A task is identified by its goal,
the machine, and the task of vSphere. So a driver that was started again follows it, and judges by the machine when vCenter has forgotten
the task.
"""

import enum
import re
import uuid

import msgspec

_MACHINE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z", re.ASCII)
_TASK = re.compile(r"[A-Za-z0-9_.:-]{0,80}\Z", re.ASCII)
# The instance UUIDs of machines whose owner's uid is none.
_SPACE = uuid.UUID("6f1f6dd4-27a5-4be5-9a3c-0d2b3d1f8a11")


def machine_id(text: str) -> str | None:
    """Return the machine that a text identifies, by its instance UUID; None when it identifies none."""
    return text.lower() if _MACHINE.match(text) else None


def instance_uuid(key: str) -> str:
    """Return the instance UUID of the machine that belongs to a key: an owner's uid, or any text that stays the same."""
    try:
        return str(uuid.UUID(key))
    except ValueError:
        return str(uuid.uuid5(_SPACE, key))


class VSphereGoal(enum.StrEnum):
    """A state that a task waits for."""

    CREATED = "create"
    DELETED = "delete"
    RUNNING = "on"
    STOPPED = "off"
    # the guest was asked; after the time in the detail it is forced
    SHUT_DOWN = "shutdown"
    RESTARTED = "restart"
    RECONFIGURED = "reconfigure"
    UPGRADED = "upgrade"
    SNAPSHOTTED = "snapshot"
    SNAPSHOT_DELETED = "snapshot-delete"
    REVERTED = "revert"
    CLONED = "clone"
    PREPARED = "image"
    UNPREPARED = "image-delete"
    IMPORTED = "import"
    # Work of the driver itself: the detail is the transfer.
    EXPORTED = "export"
    RECEIVED = "receive"


class VSphereTaskId(msgspec.Struct, frozen=True):
    """A goal, the machine that reaches it ("" for none), the task of vSphere ("" for none), and what else the goal needs."""

    goal: VSphereGoal
    machine: str = ""
    task: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return "|".join((self.goal, self.machine, self.task, self.detail)).rstrip("|")

    @classmethod
    def parse(cls, text: str) -> "VSphereTaskId | None":
        """Return the task that a text identifies; None when it identifies none."""
        goal, machine, task, detail = [*text.split("|", 3), "", "", ""][:4]
        if goal not in frozenset(VSphereGoal) or (machine and machine_id(machine) is None) or not _TASK.match(task):
            return None
        return cls(VSphereGoal(goal), machine, task, detail)
