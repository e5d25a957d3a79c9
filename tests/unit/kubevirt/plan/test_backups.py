"""Decisions about backups, as tables: whole or what changed, names, status, and which machines are followed."""

import pytest

from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubevirt.kinds.backup import (
    BackupCheckpoint,
    BackupSpec,
    BackupStatus,
    BackupVolume,
    TrackerSpec,
    TrackerStatus,
    VirtualMachineBackup,
    VirtualMachineBackupTracker,
)
from paddock.kubevirt.plan.snapshots import backups as plan
from paddock.kubevirt.plan.snapshots import tracking
from paddock.kubevirt.plan.snapshots.tracking import DISABLED, ENABLED, GATE_OFF, INITIALIZING, PENDING, TrackingFacts

NOW = "2026-01-02T03:04:05Z"


def backup(name: str = "monday", *, full: bool = False) -> VirtualMachineBackup:
    spec = BackupSpec(source=TypedLocalReference(kind="VirtualMachineBackupTracker", name="web"), forceFullBackup=full or None)
    return VirtualMachineBackup(metadata=ObjectMeta(name=name, namespace="default", creationTimestamp=NOW), spec=spec)


def tracker(checkpoint: str = "c1", *volumes: str, machine: str = "web") -> VirtualMachineBackupTracker:
    made = BackupCheckpoint(name=checkpoint, volumes=[BackupVolume(volumeName=each) for each in volumes])
    spec = TrackerSpec(source=TypedLocalReference(kind="VirtualMachine", name=machine))
    return VirtualMachineBackupTracker(spec=spec, status=TrackerStatus(latestCheckpoint=made) if checkpoint else None)


@pytest.mark.parametrize(
    ("checkpoint", "full", "known", "since", "lost"),
    [
        (None, False, {}, {"a": "", "b": ""}, ""),
        (tracker("", "a", "b"), False, {"a": {"c1"}, "b": {"c1"}}, {"a": "", "b": ""}, ""),
        (tracker("c1", "a", "b"), False, {"a": {"c1"}, "b": {"c1", "c0"}}, {"a": "c1", "b": "c1"}, ""),
        (tracker("c1", "a", "b"), True, {"a": {"c1"}, "b": {"c1"}}, {"a": "", "b": ""}, ""),
        # One that came since is whole beside increments.
        (tracker("c1", "a"), False, {"a": {"c1"}, "b": set()}, {"a": "c1", "b": ""}, ""),
        # One that went since is not missed.
        (tracker("c1", "a", "b", "gone"), False, {"a": {"c1"}, "b": {"c1"}}, {"a": "c1", "b": "c1"}, ""),
        (tracker("c1", "a", "b"), False, {"a": {"c1"}, "b": {"c0"}}, {"a": "", "b": ""}, "not all changes of b since c1 are known"),
        (tracker("c1", "a", "b"), False, {}, {"a": "", "b": ""}, "not all changes of a, b since c1 are known"),
        (tracker("c1", "gone"), False, {"a": {"c1"}}, {"a": "", "b": ""}, "no volume of c1 is there any more"),
    ],
)
@pytest.mark.spec("kubevirt", 300)
def test_an_increment_is_taken_only_when_all_changes_are_known(
    checkpoint: VirtualMachineBackupTracker | None, full: bool, known: dict[str, set[str]], since: dict[str, str], lost: str
) -> None:
    found = plan.decide(backup(full=full), checkpoint, ["a", "b"], known)
    assert (dict(found.since), found.lost) == (since, lost)
    assert found.type == ("Incremental" if any(since.values()) else "Full")


def test_names_have_room_and_are_told_apart() -> None:
    long = "a" * 250
    assert plan.checkpoint_name(backup()) == "monday-2026-01-02_03-04-05"
    assert plan.file_name(backup(), "disk") == "monday-disk.qcow2"
    assert plan.short(long) != plan.short(f"{long}b")
    # QEMU's bound for the name of a bitmap that moves to another QEMU, and the kernel's for a file.
    assert len(f"checkpoint-{plan.checkpoint_name(backup(long))}") < 255 > len(plan.file_name(backup(long), "v" * 63))


def test_checkpoints_that_trackers_name_are_needed() -> None:
    trackers = [tracker("c1"), tracker("c2"), tracker(""), tracker("c3", machine="db")]
    assert plan.needed(trackers, "web") == {"c1", "c2"}


