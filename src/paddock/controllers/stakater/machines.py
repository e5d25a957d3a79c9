"""One look at a Stakater machine: what holds it, what is applied for it, what becomes of its disks, and its status.

    paused?  --> say so, and write nothing else
    going?   --> everything of it goes in its order, then the machine itself
    else     --> finalizer -> holds -> Secrets, machine, Service -> disks -> status

A foreign object of a generated name is never touched. The status is written last and once. A look that came to its end and wrote nothing is
remembered with the revisions of all it saw: as long as they are the same, another look costs nothing.
"""

import logging

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.client.client import Client
from paddock.client.errors import Conflict
from paddock.client.target import Key
from paddock.controllers.stakater import targets
from paddock.controllers.stakater.actions import MachineApplier, MachineCleanup, StakaterActions
from paddock.controllers.stakater.reader import MachineObserver, ReconcilePass, StakaterCaches, State
from paddock.controllers.stakater.settings import StakaterSettings
from paddock.dialects.stakater.marks import FINALIZER, PAUSE
from paddock.dialects.stakater.virtualmachine import StakaterVirtualMachine
from paddock.meta import ages
from paddock.plan.stakater import status as statuses
from paddock.plan.stakater.conditions import PAUSED, no
from paddock.plan.stakater.status import PassOutcome
from paddock.runtime import finalizers
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.runtime.machinery import Machinery
from paddock.runtime.memo import StateMemo
from paddock.runtime.statusdelays import StatusDelays
from paddock.runtime.statuses import StatusWriter

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
        look = ReconcilePass(seen, seen.read(targets.FRONTS))
        outcome, wrote = await self._look(look)
        # What is waited for may be anywhere: only a machine for which everything is applied rests.
        if not wrote and look.came.applied and self._caches.state(seen.key) == state:
            self._quiet.put(seen.key, state, outcome)
        return outcome

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Clear a machine away, unless it is paused."""
        return await self.work(seen)

    async def _look(self, look: ReconcilePass) -> tuple[Outcome, bool]:
        """Return the next outcome, and whether anything was written."""
        if _is_paused(look.vm):
            look.came = PassOutcome(synced=PAUSED)
            return DONE, await self._report(look)
        if look.seen.meta.going:
            return await self._clear(look), True
        try:
            wrote = await self._applying.carry_out(look)
        except Conflict:
            raise
        except PaddockError as error:
            look.error, wrote = self._hidden(error, look), True
            look.came = PassOutcome(synced=no("ReconcileError", str(look.error)))
        wrote |= await self._report(look)
        if look.error is not None:
            raise look.error from None
        return again(look.rest or _CREATING_SECONDS) if look.under_way else DONE, wrote

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def _clear(self, look: ReconcilePass) -> Outcome:
        if FINALIZER not in (look.seen.meta.finalizers or ()):
            return DONE
        _LOG.debug("deleting owned objects", extra={"step": "delete"})
        if await self._clearing.step(look):
            await self._applying.revoke(look)
            await finalizers.take_off(self._client, targets.FRONT_DATA, look.seen.meta, FINALIZER)
            return DONE
        rest = self._clearing.stalled_in(look)
        await self._report(look)
        return again(min(rest, _CREATING_SECONDS) if rest else _CREATING_SECONDS)

    async def forget(self, key: Key) -> None:
        """The machine is gone, in whatever way: nothing of it is to be held by us."""
        self._resting.end(key)
        uid = self._applying.forget(key)
        self._clearing.forget(uid)
        await self._actions.release_roots(key)

    # --- the report -------------------------------------------------------------------------------------------------------

    async def _report(self, look: ReconcilePass) -> bool:
        """Write the status when it differs, and has rested; return whether the one that is stored is of the past."""
        before = look.vm.status
        wanted = statuses.status(self._observer.sight(look), look.came, ages.timestamp(self._clock.seconds()))
        look.under_way = statuses.is_creating(wanted)
        if wanted != before and not look.seen.meta.going and statuses.is_passing(before, wanted):
            look.rest = self._resting.left(look.key, _PASSING_SECONDS)
            if look.rest:
                return True
        self._resting.end(look.key)
        if wanted == before:
            return False
        written = await self._statuses.write(look.seen, wanted)
        if written is not None:
            restart = statuses.newly_requires_restart(before, wanted)
            if restart is not None:
                self._recorder.tell(look.about, "Normal", "RestartRequired", f"a change waits for a restart of the machine: {restart}")
        return written is not None

    def _hidden(self, error: PaddockError, look: ReconcilePass) -> PaddockError:
        """The error without anything secret: it goes into the log, an event and a condition."""
        text = statuses.without_secrets(str(error), look.vm, self._applying.made_of(look))
        if text == str(error):
            return error
        return Terminal(text) if isinstance(error, Terminal) else Transient(text)
