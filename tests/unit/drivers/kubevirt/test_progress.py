"""The end of tasks, judged by objects as they stand."""

from typing import Any

import pytest

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.clone import VirtualMachineClone
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress
from paddock_drivers.kubevirt import progress
from paddock_drivers.kubevirt.identifiers import ObjectId, TaskGoal, TaskId

FALSE = {"type": "Running", "status": "False", "message": "404"}


def volume(phase: str, restarts: int = 0) -> DataVolume:
    return from_data({"metadata": {"name": "a"}, "status": {"phase": phase, "restartCount": restarts, "conditions": [FALSE]}}, DataVolume)


def claim(phase: str = "Bound", asked: str = "2Gi", here: str = "2Gi", conditions: Any = None) -> PersistentVolumeClaim:
    spec = {"resources": {"requests": {"storage": asked}}}
    status = {"phase": phase, "capacity": {"storage": here}, "conditions": conditions}
    return from_data({"metadata": {"name": "a"}, "spec": spec, "status": status}, PersistentVolumeClaim)


@pytest.mark.parametrize(
    ("phase", "restarts", "done", "error"),
    [
        ("Succeeded", 0, True, False),
        ("WaitForFirstConsumer", 0, True, False),
        ("PendingPopulation", 0, True, False),
        ("ImportInProgress", 0, False, False),
        ("ImportInProgress", 2, False, False),
        ("ImportInProgress", 3, True, True),
        ("Failed", 0, True, True),
        ("Succeeded", 9, True, False),
    ],
)
def test_disks_that_are_filled(phase: str, restarts: int, done: bool, error: bool) -> None:
    found = progress.filled({"a": volume(phase, restarts)}, {})
    assert (found.done, bool(found.error)) == (done, error) and ("404" in found.error) == error


def test_a_disk_without_its_datavolume_is_judged_by_its_claim() -> None:
    assert progress.filled({"a": None}, {"a": claim()}) == DONE
    assert progress.filled({"a": None}, {"a": claim("Pending")}) == progress.filled({"a": None}, {}) == RUNNING


def machine(generation: int = 2, restart: bool = False, cpus: int = 2, hot: bool = False) -> VirtualMachine:
    volumes = [{"name": "more", "dataVolume": {"name": "more", "hotpluggable": hot}}]
    spec = {"domain": {"cpu": {"sockets": cpus}, "memory": {"guest": "1Gi"}}, "volumes": volumes}
    conditions = [{"type": "RestartRequired", "status": "True"}] if restart else []
    status = {"desiredGeneration": generation, "conditions": conditions}
    return from_data({"metadata": {"name": "web"}, "spec": {"template": {"spec": spec}}, "status": status}, VirtualMachine)


def run(cpus: int = 2, phase: str = "Running", plugged: str = "Ready") -> VirtualMachineInstance:
    status = {
        "phase": phase,
        "currentCPUTopology": {"sockets": cpus},
        "memory": {"guestCurrent": "1Gi"},
        "volumeStatus": [{"name": "more", "target": "sda", "phase": plugged}],
    }
    return from_data({"metadata": {"name": "web"}, "status": status}, VirtualMachineInstance)


@pytest.mark.parametrize(
    ("found", "instance", "claims", "wanted"),
    [
        (machine(), run(), [claim()], DONE),
        (machine(), None, [claim()], DONE),
        (machine(), run(phase="Succeeded", cpus=1), [claim()], DONE),
        (machine(), run(cpus=1), [claim()], RUNNING),
        (machine(restart=True), run(cpus=1), [claim()], DONE),
        (machine(generation=1), run(), [claim()], RUNNING),
        (machine(), run(), [claim(asked="3Gi")], RUNNING),
        (machine(restart=True), run(), [claim(asked="3Gi")], RUNNING),
        (machine(), None, [claim(asked="3Gi", conditions=[{"type": "FileSystemResizePending", "status": "True"}])], DONE),
        (machine(hot=True), run(plugged="Bound"), [], RUNNING),
        (machine(hot=True), run(), [], DONE),
    ],
)
def test_changes(found: VirtualMachine, instance: VirtualMachineInstance | None, claims: list[Any], wanted: TaskProgress) -> None:
    assert progress.reconfigured(found, instance, claims, 2) == wanted


def test_snapshots_restores_and_clones_that_fail_say_why() -> None:
    status = {"phase": "Failed", "error": {"message": "no class"}}
    assert "no class" in progress.snapshotted(from_data({"status": status}, VirtualMachineSnapshot)).error
    assert progress.snapshotted(from_data({}, VirtualMachineSnapshot)) == RUNNING
    failure = {"conditions": [{"type": "Failure", "status": "True", "reason": "it runs"}]}
    assert "it runs" in progress.restored(from_data({"status": failure}, VirtualMachineRestore)).error
    assert progress.restored(from_data({"status": {"complete": True}}, VirtualMachineRestore)) == DONE
    ended = {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False", "reason": "no room"}]}
    assert "no room" in progress.cloned(from_data({"status": ended}, VirtualMachineClone)).error
    assert progress.cloned(from_data({"status": {"phase": "RestoreInProgress"}}, VirtualMachineClone)) == RUNNING


@pytest.mark.parametrize("detail", ["", "7", "a-uid"])
def test_a_task_is_its_text(detail: str) -> None:
    for goal in TaskGoal:
        task = TaskId(goal, ObjectId("web.a", "1-2"), detail)
        assert TaskId.parse(str(task)) == task
