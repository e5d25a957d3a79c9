"""One backup: whole or what changed, its names, and its status (docs/spec/kubevirt.md 7.6). Pure."""

import datetime
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import Condition, holds, settled
from paddock.kubevirt.kinds.backup import (
    BackupCheckpoint,
    BackupStatus,
    BackupVolume,
    TrackerStatus,
    VirtualMachineBackup,
    VirtualMachineBackupTracker,
)
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

FULL, INCREMENTAL = "Full", "Incremental"
COMPLETE, FAILED, PROGRESSING, QUIESCED = "Complete", "Failed", "Progressing", "Quiesced"
# As KubeVirt calls its events.
EVENT_COMPLETED = "VirtualMachineBackupCompletedSuccessfully"
EVENT_WARNING = "VirtualMachineBackupCompletedWithWarning"
EVENT_FAILED = "VirtualMachineBackupFailed"
EVENT_ABORTING = "VirtualMachineBackupAborting"
EVENT_LOST = "CheckpointRedefinitionFailed"
IN_PROGRESS, DONE = "Backup is in progress", "Successfully completed VirtualMachineBackup"
_LONGEST = 150
_QUIESCED = {
    "succeeded": ("True", "QuiesceSucceeded", "Guest filesystem was successfully quiesced"),
    "failed": ("False", "QuiesceFailed", "Guest filesystem quiesce failed"),
    "skipped": ("False", "QuiesceSkipped", "Guest filesystem quiesce was skipped"),
}


class BackupDecision(msgspec.Struct, frozen=True):
    """What a backup has of each volume."""

    # volume -> the checkpoint since which it has the changes; "": all of it
    since: Mapping[str, str]
    # why it is whole although a tracker has a checkpoint; "": it is not, or it was asked for
    lost: str = ""

    @property
    def type(self) -> str:
        return INCREMENTAL if any(self.since.values()) else FULL


def is_over(status: BackupStatus | None) -> bool:
    """Return whether a backup is complete or has failed."""
    return status is not None and (holds(status.conditions, COMPLETE) or holds(status.conditions, FAILED))


def checkpoint_of(tracker: VirtualMachineBackupTracker | None) -> BackupCheckpoint | None:
    """Return the checkpoint that the next backup of a tracker starts from; None: there is none."""
    found = tracker.status.latestCheckpoint if tracker is not None and tracker.status is not None else None
    return found if found is not None and found.name else None


def decide(
    backup: VirtualMachineBackup,
    tracker: VirtualMachineBackupTracker | None,
    volumes: Sequence[str],
    known: Mapping[str, Collection[str]],
) -> BackupDecision:
    """Decide what a backup has. `known`: the checkpoints since which all changes of a volume's disk are known.

    If they are not known of a volume that the checkpoint has, the backup is whole: an increment of the others would not be the machine's.
    """
    whole = dict.fromkeys(volumes, "")
    checkpoint = checkpoint_of(tracker)
    if checkpoint is None or backup.spec.forceFullBackup:
        return BackupDecision(whole)
    name = checkpoint.name or ""
    before = {each.volumeName for each in checkpoint.volumes or ()}
    missing = sorted(each for each in volumes if each in before and name not in known.get(each, ()))
    if missing:
        return BackupDecision(whole, f"not all changes of {', '.join(missing)} since {name} are known")
    if not before.intersection(volumes):
        return BackupDecision(whole, f"no volume of {name} is there any more")
    return BackupDecision({each: name if each in before else "" for each in volumes})


def volumes_of(instance: VirtualMachineInstance, followed: Collection[str]) -> list[str]:
    """Return the volumes that a backup has: those on claims, whose disks the engine follows."""
    return [
        each.name
        for each in instance.spec.volumes or ()
        if (each.persistentVolumeClaim is not None or each.dataVolume is not None) and each.name in followed
    ]


def short(name: str) -> str:
    """Return a name that leaves room for what is put behind it."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def checkpoint_name(backup: VirtualMachineBackup) -> str:
    """Return the name of a backup's checkpoint, and of its directory."""
    made = datetime.datetime.fromtimestamp(ages.seconds_of(backup.metadata.creationTimestamp or "") or 0.0, datetime.UTC)
    return f"{short(backup.metadata.name)}-{made:%Y-%m-%d_%H-%M-%S}"


