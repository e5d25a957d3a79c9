"""The verdict on one object, from its own status."""

from collections.abc import Callable

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.links import (
    CLONE,
    EXPORT,
    POOLS,
    REPLICA_SET,
    RESTORE,
    SERVICE,
)
from paddock.fleet.diagnosis.scene import ObjectPlace, at, conditions, entries, holds, texts
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import CLAIM, DATA_SOURCE, DATA_VOLUME, INSTANCE, MACHINE, SNAPSHOT
from paddock.kubevirt.plan.diagnosis import kinddiagnosis
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import ObjectVerdict as ObjectVerdict
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import State as State
from paddock.kubevirt.plan.machine import fencing

_NOTES = "cdi.kubevirt.io/storage.condition."


def of(ref: ObjectPlace, data: Data) -> ObjectVerdict:
    """The verdict on an object."""
    if texts(data, "metadata", "deletionTimestamp"):
        return ObjectVerdict("going", "is being deleted")
    if ref.id in PASSIVE:
        phase = texts(data, "status", "phase")
        return ObjectVerdict("good", f"is {phase}" if phase else "is there")
    return _KINDS.get(ref.id, _any)(data)


_HAS_RUN = ("Running", "Paused", "Suspended", "Stopping")


def is_open(ref: ObjectPlace, data: Data) -> bool:
    """Return whether the objects that it names still matter. A guest that runs does not miss what it was started with."""
    runs = texts(data, "status", "phase") == "Running" or texts(data, "status", "printableStatus") in _HAS_RUN
    # A DataSource calls itself ready when it is well written; whether what it names is there shows when it is used.
    return ref.id == DATA_SOURCE or (of(ref, data).state in ("waits", "bad") and not (runs and ref.id in (MACHINE, INSTANCE)))


def _machine(data: Data) -> ObjectVerdict:
    word, strategy = texts(data, "status", "printableStatus"), strategy_of(data)
    if holds(data, "Failure"):
        return ObjectVerdict("bad", "does not run")
    if word == "Running":
        return ObjectVerdict("good", "runs") if holds(data, "Ready") else ObjectVerdict("bad", "runs, and is not ready")
    if word == "Paused":
        return ObjectVerdict("bad", "is paused")
    if word == "Suspended":
        return ObjectVerdict("bad", "is suspended to disk")
    if word == "Stopped" and (fence := fencing.reason(at(data, "metadata", "annotations"))):
        return ObjectVerdict("off", f"is stopped behind a fence: {fence}")
    if word == "Stopped" and strategy != "Always":
        return ObjectVerdict("off", f"is stopped, which its run strategy {strategy} allows")
    if word in ("", "Starting", "Provisioning", "WaitingForVolumeBinding", "Stopped", "Stopping", "Migrating", "WaitingForReceiver"):
        return ObjectVerdict("waits", "does not run yet")
    return ObjectVerdict("bad", "does not run")


def strategy_of(data: Data) -> str:
    """The run strategy of a machine, whichever way it is written."""
    if (running := at(data, "spec", "running")) is not None:
        return "Always" if running else "Halted"
    return texts(data, "spec", "runStrategy") or "Halted"


def _instance(data: Data) -> ObjectVerdict:
    phase = texts(data, "status", "phase")
    if phase == "Running" and holds(data, "Suspended"):
        return ObjectVerdict("bad", "is suspended to disk")
    if phase == "Running":
        return (
            ObjectVerdict("good", "runs")
            if holds(data, "Ready") and not holds(data, "Paused")
            else ObjectVerdict("bad", "runs, and is not ready")
        )
    if phase == "Succeeded":
        return ObjectVerdict("off", "has ended")
    if phase == "Failed":
        return ObjectVerdict("bad", "has failed")
    refused = any(holds(data, each, "False") for each in ("Synchronized", "PodScheduled"))
    return ObjectVerdict("bad", "does not run") if refused else ObjectVerdict("waits", "does not run yet")


def _data_volume(data: Data) -> ObjectVerdict:
    phase = texts(data, "status", "phase")
    if phase == "Succeeded":
        return ObjectVerdict("good", "is filled")
    running = conditions(data).get("Running")
    failed = phase == "Failed" or (texts(running, "status") == "False" and texts(running, "message") != "")
    return ObjectVerdict("bad", "is not filled") if failed else ObjectVerdict("waits", "is not filled yet")


def _claim(data: Data) -> ObjectVerdict:
    phase = texts(data, "status", "phase")
    if phase == "Bound":
        failed = filling(data).get("running") == "false" and bool(filling(data).get("running.message"))
        return ObjectVerdict("bad", "is not filled") if failed else ObjectVerdict("good", "is bound")
    return ObjectVerdict("bad", "has lost its volume") if phase == "Lost" else ObjectVerdict("waits", "is not bound yet")