def test_the_status_of_a_backup_from_its_beginning_to_its_end() -> None:
    decision = plan.decide(backup(), tracker("c1", "a"), ["a", "b"], {})
    status = plan.waiting(BackupStatus(), "vm web is not running, cannot do backup", NOW)
    assert [(each.type, each.status, each.reason) for each in status.conditions or ()] == [("Progressing", "True", "Initializing")]
    status = plan.begun(status, decision, "monday-1", {"a": "vda"}, NOW)
    assert status.type == "Full" and status.checkpointName == "monday-1"
    assert [(each.volumeName, each.diskTarget) for each in status.includedVolumes or ()] == [("a", "vda"), ("b", "")]
    status = plan.quiesced(plan.quiesced(status, "", NOW), "failed", NOW)
    said = list(plan.warnings(status, "no agent"))
    assert said == ["it is a full one: not all changes of a since c1 are known", "the guest's file systems did not stand still: no agent"]
    done = plan.completed(status, said, NOW)
    reasons = {each.type: (each.status, each.reason) for each in done.conditions or ()}
    assert reasons == {
        "Progressing": ("False", "CompletedWithWarning"),
        "Quiesced": ("False", "QuiesceFailed"),
        "Complete": ("True", "CompletedWithWarning"),
    }
    assert plan.is_over(done) and not plan.is_over(status) and not plan.is_over(None)
    ended = plan.failed(status, "SourceLost", "VMI was deleted during backup", NOW)
    assert plan.is_over(ended)
    assert {each.message for each in ended.conditions or () if each.type != "Quiesced"} == {
        "Backup has failed: VMI was deleted during backup"
    }
    whole = plan.begun(BackupStatus(), plan.decide(backup(), None, ["a"], {}), "", {}, NOW)
    assert whole.checkpointName is None and not list(plan.warnings(whole, ""))
    assert next(each.message for each in plan.completed(whole, [], NOW).conditions or ()) == plan.DONE


def test_the_same_seen_again_is_the_same_status() -> None:
    once = plan.waiting(BackupStatus(), "PVC default/x doesnt exist", NOW)
    assert plan.waiting(once, "PVC default/x doesnt exist", "2027-01-01T00:00:00Z") == once


CONFIGURATION = {
    "changedBlockTrackingLabelSelectors": {
        "virtualMachineLabelSelector": {"matchLabels": {"cbt": "yes"}},
        "namespaceLabelSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]},
    }
}


@pytest.mark.parametrize(
    ("configuration", "machine", "namespace", "selected"),
    [
        (None, {"cbt": "yes"}, {}, False),
        ({}, {"cbt": "yes"}, {"team": "a"}, False),
        (CONFIGURATION, {}, {}, False),
        (CONFIGURATION, {"cbt": "yes"}, {}, True),
        (CONFIGURATION, {"cbt": "no"}, {"team": "a"}, True),
        (CONFIGURATION, {"cbt": "no"}, {"team": "b"}, False),
        ({"changedBlockTrackingLabelSelectors": {"virtualMachineLabelSelector": {}}}, {}, {}, True),
    ],
)
@pytest.mark.spec("kubevirt", 302)
def test_one_of_the_selectors_is_enough(
    configuration: dict[str, object] | None, machine: dict[str, str], namespace: dict[str, str], selected: bool
) -> None:
    assert tracking.is_selected(configuration, machine, namespace) is selected


def test_the_gate_is_off_unless_it_is_named() -> None:
    def of(**developer: list[str]) -> bool:
        return tracking.has_gate({"developerConfiguration": developer})

    assert of(featureGates=["IncrementalBackup"]) and not of() and not tracking.has_gate(None)
    assert not of(featureGates=["IncrementalBackup"], disabledFeatureGates=["IncrementalBackup"])


@pytest.mark.parametrize(
    ("before", "facts", "machine", "instance"),
    [
        ("", TrackingFacts(gate=True, selected=False, instance=True, followed=True), "", ""),
        (ENABLED, TrackingFacts(gate=True, selected=False, instance=True, followed=True), DISABLED, DISABLED),
        ("", TrackingFacts(gate=False, selected=True), GATE_OFF, ""),
        (ENABLED, TrackingFacts(gate=False, selected=True, instance=True, followed=True), GATE_OFF, DISABLED),
        ("", TrackingFacts(gate=True, selected=True), INITIALIZING, INITIALIZING),
        (ENABLED, TrackingFacts(gate=True, selected=True), ENABLED, ENABLED),
        (INITIALIZING, TrackingFacts(gate=True, selected=True, instance=True, followed=True), ENABLED, ENABLED),
        # An earlier version started it.
        ("", TrackingFacts(gate=True, selected=True, instance=True), PENDING, INITIALIZING),
    ],
)
@pytest.mark.spec("kubevirt", 302)
def test_the_state_of_a_machine_and_of_its_instance(before: str, facts: TrackingFacts, machine: str, instance: str) -> None:
    assert (tracking.machine_state(before, facts), tracking.instance_state(before, facts)) == (machine, instance)
