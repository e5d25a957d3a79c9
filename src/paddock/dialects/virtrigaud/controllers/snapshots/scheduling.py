"""Carries out the schedule of a snapshot: the object is the template of the ones that are made at its times, and takes none itself.

The condition Scheduled is the record of the last time that was seen to. A child's name follows from the template's and the time, so a child
is made once, also when the record got lost.
"""

from typing import Any

import msgspec

from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.snapshots.context import SnapshotAccess, SnapshotPass
from paddock.dialects.virtrigaud.kinds.vmsnapshot import SnapshotSchedule, VMSnapshot
from paddock.dialects.virtrigaud.plan import reasons, reverting
from paddock.dialects.virtrigaud.plan.conditions import READY, false, find, holds, true
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.snapshots import records, schedules
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.deleting import delete_seen

SCHEDULED = "Scheduled"
_LONGEST_WAIT = 86400.0


class SnapshotScheduling:
    """Makes snapshots at their times, and removes those that the history limits do not keep."""

    def __init__(self, access: SnapshotAccess) -> None:
        self._access = access
        self._parts = access.parts

    async def advance(self, snapshot_pass: SnapshotPass) -> Outcome:
        """Make the snapshot that is due, if one is."""
        schedule = snapshot_pass.snapshot.spec.schedule
        assert schedule is not None
        snapshot_pass.phase = records.PENDING
        await self._prune(snapshot_pass, schedule)
        try:
            outcome = await self._schedule(snapshot_pass, schedule)
        except Refusal as refusal:
            snapshot_pass.say(false(SCHEDULED, refusal.reason, str(refusal)), false(READY, refusal.reason, str(refusal)))
            outcome = DONE
        await self._access.write(snapshot_pass)
        return outcome

    async def _schedule(self, snapshot_pass: SnapshotPass, schedule: SnapshotSchedule) -> Outcome:
        now = self._parts.now()
        anchor = ages.seconds_of(snapshot_pass.snapshot.metadata.creationTimestamp or "") or now
        times = schedules.times(schedule, anchor)
        stopped = self._stopped(snapshot_pass, schedule)
        if stopped is not None:
            reason, text = stopped
            snapshot_pass.say(false(SCHEDULED, reason, text), false(READY, reason, text))
            return DONE
        record, due = find(snapshot_pass.status.conditions, SCHEDULED), None
        if record is not None and holds(snapshot_pass.status.conditions, SCHEDULED):
            due = times.latest(ages.seconds_of(record.lastTransitionTime) or now, now)
        if due is not None:
            await self._make(snapshot_pass, schedule, due)
        following = times.following(now)
        self._report(snapshot_pass, following, anew=due is not None)
        return DONE if following is None else again(min(max(following - now, 0.1), _LONGEST_WAIT))

    @staticmethod
    def _stopped(snapshot_pass: SnapshotPass, schedule: SnapshotSchedule) -> tuple[str, str] | None:
        """The reason why no snapshots are made now."""
        if schedule.suspend:
            return reasons.SUSPENDED, "the schedule is suspended; set spec.schedule.suspend to false to resume it"
        if snapshot_pass.vm is None:
            return reasons.WAITING, f"VirtualMachine {snapshot_pass.machine} does not exist"
        if snapshot_pass.vm.metadata.deletionTimestamp is not None:
            return reasons.WAITING, f"VirtualMachine {snapshot_pass.machine} is being deleted"
        return None

    @staticmethod
    def _report(snapshot_pass: SnapshotPass, following: float | None, *, anew: bool) -> None:
        text = "there is no further time" if following is None else f"the next VMSnapshot is due at {ages.timestamp(following)}"
        snapshot_pass.say(
            msgspec.structs.replace(true(SCHEDULED, reasons.SCHEDULED, text), anew=anew),
            true(READY, reasons.SCHEDULED, f"a schedule takes no snapshot itself; {text}"),
        )

    # --- the snapshots of the schedule ------------------------------------------------------------------------------------

    def _children(self, snapshot_pass: SnapshotPass) -> list[tuple[CachedObject, VMSnapshot]]:
        informer = self._parts.caches.snapshots
        uid = snapshot_pass.seen.meta.uid
        found = {each.key: each for each in (*informer.cache.by("owner", uid), *informer.expectations.created_for(uid))}
        there = [each for each in found.values() if not each.meta.deleting and not informer.expectations.is_leaving(each.meta.uid)]
        return [(each, each.read(targets.SNAPSHOTS)) for each in there]

    async def _make(self, snapshot_pass: SnapshotPass, schedule: SnapshotSchedule, due: float) -> None:
        wanted = schedules.child(snapshot_pass.snapshot, due)
        active = [
            seen for seen, each in self._children(snapshot_pass) if records.is_active(each) and each.metadata.name != wanted.metadata.name
        ]
        if active and schedule.concurrencyPolicy == "Forbid":
            text = f"no VMSnapshot is made for {ages.timestamp(due)}: {active[0].meta.name} is still being taken"
            self._access.tell(snapshot_pass, "SnapshotSkipped", text)
            return
        if schedule.concurrencyPolicy == "Replace":
            for seen in active:
                self._access.tell(snapshot_pass, "SnapshotReplaced", f"VMSnapshot {seen.meta.name} was still being taken and is deleted")
                await self._delete(seen)
        try:
            made = await self._parts.client.create(targets.SNAPSHOT_DATA, _data(wanted), snapshot_pass.key.namespace)
        except AlreadyExists:
            return
        self._parts.caches.snapshots.expectations.wrote(CachedObject.from_data(made))
        self._access.tell(snapshot_pass, "SnapshotScheduled", f"VMSnapshot {wanted.metadata.name} is made for {ages.timestamp(due)}")

    async def _prune(self, snapshot_pass: SnapshotPass, schedule: SnapshotSchedule) -> None:
        reverted = reverting.wanted(snapshot_pass.vm) if snapshot_pass.vm is not None else ""
        children = {each.metadata.uid: (seen, each) for seen, each in self._children(snapshot_pass)}
        for each in schedules.superfluous(schedule, [snapshot for _, snapshot in children.values()], reverted):
            self._access.tell(
                snapshot_pass, "SnapshotPruned", f"VMSnapshot {each.metadata.name} is deleted: the history limits keep newer ones"
            )
            await self._delete(children[each.metadata.uid][0])

    async def _delete(self, seen: CachedObject) -> None:
        await delete_seen(self._parts.client, targets.SNAPSHOTS, seen)
        self._parts.caches.snapshots.expectations.deleted(seen)


def _data(snapshot: VMSnapshot) -> dict[str, Any]:
    return dict(msgspec.json.decode(targets.SNAPSHOTS.write(snapshot)))
