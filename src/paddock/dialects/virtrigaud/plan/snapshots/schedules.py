"""Schedules of snapshots: when the next one is due, and what becomes of those that were made (docs/spec/virtrigaud.md 2.5).

Times that passed while no controller ran are made up for by one snapshot, for the latest of them.
"""

import math
import zoneinfo
from collections.abc import Sequence
from datetime import UTC, tzinfo

import msgspec

from paddock.base import cron, duration
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION
from paddock.dialects.virtrigaud.kinds.vmsnapshot import SnapshotSchedule, VMSnapshot
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.snapshots import records, retention
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference

_LONGEST_NAME = 240
_LONGEST_LABEL = 63


class SnapshotTimes(msgspec.Struct, frozen=True):
    """The due times of a schedule."""

    schedule: cron.CronSchedule | None = None
    zone: tzinfo = UTC
    # without a schedule: seconds between two times, and one of them
    every: float = 0.0
    anchor: float = 0.0

    def following(self, moment: float) -> float | None:
        """The first time after a moment."""
        if self.schedule is not None:
            return cron.next_after(self.schedule, moment, self.zone)
        return self.anchor + (math.floor((moment - self.anchor) / self.every) + 1) * self.every

    def latest(self, since: float, now: float) -> float | None:
        """The last time after `since` that has come; None when none has."""
        due = self.following(since)
        if due is None or due > now:
            return None
        span = 60.0
        while now - span > since and ((found := self.following(now - span)) is None or found > now):
            span *= 2
        moment: float | None = max(since, now - span)
        while moment is not None and moment <= now:
            due, moment = moment, self.following(moment)
        return due


def is_schedule(snapshot: VMSnapshot) -> bool:
    """Return whether an object is the template of others, and takes no snapshot itself."""
    schedule = snapshot.spec.schedule
    return schedule is not None and schedule.enabled and records.place(snapshot) is None


def times(schedule: SnapshotSchedule, anchor: float) -> SnapshotTimes:
    """The due times of a schedule; raises `Refusal` for one that has none."""
    text = (schedule.cronSpec or "").strip()
    try:
        zone = UTC if schedule.timezone == "UTC" else zoneinfo.ZoneInfo(schedule.timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refusal(
            f"spec.schedule.timezone: {schedule.timezone} is no time zone that this host knows", fix="use a name such as Europe/Oslo"
        ) from error
    if text.startswith("@every "):
        return SnapshotTimes(every=duration.parse(text.removeprefix("@every ").strip()) / duration.SECOND, anchor=anchor)
    if text == "@reboot":
        raise Refusal("spec.schedule.cronSpec: @reboot has no time", fix="use cron fields, @daily and the like, or @every 6h")
    try:
        return SnapshotTimes(cron.parse_with_seconds(text), zone)
    except cron.BadSchedule as error:
        raise Refusal(f"spec.schedule.cronSpec: {error}", fix="use cron fields, @daily and the like, or @every 6h") from error


def child(template: VMSnapshot, due: float) -> VMSnapshot:
    """The snapshot of a schedule for one time. It has the same name whenever it is made."""
    metadata = template.metadata
    name = metadata.name
    owner = OwnerReference(
        apiVersion=API_VERSION, kind="VMSnapshot", name=name, uid=metadata.uid or "", controller=True, blockOwnerDeletion=True
    )
    return VMSnapshot(
        apiVersion=API_VERSION,
        kind="VMSnapshot",
        metadata=ObjectMeta(
            name=f"{name[:_LONGEST_NAME].rstrip('-.')}-{int(due)}",
            namespace=metadata.namespace,
            labels={**(metadata.labels or {}), marks.SNAPSHOT_SCHEDULE: name[:_LONGEST_LABEL].rstrip("-.")},
            annotations={marks.SCHEDULED_AT: ages.timestamp(due)},
            ownerReferences=[owner],
        ),
        spec=msgspec.structs.replace(template.spec, schedule=None),
    )


def superfluous(schedule: SnapshotSchedule, children: Sequence[VMSnapshot], reverted: str) -> list[VMSnapshot]:
    """The children that the history limits do not keep; protected ones stay and do not count."""
    free = [each for each in children if each.metadata.deletionTimestamp is None and not retention.is_protected(each, reverted)]
    good = [each for each in free if records.is_usable(each)]
    bad = [each for each in free if records.of(each).phase == records.FAILED]
    limits = ((good, schedule.successfulJobsHistoryLimit), (bad, schedule.failedJobsHistoryLimit))
    return [each for found, limit in limits for each in retention.oldest_first(found)[: max(0, len(found) - limit)]]
