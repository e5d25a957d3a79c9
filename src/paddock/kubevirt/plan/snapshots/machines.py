"""Snapshots of machines: which volumes are in them, the objects they consist of, their status (docs/spec/kubevirt.md 7.1). Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from paddock.base import duration
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.volumesnapshot import VolumeSnapshot
from paddock.kubernetes.meta.conditions import Condition, settled
from paddock.kubevirt.kinds.snapshot import (
    SnapshotError,
    SnapshotStatus,
    SnapshotVolumes,
    SourceIndication,
    VirtualMachineSnapshot,
    VirtualMachineSnapshotContent,
)
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

IN_PROGRESS, SUCCEEDED, FAILED, DELETING = "InProgress", "Succeeded", "Failed", "Deleting"
_DEADLINE_SECONDS, _OVERDUE = 300.0, "snapshot deadline exceeded"
_LOCKED = "Source locked and operation in progress"
_LABEL_LENGTH, _NAME_LENGTH = 63, 253
_CONTENT = "vmsnapshot-content-"
_INDICATIONS = {
    "Memory": "Snapshot has the memory of the guest from the same moment as its disks; the file systems were not quiesced",
    "Online": "Snapshot taken while the VM was running",
    "GuestAgent": "Guest agent was active; the file systems in the snapshot were quiesced",
    "NoGuestAgent": "Guest agent was not active; snapshot is crash-consistent",
    "QuiesceFailed": "Guest agent was active but failed to quiesce the filesystem",
    "Paused": "Snapshot taken while the VM was paused",
}


class MachineVolumes(msgspec.Struct, frozen=True):
    """The volumes of a machine: those that last, by the claims they are on, and the others."""

    claims: Mapping[str, str] = msgspec.field(default_factory=dict)
    excluded: tuple[str, ...] = ()


def volumes_of(machine: VirtualMachine, static: Callable[[str], bool] = lambda _: False) -> MachineVolumes:
    """A volume on a claim is in a snapshot; what ends with the machine, or comes from elsewhere at each start, is not.

    `static` tells of a claim whether it has an administrator's volume, a directory of the host: that is no disk of the machine.
    """
    claims: dict[str, str] = {}
    excluded = []
    for volume in machine.spec.template.spec.volumes or ():
        if volume.persistentVolumeClaim is not None and static(volume.persistentVolumeClaim.claimName):
            excluded.append(volume.name)
        elif volume.persistentVolumeClaim is not None:
            claims[volume.name] = volume.persistentVolumeClaim.claimName
        elif volume.dataVolume is not None:
            claims[volume.name] = volume.dataVolume.name
        else:
            excluded.append(volume.name)
    return MachineVolumes(claims, tuple(excluded))


def content_name(snapshot: VirtualMachineSnapshot) -> str:
    """The content of a snapshot."""
    return f"{_CONTENT}{snapshot.metadata.uid}"


def revision_name(content: str, member: str) -> str:
    """Return the name of the copy of an instancetype or a preference that is kept with the content of this name."""
    return f"vmsnapshot-{content.removeprefix(_CONTENT)}-{member}"


def restored_revision_name(machine: str, restore: str, kept: Mapping[str, Any]) -> str:
    """Return the name of the copy that a restored machine gets; `restore` is the UID of its restore, `kept` the copied object."""
    meta = kept["metadata"]
    name = f"{machine}-{meta['name']}-v1beta1-{meta.get('uid', '')}-{meta.get('generation', 1)}"
    return name if len(name) <= _NAME_LENGTH else f"restore-{restore}-{meta.get('uid', '')}"


def volume_snapshot_name(snapshot: VirtualMachineSnapshot, volume: str) -> str:
    """The snapshot of one of its volumes."""
    return f"{_prefix(snapshot.metadata.uid or '')}{volume}"


def volume_state(name: str, made: VolumeSnapshot) -> dict[str, Any]:
    """Return what a content says of one of its VolumeSnapshots."""
    status: dict[str, Any] = msgspec.to_builtins(made.status) if made.status is not None else {}
    kept: dict[str, Any] = {"volumeSnapshotName": name}
    for member in ("creationTime", "readyToUse", "error"):
        if member in status:
            kept[member] = status[member]
    return kept


def is_part(uid: str, name: str) -> bool:
    """Return whether a VolumeSnapshot of this name is one of the snapshot with this UID."""
    return name.startswith(_prefix(uid))


def _prefix(uid: str) -> str:
    return f"vmsnapshot-{uid}-volume-"


def source_labels(group: str, name: str, namespace: str) -> dict[str, str]:
    """Return the labels of a group that say which machine something comes from, as far as its name fits into a label."""
    named = {"source-vm-name": name, "source-vm-namespace": namespace}
    return {f"{group}/{key}": value for key, value in named.items() if len(value) <= _LABEL_LENGTH}


def copy_of(machine: VirtualMachine) -> dict[str, Any]:
    """The machine as a content keeps it: what a restore needs, and nothing of who wrote which field."""
    data: dict[str, Any] = msgspec.to_builtins(machine)
    data["metadata"] = {name: value for name, value in data["metadata"].items() if name not in ("managedFields", "selfLink")}
    return {name: data[name] for name in ("metadata", "spec", "status") if name in data}


def source_uid(content: VirtualMachineSnapshotContent) -> str:
    """Return the UID of the machine that a content keeps."""
    machine = content.spec.source.virtualMachine or {}
    return str((machine.get("metadata") or {}).get("uid") or "")


def copy_of_claim(claim: PersistentVolumeClaim) -> dict[str, Any]:
    """The claim as a content keeps it."""
    data: dict[str, Any] = msgspec.to_builtins(claim)
    kept = ("name", "namespace", "labels", "annotations", "uid")
    return {"metadata": {name: value for name, value in data["metadata"].items() if name in kept}, "spec": data.get("spec") or {}}


def overdue(snapshot: VirtualMachineSnapshot, age_seconds: float) -> bool:
    """Return whether the deadline of a snapshot has passed. A deadline of zero means never."""
    given = snapshot.spec.failureDeadline
    limit = _DEADLINE_SECONDS if given is None else duration.parse(given) / duration.SECOND
    return limit > 0 and age_seconds > limit


def indications(*, online: bool, paused: bool, agent: bool, quiesced: bool, memory: bool = False) -> list[str]:
    """The circumstances of a snapshot, by their names and in their order. The agent of a guest that is paused is not asked.

    With memory it is not asked either: a guest whose file systems are frozen would be restored so.
    """
    if not online:
        return []
    if memory:
        return ["Memory", "Online", *(["Paused"] if paused else [])]
    if paused:
        return ["Online", "Paused"]
    return sorted(("Online", "NoGuestAgent" if not agent else "GuestAgent" if quiesced else "QuiesceFailed"))


def ready(before: SnapshotStatus, now: str, found: Sequence[str], volumes: MachineVolumes) -> SnapshotStatus:
    return msgspec.structs.replace(
        before,
        phase=SUCCEEDED,
        readyToUse=True,
        creationTime=now,
        error=None,
        indications=list(found) or None,
        sourceIndications=[SourceIndication(indication=each, message=_INDICATIONS[each]) for each in found] or None,
        snapshotVolumes=SnapshotVolumes(includedVolumes=list(volumes.claims) or None, excludedVolumes=list(volumes.excluded) or None),
        conditions=_conditions(before, now, ready=True, reason="Operation complete"),
    )


def under_way(before: SnapshotStatus, now: str, uid: str, content: str, why: str = "") -> SnapshotStatus:
    """It has its machine and is being taken; `why` says what that waits for."""
    return _unfinished(before, now, uid, content, _conditions(before, now, ready=False, reason=_LOCKED, message=why))


def waiting(before: SnapshotStatus, now: str, uid: str, machine: str, why: str) -> SnapshotStatus:
    """It does not have its machine (namespace/name). The reason is what stands in `why` before a colon, in KubeVirt's words."""
    head = why.partition(": ")[0]
    reason = head if head.startswith("Source ") else f"Source not locked source {machine} {head}"
    return _unfinished(before, now, uid, "", _conditions(before, now, ready=False, reason=reason, message=why, progressing=False))


