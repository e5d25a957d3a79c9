"""The snapshots in a machine's status."""

from collections.abc import Iterable

from paddock.base import quantity
from paddock.dialects.virtrigaud.kinds.virtualmachine import VMSnapshotInfo
from paddock.dialects.virtrigaud.kinds.vmsnapshot import VMSnapshot
from paddock.dialects.virtrigaud.plan.snapshots import records, retention


def listed(machine_id: str | None, snapshots: Iterable[VMSnapshot]) -> list[VMSnapshotInfo] | None:
    """The snapshots that the provider has confirmed of a machine, the oldest first."""
    found = []
    for each in retention.oldest_first(snapshots):
        place, status = records.place(each), records.of(each)
        if place is None or place.machine_id != machine_id or not records.is_complete(each) or status.phase == records.PHASE_DELETING:
            continue
        config = records.config(each)
        info = VMSnapshotInfo(
            id=status.snapshotID or "",
            name=records.label(each),
            creationTime=status.creationTime or "",
            description=config.description,
            sizeBytes=quantity.whole(status.size) if status.size is not None else None,
            hasMemory=config.includeMemory,
        )
        found.append(info)
    return found or None
