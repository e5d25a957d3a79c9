"""The tree of a machine's snapshots: the parent of each is the state that the machine was in when it was taken."""

from collections.abc import Iterable

from paddock.dialects.virtrigaud.kinds.vmsnapshot import SnapshotRef, VMSnapshot
from paddock.dialects.virtrigaud.plan.snapshots import records, retention


def parent(snapshot: VMSnapshot, siblings: Iterable[VMSnapshot], reverted: str, reverted_at: str) -> SnapshotRef | None:
    """The parent of a snapshot that is now complete: the newest before it, or the one that the machine went back to since.

    `reverted` is the UID of that one, `reverted_at` the time.
    """
    begun = records.of(snapshot).creationTime or ""
    others = [each for each in siblings if each.metadata.uid != snapshot.metadata.uid and records.is_complete(each)]
    before = [each for each in others if (records.of(each).creationTime or "") <= begun]
    newest = retention.oldest_first(before)[-1:]
    if reverted and reverted_at <= begun and not any((records.of(each).creationTime or "") > reverted_at for each in newest):
        newest = [each for each in others if each.metadata.uid == reverted]
    return _ref(newest[0]) if newest else None


def children(snapshot: VMSnapshot, siblings: Iterable[VMSnapshot]) -> list[SnapshotRef] | None:
    """The snapshots that build on a snapshot."""
    found = []
    for each in retention.oldest_first(siblings):
        above = records.of(each).parent
        if above is not None and above.uid == snapshot.metadata.uid and each.metadata.deletionTimestamp is None:
            found.append(_ref(each))
    return found or None


def _ref(snapshot: VMSnapshot) -> SnapshotRef:
    return SnapshotRef(name=snapshot.metadata.name, namespace=snapshot.metadata.namespace, uid=snapshot.metadata.uid)