def file_name(backup: VirtualMachineBackup, volume: str) -> str:
    """Return the name of the file with a volume."""
    return f"{short(backup.metadata.name)}-{volume}.qcow2"


def targets_of(instance: VirtualMachineInstance) -> dict[str, str]:
    """Return the device of each volume, as the instance's status has it."""
    found = instance.status.volumeStatus if instance.status is not None else None
    return {each.name: each.target or "" for each in found or ()}


def checkpoint(backup: VirtualMachineBackup, status: BackupStatus) -> TrackerStatus:
    """Return the status of a tracker after a backup."""
    made = BackupCheckpoint(name=status.checkpointName, creationTime=backup.metadata.creationTimestamp, volumes=status.includedVolumes)
    return TrackerStatus(latestCheckpoint=made)


def needed(trackers: Iterable[VirtualMachineBackupTracker], machine: str) -> set[str]:
    """Return the checkpoints of a machine that trackers name."""
    found = (checkpoint_of(each) for each in trackers if each.spec.source.name == machine)
    return {each.name for each in found if each is not None and each.name}


# --- status -----------------------------------------------------------------------------------------------------------------


def waiting(before: BackupStatus, why: str, now: str) -> BackupStatus:
    """Return the status of one that cannot begin yet."""
    return _with(before, [Condition(type=PROGRESSING, status="True", reason="Initializing", message=why)], now)


def begun(before: BackupStatus, decision: BackupDecision, checkpoint: str, targets: Mapping[str, str], now: str) -> BackupStatus:
    """It begins, as was decided."""
    message = f"{IN_PROGRESS}; it is a full one: {decision.lost}" if decision.lost else IN_PROGRESS
    started = _with(before, [Condition(type=PROGRESSING, status="True", reason="Initiated", message=message)], now)
    return msgspec.structs.replace(
        started,
        type=decision.type,
        checkpointName=checkpoint or None,
        includedVolumes=[BackupVolume(volumeName=name, diskTarget=targets.get(name, "")) for name in decision.since],
    )


def quiesced(before: BackupStatus, word: str, now: str) -> BackupStatus:
    """It is known whether the guest's file systems stood still."""
    if word not in _QUIESCED:
        return before
    status, reason, message = _QUIESCED[word]
    return _with(before, [Condition(type=QUIESCED, status=status, reason=reason, message=message)], now)


def completed(before: BackupStatus, warnings: Sequence[str], now: str) -> BackupStatus:
    """Return the status of one that is in its claim."""
    reason = "CompletedWithWarning" if warnings else "Completed"
    message = f"Completed VirtualMachineBackup, warning: {'; '.join(warnings)}" if warnings else DONE
    return _with(before, [Condition(type=kind, status=word, reason=reason, message=message) for kind, word in _ENDS], now)


def failed(before: BackupStatus, reason: str, why: str, now: str) -> BackupStatus:
    """Return the status of one that has failed."""
    message = f"Backup has failed: {why}"
    ended = ((FAILED, "True"), (PROGRESSING, "False"))
    return _with(before, [Condition(type=kind, status=word, reason=reason, message=message) for kind, word in ended], now)


def warnings(status: BackupStatus, problem: str) -> Iterator[str]:
    """Yield what a user should know of a backup that is complete."""
    progress = next((each for each in status.conditions or () if each.type == PROGRESSING), None)
    if progress is not None and progress.message is not None and progress.message.startswith(f"{IN_PROGRESS}; "):
        yield progress.message.removeprefix(f"{IN_PROGRESS}; ")
    if problem:
        yield f"the guest's file systems did not stand still: {problem}"


_ENDS = ((COMPLETE, "True"), (PROGRESSING, "False"))


def _with(before: BackupStatus, conditions: Iterable[Condition], now: str) -> BackupStatus:
    return msgspec.structs.replace(before, conditions=settled(before.conditions, conditions, now))
