"""The part of a translated object to write to a cluster, next to the existing one (docs/spec/kubermatic.md 2.3 and 4.6). Pure.

The source of a disk is fixed where it was written once: in a machine as long as its DataVolume is there, and in a pool as long as the
user's own templates are the same, because KubeVirt answers other templates by making all machines of a pool anew.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.objects import TemplateMeta
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.extendedsources import DATA_SOURCE, IMMEDIATE, MANAGED_BY, with_class
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate

# What is about the object where it was written, and means nothing in another API.
_OWN_NOTES = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubevirt.io/latest-observed-api-version",
    "kubevirt.io/storage-observed-api-version",
)
_CALLED = ("labels", "annotations")
_SAID_OF_METADATA = ("name", "namespace", *_CALLED)
_OURS = ((MANAGED_BY, "labels"), (IMMEDIATE, "annotations"))


def outgoing(data: Data, notes: Collection[str] = ()) -> Data:
    """An object for the cluster: without what the API it was written in, and whoever works there, has added."""
    metadata = {name: value for name, value in data["metadata"].items() if name in _SAID_OF_METADATA}
    annotations = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in (*_OWN_NOTES, *notes)}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    return {**{name: value for name, value in data.items() if name != "status"}, "metadata": metadata}


def version_of(data: Data, note: str) -> str:
    """Return the version of a user's object: its generation, which counts changes of the spec, and a digest of its labels and annotations.

    `note` is the annotation that remembers the version, and no part of it.
    """
    metadata = outgoing(data, (note,))["metadata"]
    called = orjson.dumps([metadata.get(member) or {} for member in _CALLED], option=orjson.OPT_SORT_KEYS)
    return f"{data['metadata'].get('generation') or 1}.{hashlib.sha256(called).hexdigest()[:12]}"


def is_same(one: str, other: str) -> bool:
    """Return whether two versions of an object are the same but for labels and annotations."""
    return one.partition(".")[0] == other.partition(".")[0]


def templates_of(data: Data) -> list[Data]:
    """The templates of DataVolumes of a machine or a pool."""
    found: list[Data] = machine_of(data).get("dataVolumeTemplates") or []
    return found


def machine_of(data: Data) -> Data:
    """Return the spec of a machine, or of each machine of a pool."""
    spec: Data = data.get("spec") or {}
    template: Data = spec.get("virtualMachineTemplate") or {}
    return (template.get("spec") or {}) if template else spec


def fixed(
    data_volume_templates: Sequence[DataVolumeTemplate],
    there: Sequence[DataVolumeTemplate],
    namespace: str,
    existing: Collection[str] | None,
) -> list[DataVolumeTemplate]:
    """The user's templates, with the sources that were written once where those are fixed.

    `existing` names the DataVolumes that are there; None: of a pool, whose sources are fixed as long as the user's template is the same.
    """
    before = {_name_of(each): each for each in there}
    return [_fixed(each, before.get(_name_of(each)), namespace, existing) for each in data_volume_templates]


def _fixed(
    template: DataVolumeTemplate, old: DataVolumeTemplate | None, namespace: str, existing: Collection[str] | None
) -> DataVolumeTemplate:
    reference = template.spec.sourceRef
    if reference is None or old is None or old.spec.source is None:
        return template
    metadata = template.metadata or TemplateMeta()
    note = {DATA_SOURCE: f"{reference.namespace or namespace}/{reference.name}"}
    metadata = msgspec.structs.replace(metadata, annotations={**(metadata.annotations or {}), **note})
    spec = msgspec.structs.replace(with_class(template.spec), sourceRef=None, source=old.spec.source)
    made = msgspec.structs.replace(template, metadata=metadata, spec=spec)
    is_fixed = _says(to_data(made), to_data(old)) if existing is None else _name_of(template) in existing
    return made if is_fixed else template


def _name_of(template: DataVolumeTemplate) -> str:
    return (template.metadata.name if template.metadata is not None else None) or ""


def mending(wanted: Data, there: Data) -> Data:
    """Return a merge patch that restores our own values in an object, empty when they are intact: all else is the user's or KubeVirt's."""
    change: Data = {}
    metadata: Data = {}
    for name, member in _OURS:
        value = (wanted["metadata"].get(member) or {}).get(name)
        if value is not None and (there["metadata"].get(member) or {}).get(name) != value:
            metadata.setdefault(member, {})[name] = value
    if metadata:
        change["metadata"] = metadata
    ours, theirs = templates_of(wanted), {_name(each): each for each in templates_of(there)}
    if any(_is_resolved(each) and not _is_same(each, theirs.get(_name(each))) for each in ours):
        machine: Data = {"dataVolumeTemplates": ours}
        is_pool = "virtualMachineTemplate" in wanted["spec"]
        change["spec"] = {"virtualMachineTemplate": {"spec": machine}} if is_pool else machine
    return change


def called(wanted: Data, there: Data, ours: Callable[..., Collection[str]]) -> Data:
    """The labels and annotations that differ from what is wanted, as a merge patch of the metadata. `ours` tells which ones we wrote."""
    change: Data = {}
    for member in _CALLED:
        meant, found = wanted["metadata"].get(member) or {}, there["metadata"].get(member) or {}
        differing: Data = {name: value for name, value in meant.items() if found.get(name) != value}
        differing |= {name: None for name in ours("metadata", member) if name in found and name not in meant}
        if differing:
            change[member] = differing
    return change


def _is_same(template: Data, there: Data | None) -> bool:
    if there is None:
        return False
    notes = ((each.get("metadata") or {}).get("annotations") or {} for each in (template, there))
    ours, theirs = (each.get(DATA_SOURCE) for each in notes)
    return bool(ours == theirs and template["spec"].get("source") == (there.get("spec") or {}).get("source"))


def _is_resolved(template: Data) -> bool:
    return DATA_SOURCE in ((template.get("metadata") or {}).get("annotations") or {})


def _says(wanted: Any, there: Any) -> bool:
    """Return whether every desired value is there; a cluster may have completed the object."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        return all(name in there and _says(value, there[name]) for name, value in wanted.items())
    return bool(wanted == there)


def _name(template: Data) -> str:
    return str((template.get("metadata") or {}).get("name", ""))