def filling(data: Data) -> dict[str, str]:
    """Return the annotations of a claim about its filling; none for a claim whose DataVolume reports it."""
    if any(texts(each, "kind") == "DataVolume" for each in entries(data, "metadata", "ownerReferences")):
        return {}
    notes = at(data, "metadata", "annotations") or {}
    return {key.removeprefix(_NOTES): value for key, value in notes.items() if key.startswith(_NOTES)}


def _snapshot(data: Data) -> ObjectVerdict:
    if at(data, "status", "readyToUse"):
        return ObjectVerdict("good", "is ready to use")
    failed = texts(data, "status", "phase") == "Failed"
    return ObjectVerdict("bad", "has failed") if failed else ObjectVerdict("waits", "is not ready yet")


def _restore(data: Data) -> ObjectVerdict:
    if at(data, "status", "complete"):
        return ObjectVerdict("good", "is complete")
    return ObjectVerdict("bad", "has failed") if holds(data, "Failure") else ObjectVerdict("waits", "is not complete yet")


def _clone(data: Data) -> ObjectVerdict:
    phase = texts(data, "status", "phase")
    if phase == "Succeeded":
        return ObjectVerdict("good", "is complete")
    return ObjectVerdict("bad", "has failed") if phase == "Failed" else ObjectVerdict("waits", "is not complete yet")


def _export(data: Data) -> ObjectVerdict:
    return (
        ObjectVerdict("good", "is ready")
        if texts(data, "status", "phase") in ("Ready", "Skipped")
        else ObjectVerdict("waits", "is not ready yet")
    )


def _series(data: Data) -> ObjectVerdict:
    if at(data, "spec", "paused"):
        return ObjectVerdict("bad", "is paused")
    wanted = at(data, "spec", "replicas")
    wanted = 1 if wanted is None else wanted
    ready = at(data, "status", "readyReplicas") or 0
    if holds(data, "ReplicaFailure"):
        return ObjectVerdict("bad", f"has {ready} of {wanted} machines ready")
    if ready >= wanted:
        return ObjectVerdict("good", f"has {ready} of {wanted} machines ready")
    return ObjectVerdict("waits", f"has {ready} of {wanted} machines ready")


def _service(data: Data) -> ObjectVerdict:
    # Whether anything answers is not said by the Service itself: its rules look.
    balanced = texts(data, "spec", "type") == "LoadBalancer"
    if balanced and not entries(data, "status", "loadBalancer", "ingress"):
        return ObjectVerdict("waits", "has no address yet")
    return ObjectVerdict("good", "is published" if balanced else "is served")


def _any(data: Data) -> ObjectVerdict:
    """An object of a kind that is known by its conditions alone."""
    phase = texts(data, "status", "phase")
    if phase in ("Failed", "Error", "Lost"):
        return ObjectVerdict("bad", "has failed")
    if "Ready" not in conditions(data):
        return ObjectVerdict("unknown", "is there" if phase == "" else f"is {phase}")
    if holds(data, "Ready"):
        return ObjectVerdict("good", "is ready")
    return ObjectVerdict("bad", "is not ready")


def _of(group: str, kinds: str) -> frozenset[KindId]:
    return frozenset((group, kind) for kind in kinds.split())


# Kinds that are there for others to use: nothing is done for the object itself, so nothing can go wrong with it.
PASSIVE: frozenset[KindId] = (
    _of("", "ConfigMap Secret ServiceAccount LimitRange Namespace")
    | _of("apps", "ControllerRevision")
    | _of("storage.k8s.io", "StorageClass")
    | _of("scheduling.k8s.io", "PriorityClass")
    | _of("snapshot.storage.k8s.io", "VolumeSnapshotClass")
    | _of("instancetype.kubevirt.io", "VirtualMachineInstancetype VirtualMachineClusterInstancetype")
    | _of("instancetype.kubevirt.io", "VirtualMachinePreference VirtualMachineClusterPreference")
    | _of("migrations.kubevirt.io", "MigrationPolicy")
    | _of("kubevirt.io", "VirtualMachineInstancePreset")
    | _of("cdi.kubevirt.io", "VolumeImportSource VolumeUploadSource VolumeCloneSource StorageProfile CDIConfig")
    | _of("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
    | frozenset(kind for kind, each in kinddiagnosis.items() if each.is_passive)
)


_KINDS: dict[KindId, Callable[[Data], ObjectVerdict]] = {
    MACHINE: _machine,
    INSTANCE: _instance,
    DATA_VOLUME: _data_volume,
    CLAIM: _claim,
    SNAPSHOT: _snapshot,
    RESTORE: _restore,
    CLONE: _clone,
    EXPORT: _export,
    REPLICA_SET: _series,
    **dict.fromkeys(POOLS, _series),
    SERVICE: _service,
    **{kind: each.verdict for kind, each in kinddiagnosis.items() if each.verdict is not None},
    **{kind: _series for kind, each in kinddiagnosis.items() if each.members is not None},
}
