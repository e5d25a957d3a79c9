"""Restoring machines: how the new claims are called, what the machine becomes (docs/spec/kubevirt.md 7.2). Pure."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from paddock.base import ownnames, quantity
from paddock.base.errors import Terminal, Transient
from paddock.base.jsondata import Data
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.volumesnapshot import VolumeSnapshot
from paddock.kubernetes.meta import patch
from paddock.kubernetes.meta.conditions import Condition, settled
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds.restore import RestoreStatus, VirtualMachineRestore, operations_of
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshotContent, VolumeBackup
from paddock.kubevirt.plan.snapshots.machines import source_labels
from paddock.kubevirt.plan.storage.contents import POPULATED_FOR, PREPOPULATED

LAST_RESTORE = "restore.kubevirt.io/lastRestoreUID"
SOURCE_NOTE = "restore.kubevirt.io/uid"
# Of a DataVolume whose claim was restored: the name of the restore.
NAME_NOTE = "restore.kubevirt.io/name"
_GRACE_SECONDS = 300.0
_SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
# What was true of the machine that was, and not of the one that is made.
_NOT_KEPT = ("kubectl.kubernetes.io/last-applied-configuration", ownnames.CONTINUES.name)


# Reasons of Warning events, and of the conditions of a restore to a machine that the snapshot is not of.
RESTORE_ERROR = "VirtualMachineRestoreError"
TARGET_NOT_READY = "RestoreTargetNotReady"
_OTHER_TARGET = "restore source and restore target are different but restore target already exists"


class RestoreRefused(Terminal):
    """The restore cannot be done as it is asked for. `reason` is that of the conditions; empty: the text itself."""

    def __init__(self, what: str, *, why: str = "", fix: str = "", reason: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason = reason


def target_deleted(name: str) -> RestoreRefused:
    """The refusal of a restore whose target somebody deleted meanwhile."""
    return RestoreRefused(f"{name} was deleted while it was restored", fix="restore it once more")


class RestoreWait(msgspec.Struct, frozen=True):
    """What a restore waits for. With a `warning`, the reason of an event, nothing is in progress until somebody acts."""

    text: str
    warning: str = ""
    # the DataVolumes that the machine is about to lose, which the status names before it does
    replaced: tuple[str, ...] | None = None


class RestoredVolume(msgspec.Struct, frozen=True):
    """One volume as it is restored."""

    name: str
    claim: str
    snapshot: str
    # the DataVolume of the machine that had the claim before
    data_volume: str = ""
    # it is one of the machine's templates, and so is the one that gets the claim
    is_template: bool = False


def volumes(restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent) -> list[RestoredVolume]:
    """The volumes with the names of their claims."""
    machine = content.spec.source.virtualMachine or {}
    data_volumes, templates = _data_volumes(machine), template_names(machine)
    found = []
    for backup in content.spec.volumeBackups or ():
        claim, data_volume = _claim_name(restore, backup), data_volumes.get(backup.volumeName, "")
        # Restored in place, it keeps the DataVolume that it has.
        is_template = data_volume in templates and (restore.spec.volumeOwnershipPolicy != "None" or claim == data_volume)
        found.append(RestoredVolume(backup.volumeName, claim, backup.volumeSnapshotName or "", data_volume, is_template))
    return found


def template_names(machine: Mapping[str, Any]) -> list[str]:
    """The names of the DataVolumes that belong to a machine."""
    return [_at(each, "metadata").get("name", "") for each in (machine.get("spec") or {}).get("dataVolumeTemplates") or ()]


def replaced(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """The DataVolumes of a machine that it has no more when it is restored."""
    return tuple(name for name in template_names(before) if name not in template_names(now))


def _claim_name(restore: VirtualMachineRestore, backup: VolumeBackup) -> str:
    for override in restore.spec.volumeRestoreOverrides or ():
        if override.volumeName == backup.volumeName and override.restoreName:
            return override.restoreName
    policy = restore.spec.volumeRestorePolicy or "RandomizeNames"
    if policy == "InPlace":
        return str(backup.persistentVolumeClaim.get("metadata", {}).get("name", backup.volumeName))
    if policy == "PrefixTargetName":
        return f"{restore.spec.target.name}-{backup.volumeName}"
    return f"restore-{restore.metadata.uid}-{backup.volumeName}"


def check(restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, there: Mapping[str, str] | None = None) -> None:
    """Refuse what would take another machine's disks or place away; `there` are the annotations of a target that exists."""
    source = _at(content.spec.source.virtualMachine or {}, "metadata").get("name", "")
    if there is not None and restore.spec.target.name != source and not is_made_by(restore, there):
        why = f"the snapshot is of {source}, and there is a machine {restore.spec.target.name} already"
        fix = "choose another name for the target, or delete that machine"
        raise RestoreRefused("the restore cannot make the target", why=why, fix=fix, reason=_OTHER_TARGET)
    if restore.spec.volumeRestorePolicy == "InPlace" and restore.spec.target.name != source:
        why = f"the volumes are those of {source}, and the target is {restore.spec.target.name}"
        raise RestoreRefused("the restore cannot be in place", why=why, fix="use another volumeRestorePolicy")
    names = [each.claim for each in volumes(restore, content)]
    if len(set(names)) < len(names):
        raise RestoreRefused("two volumes would be restored to one claim", fix="choose different names in volumeRestoreOverrides")