def _unfinished(before: SnapshotStatus, now: str, uid: str, content: str, conditions: list[Condition]) -> SnapshotStatus:
    return msgspec.structs.replace(
        before,
        phase=IN_PROGRESS,
        readyToUse=False,
        sourceUID=uid or before.sourceUID,
        virtualMachineSnapshotContentName=content or before.virtualMachineSnapshotContentName,
        conditions=conditions,
    )


def failed(before: SnapshotStatus, now: str, why: str) -> SnapshotStatus:
    """It was given up at its deadline."""
    conditions = _conditions(before, now, ready=False, reason="Operation failed", progressing=False)
    failure = Condition(type="Failure", status="True", reason=_OVERDUE, message=why)
    error = SnapshotError(time=now, message=f"{_OVERDUE}: {why}")
    return msgspec.structs.replace(before, phase=FAILED, readyToUse=False, error=error, conditions=settled(conditions, [failure], now))


def refused(before: SnapshotStatus, now: str, reason: str, why: str) -> SnapshotStatus:
    """It cannot be taken as it is asked for."""
    conditions = _conditions(before, now, ready=False, reason="Operation failed", progressing=False)
    failure = Condition(type="Failure", status="True", reason=reason, message=why)
    error = SnapshotError(time=now, message=why)
    return msgspec.structs.replace(before, phase=FAILED, readyToUse=False, error=error, conditions=settled(conditions, [failure], now))


def lost(before: SnapshotStatus, now: str, why: str) -> SnapshotStatus:
    """It was taken, and has lost volumes since."""
    conditions = _conditions(before, now, ready=False, reason="In error state", progressing=False)
    return msgspec.structs.replace(before, readyToUse=False, error=SnapshotError(time=now, message=why), conditions=conditions)


def found(before: SnapshotStatus, now: str) -> SnapshotStatus:
    """What was damaged of it is whole again."""
    return msgspec.structs.replace(
        before, readyToUse=True, error=None, conditions=_conditions(before, now, ready=True, reason="Operation complete")
    )


def _conditions(
    before: SnapshotStatus, now: str, *, ready: bool, reason: str, message: str = "", progressing: bool | None = None
) -> list[Condition]:
    is_progressing = not ready if progressing is None else progressing
    wanted = (
        Condition(type="Ready", status="True" if ready else "False", reason="Ready" if ready else "Not ready"),
        Condition(type="Progressing", status="True" if is_progressing else "False", reason=reason, message=message or None),
    )
    return settled(before.conditions, wanted, now)
