"""Carries out a move: look at both sides, decide the next step by the table, take it, and look again."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import holds, texts
from paddock.fleet.kinds import VM
from paddock.fleet.machines import waiting, writing
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.waiting import MachineWaiter
from paddock.fleet.moves import observed, references, transfer
from paddock.fleet.moves.observed import ObservedMove
from paddock.fleet.moves.plan import moveplan, objects, record, steps
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.fleet.moves.plan.steps import MoveStep
from paddock.fleet.moves.sides import MoveSide
from paddock.fleet.moves.transfer import DiskCarrier
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, Invalid
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.meta import ages
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.disklinks import LinkChannel

# label, done, total; without a total, a step of unknown length
Progress = Callable[[str, float, float | None], None]
_WAITS = 0.0


class MoveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a move. `seconds` is the longest wait for a machine to stop or to run."""

    storage_class: str = ""
    verify: bool = False
    drop_state: bool = False
    replace: bool = False
    seconds: float = 600.0


class CannotMove(Terminal):
    """A move does not go on until somebody changes something."""


class MachineMover:
    """Moves machines between two servers. `tell` gets a line for each step."""

    def __init__(
        self, sides: tuple[MoveSide, MoveSide], channel: LinkChannel, options: MoveOptions, tell: Callable[[str], None], progress: Progress
    ) -> None:
        self._source, self._target = sides
        self._channel = channel
        self._options = options
        self._tell = tell
        self._progress = progress
        self._waiters = tuple(MachineWaiter(each.client, each.session.clock, lambda line: None) for each in sides)
        self._steps: Mapping[MoveStep, Callable[[ObservedMove], Awaitable[None]]] = {
            MoveStep.FENCE: self._fence,
            MoveStep.HALT: self._halt,
            MoveStep.REFERENCES: self._make_references,
            MoveStep.CARRY: self._carry,
            MoveStep.CREATE: self._create,
            MoveStep.RELEASE: self._release,
            MoveStep.CONFIRM: self._confirm,
        }

    async def move(self, machine: MachineView) -> str:
        """Move a machine, or go on with its move; return the outcome."""
        begun = ""
        while True:
            now = await observed.observe(self._source, self._target, machine)
            self._demand_same_target(now)
            if begun and (now.moved is None or now.moved.id != begun):
                raise CannotMove(f"cannot go on with the move of {machine}", why="another command has undone it meanwhile")
            begun = now.moved.id if now.moved is not None else ""
            step = steps.next_step(now.source, now.target)
            if step is MoveStep.DONE:
                return self._outcome(now)
            self._refuse(step, now)
            if step is not MoveStep.CARRY:
                self._tell(f"{machine}: {step}")
            self._progress(str(step), _WAITS, None)
            await self._steps[step](now)

    def _demand_same_target(self, now: ObservedMove) -> None:
        moved = now.moved
        if moved is None or (moved.target == self._target.uid and moved.namespace == self._target.namespace):
            return
        verb = "was moved" if moved.confirmed else "is moving"
        fix = "name that target to go on, or take the move back with --undo"
        raise CannotMove(f"cannot move {now.machine}", why=f"it {verb} to namespace {moved.namespace} of {moved.address}", fix=fix)

    def _refuse(self, step: MoveStep, now: ObservedMove) -> None:
        """Raise `CannotMove` for a step that no move takes."""
        machine = now.machine
        if step is MoveStep.UNDOING:
            raise CannotMove(f"cannot move {machine}", why="an undo of its move has begun", fix="finish it with --undo")
        if step is MoveStep.BROKEN:
            why = "it lost its fence, or wants to run, while the machine at the target may run"
            fix = f"stop one of them; `paddock move {machine} --undo` makes the source the one that counts"
            raise CannotMove(f"cannot go on with the move of {machine}", why=why, fix=fix)
        if step not in (MoveStep.HALT, MoveStep.CONFIRM, MoveStep.RELEASE) and (problems := [*now.problems, *now.references.obstacles]):
            raise CannotMove(f"cannot go on with the move of {machine}", why="; ".join(problems))

    def _outcome(self, now: ObservedMove) -> str:
        moved = now.moved
        assert moved is not None
        if now.there is None:
            return f"was moved to {moved.address}, where it is no longer"
        return f"moved to namespace {moved.namespace} of {moved.address}; the source stays fenced until --delete-source"

    # --- the source -------------------------------------------------------------------------------------------------------

    async def _fence(self, now: ObservedMove) -> None:
        """Fence and halt the machine, and write the record, in one request for the object as it was read."""
        machine, kind = now.machine, _kind(now.machine)
        ran = observed.wants_start(machine)
        spec = observed.spec_of(machine)
        interfaces, networks = moveplan.implied(spec, machine.vmi)
        moved = MoveRecord(
            id=record.new_id(self._source.uid, machine.data),
            target=self._target.uid,
            address=self._target.address,
            namespace=self._target.namespace,
            power=machine.kind.adapter.power_words.kept(machine.data, ran=ran),
            ran=ran,
            agent=holds(machine.vmi, "AgentConnected"),
            macs=dict(moveplan.macs(spec, machine.vmi)),
            interfaces=interfaces,
            networks=networks,
        )
        text = record.fence_text(moved)
        try:
            await self._patch_source(machine, objects.fenced(machine.data, kind, moved, text))
        except Invalid:
            # An instancetype that selects nodes allows the machine no selector of its own.
            await self._patch_source(machine, objects.fenced(machine.data, kind, moved, text, gated=False))

    async def _halt(self, now: ObservedMove) -> None:
        """Stop the machine, and fence what was made of it, too."""
        machine, moved = now.machine, now.moved
        assert moved is not None
        if now.source.wants_to_run:
            document = machine.kind.adapter.power_words.halted(machine.data)
            await self._source.client.patch(machine.kind.target, machine.key, merge_patch(document))
        await fence_vm(self._source, machine, record.fence_text(moved))
        waiter = self._waiters[0]
        await waiter.until(machine, lambda each: each is None or _is_off(each), self._options.seconds, "stopped")

    async def _patch_source(self, machine: MachineView, document: Data) -> None:
        """Change the machine at the source, unless somebody was faster."""
        revision = texts(machine.data, "metadata", "resourceVersion")
        document = {**document, "metadata": {**document.get("metadata", {}), "resourceVersion": revision}}
        try:
            await self._source.client.patch(machine.kind.target, machine.key, merge_patch(document))
        except Conflict:
            # The next look decides again.
            return

    # --- the target -------------------------------------------------------------------------------------------------------

    async def _make_references(self, now: ObservedMove) -> None:
        assert now.moved is not None
        for each in now.references.missing:
            target = references.target_of(each)
            made = objects.reference(each, now.moved)
            try:
                await self._target.client.create(target, made, self._target.namespace if target.namespaced else "")
            except AlreadyExists:
                continue

    async def _carry(self, now: ObservedMove) -> None:
        assert now.moved is not None
        name = steps.next_disk(now.target.disks)
        disk = next(each for each in now.survey.disks if each.name == name)
        self._tell(f"{now.machine}: {MoveStep.CARRY} {name}")
        carrier = DiskCarrier(self._source, self._target, now.moved, self._channel)

        def tell(done: float, total: float) -> None:
            self._progress(f"disk {name}", done, total)

        found = await carrier.carry(disk, self._options.storage_class, tell, verify=self._options.verify)
        self._tell(f"{now.machine}: disk {name} is there: {found.size} bytes, sha256 {found.digest}")

    async def _create(self, now: ObservedMove) -> None:
        assert now.moved is not None
        made = objects.machine(now.machine.data, _kind(now.machine), now.moved)
        try:
            await self._target.client.create(now.machine.kind.target, made, self._target.namespace)
        except AlreadyExists as error:
            fix = "delete or rename that one"
            raise CannotMove(f"cannot make {now.machine} at the target", why="there is another machine of its name", fix=fix) from error

    async def _release(self, now: ObservedMove) -> None:
        """Take the fence of the target's machine off. Everything that holds the source was seen a moment ago."""
        there, moved = now.there, now.moved
        assert there is not None and moved is not None
        await self._target.client.patch(there.kind.target, there.key, merge_patch(objects.released(moved)))

    async def _confirm(self, now: ObservedMove) -> None:
        there, moved = now.there, now.moved
        assert there is not None and moved is not None
        if moved.ran:
            await start_if_asked(self._target, there)

            def done(each: MachineView | None) -> bool:
                return waiting.is_running(each) and (not moved.agent or (each is not None and holds(each.vmi, "AgentConnected")))

            await self._waiters[1].until(there, done, self._options.seconds, "running at the target")
        for side in (self._source, self._target):
            await transfer.close_exports(side, moved.id)
        confirmed = msgspec.structs.replace(moved, confirmed=ages.timestamp(self._source.session.clock.seconds()))
        document = {"metadata": {"annotations": {record.RECORD: record.write(confirmed)}}}
        await self._patch_source(now.machine, document)


def _kind(machine: MachineView) -> KindId:
    return machine.kind.group, machine.kind.kind


def _is_off(machine: MachineView) -> bool:
    return machine.vmi is None and observed.is_at_rest(machine)


async def fence_vm(side: MoveSide, machine: MachineView, reason: str | None) -> None:
    """Write the fence onto the VirtualMachine that a front's controller made; None takes it off."""
    if machine.kind is VM or machine.vm is None or machine.vm_key is None or record.fence_of(machine.vm) == reason:
        return
    gate = objects.opened(machine.vm) if reason is None else objects.CLOSED
    document = objects.joined({"metadata": {"annotations": {record.FENCE: reason}}}, gate)
    await side.client.patch(VM.target, machine.vm_key, merge_patch(document))


async def start_if_asked(side: MoveSide, machine: MachineView) -> None:
    """Start a machine that starts on request only."""
    if machine.vmi is None and machine.vm is not None and machine.kind.adapter.power_words.needs_start(machine.data):
        await writing.send(side.client, writing.power(machine, "start"))
