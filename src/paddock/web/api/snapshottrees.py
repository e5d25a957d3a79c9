"""Snapshots of a machine as a tree: which one follows which, and from which one the disks go on. Pure."""

from collections.abc import Iterable, Sequence

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, texts
from paddock.fleet.machines import snapshots
from paddock.web.answers.machine import WebSnapshotPart


def snapshot_parts(taken: Iterable[Data], restores: Iterable[Data]) -> list[WebSnapshotPart]:
    """Return the snapshots of one machine, the oldest first.

    A snapshot follows the one before it, or the one that was restored in between.
    """
    by_name = {texts(each, "metadata", "name"): each for each in taken}
    steps = [(_time(each), 0, name, "") for name, each in by_name.items()]
    steps += [(when, 1, "", name) for when, name in _restored(restores) if name in by_name]
    current, parents = "", {}
    for _, _, name, back_to in sorted(steps):
        if name:
            parents[name] = current
        current = name or back_to
    return [_part(by_name[name], parent, is_current=name == current) for name, parent in parents.items()]


def of_machine(objects: Iterable[Data], name: str, *path: str) -> Sequence[Data]:
    """Return the objects whose member at a path names a machine."""
    return [each for each in objects if texts(each, *path) == name]


def _time(snapshot: Data) -> str:
    return texts(snapshot, "status", "creationTime") or texts(snapshot, "metadata", "creationTimestamp")


def _restored(restores: Iterable[Data]) -> Iterable[tuple[str, str]]:
    for each in restores:
        if at(each, "status", "complete"):
            when = texts(each, "status", "restoreTime") or texts(each, "metadata", "creationTimestamp")
            yield when, texts(each, "spec", "virtualMachineSnapshotName")


def _part(snapshot: Data, parent: str, *, is_current: bool) -> WebSnapshotPart:
    row = snapshots.row(snapshot)
    size = at(snapshot, "status", "sizeBytes")
    return WebSnapshotPart(
        name=row.name,
        state=row.state,
        created=row.created,
        consistency=row.consistency,
        size=size if isinstance(size, int) else -1,
        parent=parent,
        current=is_current,
    )
