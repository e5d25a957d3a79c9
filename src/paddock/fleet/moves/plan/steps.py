"""The next step of a move, and of its undo, from what both sides have now: two tables without memory.

A step that was cut off is decided again, because its result is not there. The order is the promise: the target's machine is made when the
source is fenced and stopped, and it loses its own fence last; on the way back it is fenced and gone before the source loses its fence.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class MoveStep(StrEnum):
    """A step of a move."""

    FENCE = "fence the source"
    HALT = "stop the source"
    REFERENCES = "make what the machine refers to"
    CARRY = "carry a disk"
    CREATE = "make the machine at the target"
    RELEASE = "release the machine at the target"
    CONFIRM = "confirm the machine at the target"
    DONE = "done"
    # the source may start although the target may, too
    BROKEN = "broken"
    UNDOING = "undoing"


class UndoStep(StrEnum):
    MARK = "note that the move is undone"
    FENCE_TARGET = "fence the machine at the target"
    HALT_TARGET = "stop the machine at the target"
    DELETE_TARGET = "delete the machine at the target"
    DELETE_DISKS = "delete what was carried"
    RESTORE = "release the source"
    NOTHING = "nothing to undo"


class CarryState(StrEnum):
    """The state of a disk at the target."""

    MISSING = "missing"
    # it was cut off, or nobody knows its checksum
    PARTIAL = "partial"
    COMPLETE = "complete"


class SourceState(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at the source."""

    has_record: bool = False
    fenced: bool = False
    # its spec wants it to run, which only the fence prevents
    wants_to_run: bool = False
    # there is an instance, whatever its phase
    live: bool = False
    ran: bool = False
    undo: bool = False
    confirmed: bool = False


class TargetState(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at the target, as far as this move made it."""

    exists: bool = False
    fenced: bool = False
    live: bool = False
    running: bool = False
    missing_references: bool = False
    disks: Mapping[str, CarryState] = {}
    # objects of this move besides the machine
    leftovers: bool = False


def next_step(source: SourceState, target: TargetState) -> MoveStep:
    """Return the next step of a move."""
    if not source.has_record:
        return MoveStep.FENCE
    if source.undo:
        return MoveStep.UNDOING
    if not source.fenced:
        # Only an undo takes the fence off, and it leaves its mark first.
        return MoveStep.BROKEN
    if source.live or source.wants_to_run:
        return MoveStep.BROKEN if target.exists and not target.fenced else MoveStep.HALT
    if source.confirmed:
        return MoveStep.DONE
    if not target.exists:
        if target.missing_references:
            return MoveStep.REFERENCES
        return MoveStep.CREATE if all(each is CarryState.COMPLETE for each in target.disks.values()) else MoveStep.CARRY
    if target.fenced:
        return MoveStep.RELEASE
    return MoveStep.CONFIRM


def next_undo(source: SourceState, target: TargetState) -> UndoStep:
    """Return the next step back."""
    if not source.has_record:
        return UndoStep.NOTHING
    if not source.undo:
        return UndoStep.MARK
    if target.exists:
        if not target.fenced:
            return UndoStep.FENCE_TARGET
        return UndoStep.HALT_TARGET if target.live else UndoStep.DELETE_TARGET
    return UndoStep.DELETE_DISKS if target.leftovers else UndoStep.RESTORE


def next_disk(disks: Mapping[str, CarryState]) -> str:
    """Return the disk to carry next; empty if all are complete."""
    return next((name for name, state in disks.items() if state is not CarryState.COMPLETE), "")
