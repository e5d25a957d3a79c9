"""Volumes that a running guest can boot from: a machine with nothing but blank disks runs, and no system in it does."""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.links import ref_of
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.scene import ObjectPlace, ObjectSnapshot, at, conditions, entries, texts
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubernetes.meta import ages
from paddock.kubevirt.plan.changes.references import CLAIM, DATA_VOLUME, INSTANCE

# A guest with an agent is heard of by then, also where it is emulated.
_PATIENCE_SECONDS = 300.0
# A disk that was made so shortly before the guest started was not written by an earlier run.
_TOGETHER_SECONDS = 600.0
_CLAIMED = (("persistentVolumeClaim", "claimName"), ("dataVolume", "name"), ("ephemeral", "persistentVolumeClaim"))
# Volumes that bring settings, and no system.
_SETTINGS = ("cloudInitNoCloud", "cloudInitConfigDrive", "sysprep", "secret", "configMap", "downwardAPI", "serviceAccount", "memoryDump")
_FILLED = ("cdi.kubevirt.io/storage.import.source", "cdi.kubevirt.io/storage.populatedFor", "k8s.io/CloneOf", "restore.kubevirt.io/name")
Origin = Literal["blank", "filled", "unknown"]


class _Blank(msgspec.Struct, frozen=True):
    """A disk that was made empty: where the machine names it, and since when it is there."""

    path: str
    name: str
    made: float | None = None


def _blanks(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id != INSTANCE or texts(node.data, "status", "phase") != "Running" or "AgentConnected" in conditions(node.data):
            continue
        blanks = _all_blank(view.scene, node)
        if blanks is None:
            continue
        started = ages.seconds_of(texts(node.data, "metadata", "creationTimestamp")) or view.scene.now
        fresh = all(each.made is None or each.made > started - _TOGETHER_SECONDS for each in blanks)
        since = max((started, *(each.made or 0.0 for each in blanks)))
        named = ", ".join(each.name for each in blanks)
        cause = f"Its disks were made empty ({named}), and it has nothing else to boot from" if blanks else "It has no disk to boot from"
        silent = view.scene.now - since
        certain = fresh and silent > _PATIENCE_SECONDS
        cause += f": no guest agent was heard of in {ages.since(since, view.scene.now)}." if certain else "."
        seen = Evidence(blanks[0].path if blanks else "spec.volumes", named, since)
        found = rule.found(node, cause, rank=CauseDepth.SAID, seen=seen)
        yield found if certain else msgspec.structs.replace(found, mood="hint")


def _all_blank(scene: ObjectSnapshot, node: WalkNode) -> list[_Blank] | None:
    """The disks, where all of them were made empty; None where something may boot, or it cannot be known."""
    data = node.data or {}
    cards = entries(data, "spec", "domain", "devices", "interfaces")
    if at(data, "spec", "domain", "firmware", "kernelBoot") or any(each.get("bootOrder") for each in cards):
        return None
    found: list[_Blank] = []
    for index, volume in enumerate(entries(data, "spec", "volumes")):
        path = f"spec.volumes[{index}]"
        if any(member in volume for member in _SETTINGS):
            continue
        if "emptyDisk" in volume:
            found.append(_Blank(f"{path}.emptyDisk", f"volume {texts(volume, 'name')}"))
            continue
        claim = _claim(node.ref, volume)
        if claim is None or _origin(scene, claim) != "blank":
            return None
        made = ages.seconds_of(texts(scene.objects.get(claim), "metadata", "creationTimestamp"))
        found.append(_Blank(path, str(claim), made))
    return found


def _claim(instance: ObjectPlace, volume: Data) -> ObjectPlace | None:
    for member, field in _CLAIMED:
        name = at(volume, member, field)
        if isinstance(name, dict):
            name = name.get("claimName")
        if isinstance(name, str) and name:
            return ref_of(CLAIM, instance.namespace, name)
    return None


def _origin(scene: ObjectSnapshot, claim: ObjectPlace) -> Origin:
    """Return the origin of a claim's content."""
    data = scene.objects.get(claim)
    if data is None:
        return "unknown"
    for owner in entries(data, "metadata", "ownerReferences"):
        if texts(owner, "kind") == "DataVolume":
            disk = scene.objects.get(ref_of(DATA_VOLUME, claim.namespace, texts(owner, "name")))
            if disk is None:
                return "unknown"
            return "blank" if "blank" in (at(disk, "spec", "source") or {}) else "filled"
    notes = at(data, "metadata", "annotations") or {}
    if at(data, "spec", "dataSource") or at(data, "spec", "dataSourceRef") or any(each in notes for each in _FILLED):
        return "filled"
    return "blank"


LOOKS: Mapping[str, Look] = {
    "disks-blank": _blanks,
}
