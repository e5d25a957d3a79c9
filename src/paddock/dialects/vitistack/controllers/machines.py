"""The controller of Machines: one look after the other, each from the key alone.

    finalizer on -> phase Pending -> networks -> claims -> VirtualMachine -> status from what is seen then
    going: VirtualMachine gone -> claims gone -> networks left -> finalizer off

A look that left nothing to do is remembered with the revisions of all that it read: as long as these are the same, the next one is
over at once. What was made a moment ago changes in a moment, too: one look is enough for all of that.
"""

import logging
import random
from collections.abc import Callable
from typing import Any

import msgspec

from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError
from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.controllers.actions import DiskStorage, MachineFinalizer, MachineMaker
from paddock.dialects.vitistack.controllers.context import ControllerParts, MachineContext, look_at, observed_machine, revisions
from paddock.dialects.vitistack.controllers.networks import NetworkDefinitions
from paddock.dialects.vitistack.controllers.reader import brief
from paddock.dialects.vitistack.kinds.machinespec import MachineStatus
from paddock.dialects.vitistack.kinds.marks import FINALIZER
from paddock.dialects.vitistack.plan import phases, problems, report
from paddock.dialects.vitistack.plan.events import news
from paddock.dialects.vitistack.plan.observed import MachineProblem
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers, logs
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectMemories
from paddock.kubernetes.runtime.memo import StateMemo
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubernetes.runtime.statuses import StatusWriter

_LOG = logging.getLogger(__name__)
CONTROLLER = "Machine"
_SCARCE = Backoff(first=5.0, longest=300.0, jitter=0.1)
# Details alone are written after so long, with what has come meanwhile.
_LAZY_SECONDS = 2.0
# A machine that starts is a dozen changes of its objects in a moment: one look is enough for those that come together.
GATHER_SECONDS = 0.05
# A machine that goes says what it waits for when it has waited for so long.
_PATIENT_SECONDS = 30.0
# Put on by another operator, and theirs to take off.
_FOREIGN_FINALIZER = "machine.vitistack.io/finalizer"


class _Quiet(msgspec.Struct, frozen=True):
    """A look that found nothing to do, or something that has to wait."""

    problem: MachineProblem | None = None


class _Hold(msgspec.Struct, frozen=True):
    """There was too little of something: until then, nothing is tried for this generation."""

    generation: int | None
    until: float


class _Past(msgspec.Struct):
    """The memory of a machine."""

    owner: InvolvedObject
    # how often in a row there was too little of something
    scarce: int = 0
    hold: _Hold | None = None
    # since when there are details that were not written yet
    lazy: float | None = None
    # since when it is being cleared away
    leaving: float | None = None
    # the step of that
    step: str = ""
    # something was made in the last look
    made: bool = False


