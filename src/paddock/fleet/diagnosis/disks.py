"""Causes that lie with disks: DataVolumes, claims, storage classes, copies, uploads, the store of the host."""

from collections.abc import Iterator, Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.links import STORAGE_CLASS, ref_of
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.scene import at, conditions, entries, texts
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubernetes.meta import ages
from paddock.kubevirt.plan.changes.references import CLAIM, DATA_VOLUME, INSTANCE

_DEFAULTS = ("storageclass.kubevirt.io/is-default-virt-class", "storageclass.kubernetes.io/is-default-class")


def _unbound(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A claim without a class where there is no default."""
    for node, data in _claims(view):
        named = at(data, "spec", "storageClassName")
        if named is None and not _has_default(view) and _knows_classes(view):
            cause = f"PVC {node.ref.name} names no storage class, and none is the default."
            yield rule.found(node, cause, seen=Evidence("spec.storageClassName", "(not set)"))


def _claims(view: RuleView) -> Iterator[tuple[WalkNode, Data]]:
    for node in view.nodes:
        if node.ref.id == CLAIM and node.data is not None and texts(node.data, "status", "phase") in ("", "Pending"):
            yield node, node.data


def _classes(view: RuleView) -> Iterator[Data]:
    for asked, found in view.scene.lists.items():
        if (asked.group, asked.kind) == STORAGE_CLASS:
            yield from (view.scene.objects[each] for each in found)


def _knows_classes(view: RuleView) -> bool:
    return any((asked.group, asked.kind) == STORAGE_CLASS for asked in view.scene.lists)


def _has_default(view: RuleView) -> bool:
    return any((at(each, "metadata", "annotations") or {}).get(note) == "true" for each in _classes(view) for note in _DEFAULTS)


def _consumer(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A disk that waits for the first machine that uses it."""
    for node in view.nodes:
        if node.ref.id == DATA_VOLUME and texts(node.data, "status", "phase") in ("WaitForFirstConsumer", "PendingPopulation"):
            cause = f"DataVolume {node.ref.name} waits for the first machine that uses it."
            yield rule.found(
                node, cause, rank=CauseDepth.SAID, seen=Evidence("status.phase", texts(node.data, "status", "phase"), _since(node))
            )
    for node, data in _claims(view):
        name = texts(data, "spec", "storageClassName")
        found = view.scene.objects.get(ref_of(STORAGE_CLASS, "", name))
        if texts(found, "volumeBindingMode") == "WaitForFirstConsumer":
            cause = f"PVC {node.ref.name} waits for the first machine that uses it, as its storage class {name} says."
            yield rule.found(node, cause, rank=CauseDepth.SAID, seen=Evidence("spec.storageClassName", name))


def _upload(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id == DATA_VOLUME and texts(node.data, "status", "phase") in ("UploadReady", "UploadScheduled"):
            if "running" in _transfer(node):
                continue
            place = f"{node.ref.name} -n {node.ref.namespace}"
            fix = f"Send the disk: virtctl image-upload dv {place} --no-create --image-path=FILE"
            cause = f"DataVolume {node.ref.name} is to be filled by an upload, and nobody has begun one."
            yield rule.found(node, cause, fix=fix, seen=Evidence("status.phase", texts(node.data, "status", "phase"), _since(node)))


def _transfer(node: WalkNode) -> str:
    """`running` while data comes in."""
    return "running" if texts(conditions(node.data).get("Ready"), "reason") == "TransferRunning" else ""


def _queued(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A disk whose turn to be filled has not come."""
    for node in view.nodes:
        running = conditions(node.data).get("Running")
        if node.ref.id == DATA_VOLUME and texts(running, "reason") == "WaitingForSlot":
            cause = f"DataVolume {node.ref.name} is {texts(running, 'message')}."
            yield rule.found(
                node, cause, rank=CauseDepth.SAID, seen=Evidence("Running: WaitingForSlot", texts(running, "message"), _since(node))
            )


def _filling(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A disk that is being filled, and no complaint."""
    for node in view.nodes:
        phase = texts(node.data, "status", "phase")
        if node.ref.id != DATA_VOLUME or not (phase.endswith(("InProgress", "Scheduled")) or _transfer(node)):
            continue
        if texts(conditions(node.data).get("Running"), "reason") == "WaitingForSlot":
            continue
        if verdict.of(node.ref, node.data or {}).state == "bad":
            # It says itself why it does not go on.
            continue
        progress = texts(node.data, "status", "progress")
        moves = progress not in ("", "N/A", "0%", "0.00%")
        cause = f"DataVolume {node.ref.name} is being filled{f', {progress} done' if moves else ''}."
        # Another attempt tells nothing new until something comes: why the last one failed still is the answer.
        rank = CauseDepth.VAGUE if at(node.data, "status", "restartCount") and not moves else CauseDepth.SAID
        yield rule.found(node, cause, rank=rank, seen=Evidence("status.phase", f"{phase} {progress}".strip(), _since(node)))


def _leaving(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A claim that was deleted under a machine that runs, and goes with it."""
    for node in view.nodes:
        gone = ages.seconds_of(texts(node.data, "metadata", "deletionTimestamp"))
        if node.ref.id != CLAIM or gone is None:
            continue
        users = _users(view, node)
        if users:
            cause = f"{node.ref} was deleted while {', '.join(users)} runs: it goes, with its data, when that stops."
            yield rule.found(node, cause, rank=CauseDepth.SAID, seen=Evidence("metadata.deletionTimestamp", "", gone))


def _users(view: RuleView, claim: WalkNode) -> list[str]:
    """The running machines that have a claim as a disk."""
    running = {each.ref: each.data for each in view.nodes if each.ref.id == INSTANCE and each.data is not None}
    for asked, found in view.scene.lists.items():
        if (asked.group, asked.kind) == INSTANCE and asked.namespace == claim.ref.namespace:
            running.update({each: view.scene.objects[each] for each in found})
    return sorted(ref.name for ref, data in running.items() if texts(data, "status", "phase") == "Running" and _names(data, claim.ref.name))


def _names(data: Data, claim: str) -> bool:
    volumes = entries(data, "spec", "volumes")
    return any(claim in (texts(each, "persistentVolumeClaim", "claimName"), texts(each, "dataVolume", "name")) for each in volumes)


def _since(node: WalkNode) -> float | None:
    from_conditions = [each for each in entries(node.data, "status", "conditions") if texts(each, "type") in ("Running", "Ready")]
    return max((_seconds(each) for each in from_conditions), default=None)


def _seconds(condition: Data) -> float:
    return ages.seconds_of(texts(condition, "lastTransitionTime")) or 0.0


LOOKS: Mapping[str, Look] = {
    "storageclass-default-missing": _unbound,
    "claim-terminating": _leaving,
    "waits-for-consumer": _consumer,
    "upload-not-begun": _upload,
    "waits-for-slot": _queued,
    "disk-being-filled": _filling,
}
