"""The tables of a move: each step once, and what holds in every state that both sides can be in."""

import itertools
from collections.abc import Iterator

import pytest

from paddock.fleet.moves.plan.steps import CarryState, MoveStep, SourceState, TargetState, UndoStep, next_disk, next_step, next_undo

SOURCE = SourceState(has_record=True, fenced=True)
DONE, PARTIAL, MISSING = CarryState.COMPLETE, CarryState.PARTIAL, CarryState.MISSING


@pytest.mark.parametrize(
    ("source", "target", "step"),
    [
        (SourceState(), TargetState(), MoveStep.FENCE),
        (SourceState(live=True, wants_to_run=True), TargetState(), MoveStep.FENCE),
        (SourceState(has_record=True, fenced=True, live=True), TargetState(), MoveStep.HALT),
        (SourceState(has_record=True, fenced=True, wants_to_run=True), TargetState(), MoveStep.HALT),
        (SourceState(has_record=True, fenced=True, live=True), TargetState(exists=True, fenced=True), MoveStep.HALT),
        (SOURCE, TargetState(missing_references=True, disks={"a": MISSING}), MoveStep.REFERENCES),
        (SOURCE, TargetState(disks={"a": DONE, "b": PARTIAL}), MoveStep.CARRY),
        (SOURCE, TargetState(disks={"a": DONE, "b": DONE}), MoveStep.CREATE),
        (SOURCE, TargetState(), MoveStep.CREATE),
        (SOURCE, TargetState(exists=True, fenced=True), MoveStep.RELEASE),
        (SOURCE, TargetState(exists=True), MoveStep.CONFIRM),
        (SourceState(has_record=True, fenced=True, confirmed=True), TargetState(exists=True), MoveStep.DONE),
        (SourceState(has_record=True, fenced=True, undo=True), TargetState(exists=True), MoveStep.UNDOING),
        (SourceState(has_record=True), TargetState(exists=True), MoveStep.BROKEN),
        (SourceState(has_record=True, fenced=True, live=True), TargetState(exists=True), MoveStep.BROKEN),
    ],
)
def test_each_step(source: SourceState, target: TargetState, step: MoveStep) -> None:
    assert next_step(source, target) is step


def states() -> Iterator[tuple[SourceState, TargetState]]:
    flags = (False, True)
    for source in itertools.product(flags, repeat=6):
        one = dict(zip(("has_record", "fenced", "wants_to_run", "live", "undo", "confirmed"), source, strict=True))
        for target in itertools.product(flags, repeat=5):
            two = dict(zip(("exists", "fenced", "live", "missing_references", "leftovers"), target, strict=True))
            for disk in CarryState:
                yield SourceState(**one), TargetState(**two, disks={"a": disk})


def test_the_target_is_released_only_while_the_source_is_at_rest() -> None:
    for source, target in states():
        step = next_step(source, target)
        if step in (MoveStep.CREATE, MoveStep.RELEASE, MoveStep.CARRY):
            assert source.fenced and not source.live and not source.wants_to_run and not source.undo
        if step is MoveStep.CREATE:
            assert next_disk(target.disks) == "" and not target.exists


def test_the_source_is_released_only_when_the_target_has_nothing() -> None:
    for source, target in states():
        if next_undo(source, target) is UndoStep.RESTORE:
            assert source.undo and not target.exists and not target.leftovers
        if next_undo(source, target) is UndoStep.DELETE_TARGET:
            assert target.fenced and not target.live


@pytest.mark.parametrize(
    ("source", "target", "step"),
    [
        (SourceState(), TargetState(), UndoStep.NOTHING),
        (SOURCE, TargetState(exists=True), UndoStep.MARK),
        (SourceState(has_record=True, undo=True), TargetState(exists=True, live=True), UndoStep.FENCE_TARGET),
        (SourceState(has_record=True, undo=True), TargetState(exists=True, fenced=True, live=True), UndoStep.HALT_TARGET),
        (SourceState(has_record=True, undo=True), TargetState(exists=True, fenced=True), UndoStep.DELETE_TARGET),
        (SourceState(has_record=True, undo=True), TargetState(leftovers=True), UndoStep.DELETE_DISKS),
        (SourceState(has_record=True, undo=True), TargetState(), UndoStep.RESTORE),
    ],
)
def test_each_step_back(source: SourceState, target: TargetState, step: UndoStep) -> None:
    assert next_undo(source, target) is step


def test_disks_are_carried_in_their_order() -> None:
    assert next_disk({"a": DONE, "b": PARTIAL, "c": MISSING}) == "b"
    assert next_disk({"a": DONE}) == ""