class VitistackMachineReconciler(KindReconciler):
    def __init__(
        self, parts: ControllerParts, attachments: NetworkDefinitions, ask_network: Callable[[Key], None], chance: random.Random
    ) -> None:
        super().__init__(parts.caches.machines)
        self._parts = parts
        self._chance = chance
        storage = DiskStorage(parts.client, parts.caches)
        self._making = MachineMaker(parts, attachments, storage)
        self._leaving = MachineFinalizer(parts, storage, ask_network)
        self._statuses = StatusWriter(parts.client, targets.MACHINES, parts.caches.machines.expectations)
        self._quiet: StateMemo[tuple[Any, ...], _Quiet] = StateMemo(parts.caches.machines)
        self._memories = ObjectMemories(lambda seen: _Past(reference(targets.MACHINES, seen.meta)))

    # --- one look ---------------------------------------------------------------------------------------------------------

    async def forget(self, key: Key) -> None:
        """Drop the memory of a machine that is gone."""
        if (past := self._memories.known(key)) is not None:
            self._memories.forget(key)
            self._making.forget(past.owner)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Bring a machine that is being deleted a step on."""
        return await self.work(seen)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one machine a step on, if it is time and anything has changed."""
        past = self._memories.of(seen)
        if past.made:
            past.made = False
            return again(GATHER_SECONDS)
        at = revisions(self._parts.caches, seen)
        quiet = self._quiet.get(seen.key, at)
        if quiet is not None:
            if quiet.problem is not None:
                self._count(quiet.problem)
            return DONE
        wait = self._wait(past, seen)
        if wait > 0:
            return again(wait)
        machine_context = look_at(self._parts.caches, seen)
        if seen.meta.deleting:
            return await self._leave(machine_context, past)
        outcome = await self._accept(machine_context, past)
        return await self._carry_out(machine_context, past, at) if outcome is None else outcome

    def _wait(self, past: _Past, seen: CachedObject) -> float:
        """Return the seconds that a machine waits after a shortage; 0 for one that has changed or is being deleted."""
        hold = past.hold
        if hold is None or seen.meta.deleting or hold.generation != seen.meta.generation:
            return 0.0
        return hold.until - self._parts.clock.seconds()

    async def _accept(self, machine_context: MachineContext, past: _Past) -> Outcome | None:
        """Take the steps before anything is made: the finalizer and the phase Pending. None means to go on."""
        if _FOREIGN_FINALIZER in (machine_context.seen.meta.finalizers or ()) and report.accepts(machine_context.machine):
            _LOG.warning("machine has the finalizer of another operator; leaving it in place", extra={"finalizer": _FOREIGN_FINALIZER})
        try:
            written = await finalizers.put_on(self._parts.client, targets.MACHINES, machine_context.seen.meta, FINALIZER)
        except NotFound:
            # Deleted a moment ago.
            return DONE
        if written is not None:
            self._parts.caches.machines.expectations.wrote(written)
            self._go_on_from(written, machine_context)
        if not report.accepts(machine_context.machine) or self._is_final(machine_context):
            return None
        outcome = await self._say(machine_context, past, self._status(machine_context))
        return outcome or DONE if report.accepts(machine_context.machine) else None

    @staticmethod
    def _go_on_from(written: CachedObject, machine_context: MachineContext) -> None:
        """The machine is now as we have just written it."""
        machine_context.seen, machine_context.machine = written, written.read(targets.MACHINES)

    async def _carry_out(self, machine_context: MachineContext, past: _Past, at: tuple[Any, ...]) -> Outcome:
        """Make what is missing, and say how it is."""
        if not self._is_final(machine_context):
            await self._making.bring_about(machine_context)
        if machine_context.behind:
            return again(GATHER_SECONDS)
        outcome = await self._say(machine_context, past, self._status(machine_context))
        if machine_context.problem is not None and not machine_context.problem.fails:
            self._count(machine_context.problem)
            if machine_context.error is not None:
                return self._again_later(machine_context, past, machine_context.problem, machine_context.error)
        past.scarce, past.hold, past.made = 0, None, machine_context.wrote
        if (
            not machine_context.wrote
            and not any(each.lost for each in machine_context.claims or ())
            and self._status(machine_context) == machine_context.machine.status
        ):
            # The status is complete: a phase may take several steps. A machine that has failed for good is not tried again.
            problem = machine_context.problem if machine_context.problem is not None and not machine_context.problem.fails else None
            self._quiet.put(machine_context.key, (machine_context.seen.meta.resourceVersion, *at[1:]), _Quiet(problem))
        return outcome or DONE

    def _again_later(self, machine_context: MachineContext, past: _Past, problem: MachineProblem, error: PaddockError) -> Outcome:
        """The backend could not: the queue backs off. Where it has too little, the documented pauses hold."""
        if problem.error_type != problems.RESOURCES:
            raise error
        past.scarce += 1
        pause = _SCARCE.pause(past.scarce, self._chance)
        past.hold = _Hold(machine_context.seen.meta.generation, self._parts.clock.seconds() + pause)
        return again(pause)

    def _status(self, machine_context: MachineContext) -> MachineStatus:
        """The status as it should be."""
        say = report.failed_status if self._is_final(machine_context) else report.status
        return say(observed_machine(self._parts.caches, machine_context, self._parts.settings), self._now())

    def _is_final(self, machine_context: MachineContext) -> bool:
        name = machine_context.machine.spec.template
        template = self._parts.caches.templates.cache.get(Key(machine_context.key.namespace, name)) if name else None
        return report.is_final(machine_context.machine, template_came=template is not None)

    # --- saying -----------------------------------------------------------------------------------------------------------

    async def _say(self, machine_context: MachineContext, past: _Past, status: MachineStatus) -> Outcome | None:
        """Write the status and tell what is new in it; None when there was nothing to write."""
        before = machine_context.machine.status or MachineStatus()
        if status == before:
            past.lazy = None
            return None
        if not report.is_urgent(before, status):
            now = self._parts.clock.seconds()
            past.lazy = now if past.lazy is None else past.lazy
            if now < past.lazy + _LAZY_SECONDS:
                return again(past.lazy + _LAZY_SECONDS - now)
        past.lazy = None
        written = await self._statuses.write(machine_context.seen, status)
        if written is None:
            return None
        if before.phase != status.phase:
            with logs.about(phase=status.phase or ""):
                _LOG.info("machine phase changed", extra={"before": before.phase or "", "reason": report.reason_of(status)})
        reports = tuple(news(machine_context.machine, status))
        self._go_on_from(written, machine_context)
        for each in reports:
            self._parts.recorder.tell(machine_context.owner, each.kind, each.reason, each.note)
            if each.reason in problems.ERROR_TYPES:
                _LOG.warning("machine has a problem", extra={"error_type": each.reason, "error": each.note})
                if machine_context.problem is None or machine_context.problem.fails:
                    # Others are counted with each look that finds them.
                    self._parts.metrics.failed(CONTROLLER, each.reason)
        return DONE

    def _count(self, problem: MachineProblem) -> None:
        self._parts.metrics.failed(CONTROLLER, problem.error_type)
        if problem.network:
            self._parts.metrics.network_failed(problem.network)

    def _now(self) -> str:
        return ages.timestamp(self._parts.clock.seconds())

    def fields(self, key: Key) -> dict[str, str]:
        """Return the fields of every log line about a machine."""
        seen = self._parts.caches.machines.cache.get(key)
        return {"machine": key.name, "phase": brief(seen).phase if seen is not None else phases.PENDING}

    # --- going ------------------------------------------------------------------------------------------------------------

    async def _leave(self, machine_context: MachineContext, past: _Past) -> Outcome:
        remains = await self._leaving.step(machine_context, past.step)
        if remains is None:
            return DONE
        past.step = remains.step
        now = self._parts.clock.seconds()
        past.leaving = now if past.leaving is None else past.leaving
        patience = past.leaving + _PATIENT_SECONDS - now
        if patience > 0:
            return again(patience)
        wanted = report.leaving_status(
            observed_machine(self._parts.caches, machine_context, self._parts.settings), remains.said(), self._now()
        )
        await self._statuses.write(machine_context.seen, wanted)
        return DONE

    # --- who concerns whom ------------------------------------------------------------------------------------------------

    def by_network(self, change: CacheChange) -> list[Key]:
        """The machines that a change of a network concerns: all when it is another, and those it has let go."""
        caches = self._parts.caches
        concerned = caches.users_of(caches.networks, change.seen.key)
        if change.old is None or change.new is None or change.old.meta.generation != change.new.meta.generation:
            return concerned
        return [key for key in concerned if (seen := caches.machines.cache.get(key)) is not None and seen.meta.deleting]

    def by_class(self, change: CacheChange) -> list[Key]:
        """The machines that wait for a class."""
        quiet = ((key, each.problem) for key, (_, each) in self._quiet.items())
        return [key for key, problem in quiet if problem is not None and problem.error_type == problems.STORAGE_CLASS]
