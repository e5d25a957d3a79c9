"""Snapshots as a tree, from the times of snapshots and restores."""

import pytest

from paddock.base.jsondata import Data
from paddock.web.api.snapshottrees import of_machine, snapshot_parts


def taken(name: str, when: int, *, ready: bool = True) -> Data:
    status = {"readyToUse": ready, "creationTime": f"2026-01-01T00:00:{when:02}Z"}
    return {"metadata": {"name": name}, "spec": {"source": {"name": "web"}}, "status": status}


def restored(name: str, when: int, *, complete: bool = True) -> Data:
    status = {"complete": complete, "restoreTime": f"2026-01-01T00:00:{when:02}Z"}
    return {"spec": {"virtualMachineSnapshotName": name}, "status": status}


@pytest.mark.parametrize(
    ("snapshots", "restores", "expected"),
    [
        ([], [], []),
        ([taken("a", 1)], [], [("a", "", True)]),
        ([taken("b", 2), taken("a", 1)], [], [("a", "", False), ("b", "a", True)]),
        ([taken("a", 1), taken("b", 2)], [restored("a", 3)], [("a", "", True), ("b", "a", False)]),
        ([taken("a", 1), taken("b", 2), taken("c", 4)], [restored("a", 3)], [("a", "", False), ("b", "a", False), ("c", "a", True)]),
        # A restore that did not happen, and one of a snapshot that is gone, change nothing.
        ([taken("a", 1), taken("b", 2)], [restored("a", 3, complete=False)], [("a", "", False), ("b", "a", True)]),
        ([taken("a", 1), taken("b", 2)], [restored("gone", 3)], [("a", "", False), ("b", "a", True)]),
    ],
)
def test_trees(snapshots: list[Data], restores: list[Data], expected: list[tuple[str, str, bool]]) -> None:
    assert [(each.name, each.parent, each.current) for each in snapshot_parts(snapshots, restores)] == expected


def test_states_and_sizes() -> None:
    (part,) = snapshot_parts([taken("a", 1, ready=False)], [])
    assert (part.state, part.size) == ("pending", -1)
    assert snapshot_parts([{**taken("a", 1), "status": {"sizeBytes": 7}}], [])[0].size == 7


def test_snapshots_of_others_are_left_out() -> None:
    other = {**taken("b", 1), "spec": {"source": {"name": "other"}}}
    assert of_machine([taken("a", 1), other], "web", "spec", "source", "name") == [taken("a", 1)]
