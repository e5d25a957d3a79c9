"""Keeps a snapshot that its provider has confirmed: its expiry and pruning, its place in the tree, and the end of its machine."""

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.snapshots.context import SnapshotAccess, SnapshotPass
from paddock.dialects.virtrigaud.plan import reasons, reverting
from paddock.dialects.virtrigaud.plan.conditions import READY, false, find, true
from paddock.dialects.virtrigaud.plan.snapshots import lineage, records, retention
from paddock.dialects.virtrigaud.plan.snapshots.retention import RetentionDecision
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.deleting import delete_seen

# A longer wait is cut: clocks are set, and processes start again.
_LONGEST_WAIT = 86400.0


class SnapshotKeeping:
    def __init__(self, access: SnapshotAccess) -> None:
        self._access = access
        self._parts = access.parts

    async def advance(self, snapshot_pass: SnapshotPass) -> Outcome:
        """Report how a snapshot is, and delete it when its time has come."""
        siblings = self._parts.caches.of_snapshots.all(snapshot_pass.machine)
        reverted = reverting.wanted(snapshot_pass.vm) if snapshot_pass.vm is not None else ""
        decision = retention.decide(snapshot_pass.snapshot, siblings, reverted, self._parts.now())
        if decision.delete:
            self._access.tell(snapshot_pass, "SnapshotPruned", f"the snapshot is deleted: {decision.delete}")
            await delete_seen(self._parts.client, targets.SNAPSHOTS, snapshot_pass.seen)
            self._parts.caches.snapshots.expectations.deleted(snapshot_pass.seen)
            return DONE
        above = snapshot_pass.status.parent
        if above is not None and not any(each.metadata.uid == above.uid for each in siblings):
            above = None
        snapshot_pass.change(children=lineage.children(snapshot_pass.snapshot, siblings), parent=above, expiryTime=decision.expiry)
        self._report(snapshot_pass, decision)
        await self._access.write(snapshot_pass)
        return again(min(max(decision.wait, 0.1), _LONGEST_WAIT)) if decision.wait is not None else DONE

    def _report(self, snapshot_pass: SnapshotPass, decision: RetentionDecision) -> None:
        place, vm = snapshot_pass.place, snapshot_pass.vm
        assert place is not None
        if vm is None or (vm.status is not None and vm.status.id not in (None, place.machine_id)):
            snapshot_pass.phase = records.FAILED
            snapshot_pass.say(records.gone(str(snapshot_pass.machine)))
        elif decision.expired:
            if snapshot_pass.phase != records.PHASE_EXPIRED:
                self._access.tell(
                    snapshot_pass, "SnapshotExpired", f"the snapshot is older than {records.policy(snapshot_pass.snapshot).maxAge}"
                )
            snapshot_pass.phase = records.PHASE_EXPIRED
            text = (
                f"the snapshot has expired; it is deleted {records.policy(snapshot_pass.snapshot).gracePeriod} later, unless it is pinned"
            )
            snapshot_pass.say(true(records.EXPIRED, reasons.EXPIRED, text), false(READY, reasons.EXPIRED, text))
            return
        else:
            snapshot_pass.phase = records.PHASE_READY
            snapshot_pass.say(true(READY, reasons.CREATED, f"{place} has the snapshot {snapshot_pass.status.snapshotID}"))
        if find(snapshot_pass.status.conditions, records.EXPIRED) is not None:
            snapshot_pass.say(false(records.EXPIRED, reasons.SUCCESS, "the snapshot has not expired"))
