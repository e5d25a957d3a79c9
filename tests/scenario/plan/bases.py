"""Documents of the live kinds that keep all rules, and every one of them with one field set otherwise: old and new, to be compared."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from paddock.base.jsondata import copied
from paddock.kubernetes import admission
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from tests.kit.declarations import documents

Data = dict[str, Any]
_DEVICES: Data = {
    "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
    "interfaces": [{"name": "default", "masquerade": {}}],
}
GUEST: Data = {
    "domain": {"cpu": {"sockets": 1, "cores": 1, "threads": 1}, "memory": {"guest": "1Gi"}, "devices": _DEVICES},
    "networks": [{"name": "default", "pod": {}}],
    "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}],
}
_LABELS = {"matchLabels": {"app": "web"}}
_LABELLED: Data = {"metadata": {"labels": {"app": "web"}}, "spec": GUEST}
_MACHINE: Data = {"runStrategy": "Always", "template": {"spec": GUEST}}
_POOL: Data = {
    "replicas": 2,
    "selector": _LABELS,
    "virtualMachineTemplate": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runStrategy": "Always", "template": {"metadata": {"labels": {"app": "web"}}, "spec": GUEST}},
    },
}
_STORAGE: Data = {"resources": {"requests": {"storage": "2Gi"}}}
_CLAIM: Data = {"accessModes": ["ReadWriteOnce"], **_STORAGE}
_OF_MACHINE: Data = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
_HTTP: Data = {"http": {"url": "https://images.example/a.qcow2"}}
_DISK: Data = {"source": _HTTP, "storage": _STORAGE}
STAKATER: Data = {
    "parameters": {
        "dataSource": {"name": "debian", "namespace": "default"},
        "storage": {"size": "2Gi"},
        "memory": {"guest": "1Gi"},
        "networks": [{"name": "default", "type": "pod", "bindingName": "masquerade"}],
        "runStrategy": "Always",
    }
}
VITISTACK: Data = {"template": "small", "resources": {"memory": {"size": "2Gi"}}, "disks": [{"name": "root", "size": "20Gi"}]}
# group, kind -> specs to start from, each a good object
_SPECS: dict[tuple[str, str], tuple[Data, ...]] = {
    ("kubevirt.io", "VirtualMachine"): (_MACHINE,),
    ("kubevirt.io", "VirtualMachineInstance"): (GUEST,),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): ({"replicas": 1, "selector": _LABELS, "template": _LABELLED},),
    ("kubevirt.io", "VirtualMachinePool"): (_POOL,),
    ("pool.kubevirt.io", "VirtualMachinePool"): (_POOL,),
    ("snapshot.kubevirt.io", "VirtualMachineSnapshot"): ({"source": _OF_MACHINE},),
    ("snapshot.kubevirt.io", "VirtualMachineRestore"): ({"target": _OF_MACHINE, "virtualMachineSnapshotName": "kept"},),
    ("clone.kubevirt.io", "VirtualMachineClone"): ({"source": _OF_MACHINE, "target": {**_OF_MACHINE, "name": "other"}},),
    ("export.kubevirt.io", "VirtualMachineExport"): ({"source": _OF_MACHINE},),
    ("cdi.kubevirt.io", "DataVolume"): (
        _DISK,
        {"source": {"pvc": {"name": "golden", "namespace": "default"}}, "storage": _STORAGE},
        {"source": {"registry": {"url": "docker://registry.example/a"}}, "pvc": _CLAIM},
        {"sourceRef": {"kind": "DataSource", "name": "debian"}, "storage": _STORAGE},
    ),
    ("cdi.kubevirt.io", "DataSource"): ({"source": _HTTP}, {"source": {"pvc": {"name": "golden", "namespace": "default"}}}),
    ("cdi.kubevirt.io", "DataImportCron"): ({"schedule": "0 0 * * *", "managedDataSource": "debian", "template": {"spec": _DISK}},),
    ("cdi.kubevirt.io", "VolumeImportSource"): ({"source": _HTTP},),
    ("cdi.kubevirt.io", "VolumeCloneSource"): ({"source": {"kind": "PersistentVolumeClaim", "name": "golden"}},),
    ("cdi.kubevirt.io", "ObjectTransfer"): (
        {"source": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "a"}, "target": {"namespace": "b"}},
    ),
    ("", "PersistentVolumeClaim"): (_CLAIM,),
    ("", "Service"): ({"selector": {"app": "web"}, "ports": [{"port": 80}]},),
    ("virtualization.k8c.io", "Image"): (_HTTP,),
    ("infrastructure.stakater.com", "VirtualMachine"): (STAKATER,),
    # The document's form, and Vitistack's own.
    ("vitistack.io", "Machine"): (VITISTACK, {"provider": "kubevirt"}),
}


class Change(NamedTuple):
    """One field of an object before and after."""

    path: Path
    old: Data
    new: Data


def changes(kind: Kind, most: int = 0) -> Iterator[Change]:
    """Each field of a kind, set and unset, up and down, one at a time, on objects that differ in their names; `most` thins them out."""
    wanted = [
        (spec, place, values)
        for spec in _SPECS.get((kind.group, kind.kind), ({},))
        for place in documents.places(kind)
        if place.path and place.path[0] not in ("metadata", "status", "apiVersion", "kind")
        for values in _values(place.shape)
    ]
    step = max(1, -(-len(wanted) // most)) if most else 1
    for number, (spec, place, values) in enumerate(wanted[::step]):
        metadata = {"name": f"o{number}", **({"namespace": "default"} if kind.namespaced else {})}
        found = _pair(kind, {"metadata": metadata, **({"spec": spec} if spec else {})}, place, values)
        if found is not None:
            yield Change(place.path, *found)


def edits(kind: Kind, base: Data, under: Path, most: int) -> Iterator[Change]:
    """Each field below a place, set otherwise than an object has it, one at a time; `most` thins them out."""
    wanted = [place for place in documents.places(kind) if place.path[: len(under)] == under and [*_values(place.shape)]]
    for number, place in enumerate(wanted[:: max(1, -(-len(wanted) // most))]):
        name = f"o{number}"
        old = {**base, "metadata": {**base["metadata"], "name": name}}
        values = [value for pair in _values(place.shape) for value in pair if value is not documents.NOTHING]
        tried = (_laid(kind, old, place, value, way) for value in values for way in ("over", "beside", "alone"))
        new = next((each for each in tried if each != old and admission.admit(copied(each), AdmissionSettings()).accepted), None)
        if new is not None:
            yield Change(place.path, old, new)


def _pair(kind: Kind, base: Data, place: documents.Place, values: tuple[Any, Any]) -> tuple[Data, Data] | None:
    """The base with the one value, and with the other: laid over it, beside what is there, or in its place, whichever is valid."""
    for way in ("over", "beside", "alone"):
        old, new = (_laid(kind, base, place, value, way) for value in values)
        if old != new and all(admission.admit(copied(each), AdmissionSettings()).accepted for each in (old, new)):
            return old, new
    return None


def _values(place: shape.Shape) -> Iterator[tuple[Any, Any]]:
    """Two values of a field, both ways, and none."""
    if isinstance(place, shape.ObjectShape | shape.ListShape | shape.MapShape):
        return
    one, other = documents.valid(place, 0), documents.valid(place, 1)
    if isinstance(place, shape.QuantityShape):
        one, other = "2Gi", "4Gi"
    if isinstance(one, bool):
        other = not one
    if one != other:
        yield one, other
        yield other, one
    yield documents.NOTHING, one


def _laid(kind: Kind, base: Data, place: documents.Place, value: Any, way: str) -> Data:
    """A document that has the value at the place; what has to stand around it comes from the declaration where the base has nothing."""
    source = place.wrap(value)
    document: Data = {**source, **copied(base)}
    here: Any = document
    for index, part in enumerate(place.path[:-1]):
        source = source[part]
        if isinstance(here, list):
            entry = copied(source)
            if way == "beside" and here:
                here.append({**entry, "name": "more"} if isinstance(entry, dict) and "name" in entry else entry)
                return document
            if not here:
                here.append(entry)
                return document
        elif part not in here:
            if way == "alone" and index > 1:
                for name in [name for name in here if name != "name"]:
                    del here[name]
            here[part] = copied(source)
            return document
        here = here[part]
    _put(here, place.path[-1], value)
    return document


def _put(here: Any, part: str | int, value: Any) -> None:
    if isinstance(here, list):
        here[:1] = [value]
    elif value is documents.NOTHING:
        here.pop(part, None)
    else:
        here[part] = value
