"""Keeps a snapshot that its provider has confirmed: its expiry and pruning, its place in the tree, and the end of its machine."""

from paddock.controllers.virtrigaud import targets
from paddock.controllers.virtrigaud.snapshots.context import SnapshotAccess, SnapshotPass
from paddock.plan.virtrigaud import reasons, reverting
from paddock.plan.virtrigaud.conditions import READY, false, find, true
from paddock.plan.virtrigaud.snapshots import lineage, records, retention
from paddock.plan.virtrigaud.snapshots.retention import RetentionDecision
from paddock.runtime.controller import DONE, Outcome, again
from paddock.runtime.deleting import delete_seen

# A longer wait is cut: clocks are set, and processes start again.
_LONGEST_WAIT = 86400.0


class SnapshotKeeping:
    """Keeps snapshots."""

    def __init__(self, access: SnapshotAccess) -> None:
        self._access = access
        self._parts = access.parts

    async def advance(self, look: SnapshotPass) -> Outcome:
        """Report how a snapshot is, and delete it when its time has come."""
        siblings = self._parts.caches.of_snapshots.all(look.machine)
        reverted = reverting.wanted(look.vm) if look.vm is not None else ""
        decision = retention.decide(look.snapshot, siblings, reverted, self._parts.now())
        if decision.delete:
            self._access.tell(look, "SnapshotPruned", f"the snapshot is deleted: {decision.delete}")
            await delete_seen(self._parts.client, targets.SNAPSHOTS, look.seen)
            self._parts.caches.snapshots.expectations.deleted(look.seen)
            return DONE
        above = look.status.parent
        if above is not None and not any(each.metadata.uid == above.uid for each in siblings):
            above = None
        look.change(children=lineage.children(look.snapshot, siblings), parent=above, expiryTime=decision.expiry)
        self._report(look, decision)
        await self._access.write(look)
        return again(min(max(decision.wait, 0.1), _LONGEST_WAIT)) if decision.wait is not None else DONE

    def _report(self, look: SnapshotPass, decision: RetentionDecision) -> None:
        place, vm = look.place, look.vm
        assert place is not None
        if vm is None or (vm.status is not None and vm.status.id not in (None, place.machine_id)):
            look.phase = records.FAILED
            look.say(records.gone(str(look.machine)))
        elif decision.expired:
            if look.phase != records.PHASE_EXPIRED:
                self._access.tell(look, "SnapshotExpired", f"the snapshot is older than {records.policy(look.snapshot).maxAge}")
            look.phase = records.PHASE_EXPIRED
            text = f"the snapshot has expired; it is deleted {records.policy(look.snapshot).gracePeriod} later, unless it is pinned"
            look.say(true(records.EXPIRED, reasons.EXPIRED, text), false(READY, reasons.EXPIRED, text))
            return
        else:
            look.phase = records.PHASE_READY
            look.say(true(READY, reasons.CREATED, f"{place} has the snapshot {look.status.snapshotID}"))
        if find(look.status.conditions, records.EXPIRED) is not None:
            look.say(false(records.EXPIRED, reasons.SUCCESS, "the snapshot has not expired"))