def is_made_by(restore: VirtualMachineRestore, annotations: Mapping[str, str] | None) -> bool:
    """Return whether a machine with these annotations is as this restore has made it."""
    return (annotations or {}).get(LAST_RESTORE) == restore.metadata.uid


def check_data(volume: RestoredVolume, snapshot: VolumeSnapshot | None, *, held: bool) -> None:
    """Refuse a volume whose VolumeSnapshot is gone; `held` says whether the engine has its data."""
    if snapshot is None:
        why = f"VolumeSnapshot {volume.snapshot} does not exist" if volume.snapshot else "the snapshot does not include it"
    elif snapshot.metadata.deletionTimestamp:
        why = f"VolumeSnapshot {volume.snapshot} is being deleted"
    elif not held:
        why = f"the data of VolumeSnapshot {volume.snapshot} is missing from the disk pool"
    else:
        return
    raise RestoreRefused(f"volume {volume.name} cannot be restored", why=why, fix="restore another snapshot")


def check_size(volume: RestoredVolume, claim: PersistentVolumeClaim, size: int) -> None:
    """Refuse to bring back a disk of a size on a claim that has less."""
    if (has := claimsizes.guest_size(claim)) < size:
        why = f"claim {volume.claim} has {quantity.binary(has)}, and the disk in the snapshot {quantity.binary(size)}"
        raise RestoreRefused(f"volume {volume.name} cannot be restored in place", why=why, fix="make the claim larger, or delete it")


def volume_missing(claim: str) -> Transient:
    """The error of a claim whose volume may be out of reach."""
    why = "a pool is not mounted, or the record of a volume is damaged"
    return Transient(f"cannot tell whether claim {claim} has a volume", why=why, fix="mount the pool and restart the server")


def is_former(volume: RestoredVolume, backup: VolumeBackup) -> bool:
    """Return whether a volume is restored to its former claim."""
    return bool(volume.claim == _at(backup.persistentVolumeClaim, "metadata").get("name"))


def _data_volumes(machine: Mapping[str, Any]) -> dict[str, str]:
    spec = _at(machine, "spec", "template", "spec")
    found = {each.get("name", ""): (each.get("dataVolume") or {}).get("name", "") for each in spec.get("volumes") or ()}
    return {name: value for name, value in found.items() if value}


def claim(restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, volume: RestoredVolume, backup: VolumeBackup) -> Data:
    """The claim that is filled from the snapshot of a volume."""
    source = _at(content.spec.source.virtualMachine or {}, "metadata")
    before = copy.deepcopy(backup.persistentVolumeClaim)
    spec = {name: value for name, value in (before.get("spec") or {}).items() if name not in ("volumeName", "dataSource", "dataSourceRef")}
    spec["dataSourceRef"] = {"apiGroup": _SNAPSHOT_GROUP, "kind": "VolumeSnapshot", "name": volume.snapshot}
    labels = dict((before.get("metadata") or {}).get("labels") or {})
    labels |= source_labels("restore.kubevirt.io", source.get("name") or "", restore.metadata.namespace or "")
    notes: dict[str, str] = {SOURCE_NOTE: restore.metadata.uid or ""}
    if volume.is_template or (volume.data_volume and is_former(volume, backup)):
        notes[POPULATED_FOR] = volume.claim
    if guest_size := _at(before, "metadata", "annotations").get(claimsizes.GUEST_SIZE):
        notes[claimsizes.GUEST_SIZE] = guest_size
    for override in restore.spec.volumeRestoreOverrides or ():
        if override.volumeName == volume.name:
            labels |= override.labels or {}
            notes |= override.annotations or {}
    metadata = {"name": volume.claim, "namespace": restore.metadata.namespace, "labels": labels, "annotations": notes}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def data_volume(restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, volume: RestoredVolume) -> Data:
    """The DataVolume that gets a restored claim, without its owner: what the template says, and nothing that fills it."""
    machine = content.spec.source.virtualMachine or {}
    templates = dict(zip(template_names(machine), (machine.get("spec") or {}).get("dataVolumeTemplates") or (), strict=True))
    template = copy.deepcopy(templates[volume.data_volume])
    metadata = {**_at(template, "metadata"), "name": volume.claim, "namespace": restore.metadata.namespace}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **data_volume_notes(restore, volume)}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": metadata, "spec": template.get("spec")}


