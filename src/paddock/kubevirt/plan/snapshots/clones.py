"""Cloning machines: what the snapshot and the restore look like that make one machine out of another (docs/spec/kubevirt.md 7.3). Pure."""

import fnmatch
import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubernetes.meta.conditions import Condition, settled
from paddock.kubevirt.kinds.clone import CloneStatus, VirtualMachineClone
from paddock.kubevirt.kinds.restore import operations_of

SNAPSHOT, CREATING, RESTORE = "SnapshotInProgress", "CreatingTargetVM", "RestoreInProgress"
SUCCEEDED, FAILED = "Succeeded", "Failed"
FINAL = (SUCCEEDED, FAILED)
_LONGEST_NAME = 63
# Annotations of the restore of a clone that boots.
COLD: Mapping[str, str] = {ownnames.MEMORY.name: "false"}
# A clone is somebody else: what Kubernetes and its tools remember of the first one is not taken over.
_NEVER = ("kubectl.kubernetes.io/last-applied-configuration", "restore.kubevirt.io/lastRestoreUID")


def target_name(clone: VirtualMachineClone) -> str:
    target = clone.spec.target
    if target is not None and target.name:
        return target.name
    suffix = f"-{(clone.metadata.uid or '')[:5]}"
    # The source's name gives way, because the suffix alone tells two clones of one source apart.
    return f"clone-{clone.spec.source.name}"[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix


def snapshot_name(clone: VirtualMachineClone) -> str:
    """The snapshot in between: that which was given, or one of our own."""
    if clone.spec.source.kind == "VirtualMachineSnapshot":
        return clone.spec.source.name
    return f"tmp-snapshot-{clone.metadata.uid}"


def restore_name(clone: VirtualMachineClone) -> str:
    return f"tmp-restore-{clone.metadata.uid}"


def snapshot(clone: VirtualMachineClone, notes: Mapping[str, str]) -> Data:
    """The snapshot that is taken of the source, with annotations."""
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": clone.spec.source.name}
    return {
        "apiVersion": "snapshot.kubevirt.io/v1beta1",
        "kind": "VirtualMachineSnapshot",
        "metadata": {**_metadata(clone, snapshot_name(clone)), "annotations": dict(notes) or None},
        "spec": {"source": source},
    }


def restore(clone: VirtualMachineClone, machine: Mapping[str, Any], notes: Mapping[str, str]) -> Data:
    """The restore that makes the target, with annotations. `machine` is the source as the snapshot has it."""
    spec: Data = {
        "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": target_name(clone)},
        "virtualMachineSnapshotName": snapshot_name(clone),
        "patches": [json.dumps(each, separators=(",", ":")) for each in patches(clone, machine)],
    }
    if clone.spec.volumeNamePolicy is not None:
        spec["volumeRestorePolicy"] = clone.spec.volumeNamePolicy
    return {
        "apiVersion": "snapshot.kubevirt.io/v1beta1",
        "kind": "VirtualMachineRestore",
        "metadata": {**_metadata(clone, restore_name(clone)), "annotations": dict(notes)},
        "spec": spec,
    }


def patches(clone: VirtualMachineClone, machine: Mapping[str, Any]) -> Iterable[Data]:
    """Yield the patches for the target: labels and annotations by the filters, cards without their MACs, an identity of its own."""
    metadata = machine.get("metadata") or {}
    template = (machine.get("spec") or {}).get("template") or {}
    inner = template.get("metadata") or {}
    filters = clone.spec.template
    yield from _filtered("/metadata/labels", metadata.get("labels"), clone.spec.labelFilters)
    yield from _filtered("/metadata/annotations", metadata.get("annotations"), clone.spec.annotationFilters)
    yield from _filtered("/spec/template/metadata/labels", inner.get("labels"), filters.labelFilters if filters is not None else None)
    notes = filters.annotationFilters if filters is not None else None
    yield from _filtered("/spec/template/metadata/annotations", inner.get("annotations"), notes)
    domain = (template.get("spec") or {}).get("domain") or {}
    yield from _cards(clone, (domain.get("devices") or {}).get("interfaces") or ())
    if clone.spec.newSMBiosSerial:
        if domain.get("firmware") is None:
            yield {"op": "add", "path": "/spec/template/spec/domain/firmware", "value": {}}
        yield {"op": "add", "path": "/spec/template/spec/domain/firmware/serial", "value": clone.spec.newSMBiosSerial}
    yield from (operation for text in clone.spec.patches or () for operation in operations_of(text))


def _filtered(path: str, values: Mapping[str, str] | None, filters: list[str] | None) -> Iterable[Data]:
    for key in values or {}:
        if key in _NEVER:
            continue
        if not is_kept(key, filters):
            yield {"op": "remove", "path": f"{path}/{key.replace('~', '~0').replace('/', '~1')}"}


def is_kept(key: str, filters: list[str] | None) -> bool:
    """Return whether a key is copied: some filter includes it, and none excludes it. Without filters all are."""
    if filters is None:
        return True
    against = [each[1:] for each in filters if each.startswith("!")]
    wanted = [each for each in filters if not each.startswith("!")]
    if any(fnmatch.fnmatchcase(key, each) for each in against):
        return False
    return not wanted or any(fnmatch.fnmatchcase(key, each) for each in wanted)


def _cards(clone: VirtualMachineClone, interfaces: Iterable[Mapping[str, Any]]) -> Iterable[Data]:
    chosen = clone.spec.newMacAddresses or {}
    for index, interface in enumerate(interfaces):
        path = f"/spec/template/spec/domain/devices/interfaces/{index}/macAddress"
        if interface.get("name") in chosen:
            yield {"op": "add", "path": path, "value": chosen[str(interface["name"])]}
        elif interface.get("macAddress"):
            yield {"op": "remove", "path": path}


def _metadata(clone: VirtualMachineClone, name: str) -> Data:
    owner = {
        "apiVersion": clone.apiVersion,
        "kind": clone.kind,
        "name": clone.metadata.name,
        "uid": clone.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"name": name, "namespace": clone.metadata.namespace, "ownerReferences": [owner]}


def status(clone: VirtualMachineClone, phase: str, now: str, why: str = "") -> CloneStatus:
    """Return the status of the clone."""
    before = clone.status or CloneStatus()
    done, bad = phase == SUCCEEDED, phase == FAILED
    said = (
        Condition(type="Ready", status="True" if done else "False", reason=why or phase),
        Condition(type="Progressing", status="False" if done or bad else "True", reason=why or phase),
    )
    own = clone.spec.source.kind == "VirtualMachine"
    return msgspec.structs.replace(
        before,
        phase=phase,
        creationTime=now if phase == SUCCEEDED else before.creationTime,
        snapshotName=snapshot_name(clone) if own and not done else None,
        restoreName=restore_name(clone) if phase in (CREATING, RESTORE) else None,
        targetName=target_name(clone),
        conditions=settled(before.conditions, said, now),
    )
