"""The end of snapshots that nobody deletes: by age, and by number (docs/spec/virtrigaud.md 2.5).

Pinned snapshots are left alone as long as their policy preserves them, and so is the one that its machine is to go back to. They do not
count, either. Of the rest, each snapshot with a `maxCount` goes when that many newer ones of its machine and schedule have one, too.
"""

from collections.abc import Iterable

import msgspec

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds.vmsnapshot import SnapshotMetadata, VMSnapshot
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.kubernetes.meta import ages


class RetentionDecision(msgspec.Struct, frozen=True):
    """The expiry of a snapshot. `wait` is the seconds until the decision changes by itself; None: it does not."""

    expiry: str | None = None
    expired: bool = False
    # why the object is deleted now; empty: it is not
    delete: str = ""
    wait: float | None = None


def is_protected(snapshot: VMSnapshot, reverted: str) -> bool:
    """Return whether a snapshot is never removed by itself. `reverted` is the name of the one that the machine is to go back to."""
    metadata = snapshot.spec.metadata or SnapshotMetadata()
    return snapshot.metadata.name == reverted or (metadata.pinned and records.policy(snapshot).preservePinned)


def decide(snapshot: VMSnapshot, siblings: Iterable[VMSnapshot], reverted: str, now: float) -> RetentionDecision:
    """Decide about a snapshot that the Provider has confirmed. `siblings` are those of its machine, itself too."""
    if is_protected(snapshot, reverted):
        return RetentionDecision()
    policy = records.policy(snapshot)
    if policy.maxCount is not None and _is_surplus(snapshot, siblings, reverted):
        return RetentionDecision(delete=f"more than {policy.maxCount} newer snapshots would be kept by retentionPolicy.maxCount")
    begun = ages.seconds_of(records.of(snapshot).creationTime or "")
    if policy.maxAge is None or begun is None:
        return RetentionDecision()
    expiry = begun + duration.parse(policy.maxAge) / duration.SECOND
    text = ages.timestamp(expiry)
    if now < expiry:
        return RetentionDecision(text, wait=expiry - now)
    end = expiry + duration.parse(policy.gracePeriod) / duration.SECOND
    if now < end:
        return RetentionDecision(text, expired=True, wait=end - now)
    return RetentionDecision(text, expired=True, delete="its retentionPolicy.maxAge and gracePeriod are over")


def _is_surplus(snapshot: VMSnapshot, siblings: Iterable[VMSnapshot], reverted: str) -> bool:
    group = [
        each
        for each in siblings
        if records.is_usable(each)
        and schedule_of(each) == schedule_of(snapshot)
        and records.policy(each).maxCount is not None
        and not is_protected(each, reverted)
    ]
    group.sort(key=_age, reverse=True)
    limit = records.policy(group[0]).maxCount if group else None
    return limit is not None and snapshot.metadata.uid in [each.metadata.uid for each in group[limit:]]


def _age(snapshot: VMSnapshot) -> tuple[str, str, str]:
    return (records.of(snapshot).creationTime or "", snapshot.metadata.name, snapshot.metadata.uid or "")


def oldest_first(snapshots: Iterable[VMSnapshot]) -> list[VMSnapshot]:
    """Snapshots in the order in which they were begun."""
    return sorted(snapshots, key=_age)


def schedule_of(snapshot: VMSnapshot) -> str:
    """The UID of the schedule that made a snapshot; empty if none did."""
    owners = snapshot.metadata.ownerReferences or ()
    return next((each.uid for each in owners if each.controller and each.kind == "VMSnapshot"), "")