def data_volume_notes(restore: VirtualMachineRestore, volume: RestoredVolume) -> dict[str, str]:
    """The annotations of a DataVolume that keeps off a claim until the restore has filled it."""
    return {NAME_NOTE: restore.metadata.name, PREPOPULATED: volume.claim}


def machine(
    restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, restored_volumes: Iterable[RestoredVolume], *, fresh: bool
) -> Data:
    """The machine as it becomes: as it was, on the restored claims. A `fresh` one has an identity of its own, except for patches."""
    before = copy.deepcopy(content.spec.source.virtualMachine or {})
    spec = before.get("spec") or {}
    claims = {each.name: each for each in restored_volumes}
    template = spec.get("template", {}).get("spec", {})
    for volume in template.get("volumes") or ():
        if volume.get("name") in claims:
            restored = claims[volume["name"]]
            if restored.is_template:
                volume["dataVolume"]["name"] = restored.claim
                continue
            volume.clear()
            volume |= {"name": restored.name, "persistentVolumeClaim": {"claimName": restored.claim}}
    spec["dataVolumeTemplates"] = _templates(spec, {each.data_volume: each for each in claims.values()}) or None
    if fresh:
        firmware = template.get("domain", {}).get("firmware") or {}
        for name in ("uuid", "serial"):
            firmware.pop(name, None)
    metadata = before.get("metadata") or {}
    notes = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in _NOT_KEPT}
    document: Data = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": restore.spec.target.name,
            "namespace": restore.metadata.namespace,
            "labels": metadata.get("labels"),
            "annotations": {**notes, LAST_RESTORE: restore.metadata.uid},
        },
        "spec": spec,
    }
    return patched(document, restore.spec.patches)


def _templates(spec: Mapping[str, Any], restored: Mapping[str, RestoredVolume]) -> list[Data]:
    """The templates of a restored machine: those of restored volumes have the names of their claims."""
    found = []
    for template in spec.get("dataVolumeTemplates") or ():
        metadata = _at(template, "metadata")
        volume = restored.get(metadata.get("name", ""))
        if volume is None:
            found.append(template)
        elif volume.is_template:
            found.append({**template, "metadata": {**metadata, "name": volume.claim}})
    return found


def patched(document: Data, patches: Iterable[str] | None) -> Data:
    """The object after the user's JSON patch operations."""
    operations = [operation for text in patches or () for operation in operations_of(text)]
    if not operations:
        return document
    try:
        found = patch.apply_json_patch(document, operations)
    except patch.BadPatch as error:
        raise RestoreRefused("the patches cannot be applied to the machine", why=str(error)) from error
    if not isinstance(found, dict):
        raise RestoreRefused("the patches leave no object")
    return found


def waits(policy: str | None, running: bool, age_seconds: float) -> str:
    """Return the treatment of a running target: nothing, `stop` it, `wait` for it, or `fail`."""
    if not running:
        return ""
    match policy or "WaitGracePeriod":
        case "StopTarget":
            return "stop"
        case "FailImmediate":
            return "fail"
        case "WaitEventually":
            return "wait"
    return "fail" if age_seconds > _GRACE_SECONDS else "wait"


def waiting(restore: VirtualMachineRestore, waits: RestoreWait, now: str) -> RestoreStatus:
    """The status of a restore that is not done."""
    progressing = Condition(type="Progressing", status="False" if waits.warning else "True", reason=waits.text)
    status = _unready(restore, now, waits.text, None, progressing)
    return status if waits.replaced is None else msgspec.structs.replace(status, deletedDataVolumes=list(waits.replaced) or None)


def failed(restore: VirtualMachineRestore, refused: RestoreRefused, now: str) -> RestoreStatus:
    """The status of a restore that was given up."""
    text = str(refused)
    reason, message = refused.reason or text, text if refused.reason else None
    failure = Condition(type="Failure", status="True", reason=reason, message=message)
    return _unready(restore, now, reason, message, Condition(type="Progressing", status="False", reason=reason, message=message), failure)


def _unready(restore: VirtualMachineRestore, now: str, reason: str, message: str | None, *more: Condition) -> RestoreStatus:
    before = restore.status or RestoreStatus()
    found = (Condition(type="Ready", status="False", reason=reason, message=message), *more)
    return msgspec.structs.replace(before, complete=False, conditions=settled(before.conditions, found, now))


def _at(found: Any, *path: str) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
