"""The way back of a move, and its end: the source is released, or deleted."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.removing import MachineRemover
from paddock.fleet.machines.running import RunOptions
from paddock.fleet.machines.waiting import MachineWaiter
from paddock.fleet.moves import objectcalls, observed, transfer
from paddock.fleet.moves.mover import CannotMove, fence_vm, start_if_asked
from paddock.fleet.moves.observed import ObservedMove
from paddock.fleet.moves.plan import objects, record, steps
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.fleet.moves.plan.steps import UndoStep
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.options import merge_patch

_FENCE = "its move is being undone"


class MoveUndoer:
    def __init__(self, source: MoveSide, target: MoveSide, seconds: float, tell: Callable[[str], None]) -> None:
        self._source = source
        self._target = target
        self._seconds = seconds
        self._tell = tell
        self._waiter = MachineWaiter(target.client, target.session.clock, lambda line: None)
        self._steps: Mapping[UndoStep, Callable[[ObservedMove], Awaitable[None]]] = {
            UndoStep.MARK: self._mark,
            UndoStep.FENCE_TARGET: self._fence_target,
            UndoStep.HALT_TARGET: self._halt_target,
            UndoStep.DELETE_TARGET: self._delete_target,
            UndoStep.DELETE_DISKS: self._delete_disks,
            UndoStep.RESTORE: self._restore,
        }

    async def undo(self, machine: MachineView) -> str:
        """Take a move back, or go on with it; return the outcome."""
        done = False
        while True:
            now = await observed.observe(self._source, self._target, machine)
            if now.moved is not None:
                _demand_target(now.moved, self._target, f"cannot undo the move of {machine}")
            step = steps.next_undo(now.source, now.target)
            if step is UndoStep.NOTHING:
                return "is back" if done else "has no move to undo"
            done = True
            self._tell(f"{machine}: {step}")
            await self._steps[step](now)

    async def _mark(self, now: ObservedMove) -> None:
        assert now.moved is not None
        marked = msgspec.structs.replace(now.moved, undo=True)
        await _patch(self._source, now.machine, {"metadata": {"annotations": {record.RECORD: record.write(marked)}}})

    async def _fence_target(self, now: ObservedMove) -> None:
        there = now.there
        assert there is not None
        halted = there.kind.adapter.power_words.halted(there.data)
        await _patch(self._target, there, objects.joined(halted, {"metadata": {"annotations": {record.FENCE: _FENCE}}}))

    async def _halt_target(self, now: ObservedMove) -> None:
        assert now.there is not None
        await fence_vm(self._target, now.there, _FENCE)
        await self._waiter.until(now.there, lambda each: each is None or each.vmi is None, self._seconds, "stopped at the target")

    async def _delete_target(self, now: ObservedMove) -> None:
        there = now.there
        assert there is not None
        # A front leaves its VirtualMachine a moment longer; nothing of it may start meanwhile.
        await fence_vm(self._target, there, _FENCE)
        await objectcalls.delete(self._target.client, there.kind.target, there.data)
        await self._waiter.until(there, lambda each: each is None, self._seconds, "deleted at the target")

    async def _delete_disks(self, now: ObservedMove) -> None:
        assert now.moved is not None
        await transfer.close_exports(self._target, now.moved.id)
        for target, data in now.leftovers:
            await objectcalls.delete(self._target.client, target, data)
        for target, data in now.leftovers:
            await objectcalls.gone(self._target.client, target, data)

    async def _restore(self, now: ObservedMove) -> None:
        """Release the source: what was made of it first, its own object last, because that has the record."""
        moved = now.moved
        assert moved is not None
        await transfer.close_exports(self._source, moved.id)
        await fence_vm(self._source, now.machine, None)
        machine, kind = now.machine, now.machine.kind
        restored = objects.restored(machine.data, (kind.group, kind.kind), moved)
        await self._source.client.patch(kind.target, machine.key, merge_patch(restored))
        if moved.ran:
            await start_if_asked(self._source, await finding.find(self._source.client, str(now.machine), now.machine.namespace))


def _demand_target(moved: MoveRecord, target: MoveSide, what: str) -> None:
    """Raise `CannotMove` if a machine moved elsewhere."""
    if moved.target != target.uid:
        why = f"it moved to {moved.address}, which is not the target that you name"
        raise CannotMove(what, why=why, fix="name that target with --to")


async def delete_source(source: MoveSide, target: MoveSide, machine: MachineView, tell: Callable[[str], None]) -> str:
    """Delete the source of a confirmed move, with its disks. Raises `CannotMove` where the target does not have the machine."""
    now = await observed.observe(source, target, machine)
    what = f"cannot delete the source of {machine}"
    if now.moved is None or not now.moved.confirmed or now.moved.undo:
        raise CannotMove(what, why="no confirmed move is recorded in it", fix="move it first, by the same command without --delete-source")
    _demand_target(now.moved, target, what)
    if now.there is None or now.target.fenced:
        raise CannotMove(what, why="the target does not have the machine, or has it fenced", fix="look there first")
    if now.source.live or now.source.wants_to_run or not now.source.fenced:
        raise CannotMove(what, why="it runs, or may run", fix="stop it, or undo the move")
    await remove(source, machine, tell)
    return f"deleted at {source.address}; {now.moved.address} has it"


async def remove(side: MoveSide, machine: MachineView, tell: Callable[[str], None]) -> None:
    """Delete a fenced machine with its disks."""
    remover = MachineRemover(side.client, side.session.clock, RunOptions(force=True, seconds=300.0), tell)
    planned = await remover.plan(machine, purge=True)
    for line in planned.lines():
        tell(line)
    survey, shared = await observed.surveyed(side, machine), await observed.shared_claims(side, machine)
    await remover.remove(planned)
    for disk in survey.disks:
        if disk.name in shared:
            tell(f"disk {disk.name} stays, because {shared[disk.name]} uses it, too")
        else:
            await objectcalls.drop_disk(side, disk.name)


async def _patch(side: MoveSide, machine: MachineView, document: Data) -> None:
    await side.client.patch(machine.kind.target, machine.key, merge_patch(document))
