"""The links from an object to others: created objects, named objects, and the host it runs on.

Names that people write are in `paddock.kubevirt.plan.changes.references`; here are the objects that programs make, and those of a cluster.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import ChildQuery, ObjectPlace, ObjectSnapshot, at, conditions, entries, holds, texts
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubernetes.schema.finding import format_path
from paddock.kubevirt.plan.changes.references import (
    CLAIM,
    DATA_SOURCE,
    DATA_VOLUME,
    INSTANCE,
    MACHINE,
    SECRET,
    SNAPSHOT,
    references,
)
from paddock.kubevirt.plan.diagnosis import kinddiagnosis

How = Literal["made", "names", "uses"]
NODE: KindId = ("", "Node")
POD: KindId = ("", "Pod")
SERVICE: KindId = ("", "Service")
ENDPOINTS: KindId = ("", "Endpoints")
SERVICE_ACCOUNT: KindId = ("", "ServiceAccount")
NAMESPACE: KindId = ("", "Namespace")
STORAGE_CLASS: KindId = ("storage.k8s.io", "StorageClass")
PRIORITY: KindId = ("scheduling.k8s.io", "PriorityClass")
VOLUME_SNAPSHOT: KindId = ("snapshot.storage.k8s.io", "VolumeSnapshot")
RESTORE: KindId = ("snapshot.kubevirt.io", "VirtualMachineRestore")
CLONE: KindId = ("clone.kubevirt.io", "VirtualMachineClone")
EXPORT: KindId = ("export.kubevirt.io", "VirtualMachineExport")
REPLICA_SET: KindId = ("kubevirt.io", "VirtualMachineInstanceReplicaSet")
POOLS: tuple[KindId, ...] = (("kubevirt.io", "VirtualMachinePool"), ("pool.kubevirt.io", "VirtualMachinePool"))
# Without a namespace.
WIDE: frozenset[KindId] = frozenset(
    (
        NODE,
        NAMESPACE,
        STORAGE_CLASS,
        PRIORITY,
        ("instancetype.kubevirt.io", "VirtualMachineClusterInstancetype"),
        ("instancetype.kubevirt.io", "VirtualMachineClusterPreference"),
        *(kind for kind, each in kinddiagnosis.items() if each.is_wide),
    )
)
# The search follows so many members of a series.
_MOST_MEMBERS = 3
CREATED_BY = "kubevirt.io/created-by"


class ReferenceLink(msgspec.Struct, frozen=True):
    """One step. `path` is the field that says so; of several targets one is enough."""

    to: tuple[ObjectPlace, ...]
    how: How
    path: str = ""


def ref_of(id: KindId, namespace: str, name: str) -> ObjectPlace:
    """The place of an object; what has no namespace has none here."""
    return ObjectPlace(*id, "" if id in WIDE else namespace, name)


def links(scene: ObjectSnapshot, ref: ObjectPlace, data: Data, *, named: bool) -> Iterator[ReferenceLink]:
    """The steps from an object. Without `named` only those to what was made of it: what it named was had."""
    made = _MADE.get(ref.id)
    if made is not None:
        yield from made(scene, ref, data)
    known = kinddiagnosis.of(ref.id)
    if known.members is not None:
        yield from _members(scene, ref, data, known.members)
    for each in known.made(data) if known.made is not None else ():
        yield ReferenceLink((ref_of(each.kind, each.namespace or ref.namespace, each.name),), "made", each.path)
    if not named:
        return
    spec = {"spec": data.get("spec") or {}}
    for reference in references(ref.group, ref.kind, spec):
        if _is_optional(data, reference.path):
            continue
        namespace = reference.namespace or ref.namespace
        to = tuple(ref_of(each, namespace, reference.name) for each in reference.to)
        yield ReferenceLink(to, "names", format_path(reference.path))
    uses = _USES.get(ref.id)
    if uses is not None:
        yield from uses(scene, ref, data)
    for name, path in known.classes(data) if known.classes is not None else ():
        yield ReferenceLink((ref_of(STORAGE_CLASS, "", name),), "uses", path)


def _is_optional(data: Data, path: Sequence[str | int]) -> bool:
    """Return whether the named object may be absent: of a Provider that is the server itself its credentials, of a snapshot its machine."""
    if path[-2:] == ("credentialSecretRef", "name") and texts(data, "spec", "type") == "qemu":
        return True
    if path[-2:] == ("vmRef", "name") and texts(data, "status", "snapshotID"):
        return True
    owner: Any = data
    for part in path[:-1]:
        owner = owner[part]
    return bool(owner.get("optional"))


def lists(ref: ObjectPlace, data: Data) -> Iterator[ChildQuery]:
    """The lists that tell more of an object."""
    wants = _LISTS.get(ref.id)
    if wants is not None:
        yield from wants(ref, data)


# --- made of it -----------------------------------------------------------------------------------------------------------


def _one(id: KindId, ref: ObjectPlace, name: str, path: str = "") -> ReferenceLink:
    return ReferenceLink((ref_of(id, ref.namespace, name),), "made", path)


def _of_machine(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    yield _one(INSTANCE, ref, ref.name)
    yield from _hosts(scene, ref, data)
    if holds(data, "Ready"):
        return
    for index, each in enumerate(entries(data, "spec", "dataVolumeTemplates")):
        yield _one(DATA_VOLUME, ref, texts(each, "metadata", "name"), f"spec.dataVolumeTemplates[{index}].metadata.name")
    for member, kind in (("restoreInProgress", RESTORE), ("snapshotInProgress", SNAPSHOT)):
        if name := texts(data, "status", member):
            yield _one(kind, ref, name, f"status.{member}")


def _of_instance(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    if node := texts(data, "status", "nodeName"):
        yield ReferenceLink((ref_of(NODE, "", node),), "uses", "status.nodeName")
    yield from _hosts(scene, ref, data)
    yield from _members(scene, ref, data, POD)
    if texts(data, "status", "phase") == "Running":
        # A guest goes on using its disks; other things that it was started with it does not miss.
        for index, volume in enumerate(entries(data, "spec", "volumes")):
            for member, field in (("persistentVolumeClaim", "claimName"), ("dataVolume", "name")):
                if name := texts(volume, member, field):
                    yield ReferenceLink((ref_of(CLAIM, ref.namespace, name),), "uses", f"spec.volumes[{index}].{member}.{field}")


def _hosts(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    """The hosts of a cluster that has none that is ready: nobody looks after a machine that is on none of them."""
    for asked in _every_host(ref, data):
        found = sorted(scene.lists.get(asked, ()))
        if not any(holds(scene.objects.get(each, {}), "Ready") for each in found):
            for each in found[:_MOST_MEMBERS]:
                yield ReferenceLink((each,), "uses")


def _every_host(ref: ObjectPlace, data: Data) -> Iterator[ChildQuery]:
    placed = texts(data, "status", "nodeName") or holds(data, "Ready")
    if not placed and texts(data, "status", "printableStatus") != "Stopped":
        yield ChildQuery(*NODE, "")


def _of_data_volume(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    yield _one(CLAIM, ref, texts(data, "status", "claimName") or ref.name)


def _of_claim(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    for owner in entries(data, "metadata", "ownerReferences"):
        if texts(owner, "kind") == "DataVolume":
            yield _one(DATA_VOLUME, ref, texts(owner, "name"))
    notes = at(data, "metadata", "annotations") or {}
    for role in ("import", "upload", "clone"):
        if pod := texts(notes, f"cdi.kubevirt.io/storage.{role}PodName") or texts(notes, f"cdi.kubevirt.io/storage.{role}.{role}PodName"):
            yield _one(POD, ref, pod)


def _of_series(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    yield from _members(scene, ref, data, INSTANCE if ref.id == REPLICA_SET else MACHINE)


def _members(scene: ObjectSnapshot, ref: ObjectPlace, data: Data, id: KindId) -> Iterator[ReferenceLink]:
    """Those that are not ready, as far as it makes sense to look at them."""
    found = [each for asked in lists(ref, data) if (asked.group, asked.kind) == id for each in scene.lists.get(asked, ())]
    unready = [each for each in found if not holds(scene.objects.get(each, {}), "Ready")]
    for each in sorted(unready)[:_MOST_MEMBERS]:
        yield ReferenceLink((each,), "made")


def _of_service(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    yield _one(ENDPOINTS, ref, ref.name)
    chosen = at(data, "spec", "selector") or {}
    for asked in lists(ref, data):
        for each in scene.lists.get(asked, ()):
            labels = at(scene.objects.get(each), "metadata", "labels") or {}
            if chosen and all(labels.get(key, _implied(key, each)) == value for key, value in chosen.items()):
                yield ReferenceLink((each,), "made", "spec.selector")


def _implied(key: str, instance: ObjectPlace) -> str | None:
    """Labels that a machine's launcher has without anybody writing them."""
    return {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": instance.name, "kubevirt.io/domain": instance.name}.get(key)


def _of_snapshot(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    if name := texts(data, "status", "virtualMachineSnapshotContentName"):
        yield _one(("snapshot.kubevirt.io", "VirtualMachineSnapshotContent"), ref, name, "status.virtualMachineSnapshotContentName")


def _of_restore(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    yield _one(MACHINE, ref, texts(data, "spec", "target", "name"), "spec.target.name")
    for each in entries(data, "status", "restores"):
        yield _one(CLAIM, ref, texts(each, "persistentVolumeClaim"))


def _of_clone(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    for member, kind in (("snapshotName", SNAPSHOT), ("restoreName", RESTORE)):
        if name := texts(data, "status", member):
            yield _one(kind, ref, name, f"status.{member}")


_MADE: dict[KindId, Callable[[ObjectSnapshot, ObjectPlace, Data], Iterator[ReferenceLink]]] = {
    MACHINE: _of_machine,
    INSTANCE: _of_instance,
    DATA_VOLUME: _of_data_volume,
    CLAIM: _of_claim,
    REPLICA_SET: _of_series,
    **dict.fromkeys(POOLS, _of_series),
    SERVICE: _of_service,
    SNAPSHOT: _of_snapshot,
    RESTORE: _of_restore,
    CLONE: _of_clone,
}


# --- brought along --------------------------------------------------------------------------------------------------------


def _class_of(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    if texts(conditions(data).get("Bound"), "status") == "True" or texts(data, "status", "phase") == "Bound":
        return
    for path in (("storageClassName",), ("pvc", "storageClassName"), ("storage", "storageClassName")):
        if name := texts(data, "spec", *path):
            yield ReferenceLink((ref_of(STORAGE_CLASS, "", name),), "uses", f"spec.{'.'.join(path)}")


def _source_of(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    """The claim or the snapshot that a claim is a copy of, and its class."""
    yield from _class_of(scene, ref, data)
    known = {"PersistentVolumeClaim": CLAIM, "VolumeSnapshot": VOLUME_SNAPSHOT}
    for member in ("dataSourceRef", "dataSource"):
        found = at(data, "spec", member) or {}
        group = texts(found, "apiGroup")
        kind = known.get(texts(found, "kind"), (group, texts(found, "kind")))
        if texts(found, "namespace") not in ("", ref.namespace):
            # Nobody follows it.
            return
        if texts(found, "name") and kind[0] in ("", "snapshot.storage.k8s.io", "cdi.kubevirt.io"):
            yield ReferenceLink((ref_of(kind, ref.namespace, texts(found, "name")),), "names", f"spec.{member}.name")
            return


def _of_guest(at_path: str) -> Callable[[ObjectSnapshot, ObjectPlace, Data], Iterator[ReferenceLink]]:
    def uses(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
        spec = at(data, *at_path.split(".")) or {}
        yield from _classes_of_templates(ref, data)
        name = texts(spec, "priorityClassName")
        if name and not name.startswith("system-"):
            yield ReferenceLink((ref_of(PRIORITY, "", name),), "uses", f"{at_path}.priorityClassName")
        for index, volume in enumerate(entries(spec, "volumes")):
            path = f"{at_path}.volumes[{index}]"
            if account := texts(volume, "serviceAccount", "serviceAccountName"):
                yield ReferenceLink(
                    (ref_of(SERVICE_ACCOUNT, ref.namespace, account),), "names", f"{path}.serviceAccount.serviceAccountName"
                )
            if secret := texts(volume, "containerDisk", "imagePullSecret"):
                yield ReferenceLink((ref_of(SECRET, ref.namespace, secret),), "names", f"{path}.containerDisk.imagePullSecret")
            if (name := texts(volume, "dataVolume", "name")) and ref.id == INSTANCE:
                yield ReferenceLink((ref_of(CLAIM, ref.namespace, name),), "uses", f"{path}.dataVolume.name")

    return uses


def _classes_of_templates(ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    for index, template in enumerate(entries(data, "spec", "dataVolumeTemplates")):
        for member in ("storage", "pvc"):
            if name := texts(template, "spec", member, "storageClassName"):
                path = f"spec.dataVolumeTemplates[{index}].spec.{member}.storageClassName"
                yield ReferenceLink((ref_of(STORAGE_CLASS, "", name),), "uses", path)


def _of_source(scene: ObjectSnapshot, ref: ObjectPlace, data: Data) -> Iterator[ReferenceLink]:
    snapshot = at(data, "spec", "source", "snapshot") or {}
    if name := texts(snapshot, "name"):
        place = ref_of(VOLUME_SNAPSHOT, texts(snapshot, "namespace") or ref.namespace, name)
        yield ReferenceLink((place,), "names", "spec.source.snapshot.name")


_USES: dict[KindId, Callable[[ObjectSnapshot, ObjectPlace, Data], Iterator[ReferenceLink]]] = {
    DATA_VOLUME: _class_of,
    CLAIM: _source_of,
    DATA_SOURCE: _of_source,
    MACHINE: _of_guest("spec.template.spec"),
    INSTANCE: _of_guest("spec"),
}


# --- lists ----------------------------------------------------------------------------------------------------------------


def _pods(ref: ObjectPlace, data: Data) -> Iterator[ChildQuery]:
    yield from _every_host(ref, data)
    if uid := texts(data, "metadata", "uid"):
        yield ChildQuery(*POD, ref.namespace, f"{CREATED_BY}={uid}")


def _selected(id: KindId) -> Callable[[ObjectPlace, Data], Iterator[ChildQuery]]:
    def wants(ref: ObjectPlace, data: Data) -> Iterator[ChildQuery]:
        found = at(data, "spec", "selector")
        text = selectors.text(msgspec.convert(found, LabelSelector)) if isinstance(found, dict) and found else ""
        if text:
            yield ChildQuery(*id, ref.namespace, text)

    return wants


def _instances(ref: ObjectPlace, data: Data) -> Iterator[ChildQuery]:
    if at(data, "spec", "selector"):
        yield ChildQuery(*INSTANCE, ref.namespace)


def _classes(ref: ObjectPlace, data: Data) -> Iterator[ChildQuery]:
    if texts(data, "status", "phase") != "Bound":
        yield ChildQuery(*STORAGE_CLASS, "")
    if texts(data, "metadata", "deletionTimestamp"):
        yield ChildQuery(*INSTANCE, ref.namespace)


_LISTS: dict[KindId, Callable[[ObjectPlace, Data], Iterator[ChildQuery]]] = {
    MACHINE: _every_host,
    INSTANCE: _pods,
    REPLICA_SET: _selected(INSTANCE),
    **dict.fromkeys(POOLS, _selected(MACHINE)),
    **{kind: _selected(each.members) for kind, each in kinddiagnosis.items() if each.members is not None},
    SERVICE: _instances,
    CLAIM: _classes,
}
