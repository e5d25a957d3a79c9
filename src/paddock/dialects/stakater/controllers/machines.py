"""One look at a Stakater machine: what holds it, what is applied for it, what becomes of its disks, and its status.

    paused?  --> say so, and write nothing else
    going?   --> everything of it goes in its order, then the machine itself
    else     --> finalizer -> holds -> Secrets, machine, Service -> disks -> status

A foreign object of a generated name is never touched. The status is written last and once. A look that came to its end and wrote nothing is
remembered with the revisions of all it saw: as long as they are the same, another look costs nothing.
"""

import logging

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.dialects.stakater.controllers import targets
from paddock.dialects.stakater.controllers.actions import MachineApplier, MachineCleanup, StakaterActions
from paddock.dialects.stakater.controllers.reader import MachineObserver, ReconcilePass, StakaterCaches, State
from paddock.dialects.stakater.controllers.settings import StakaterSettings
from paddock.dialects.stakater.kinds.marks import FINALIZER, PAUSE
from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.plan import status as statuses
from paddock.dialects.stakater.plan.conditions import PAUSED, no
from paddock.dialects.stakater.plan.status import PassOutcome
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.memo import StateMemo
from paddock.kubernetes.runtime.statusdelays import StatusDelays
from paddock.kubernetes.runtime.statuses import StatusWriter

_LOG = logging.getLogger(__name__)
# A machine with work under way is reconciled this often, with or without events.
_CREATING_SECONDS = 5.0
# How long a step of a machine that is made may last before it is written.
_PASSING_SECONDS = 0.05


def _is_paused(machine: StakaterVirtualMachine) -> bool:
    return (machine.metadata.annotations or {}).get(PAUSE) == "true"


class StakaterMachineReconciler(KindReconciler):
    """The controller of Stakater's machines."""

    def __init__(
        self, client: Client, caches: StakaterCaches, machinery: Machinery, recorder: EventRecorder, settings: StakaterSettings
    ) -> None:
        super().__init__(caches.fronts, ObjectFinalizer(client, FINALIZER))
        self._client = client
        self._caches = caches
        self._clock = machinery.clock
        self._recorder = recorder
        self._observer = MachineObserver(caches, settings.product)
        self._actions = StakaterActions(client, caches, self._observer)
        self._applying = MachineApplier(client, caches, self._actions, recorder, settings)
        self._clearing = MachineCleanup(client, caches, self._actions, recorder, machinery.clock)
        self._statuses = StatusWriter(client, targets.FRONT_DATA, caches.fronts.expectations)
        # what a look saw that came to its end and wrote nothing, and when to look again all the same
        self._resting = StatusDelays()
        self._quiet: StateMemo[State, Outcome] = StateMemo(caches.fronts)

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Nothing is written to a paused machine."""
        return FINALIZER not in (seen.meta.finalizers or ()) and not _is_paused(seen.read(targets.FRONTS))

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one machine a step on."""
        state = self._caches.state(seen.key)
        quiet = self._quiet.get(seen.key, state)
        if quiet is not None:
            return quiet
        reconcile_pass = ReconcilePass(seen, seen.read(targets.FRONTS))
        outcome, wrote = await self._observe(reconcile_pass)
        # What is waited for may be anywhere: only a machine for which everything is applied rests.
        if not wrote and reconcile_pass.outcome.applied and self._caches.state(seen.key) == state:
            self._quiet.put(seen.key, state, outcome)
        return outcome

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Clear a machine away, unless it is paused."""
        return await self.work(seen)

    async def _observe(self, reconcile_pass: ReconcilePass) -> tuple[Outcome, bool]:
        """Return the next outcome, and whether anything was written."""
        if _is_paused(reconcile_pass.vm):
            reconcile_pass.outcome = PassOutcome(synced=PAUSED)
            return DONE, await self._report(reconcile_pass)
        if reconcile_pass.seen.meta.deleting:
            return await self._clear(reconcile_pass), True
        try:
            wrote = await self._applying.carry_out(reconcile_pass)
        except Conflict:
            raise
        except PaddockError as error:
            reconcile_pass.error, wrote = self._hidden(error, reconcile_pass), True
            reconcile_pass.outcome = PassOutcome(synced=no("ReconcileError", str(reconcile_pass.error)))
        wrote |= await self._report(reconcile_pass)
        if reconcile_pass.error is not None:
            raise reconcile_pass.error from None
        return again(reconcile_pass.rest or _CREATING_SECONDS) if reconcile_pass.under_way else DONE, wrote

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def _clear(self, reconcile_pass: ReconcilePass) -> Outcome:
        if FINALIZER not in (reconcile_pass.seen.meta.finalizers or ()):
            return DONE
        _LOG.debug("deleting owned objects", extra={"step": "delete"})
        if await self._clearing.step(reconcile_pass):
            await self._applying.revoke(reconcile_pass)
            await finalizers.take_off(self._client, targets.FRONT_DATA, reconcile_pass.seen.meta, FINALIZER)
            return DONE
        rest = self._clearing.stalled_in(reconcile_pass)
        await self._report(reconcile_pass)
        return again(min(rest, _CREATING_SECONDS) if rest else _CREATING_SECONDS)

    async def forget(self, key: Key) -> None:
        """The machine is gone, in whatever way: nothing of it is to be held by us."""
        self._resting.end(key)
        uid = self._applying.forget(key)
        self._clearing.forget(uid)
        await self._actions.release_roots(key)

    # --- the report -------------------------------------------------------------------------------------------------------

    async def _report(self, reconcile_pass: ReconcilePass) -> bool:
        """Write the status when it differs, and has rested; return whether the one that is stored is of the past."""
        before = reconcile_pass.vm.status
        wanted = statuses.status(self._observer.observe(reconcile_pass), reconcile_pass.outcome, ages.timestamp(self._clock.seconds()))
        reconcile_pass.under_way = statuses.is_creating(wanted)
        if wanted != before and not reconcile_pass.seen.meta.deleting and statuses.is_passing(before, wanted):
            reconcile_pass.rest = self._resting.left(reconcile_pass.key, _PASSING_SECONDS)
            if reconcile_pass.rest:
                return True
        self._resting.end(reconcile_pass.key)
        if wanted == before:
            return False
        written = await self._statuses.write(reconcile_pass.seen, wanted)
        if written is not None:
            restart = statuses.newly_requires_restart(before, wanted)
            if restart is not None:
                self._recorder.tell(
                    reconcile_pass.about, "Normal", "RestartRequired", f"a change waits for a restart of the machine: {restart}"
                )
        return written is not None

    def _hidden(self, error: PaddockError, reconcile_pass: ReconcilePass) -> PaddockError:
        """The error without anything secret: it goes into the log, an event and a condition."""
        text = statuses.without_secrets(str(error), reconcile_pass.vm, self._applying.made_of(reconcile_pass))
        if text == str(error):
            return error
        return Terminal(text) if isinstance(error, Terminal) else Transient(text)
